"""The names in a pack, kept in a file next to it and made again when a task file changes."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from lmms_eval.errors import TaskError
from lmms_eval.storage.atomic import replacing
from lmms_eval.tasks.packs.store import Pack, check_files, index_file
from lmms_eval.tasks.yaml.loader import LARGEST, YamlReader
from lmms_eval.utils.files import read_text

_KEYS = ("task", "group", "tag", "class", "output_type")
_CODE = re.compile(r"!function|!<|![\w-]*%[0-9A-Fa-f]{2}|^%TAG", re.MULTILINE)
"""A tag of a function in any spelling. A text that only looks like one asks for consent too."""
FORMAT = 1


class PackEntry(Struct, frozen=True, array_like=True):
    """A task or a group of a pack."""

    name: str
    kind: Literal["task", "group"]
    file: str
    """Path below the folder of the task files."""
    tags: tuple[str, ...]
    output_type: str
    has_code: bool
    """Whether its YAML files name Python functions or classes."""


class PackIndex(Struct, frozen=True):
    """The names in a pack."""

    state: str
    """Digest of the paths, sizes and times of its YAML files."""
    entries: tuple[PackEntry, ...]
    broken: dict[str, str]
    """Files that cannot be read, with the reasons."""


def index_of(pack: Pack) -> PackIndex:
    """Return the names of a pack. The kept index is used as long as no YAML file of the pack changes.

    Raises ``DataError`` if the folder of the pack is gone.
    """
    check_files(pack)
    files = sorted(_files(pack.path), key=lambda file: file[0])
    state = _state(pack, files)
    kept = index_file(pack)
    try:
        found = msgspec.json.decode(kept.read_bytes(), type=PackIndex)
    except (OSError, msgspec.MsgspecError):
        found = None
    if found is not None and found.state == state:
        return found
    made = _made(pack, [path for path, _ in files if path.endswith(".yaml")], state)
    try:
        with replacing(kept, survives_power_loss=False) as file:
            file.write(msgspec.json.encode(made))
    except OSError:  # a folder of the packs that this user may not write: the index is made again each time
        return made
    return made


def has_entry(pack: Pack, name: str) -> bool:
    """Return whether the kept index of a pack has a task or group, without decoding it; false if none is kept."""
    try:
        content = index_file(pack).read_bytes()
    except OSError:
        return False
    start = b"[" + msgspec.json.encode(name) + b","
    at = content.find(start)
    while at >= 0 and not content.startswith((b'"task",', b'"group",'), at + len(start)):
        at = content.find(start, at + 1)  # it was a list of tags
    return at >= 0


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the YAML files below a folder, unsorted, by their paths; also those without ending, which are included."""
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith((".", "__pycache__")):
                        waiting.append(entry.path)
                elif entry.name.endswith("yaml") and entry.is_file():
                    yield entry.path, entry.stat()


def _state(pack: Pack, files: list[tuple[str, os.stat_result]]) -> str:
    digest = hashlib.sha256(f"{FORMAT} {pack.package}\n".encode())
    for path, found in files:
        digest.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _made(pack: Pack, files: list[str], state: str) -> PackIndex:
    reader = YamlReader(_KEYS, pack.package)
    found: dict[str, PackEntry] = {}
    broken: dict[str, str] = {}
    has_code = _CodeFinder(reader)
    for path in files:
        file = Path(path)
        try:
            data = reader.read(file)
            entry = _entry(data, file.relative_to(pack.path).as_posix(), partial(has_code, file))
        except TaskError as error:
            broken[path] = str(error)
            continue
        if entry is not None:
            found.setdefault(entry.name, entry)  # the first file of a name counts
    return PackIndex(state, tuple(found.values()), broken)


def _entry(data: Mapping[str, Any], file: str, has_code: Callable[[], bool]) -> PackEntry | None:
    """Return the entry of a file; ``None`` if it defines no task and no group."""
    task, group = data.get("task"), data.get("group")
    tags = _texts(data.get("tag"))
    kind: Literal["task", "group"] = "task"
    if data.get("class") is None and isinstance(group, str) and task is not None:
        if isinstance(task, list):
            return PackEntry(group, "group", file, tags, "", has_code())
        tags = (*tags, group)  # the old spelling of a tag inside a task
    if not isinstance(task, str):
        return None
    return PackEntry(task, kind, file, tags, str(data.get("output_type", "generate_until")), has_code())


def _texts(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str))


class _CodeFinder:
    """Finds out whether a YAML file, or one that it includes, names Python code. Each file is read once."""

    def __init__(self, reader: YamlReader) -> None:
        self._reader = reader
        self._known: dict[Path, bool] = {}

    def __call__(self, file: Path) -> bool:
        if file not in self._known:
            self._known[file] = False  # ends a cycle
            text = read_text(file, most=LARGEST)
            self._known[file] = _CODE.search(text) is not None or any(map(self, self._reader.included(file)))
        return self._known[file]


_IMPORT = re.compile(
    r"^[ \t]*+(?:from[ \t]++([A-Za-z_][\w.]*+)[ \t]++import\b|import[ \t]++([A-Za-z_][\w., \t]*+))", re.MULTILINE
)


def imported_modules(pack: Pack) -> list[str]:
    """Return the modules that the code of a pack imports anywhere, sorted, without Python's own and the pack's."""
    found = set()
    for file in pack.path.rglob("*.py"):
        own = {path.stem for path in file.parent.glob("*.py")} | {path.name for path in file.parent.glob("*/")}
        for first, others in _IMPORT.findall(file.read_text(encoding="utf-8", errors="replace")):
            for name in [first] if first else [part.split()[0] for part in others.split(",") if part.strip()]:
                top = name.partition(".")[0]
                if top not in own and top not in sys.stdlib_module_names and top not in (pack.package, "lmms_eval"):
                    found.add(name)
    return sorted(found)
