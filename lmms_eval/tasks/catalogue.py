"""Index of task, group and tag names. Reads the heads of YAML files only and imports no task code."""

from __future__ import annotations

import fnmatch
import importlib.util
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from lmms_eval.errors import TaskError, UnknownNameError, UsageError
from lmms_eval.tasks.yaml.included import include
from lmms_eval.tasks.yaml.loader import YamlReader
from lmms_eval.tasks.yaml.task_table import TABLE_KEY, filled, table_of
from lmms_eval.utils.files import read_table
from lmms_eval.utils.installed import absent_name, error_text

log = logging.getLogger(__name__)
PACKAGE_FOLDER = Path(__file__).resolve().parent
_HEAD_KEYS = ("task", "task_alias", "group", "group_alias", "tag", "class", "output_type", TABLE_KEY)
FAMILY_TASKS = PACKAGE_FOLDER / "family_tasks.tsv"
_HOW_TO_RUN = (
    "to run it, give the folder that holds the family's task files, lmms_eval/tasks in its sources: --include_path DIR"
)
_MOST_SHOWN = 5
_UNREADABLE = "cannot be read"
_NO_TASK = "without a task or group"
_OTHER_ENDING = "named .yml instead of .yaml"
_HIDDEN = "hidden"


class _LeftOut(Struct):
    """YAML files of a folder that are not in the index, with the reasons."""

    folder: Path
    seen: int = 0
    names: list[str] = field(default_factory=list)
    """A line for each file."""
    counts: Counter[str] = field(default_factory=Counter)
    first_error: str = ""

    def add(self, file: Path, reason: str, error: str = "") -> None:
        """Count a file by its reason; ``error`` names the file and gives details."""
        self.names.append(f"task file left out: {error or f'{file}: {reason}'}")
        self.counts[reason] += 1
        self.first_error = self.first_error or error

    def summary(self) -> str:
        parts = [f"{count} {reason}" for reason, count in self.counts.items()]
        first = f"; the first error: {self.first_error}" if self.first_error else ""
        return (
            f"{self.folder}: {len(self.names)} of {self.seen} YAML files are left out: {', '.join(parts)}; "
            f"--verbosity DEBUG names them{first}"
        )


class IndexEntry(Struct, frozen=True):
    """A task or a group of the index."""

    name: str
    kind: Literal["task", "group"]
    file: Path
    tags: tuple[str, ...] = ()
    output_type: str = "generate_until"

    @property
    def location(self) -> str:
        """The file, from ``lmms_eval/tasks/`` on if it belongs to the package."""
        if self.file.is_relative_to(PACKAGE_FOLDER):
            return f"lmms_eval/tasks/{self.file.relative_to(PACKAGE_FOLDER).as_posix()}"
        return str(self.file)


class Catalogue:
    """The index of tasks, groups and tags, with the files that define them.

    Args:
        include_paths: folders searched recursively. Their names replace built-in ones, with a notice.
        plugins: packages whose ``tasks`` sub-package is searched too.
        include_defaults: the tasks of this package.
    """

    def __init__(
        self, include_paths: Sequence[str | Path] = (), plugins: Sequence[str] = (), include_defaults: bool = True
    ) -> None:
        self.tasks: dict[str, IndexEntry] = {}
        self.groups: dict[str, IndexEntry] = {}
        self.tags: dict[str, list[str]] = {}
        self.broken: dict[Path, str] = {}
        """Files that could not be read, with the reason."""
        self.notices: list[str] = []
        self._reader = YamlReader(_HEAD_KEYS)
        if include_defaults:
            self._add_folder(PACKAGE_FOLDER)
        for folder in plugin_folders(plugins):
            include(folder)
            self._add_folder(folder)
        for path in include_paths:
            folder = Path(path).expanduser()
            if not folder.is_dir():
                raise UsageError(f"--include_path {path}: there is no such folder")
            include(folder)
            self._add_folder(folder)

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted({*self.tasks, *self.groups, *self.tags})

    def match(self, patterns: Iterable[str]) -> list[str]:
        """Expand wildcards (``*``, ``?``, ``[]``, case-sensitive) into known names, without duplicates.

        Raises:
            UnknownNameError: a name is not in the index. UsageError: a wildcard matches nothing.
        """
        found: dict[str, None] = {}
        for pattern in patterns:
            found.update(dict.fromkeys(self._matches(pattern)))
        return list(found)

    def add_file(self, file: Path) -> list[IndexEntry]:
        """Add one YAML file to the index. Returns an empty list if it holds neither tasks nor groups.

        Raises ``TaskError`` if it cannot be read.
        """
        entries = self._entries(file.resolve())
        self._add(entries)
        return entries

    def members(self, tag: str) -> list[str]:
        """The tasks of a tag, sorted."""
        return sorted(set(self.tags[tag]))

    def unknown(self, name: str, kind: str = "task") -> UnknownNameError:
        """The error for a name that is not in the index."""
        broken = "; ".join(list(self.broken.values())[:3])
        unread = f"; files that could not be read: {broken}" if broken else ""
        if data_set := family_data_sets().get(name):
            family = f"it is the family's (data set {data_set}) and is not shipped with this version"
            return UnknownNameError(kind, name, (), f"{family}; {_HOW_TO_RUN} --tasks {name}{unread}", ": ")
        hint = f"(lmms-eval tasks lists all names; --include_path DIR adds more){unread}"
        return UnknownNameError(kind, name, self.names(), hint)

    def _matches(self, pattern: str) -> list[str]:
        names = self.names()
        if pattern in self.tasks or pattern in self.groups or pattern in self.tags:
            return [pattern]
        if not any(sign in pattern for sign in "*?["):
            raise self.unknown(pattern)
        found = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
        if not found:
            text = f"--tasks {pattern}: the wildcard matches no name of {len(names)}; lmms-eval tasks lists them"
            if absent := [name for name in family_data_sets() if fnmatch.fnmatchcase(name, pattern)]:
                shown = ", ".join(absent[:_MOST_SHOWN]) + (", ..." if len(absent) > _MOST_SHOWN else "")
                text += f"; it matches the family's {shown}, which are not shipped with this version; {_HOW_TO_RUN}"
            raise UsageError(text)
        return found

    def _add_folder(self, folder: Path) -> None:
        left_out = _LeftOut(folder)
        before = {**self.groups, **self.tasks}
        replaced: list[str] = []
        doubled: list[str] = []
        for file, reason in _files_of(folder):
            left_out.seen += 1
            if reason:
                left_out.add(file, reason)
                continue
            try:
                entries = self._entries(file)
            except TaskError as error:
                self.broken[file] = str(error)
                left_out.add(file, _UNREADABLE, str(error))
                continue
            if not entries:
                left_out.add(file, _NO_TASK)
            for entry in entries:
                if collision := self._collision(entry, before):
                    (replaced if entry.name in before else doubled).append(collision)
            self._add(entries)
        self._notice_all(replaced, f"{folder}: {{count}} tasks and groups replace those from other places")
        self._notice_all(doubled, f"{folder}: {{count}} tasks and groups are in two files; the latter counts")
        for line in left_out.names:
            log.debug("%s", line)
        if left_out.counts[_UNREADABLE] or left_out.counts[_OTHER_ENDING]:
            self._notice(left_out.summary())
        elif left_out.names and folder != PACKAGE_FOLDER:
            log.info("%s", left_out.summary())

    def _collision(self, entry: IndexEntry, before: dict[str, IndexEntry]) -> str:
        """Describe the entry whose name this one takes; empty if the name is free."""
        earlier = self.tasks.get(entry.name) or self.groups.get(entry.name)
        if earlier is None or earlier.file == entry.file:
            return ""
        if entry.name in before:
            return f"{entry.kind} {entry.name!r} of {entry.location} replaces the one in {earlier.location}"
        return f"{entry.kind} {entry.name!r} is in {earlier.location} and in {entry.location}: the latter counts"

    def _notice_all(self, collisions: Sequence[str], summary: str) -> None:
        """Report collisions in one line; if there are several, log each at DEBUG."""
        if len(collisions) < 2:
            for line in collisions:
                self._notice(line)
            return
        for line in collisions:
            log.debug("%s", line)
        self._notice(f"{summary.format(count=len(collisions))} (--verbosity DEBUG lists them), such as {collisions[0]}")

    def _notice(self, text: str) -> None:
        self.notices.append(text)
        log.warning("%s", text)

    def _entries(self, file: Path) -> list[IndexEntry]:
        data = self._reader.read(file)
        if TABLE_KEY in data:
            table = table_of(data, file)
            kind = str(table.set.get("output_type", data.get("output_type", "generate_until")))
            stated = [*_texts(data.get("tag")), *_texts(table.set.get("tag"))]
            tasks = [
                IndexEntry(name, "task", file, tuple(filled(stated, row, str(file))), filled(kind, row, str(file)))
                for name, row in table.rows.items()
            ]
            groups = [IndexEntry(name, "group", file, _texts(keys.get("tag"))) for name, keys in table.groups.items()]
            return tasks + groups
        name, group = data.get("task"), data.get("group")
        if isinstance(name, list) and isinstance(group, str):
            return [IndexEntry(group, "group", file, _texts(data.get("tag")))]
        if not isinstance(name, str):
            return []
        tags = (*_texts(data.get("tag")), *_texts(group))
        return [IndexEntry(name, "task", file, tags, str(data.get("output_type", "generate_until")))]

    def _add(self, entries: Iterable[IndexEntry]) -> None:
        for entry in entries:
            if entry.name in self.tasks or entry.name in self.groups:
                self.tasks.pop(entry.name, None)
                self.groups.pop(entry.name, None)
                kept = {
                    tag: [member for member in members if member != entry.name] for tag, members in self.tags.items()
                }
                self.tags = {tag: members for tag, members in kept.items() if members}
            (self.tasks if entry.kind == "task" else self.groups)[entry.name] = entry
            for tag in entry.tags:
                self.tags.setdefault(tag, []).append(entry.name)


def _texts(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str))


def yaml_files(folder: Path, recursive: bool = True) -> Iterator[Path]:
    """Yield the ``*.yaml`` files of a folder, sorted. Hidden folders are skipped."""
    return (file for file, reason in _files_of(folder, recursive) if not reason)


def _files_of(folder: Path, recursive: bool = True) -> Iterator[tuple[Path, str]]:
    """Yield the YAML files of a folder, sorted, each with the reason that its name excludes it, or an empty text."""
    root = folder.resolve()
    for file in sorted(root.rglob("*.y*ml") if recursive else root.glob("*.y*ml")):
        if file.suffix not in (".yaml", ".yml") or not file.is_file():
            continue
        if any(part.startswith(".") for part in file.relative_to(root).parts):
            yield file, _HIDDEN
        else:
            yield file, "" if file.suffix == ".yaml" else _OTHER_ENDING


def family_data_sets() -> dict[str, str]:
    """Return well-known names of the family that the package does not ship, with the data set of each."""
    return {row["name"]: row["data_set"] for row in read_table(FAMILY_TASKS)}


def plugin_folders(plugins: Sequence[str]) -> list[Path]:
    """Return the ``PACKAGE.tasks`` folders of the plugin packages that have one.

    Raises ``UsageError`` if a package is not installed.
    """
    folders = []
    for package in plugins:
        try:
            spec = importlib.util.find_spec(f"{package}.tasks")
        except ModuleNotFoundError as error:
            if error.name == f"{package}.tasks":
                continue
            raise UsageError(
                f"plugin package {package!r} cannot be imported: {error_text(error)}"
                f"{'' if absent_name(error) else '; install it or put its folder on PYTHONPATH'}"
            ) from error
        if spec is not None and spec.submodule_search_locations:
            folders += [Path(location) for location in spec.submodule_search_locations]
    return folders
