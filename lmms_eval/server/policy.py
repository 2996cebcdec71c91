"""Rules for requests: they may use only the files, addresses and code that the server was started with."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.config.convert import argument_mapping
from lmms_eval.config.options import Option, option_table
from lmms_eval.errors import ConfigError, RefusedRequestError, RequestError, UsageError
from lmms_eval.server.settings import ServerSettings
from lmms_eval.utils.document_ids import parse_ids
from lmms_eval.utils.redaction import is_secret_key

_CODE = frozenset(
    {
        "allow_unsafe_code", "include_path", "launcher_args", "logits_processors", "mcp_server_path", "plugins",
        "trust_remote_code",
    }
)  # fmt: skip
"""Options and arguments that would run code of the request."""
_CODE_ENDINGS = ("_cls", "_module", "_module_path", "_plugin", "_plugins")
_UPLOADS = ("hf_hub_log_args", "otlp", "swanlab_args", "trackio_args", "wandb_args")
"""Options that upload results with the keys of the server's environment."""
_ADDRESS_ENDINGS = ("_addr", "_address", "_base", "_endpoint", "_host", "_proxy", "_uri", "_url")
_ADDRESS_NAMES = frozenset(ending[1:] for ending in _ADDRESS_ENDINGS) | {"geocoder", "proxies"}
_NO_ADDRESSES = frozenset({"nominatim", "true", "false"})
_LONGEST_PATH, _LONGEST_NAME = 4096, 255
_DEEPEST_TEXT = 8
_OFF = (None, False, "", "false", "False", "0", 0)
_TASK_FILES = (".yaml", ".yml", ".py")
_RUN_FILES = (".json", ".jsonl")
_SEPARATORS = re.compile(r"""[,;:=|@#"'`()\[\]{}]""")
_ARGUMENT_SEPARATORS = re.compile(r"""[,;:=|@#"'`()\[\]{}\s]""")
"""Separators in arguments, which back ends may split at spaces too."""
_ADDRESS = re.compile(r"""[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s,;|"'`()<>\[\]{}]*""")
_HUB = re.compile(r"(?:[^/]*[\s:=])?hf://(?!.*://)", re.DOTALL)
"""A place on the hub, alone or after a word and a colon (``decided:``)."""
_FREE = frozenset({
    ("gen_kwargs", "stop"), ("gen_kwargs", "until"), ("reasoning_tags",), ("system_instruction",), ("thinking_tags",),
    ("where",),
})  # fmt: skip
"""Texts for a model or in a grammar of their own, which are not searched for paths."""
_ENDS = re.compile(r"[,;\s]")
_COLOURS = re.compile(r"\x1b\[[0-9;]{0,16}[A-Za-z]")
_SIGNS = r"""\s'"`()\[\]{},;:=<>|"""
_PATH = re.compile(rf"(?<![^{_SIGNS}])/(?:[^/{_SIGNS}]|//)[^{_SIGNS}]*")
"""An absolute path in a text. Two slashes at the beginning are the rest of an address."""
_PATH_MARKS = ("FILE", "DIR", "PATH")


class _Value(Struct, frozen=True):
    """A plain value in a request, with the keys that lead to it."""

    place: tuple[str, ...]
    value: Any

    @property
    def name(self) -> str:
        return ".".join(self.place)

    @property
    def is_address(self) -> bool:
        """Whether the value is an address that the run would send requests to."""
        name = self.place[-1].strip().lower().replace("-", "_")
        return name in _ADDRESS_NAMES or name.endswith(_ADDRESS_ENDINGS)

    @property
    def hidden_paths(self) -> list[str]:
        """Paths within a text, after a name (``replay:PATH``) or another separator.

        This applies to all options, since back ends, judges and rules split such texts in their own ways.
        """
        if self.place[:1] in _FREE or self.place[:2] in _FREE:
            return []
        is_argument = self.place[0].endswith("_args")
        text = _ADDRESS.sub(",", self.value)
        parts = (_ARGUMENT_SEPARATORS if is_argument else _SEPARATORS).split(text)
        found = [part.strip() for part in parts if part.strip() != "/" or not is_argument]
        # Everything after the first separator may be one path that contains separators.
        rest = _SEPARATORS.search(text)
        tail = text[rest.end() :].strip() if rest else ""
        return [part for part in (*found, *([tail] if tail.startswith("/") else [])) if _leads_elsewhere(part)]


class Policy(Struct, frozen=True):
    """Limits of what requests may ask for.

    Args:
        roots: folders that the paths of requests must lie in.
        addresses: servers that requests may name; they receive the keys of this server's environment.
        allows_code: requests may bring code (``trust_remote_code``, ``include_path``, plugins, task files).
        allows_uploads: requests may upload results with the server's keys.
        own: the server's folder. It holds the jobs of other clients, so it stays closed inside an allowed folder.
    """

    roots: tuple[Path, ...] = ()
    addresses: tuple[str, ...] = ()
    allows_code: bool = False
    allows_uploads: bool = False
    own: Path | None = None

    @classmethod
    def of(cls, settings: ServerSettings) -> Policy:
        """Return the rules of a server."""
        rules = cls.of_places(settings.allow_paths, settings.allow_code)
        return replace(rules, allows_uploads=settings.allow_uploads, own=settings.folder.resolve())

    @classmethod
    def of_places(cls, places: tuple[str, ...], allows_code: bool = False) -> Policy:
        """Return the rules for folders and addresses as ``--allow_path`` names them."""
        addresses = tuple(place.rstrip("/") for place in places if "://" in place)
        roots = tuple(Path(place).expanduser().resolve() for place in places if "://" not in place)
        return cls(roots, addresses, allows_code)

    def check(self, request: Mapping[str, Any]) -> None:
        """Check a request, whose values may still have any type.

        Raises:
            RefusedRequestError: the request asks for more than is allowed. The message names the field and the flag.
            RequestError: the text of an argument cannot be parsed.
        """
        for value in _values(request):
            if any(is_secret_key(key) for key in value.place) and value.value not in _OFF:
                raise RefusedRequestError(
                    f"{value.name}: keys come from the server's environment, never from a request: leave it out"
                )
            named = {key.strip().lower().lstrip("-").replace("-", "_") for key in value.place}
            is_code = bool(named & _CODE) or any(key.endswith(_CODE_ENDINGS) for key in named)
            is_file = value.place[0] == "tasks" and isinstance(value.value, str) and names_file(value.value)
            if (is_code or is_file) and value.value not in _OFF and not self.allows_code:
                raise RefusedRequestError(
                    f"{value.name}: it would run code that is not the server's; the server must be started with "
                    "--allow_code for that"
                )
            if value.place[0] in _UPLOADS and value.value not in _OFF and not self.allows_uploads:
                raise RefusedRequestError(
                    f"{value.name}: it would send results elsewhere with the server's keys; the server must be started "
                    "with --allow_uploads for that"
                )
            if isinstance(value.value, str):
                self._check_text(value)

    def check_path(self, name: str, text: str) -> Path:
        """Resolve a path that must be a file or folder in an allowed folder.

        For paths outside of the allowed folders, the message does not depend on what exists there. Raises
        ``RefusedRequestError`` if the path is not allowed.
        """
        if len(text) > _LONGEST_PATH or any(len(os.fsencode(part)) > _LONGEST_NAME for part in text.split("/")):
            raise RefusedRequestError(f"{name}: the path is too long")
        if not text.startswith("/"):
            raise RefusedRequestError(f"{name}: give an absolute path")
        try:
            path = Path(text).resolve()
            roots = [root for root in self.roots if path.is_relative_to(root)]
            if self.own is not None and path.is_relative_to(self.own):  # no folder above the server's own opens it
                roots = [root for root in roots if self.own == root or not self.own.is_relative_to(root)]
            is_allowed = bool(roots)
        except (OSError, RuntimeError, ValueError):
            is_allowed = False
        if not is_allowed:
            raise RefusedRequestError(
                f"{name}: this path lies in no folder that the server allows; it was started with "
                f"{'--allow_path for others' if self.roots else 'none (--allow_path DIR)'}"
            )
        with contextlib.suppress(OSError):
            mode = path.stat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise RefusedRequestError(f"{name}: this path is neither a file nor a folder")
        return path

    def _check_text(self, value: _Value) -> None:
        text = value.value
        option = option_table().get(value.place[0])
        if "\0" in text:
            raise RefusedRequestError(f"{value.name}: no text of an option holds a null character")
        if "://" in text:
            for part in text.replace(";", ",").split(","):
                is_on_hub = _HUB.match(part.strip()) is not None and ".." not in part.strip().split("/")
                if "://" in part and not (is_on_hub or self._allows_address(part.strip())):
                    raise RefusedRequestError(
                        f"{value.name}: requests would go to an address that the server does not allow "
                        "(--allow_path URL)"
                    )
        elif value.is_address and text.strip() and text.lower() not in _NO_ADDRESSES:
            raise RefusedRequestError(f"{value.name}: give a whole address, with http:// or https://")
        elif _is_path(text, value, option):
            separator = "," if option is not None and "," in option.metavar else None
            if option is not None and option.name == "nltk_data":
                separator = os.pathsep
            for part in text.split(separator) if separator else [text]:
                self.check_path(value.name, part.strip())
            return
        for part in value.hidden_paths:
            self.check_path(value.name, part)

    def _allows_address(self, text: str) -> bool:
        try:
            asked = urlsplit(text)
            place = (asked.scheme, asked.hostname, asked.port)
            known = [(one.scheme, one.hostname, one.port, one.path) for one in map(urlsplit, self.addresses)]
        except ValueError:
            return False
        if asked.scheme not in ("http", "https") or asked.username is not None or "\\" in text:
            return False
        return any(place == (*one[:3],) and f"{asked.path}/".startswith(f"{one[3]}/") for one in known)


def names_file(task: str) -> bool:
    """Return whether a task of a request is a file rather than a name."""
    return "/" in task or "\\" in task or task.lower().endswith(_TASK_FILES)


def _is_path(text: str, value: _Value, option: Option | None) -> bool:
    """Return whether a text is a path that must be checked.

    A relative output path is not: it leads into the job's own working folder. A file to be read is always checked.
    """
    stripped = text.strip()
    if len(value.place) > 1 and value.place[:2] in _FREE:
        return False
    if _leads_elsewhere(stripped):
        return True
    if option is None or len(value.place) > 1 or not stripped:
        return False
    match option.name:
        case "output_path" | "use_cache" | "plugins":
            return False
        case "ids":
            try:
                parse_ids(stripped)
            except UsageError:
                return True
            return False
        case "prices":
            return stripped != "litellm"
        case "recipe":
            file = stripped.rpartition(":")[0] or stripped
            return any("/" in one or one.lower().endswith((".yaml", ".yml")) for one in (stripped, file))
        case "baseline":
            return "/" in stripped or stripped.endswith(_RUN_FILES)
    return any(mark in option.metavar for mark in _PATH_MARKS)


def _leads_elsewhere(text: str) -> bool:
    return text.startswith(("/", "~")) or ".." in text.replace("\\", "/").split("/")


def _values(request: Mapping[str, Any]) -> Iterator[_Value]:
    """Yield all plain values, including those in texts of the form ``k=v,k=v``."""
    for name, value in request.items():
        if isinstance(value, str) and name.endswith(("_args", "_kwargs")):
            try:
                value = argument_mapping(value, name)
            except ConfigError as error:
                raise RequestError(str(error)) from None
        yield from _within(value, (name,))


def _within(value: Any, place: tuple[str, ...]) -> Iterator[_Value]:
    if isinstance(value, str) and (nested := _nested(value, place)) is not None:
        yield from _within(nested, place)
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield _Value(place, str(key))
            yield from _within(item, (*place, str(key)))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _within(item, place)
    else:
        yield _Value(place, os.fspath(value) if isinstance(value, os.PathLike) else value)


def _nested(text: str, place: tuple[str, ...]) -> Any:
    """Parse arguments that are written as a text within arguments; ``None`` if the text holds no arguments."""
    if not place[0].endswith(("_args", "_kwargs")) or len(place) > _DEEPEST_TEXT:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict | list | str):
        return {"": found}
    if len(place) == 1 or place[0].endswith("_kwargs"):
        return None
    pairs = (part.partition("=") for part in _ENDS.split(text) if "=" in part)
    return {key.strip("\"'{[ "): value.strip("\"'}] ") for key, _, value in pairs} or None


def without_paths(text: str) -> str:
    """Replace every absolute path in a text by its last part, for readers on other machines."""
    return _PATH.sub(lambda path: "…/" + path[0].rstrip("/").rpartition("/")[2], _COLOURS.sub("", text))
