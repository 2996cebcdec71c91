"""Configuration files: YAML with one mapping of options, or a list of them, each with an optional ``env`` part."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lmms_eval.errors import ConfigError
from lmms_eval.utils.yaml_bounds import load_bounded

_VARIABLE = re.compile(
    r"\$(?:(?P<escape>\$)|\{(?P<braced>[A-Za-z_]\w*)(?::-(?P<default>(?:[^{}]|\{[^{}]*\})*))?\}"
    r"|(?P<plain>[A-Za-z_]\w*)|(?P<broken>\{))"
)
_SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")


@dataclass(frozen=True, slots=True)
class FileItem:
    """One run of a configuration file."""

    place: str
    """File and number, for messages."""
    values: Mapping[str, Any]
    environment: Mapping[str, Any]
    """The ``env`` part as written: values not expanded yet."""


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping, where YAML would keep the last one without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # the base class refuses it
            if key in seen:
                raise ConfigError(f"line {key_node.start_mark.line + 1}: the key {key!r} stands twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_config_file(path: str) -> list[FileItem]:
    """The runs that a file describes.

    Raises:
        ConfigError: the file cannot be read, is no YAML, or holds neither a mapping nor a list of mappings.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config: cannot read {path}: {error}") from error
    return read_config_text(text, path)


def read_config_text(text: str, name: str) -> list[FileItem]:
    """Read the runs that the text of a file describes; ``name`` stands for the file in messages.

    Raises:
        ConfigError: it is no YAML, or holds neither a mapping nor a list of mappings.
    """
    try:
        content = load_bounded(text, _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or type(error).__name__  # not the line itself: it may hold a secret
        raise ConfigError(f"--config: {name} is no valid YAML: {place}{problem}") from None
    except ConfigError as error:
        raise ConfigError(f"--config: {name}, {error}") from error
    if isinstance(content, list) and content:
        return [_item(entry, f"{name}, run {number}") for number, entry in enumerate(content, start=1)]
    return [_item(content, name)]


def _item(content: Any, place: str) -> FileItem:
    if not isinstance(content, Mapping) or not content:
        raise ConfigError(f"{place}: needs a mapping of options (or the file a list of such mappings)")
    values = {str(key): value for key, value in content.items()}
    environment = values.pop("env", None)
    if environment is None:
        environment = {}
    if not isinstance(environment, Mapping):
        raise ConfigError(f"{place}: env needs a mapping of variable names to values")
    return FileItem(place, values, environment)


def apply_environment(items: Sequence[FileItem], environ: MutableMapping[str, str]) -> list[str]:
    """Set the variables of all items in file order; returns a line for the log for each, with secrets masked.

    Raises:
        ConfigError: a value is no text, number or boolean, or names a variable that is not set.
    """
    lines = []
    for item in items:
        for name, value in item.environment.items():
            if not isinstance(value, str | int | float):
                raise ConfigError(f"{item.place}: env: {name} needs a text, a number or a boolean")
            environ[str(name)] = text = _expand(str(value), environ, f"{item.place}: env: {name}")
            lines.append(f"Config env: {name}={mask(str(name), text)}")
    return lines


def mask(name: str, text: str) -> str:
    """The value as it may be shown: up to 8 asterisks where the name tells of a secret."""
    return "*" * min(8, len(text)) if _is_secret(name) else text


def _is_secret(name: str) -> bool:
    return any(word in name.upper() for word in _SECRET_NAMES)


def _expand(text: str, environ: Mapping[str, str], place: str) -> str:
    """``$VAR``, ``${VAR}`` and ``${VAR:-default}`` (for unset or empty ``VAR``) replaced; ``$$`` stands for ``$``."""

    def replace(match: re.Match[str]) -> str:
        if match["escape"]:
            return "$"
        if match["broken"]:
            raise ConfigError(
                f"{place}: cannot read '${{...}}'; write ${{VAR}} or ${{VAR:-default}}, and $$ for a plain $"
            )
        name = match["braced"] or match["plain"]
        value = environ.get(name)
        if match["default"] is not None:
            return value or _expand(match["default"], environ, place)
        if value is None:
            shown = "a variable in it" if _is_secret(place.rpartition(" ")[2]) else f"the variable {name}"
            raise ConfigError(f"{place}: {shown} is not set; set it, write ${{VAR:-default}}, or $$ for a plain $")
        return value

    return _VARIABLE.sub(replace, text)
