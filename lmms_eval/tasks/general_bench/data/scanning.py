"""Search for the task folders in a copy of General-Bench, and for their rows of the workbook."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from lmms_eval.errors import DataError, MissingDataError, UnknownNameError
from lmms_eval.tasks._task_utils.archives import alone, is_archive, merge, unpacked
from lmms_eval.tasks.general_bench.data.annotations import annotation_file, read_head
from lmms_eval.tasks.general_bench.facts import LANGUAGE, MODALITIES, PARADIGMS, TaskFacts, find_task, fold
from lmms_eval.tasks.general_bench.readers.sides import MEDIA_FOLDERS

_LEFTOVERS = "__MACOSX"


def is_visible(path: Path) -> bool:
    """Return whether a path is neither hidden nor left behind by packing programs."""
    return not path.name.startswith((".", "__"))


def packed_content(folder: Path) -> list[Path]:
    """Return the sorted archives of a task's folder if they are not unpacked yet: all other files are JSON, or the
    annotation is missing.

    Raises ``OSError`` if the folder cannot be listed.
    """
    entries = [entry for entry in sorted(folder.iterdir()) if is_visible(entry)]
    archives = [entry for entry in entries if is_archive(entry) and entry.is_file()]
    others = [entry for entry in entries if entry not in archives and entry.suffix.casefold() != ".json"]
    return archives if not others or annotation_file(folder) is None else []


def unpack_here(folder: Path, archives: Iterable[Path]) -> None:
    """Unpack archives of a task's folder into it, without the folders that wrap their content.

    Existing files are kept. If another process is unpacking, wait for it.

    Raises:
        DataError: the folder cannot be written, or an archive is damaged, leads outside or does not fit on the disk;
            then nothing is changed. The message explains what to do.
    """
    if not os.access(folder, os.W_OK):
        names = ", ".join(archive.name for archive in archives)
        raise DataError(f"{folder} holds {names} and cannot be written; unpack it there, or copy the folder")
    with alone(folder), contextlib.ExitStack() as stack:
        waiting = set(packed_content(folder))  # another process may have done it
        contents = [stack.enter_context(unpacked(one, folder)) for one in archives if one in waiting]
        for content in contents:
            shutil.rmtree(content / _LEFTOVERS, ignore_errors=True)
            merge(_inner(content, folder.name), folder)


def _inner(content: Path, name: str) -> Path:
    """Find the innermost nested single folder that is the task's: it has its name, or holds JSON or media folders."""
    found = inner = content
    while True:
        entries = [entry for entry in inner.iterdir() if is_visible(entry)]
        if len(entries) != 1 or not entries[0].is_dir() or entries[0].name.casefold() in MEDIA_FOLDERS:
            return found
        inner = entries[0]
        if inner.name.casefold() == name.casefold() or any(
            entry.name.casefold() in MEDIA_FOLDERS if entry.is_dir() else entry.suffix.casefold() == ".json"
            for entry in inner.iterdir()
        ):
            found = inner


Subset = Literal["open", "closed"]
_SETS: Mapping[str, Subset] = MappingProxyType({"generalbenchopenset": "open", "generalbenchcloseset": "closed"})
_MODALITIES = MappingProxyType({name.casefold(): name for name in (LANGUAGE, *MODALITIES)})


class TaskFolder(Struct, frozen=True):
    """A folder with an annotation."""

    path: Path
    annotation: Path
    modality: str
    """Modality, as ``TaskFacts.modality``."""
    paradigm: str
    """``comprehension``, ``generation``, or empty for language."""
    name: str
    """Name of the folder."""
    task: str
    """The annotation's ``task``, or an empty text."""
    subset: Subset

    @property
    def set_folder(self) -> Path:
        """The folder of the set."""
        return self.path.parents[2 if self.paradigm else 1]


def scan(root: Path) -> tuple[list[TaskFolder], list[str]]:
    """Find all task folders below a folder that holds General-Bench's sets, or is a set (also a scoped one).

    Names are compared without case. If a task's folder holds its content only as archives, they are unpacked into it.
    An unusable folder never stops the search. Returns the folders, sorted by set, modality, paradigm and name, and the
    problems: unusable folders and files by name, with the remedy. Raises ``DataError`` if there is no set.
    """
    folders: list[TaskFolder] = []
    problems: list[str] = []
    for subset, set_folder in _sets(root):
        for place, modality, paradigm in _places(set_folder, problems):
            for path in _listed(place, problems):
                try:
                    file = _annotation_of(path, problems)
                    task = (read_head(file).get("task") or "").strip()
                    folders.append(TaskFolder(path, file, modality, paradigm, path.name, task, subset))
                except DataError as error:
                    problems.append(str(error))
                except OSError as error:
                    problems.append(f"{path} cannot be read: {error.strerror or error}")
    return folders, problems


def match(folders: Iterable[TaskFolder], subset: str | None = None) -> tuple[Mapping[TaskFacts, TaskFolder], list[str]]:
    """Match task folders with rows of the workbook, by the annotation's ``task``, else by the folder's name.

    Returns the folders by row, and the problems. Those about folders without a row name the nearest rows.

    Args:
        subset: take folders of this set only (``open`` or ``closed``); without it, the open set's where both have one.
    """
    taken: dict[TaskFacts, TaskFolder] = {}
    problems: list[str] = []
    wanted = [folder for folder in folders if subset in (None, folder.subset)]
    for folder in sorted(wanted, key=lambda one: one.subset != "open"):
        try:
            facts = find_task(folder.task or folder.name)
        except UnknownNameError as error:
            problems.append(f"{folder.annotation}: {error}")
            continue
        first = taken.setdefault(facts, folder)
        if first is folder:
            if (folder.modality, folder.paradigm) != (facts.modality, facts.paradigm):
                place = " ".join(part for part in (facts.modality, facts.paradigm) if part)
                problems.append(
                    f"{folder.path} holds the task {facts.name!r}, which belongs to {place}: taken all the same"
                )
        elif first.subset == folder.subset:
            problems.append(f"{folder.path} and {first.path} both hold the task {facts.name!r}: the latter is taken")
    return MappingProxyType(taken), problems


def media_folder(folder: TaskFolder, roots: Iterable[Path] = ()) -> Path:
    """Return the folder of a task's media: its own, unless that holds only JSON and another set has them.

    The sets next to the folder's own set are searched, then ``roots`` (sets, or folders that hold some), those of the
    folder's subset first.
    """
    if folder.modality == LANGUAGE or _has_media(folder.path):
        return folder.path
    places = (folder.set_folder.parent, *roots)
    paths = (path for place in places if place.is_dir() for path in (place, *_children(place)))
    sets = {path: _subset(path) for path in paths if _is_set(path)}
    for path in sorted(sets, key=lambda one: sets[one] != folder.subset):
        steps = (folder.modality, folder.paradigm, folder.name)
        if path != folder.set_folder and (below := _below(path, steps)) is not None and _has_media(below):
            return below
    return folder.path


def _sets(root: Path) -> list[tuple[Subset, Path]]:
    """List the named sets in a folder, else the folder itself, else other folders in it with the layout of a set."""
    if not root.is_dir():
        raise MissingDataError(f"{root}: no such folder; give the folder that holds General-Bench-Openset")
    children = _children(root)
    named = [(_SETS[fold(child.name)], child) for child in children if fold(child.name) in _SETS]
    if not named and _is_set(root):
        named = [(_subset(root.resolve()), root)]
    named = named or [(_subset(child), child) for child in children if _is_set(child)]
    if not named:
        raise DataError(
            f"{root} holds no General-Bench-Openset or General-Bench-Closeset, nor the folders of one "
            f"({', '.join(_MODALITIES)}); give the folder that does"
        )
    return sorted(named, key=lambda one: (one[0] != "open", one[1].name))


def _subset(folder: Path) -> Subset:
    """Return the set by its name. Scoped sets (``S-A-Quick``) are closed."""
    name = fold(folder.name)
    return "closed" if "close" in name or folder.name.casefold().startswith("s-") else "open"


def _is_set(folder: Path) -> bool:
    try:
        return any(child.name.casefold() in _MODALITIES for child in _children(folder))
    except PermissionError:
        return False


def _children(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if is_visible(child) and child.is_dir())


def _places(set_folder: Path, problems: list[str]) -> Iterator[tuple[Path, str, str]]:
    """Yield the folders of a set's modalities and paradigms, with these."""
    for folder in _listed(set_folder, problems):
        modality = _MODALITIES.get(folder.name.casefold(), "")
        if modality == LANGUAGE:
            yield folder, modality, ""
        elif modality:
            for child in _listed(folder, problems):
                if child.name.casefold() in PARADIGMS:
                    yield child, modality, child.name.casefold()
                else:
                    problems.append(f"{child} is passed over: {' or '.join(PARADIGMS)} is expected there")


def _listed(folder: Path, problems: list[str]) -> list[Path]:
    """List the folders in a folder. Archives next to them are problems, because their content is unknown."""
    try:
        entries = sorted(filter(is_visible, folder.iterdir()), key=lambda entry: (entry.name.casefold(), entry.name))
    except OSError as error:
        problems.append(f"{folder} cannot be read: {error.strerror or error}")
        return []
    problems.extend(
        f"{entry} is passed over: unpack it so that each task has a folder with its annotation"
        for entry in entries
        if is_archive(entry) and entry.is_file()
    )
    return [entry for entry in entries if entry.is_dir()]


def _annotation_of(path: Path, problems: list[str]) -> Path:
    """Return the annotation of a task's folder, unpacking it if needed.

    An archive that cannot be unpacked matters only if there is no annotation next to it.
    """
    archives = packed_content(path)
    unpacking: DataError | None = None
    if archives:
        try:
            unpack_here(path, archives)
        except DataError as error:
            unpacking = error
    file = annotation_file(path)
    if file is None:
        raise unpacking or DataError(f"{path} holds no annotation.json; download the folder again")
    if unpacking is not None:
        problems.append(str(unpacking))
    return file


def _has_media(folder: Path) -> bool:
    try:
        return any(is_visible(entry) and entry.suffix.casefold() != ".json" for entry in folder.iterdir())
    except OSError:
        return False


def _below(folder: Path, steps: Iterable[str]) -> Path | None:
    """Find the folder of these names, whatever their case."""
    for step in steps:
        found = [child for child in _children(folder) if child.name.casefold() == step.casefold()]
        if not found:
            return None
        folder = found[0]
    return folder
