"""Index of task, group and tag names. Reads the heads of YAML files only and imports no task code."""

from __future__ import annotations

import fnmatch
import logging
import os
from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from lmms_eval.errors import TaskError, UnknownNameError, UsageError
from lmms_eval.tasks._task_utils.media_files import hf_home
from lmms_eval.tasks.packs.store import Pack, packs, use
from lmms_eval.tasks.yaml.included import include
from lmms_eval.tasks.yaml.loader import YamlReader
from lmms_eval.tasks.yaml.task_table import TABLE_KEY, filled, table_of
from lmms_eval.utils.files import read_table
from lmms_eval.utils.plugins import plugin_task_folders

log = logging.getLogger(__name__)
PACKAGE_FOLDER = Path(__file__).resolve().parent
_HEAD_KEYS = ("task", "task_alias", "group", "group_alias", "tag", "class", "output_type", TABLE_KEY)
FAMILY_TASKS = PACKAGE_FOLDER / "family_tasks.tsv"
_HOW_TO_RUN = (
    "to run it, give the folder that holds the family's task files, lmms_eval/tasks in its sources: --include_path DIR"
)
_KNOWN_PACKS = ("lm-eval", "lmms-eval")
_MOST_SHOWN = 5
_WILDCARDS = "*?["
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
    pack: str = ""
    """The pack that it belongs to; empty for any other."""
    is_trusted: bool = True
    """It brings no Python code, or its code may run."""

    @property
    def bare_name(self) -> str:
        """The name as the file states it, without that of the pack."""
        return self.name.removeprefix(f"{self.pack}:") if self.pack else self.name

    @property
    def location(self) -> str:
        """The file, from ``lmms_eval/tasks/`` on if it belongs to the package."""
        if self.file.is_relative_to(PACKAGE_FOLDER):
            return f"lmms_eval/tasks/{self.file.relative_to(PACKAGE_FOLDER).as_posix()}"
        return str(self.file)


class PackNames:
    """The tasks, groups and tags of a pack, read from its index when they are first needed.

    Args:
        pack: the pack.
        is_taken: whether a bare name belongs to something else, so that the pack's is written ``PACK:NAME``.
    """

    def __init__(self, pack: Pack, is_taken: Callable[[str], bool]) -> None:
        self.pack, self._is_taken = pack, is_taken
        self._is_used = False

    @cached_property
    def _entries(self) -> dict[str, IndexEntry]:
        from lmms_eval.tasks.packs.index import index_of

        folder = self.pack.path
        return {
            entry.name: IndexEntry(
                self._full(entry.name), entry.kind, folder / entry.file, entry.tags, entry.output_type, self.pack.name,
                self.pack.is_trusted or not entry.has_code,
            )
            for entry in index_of(self.pack).entries
        }  # fmt: skip

    def use(self) -> None:
        """Make the modules of the pack importable, and keep its files until this process ends.

        Modules of lmms-eval's tasks read ``HF_HOME`` when they are imported; it gets the value that the hub's libraries
        have without it.

        Raises ``DataError`` if the files are gone.
        """
        if not self._is_used:
            use(self.pack)
            os.environ.setdefault("HF_HOME", str(hf_home()))
            include(self.pack.path, is_deep=False, package=self.pack.package, is_trusted=self.pack.is_trusted)
            self._is_used = True

    @cached_property
    def tags_by_name(self) -> dict[str, list[str]]:
        """The full names of the tasks of each tag, by the tag's bare name."""
        found: dict[str, list[str]] = {}
        for entry in self.offered:
            for tag in entry.tags if entry.kind == "task" else ():
                found.setdefault(tag, []).append(entry.name)
        return found

    @property
    def tags(self) -> dict[str, list[str]]:
        """The full names of the tasks of each tag, by the tag's full name."""
        return {self._full(tag): members for tag, members in self.tags_by_name.items()}

    @property
    def offered(self) -> Iterator[IndexEntry]:
        """The entries that may run."""
        return (entry for entry in self._entries.values() if entry.is_trusted)

    def has(self, name: str) -> bool:
        """Return whether the pack has a task, group or tag of a bare name."""
        return name in self._entries or name in self.tags_by_name

    def has_tag(self, name: str) -> bool:
        """Return whether the pack has a tag of a bare name."""
        return name in self.tags_by_name

    def entry(self, name: str) -> IndexEntry | None:
        """Return the task or group of a bare name; ``None`` if the pack lacks it.

        Raises ``UsageError`` if it brings Python code and the pack is not trusted.
        """
        entry = self._entries.get(name)
        if entry is not None and not entry.is_trusted:
            raise UsageError(
                f"{entry.kind} {entry.name!r} of pack {self.pack.name} brings Python code of its own, which you have "
                f"not allowed to run: look at {entry.file.parent}, then lmms-eval packs trust {self.pack.name}"
            )
        return entry

    def matching(self, pattern: str) -> list[str]:
        """Return the full names of the tasks and groups that match a wildcard, sorted."""
        return sorted(entry.name for entry in self.offered if fnmatch.fnmatchcase(entry.bare_name, pattern))

    def _full(self, name: str) -> str:
        return f"{self.pack.name}:{name}" if self._is_taken(name) else name


class Catalogue:
    """The index of tasks, groups and tags, with the files that define them.

    Packs are read when a name is found nowhere else, or when all names are listed. ``PACK:NAME`` is a name in a pack;
    a bare name is a pack's only if nothing else has it.

    Args:
        include_paths: folders searched recursively. Their names replace built-in ones, with a notice.
        plugins: packages whose ``tasks`` sub-package is searched too.
        include_defaults: the tasks of this package, and the packs.
        pack_first: a bare name that a pack has is the pack's, whatever else has it.
    """

    def __init__(
        self,
        include_paths: Sequence[str | Path] = (),
        plugins: Sequence[str] = (),
        include_defaults: bool = True,
        pack_first: bool = False,
    ) -> None:
        self._own_tasks: dict[str, IndexEntry] = {}
        self._own_groups: dict[str, IndexEntry] = {}
        self._own_tags: dict[str, list[str]] = {}
        self.packs: dict[str, PackNames] = {}
        """The packs by name."""
        self._pack_first = pack_first
        self.broken: dict[Path, str] = {}
        """Files that could not be read, with the reason."""
        self.notices: list[str] = []
        self._reader = YamlReader(_HEAD_KEYS)
        if include_defaults:
            self._add_folder(PACKAGE_FOLDER)
        for folder in plugin_task_folders(plugins):
            include(folder)
            self._add_folder(folder)
        for path in include_paths:
            folder = Path(path).expanduser()
            if not folder.is_dir():
                raise UsageError(f"--include_path {path}: there is no such folder")
            include(folder)
            self._add_folder(folder)
        for pack in packs() if include_defaults else ():
            self.packs[pack.name] = PackNames(pack, partial(self._is_taken, tuple(self.packs.values())))

    @property
    def tasks(self) -> Mapping[str, IndexEntry]:
        """All tasks by name, those of packs too."""
        return self._all_entries["task"]

    @property
    def groups(self) -> Mapping[str, IndexEntry]:
        """All groups by name, those of packs too."""
        return self._all_entries["group"]

    @property
    def tags(self) -> Mapping[str, Sequence[str]]:
        """The tasks of all tags, those of packs too."""
        tags = {tag: members for pack in self.packs.values() for tag, members in pack.tags.items()}
        return {**tags, **self._own_tags}

    def entry(self, name: str, within: str = "") -> IndexEntry | None:
        """Return the task or group of a name, ``NAME`` or ``PACK:NAME``; ``None`` if it is unknown.

        Packs are read only if nothing else has the name.

        Args:
            name: the name.
            within: the pack whose file states the name; its own tasks and groups come first.

        Raises:
            UsageError: it brings Python code, and its pack is not trusted.
        """
        pack, bare = self._in_pack(name)
        if pack is not None:
            return pack.entry(bare)
        if within and (inside := self.packs[within].entry(name)) is not None:
            return inside
        own = self._own_tasks.get(name) or self._own_groups.get(name)
        if (own is not None or name in self._own_tags) and not self._pack_first:
            return own
        found = (entry for pack in self.packs.values() if (entry := pack.entry(name)) is not None)
        return next(found, own)

    def tagged(self, name: str, within: str = "") -> Sequence[str] | None:
        """Return the tasks of a tag, sorted; ``None`` if there is no such tag. ``within`` is as for ``entry``."""
        pack, bare = self._in_pack(name)
        if pack is None and within and self.packs[within].has_tag(name):
            pack = self.packs[within]
        found = [pack.tags_by_name.get(bare)] if pack is not None else [self._own_tags.get(name)]
        if pack is None and (self._pack_first or found == [None]):
            found += [other.tags_by_name.get(name) for other in self.packs.values()]
        members = next((members for members in found if members is not None), None)
        return None if members is None else sorted(set(members))

    def members(self, tag: str) -> Sequence[str]:
        """Return the tasks of a tag, sorted. Raises ``UnknownNameError`` if there is no such tag."""
        found = self.tagged(tag)
        if found is None:
            raise self.unknown(tag, "tag")
        return found

    def has(self, name: str, within: str = "") -> bool:
        """Return whether there is a task, group or tag of a name; ``within`` is as for ``entry``."""
        return self.entry(name, within) is not None or self.tagged(name, within) is not None

    def own_names(self) -> list[str]:
        """All names outside packs, sorted."""
        return sorted({*self._own_tasks, *self._own_groups, *self._own_tags})

    def names(self) -> list[str]:
        """All names, sorted. A name of a pack that something else has is written ``PACK:NAME``."""
        return sorted({*self.tasks, *self.groups, *self.tags})

    def match(self, patterns: Iterable[str]) -> list[str]:
        """Expand wildcards (``*``, ``?``, ``[]``, case-sensitive) into known names, without duplicates.

        ``PACK:`` before a wildcard searches a pack; other wildcards search packs only if nothing else matches.

        Raises:
            UnknownNameError: a name is not in the index. UsageError: a wildcard matches nothing.
        """
        found: dict[str, None] = {}
        for pattern in patterns:
            found.update(dict.fromkeys(self._matches(pattern)))
            self.log_others(pattern)
        return list(found)

    def log_others(self, name: str) -> None:
        """Log what else a bare name or a wildcard could mean: names of packs that it does not select."""
        pack, _ = self._in_pack(name)
        if pack is not None or not self.packs:
            return
        own = name in self._own_tasks or name in self._own_groups or name in self._own_tags
        if not own and any(sign in name for sign in _WILDCARDS):
            self._log_matches(name)
        elif own and not self._pack_first:
            from lmms_eval.tasks.packs.index import has_entry

            others = [f"{pack}:{name}" for pack, names in self.packs.items() if has_entry(names.pack, name)]
            if others:
                log.info("%s is this package's own task; packs have %s", name, ", ".join(others))
        elif having := [pack for pack, names in self.packs.items() if names.has(name)]:
            others = [f"{pack}:{name}" for pack in having[1:]]
            also = [*others, *(["a task of this package"] if own else [])]
            if also:
                log.info("%s is %s:%s; there is also %s", name, having[0], name, ", ".join(also))

    def _log_matches(self, pattern: str) -> None:
        counts = {pack: len(names.matching(pattern)) for pack, names in self.packs.items()}
        shown = [f"{count:,} names of pack {pack} ({pack}:{pattern})" for pack, count in counts.items() if count]
        is_own = any(fnmatch.fnmatchcase(name, pattern) for name in self.own_names())
        if shown:
            verb = "does not select" if is_own else "selects"
            log.info("%s %s %s", pattern, verb, ", ".join(shown))

    def add_file(self, file: Path) -> list[IndexEntry]:
        """Add one YAML file to the index. Returns an empty list if it holds neither tasks nor groups.

        Raises ``TaskError`` if it cannot be read.
        """
        entries = self._entries(file.resolve())
        self._add(entries)
        return entries

    def unknown(self, name: str, kind: str = "task") -> UnknownNameError:
        """The error for a name that is not in the index."""
        from lmms_eval.utils.other_names import task_elsewhere

        broken = "; ".join(list(self.broken.values())[:3])
        unread = f"; files that could not be read: {broken}" if broken else ""
        if data_set := family_data_sets().get(name):
            family = f"it is the family's (data set {data_set}) and is not shipped with this version"
            return UnknownNameError(kind, name, (), f"{family}; {_HOW_TO_RUN} --tasks {name}{unread}", ": ")
        hint = f"(lmms-eval tasks lists all names; --include_path DIR adds more){unread}"
        pack = name.partition(":")[0]
        if pack in _KNOWN_PACKS and pack not in self.packs:
            return UnknownNameError(kind, name, (), f"lmms-eval packs add {pack} gets the tasks of that pack", ": ")
        other = task_elsewhere(name)
        if other is not None and self.entry(other.name) is not None:
            return UnknownNameError(kind, name, (), other.words(), "; ")
        return UnknownNameError(kind, name, self.names(), hint)

    def _matches(self, pattern: str) -> list[str]:
        if (entry := self.entry(pattern)) is not None:
            return [entry.name]
        if self.tagged(pattern) is not None:
            return [pattern]
        if not any(sign in pattern for sign in _WILDCARDS):
            raise self.unknown(pattern)
        pack, bare = self._in_pack(pattern)
        own = self.own_names() if pack is None else []
        found = [name for name in own if fnmatch.fnmatchcase(name, bare)]
        searched = [pack] if pack is not None else [] if found else list(self.packs.values())
        found += [name for one in searched for name in one.matching(bare)]
        if not found:
            text = f"--tasks {pattern}: the wildcard matches no name of {len(self.names())}; lmms-eval tasks lists them"
            if absent := [name for name in family_data_sets() if fnmatch.fnmatchcase(name, pattern)]:
                shown = ", ".join(absent[:_MOST_SHOWN]) + (", ..." if len(absent) > _MOST_SHOWN else "")
                text += f"; it matches the family's {shown}, which are not shipped with this version; {_HOW_TO_RUN}"
            raise UsageError(text)
        return found

    @cached_property
    def _pack_entries(self) -> dict[str, dict[str, IndexEntry]]:
        found: dict[str, dict[str, IndexEntry]] = {"task": {}, "group": {}}
        for pack in self.packs.values():
            for entry in pack.offered:
                found[entry.kind][entry.name] = entry
        return found

    @property
    def _all_entries(self) -> dict[str, Mapping[str, IndexEntry]]:
        return {
            "task": ChainMap(self._own_tasks, self._pack_entries["task"]),
            "group": ChainMap(self._own_groups, self._pack_entries["group"]),
        }

    def _in_pack(self, name: str) -> tuple[PackNames | None, str]:
        """Return the pack that a name or wildcard begins with, and the rest of it."""
        prefix, _, rest = name.partition(":")
        return (self.packs[prefix], rest) if rest and prefix in self.packs else (None, name)

    def _is_taken(self, earlier: Sequence[PackNames], name: str) -> bool:
        """Return whether a bare name is not that of the pack that comes after some others."""
        own = name in self._own_tasks or name in self._own_groups or name in self._own_tags
        return (own and not self._pack_first) or any(pack.has(name) for pack in earlier)

    def _add_folder(self, folder: Path) -> None:
        left_out = _LeftOut(folder)
        before = {**self._own_groups, **self._own_tasks}
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
        earlier = self._own_tasks.get(entry.name) or self._own_groups.get(entry.name)
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
            if entry.name in self._own_tasks or entry.name in self._own_groups:
                self._own_tasks.pop(entry.name, None)
                self._own_groups.pop(entry.name, None)
                for tag, members in [*self._own_tags.items()]:
                    self._own_tags[tag] = [member for member in members if member != entry.name]
                self._own_tags = {tag: members for tag, members in self._own_tags.items() if members}
            (self._own_tasks if entry.kind == "task" else self._own_groups)[entry.name] = entry
            for tag in entry.tags:
                self._own_tags.setdefault(tag, []).append(entry.name)


def _texts(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str))


def yaml_files(folder: Path, recursive: bool = True) -> Iterator[Path]:
    """Yield the ``*.yaml`` files of a folder, sorted. Hidden folders are skipped."""
    return (file for file, reason in _files_of(folder, recursive) if not reason)


def _files_of(folder: Path, recursive: bool = True) -> Iterator[tuple[Path, str]]:
    """Yield the YAML files of a folder, sorted, each with the reason that its name excludes it, or an empty text."""
    found: list[tuple[list[str], str]] = []
    waiting = [(str(folder.resolve()), list[str](), "")]
    while waiting:
        place, names, reason = waiting.pop()
        for entry in _entries_of(place):
            path = [*names, entry.name]
            why = reason or (_HIDDEN if entry.name.startswith(".") else "")
            if entry.name.endswith((".yaml", ".yml")) and entry.name not in (".yaml", ".yml") and entry.is_file():
                found.append((path, why or ("" if entry.name.endswith(".yaml") else _OTHER_ENDING)))
            elif recursive and entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, path, why))
    root = folder.resolve()
    yield from ((root.joinpath(*path), reason) for path, reason in sorted(found))


def _entries_of(folder: str) -> list[os.DirEntry[str]]:
    """Return what is in a folder; nothing if this user may not read it."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except PermissionError:
        return []


def family_data_sets() -> dict[str, str]:
    """Return well-known names of the family that the package does not ship, with the data set of each."""
    return {row["name"]: row["data_set"] for row in read_table(FAMILY_TASKS)}
