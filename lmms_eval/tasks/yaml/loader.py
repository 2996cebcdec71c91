"""Reads task YAML: ``!function``, ``include``, and paths relative to the file that states them.

Functions stay references (``FunctionRef``) until a task is built, so that listing tasks imports nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.functions import FunctionRef
from lmms_eval.tasks.yaml.included import LM_EVAL, package_of
from lmms_eval.utils.files import StatedPath, read_text
from lmms_eval.utils.yaml_bounds import load_bounded

LARGEST = 1 << 24
"""Bytes of the largest task file."""
_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_BASE):  # type: ignore[misc]  # the C loader has no types
    file: Path


_Loader.add_constructor("!function", lambda loader, node: FunctionRef(str(node.value), str(loader.file)))


class YamlReader:
    """Reads YAML files with their includes; each file is parsed once.

    Args:
        keys: parse only these top-level keys and ``include``, which is faster and enough for an index.
        package: the package whose rules count; by default that of the included folder or pack that holds the file.
    """

    def __init__(self, keys: Sequence[str] = (), package: str = "") -> None:
        self._keys = (*keys, "include") if keys else ()
        self._package = package
        self._parsed: dict[Path, dict[str, Any]] = {}
        self._real: dict[Path, Path] = {}
        """Paths without symbolic links, by the paths that were asked for, and of their folders."""

    def read(self, path: Path) -> dict[str, Any]:
        """Read a file with its ``include`` merged in: shallow, the file over what it includes.

        Of a list, the first entry is over later ones; in packs of lm-eval, the last one over earlier ones.

        Raises ``TaskError`` if the file is missing, is not a YAML mapping, or its includes form a cycle.
        """
        return self._read(self._resolved(path), ())

    def included(self, path: Path, above: Path | None = None) -> list[Path]:
        """Return the files that a file includes directly, in the order of its list.

        Args:
            path: the file.
            above: a file that includes it, for the message if it is missing.

        Raises:
            TaskError: the file is missing or is not a YAML mapping, or ``include`` is neither a path nor a list.
        """
        stated = self._own(path, above).get("include") or []
        entries = [stated] if isinstance(stated, str) else stated
        if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
            raise TaskError(f"{path}: include must be a path or a list of paths")
        return [self._resolved(path.parent / entry) for entry in entries]

    def all_files(self, path: Path) -> list[Path]:
        """Return a file and everything that it includes, directly or through others, each once."""
        found = [self._resolved(path)]
        for file in found:  # grows
            found += [other for other in self.included(file) if other not in found]
        return found

    def _resolved(self, path: Path) -> Path:
        """Return what ``Path.resolve`` returns, without looking at a folder twice."""
        found = self._real.get(path)
        if found is None:
            found = path if path.name == ".." or path.parent == path else self._resolved(path.parent) / path.name
            if found is path or found.is_symlink():
                found = found.resolve()
            self._real[path] = found
        return found

    def _own(self, path: Path, above: Path | None) -> dict[str, Any]:
        """Return the keys that the file itself states."""
        if path not in self._parsed:
            text = read_text(path, above, LARGEST)
            self._parsed[path] = parse_text(_only_keys(text, self._keys) if self._keys else text, path)
        return self._parsed[path]

    def _read(self, path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
        if path in above:
            chain = " -> ".join(str(item) for item in (*above[above.index(path) :], path))
            raise TaskError(f"{path}: include cycle: {chain}; take one of these include lines out")
        merged: dict[str, Any] = {}
        files = self.included(path, above[-1] if above else None)
        later_wins = (self._package or package_of(path)) == LM_EVAL if len(files) > 1 else False
        for file in files if later_wins else reversed(files):
            merged.update(self._read(file, (*above, path)))
        merged.update(self._own(path, None))
        merged.pop("include", None)
        return merged


def _only_keys(text: str, keys: Sequence[str]) -> str:
    """Return the blocks of some top-level keys; the whole text if indentation does not separate the blocks."""
    if "&" in text or text.lstrip().startswith(("{", "%", "---")):
        return text
    kept, keep = [], False
    for line in text.splitlines():
        if line[:1] not in (" ", "\t", "#", "-", "", "]", "}"):
            keep = line.split(":", 1)[0].strip("\"' ") in keys
        if keep:
            kept.append(line)
    return "\n".join(kept)


def parse_text(text: str, path: Path) -> dict[str, Any]:
    """Parse the text of a YAML file without includes: functions as ``FunctionRef``, data paths as ``StatedPath``.

    Raises ``TaskError`` if the text is not YAML (the message has the line), or not a mapping.
    """

    def loader(content: str) -> _Loader:
        made = _Loader(content)
        made.file = path
        return made

    try:
        data = load_bounded(text, loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error)
        raise TaskError(f"{path}{line}: not valid task YAML: {problem}") from error
    except ValueError as error:  # an impossible date such as 2024-13-45
        raise TaskError(f"{path}: {error}; put values that look like dates in quotes") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise TaskError(f"{path}: a task file must be a mapping of keys, not a {type(data).__name__}")
    return _stated(data, path)


def _stated(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Attach the folder of the stating file to data paths."""
    folder = path.parent
    made = dict(data)
    if isinstance(made.get("dataset_path"), str):
        made["dataset_path"] = StatedPath(made["dataset_path"], folder)
    kwargs = made.get("dataset_kwargs")
    if isinstance(kwargs, dict):
        made["dataset_kwargs"] = {
            key: _mark(value, folder) if key in ("data_files", "data_dir") else value for key, value in kwargs.items()
        }
    table = made.get("task_table")
    if isinstance(table, dict):
        own = table.get("set")
        marked = {"file": _mark(table.get("file"), folder), "set": _stated(own, path) if isinstance(own, dict) else own}
        made["task_table"] = {**table, **{key: value for key, value in marked.items() if key in table}}
    members = made.get("task")
    if isinstance(members, list):
        made["task"] = [_stated(member, path) if isinstance(member, dict) else member for member in members]
    return made


def _mark(value: Any, folder: Path) -> Any:
    if isinstance(value, str):
        return StatedPath(value, folder)
    if isinstance(value, Mapping):
        return {key: _mark(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_mark(item, folder) for item in value]
    return value


def encode(value: Any) -> Any:
    """Convert a YAML value to JSON: references and stated paths become one-key mappings. ``decode`` reverses it."""
    if isinstance(value, FunctionRef):
        return {"!function": [value.name, value.file]}
    if isinstance(value, StatedPath):
        return {"!path": [str(value), str(value.folder)]}
    if isinstance(value, Mapping):
        return {"!items": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TaskError(f"a {type(value).__name__} ({value!r}) cannot be handed to a scoring process: use scoring: inline")


def decode(value: Any) -> Any:
    """Reverse ``encode``."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "!function" in value:
        return FunctionRef(*value["!function"])
    if "!path" in value:
        text, folder = value["!path"]
        return StatedPath(text, Path(folder))
    return {decode(key): decode(item) for key, item in value["!items"]}
