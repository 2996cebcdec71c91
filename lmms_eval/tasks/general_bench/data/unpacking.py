"""Task folders whose content is published as archives."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.archives import alone, is_archive, merge, unpacked
from lmms_eval.tasks.general_bench.data.annotations import annotation_file
from lmms_eval.tasks.general_bench.readers.paths import MEDIA_FOLDERS

_LEFTOVERS = "__MACOSX"


def is_visible(path: Path) -> bool:
    """Not hidden, and not what packing programs leave behind."""
    return not path.name.startswith((".", "__"))


def packed_content(folder: Path) -> list[Path]:
    """The archives of a task's folder, sorted, if they have not been unpacked: all else there is JSON, or it has no
    annotation.

    Raises:
        OSError: the folder cannot be listed.
    """
    entries = [entry for entry in sorted(folder.iterdir()) if is_visible(entry)]
    archives = [entry for entry in entries if is_archive(entry) and entry.is_file()]
    others = [entry for entry in entries if entry not in archives and entry.suffix.casefold() != ".json"]
    return archives if not others or annotation_file(folder) is None else []


def unpack_here(folder: Path, archives: Iterable[Path]) -> None:
    """Unpack archives of a task's folder into it, without the folders that they wrap its content in.

    Files that are there already are kept. Another process that is at it is waited for.

    Raises:
        DataError: the folder cannot be written, or an archive is damaged, leads outside or does not fit on the disk;
            nothing is changed then. The message says what to do.
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
    """Finds the innermost nested single folder that is the task's: it has its name, or holds JSON or media folders."""
    found = inner = content
    while True:
        entries = [entry for entry in inner.iterdir() if is_visible(entry)]
        if len(entries) != 1 or not entries[0].is_dir() or entries[0].name.casefold() in MEDIA_FOLDERS:
            return found
        inner = entries[0]
        if inner.name.casefold() == name.casefold() or _is_task(inner):
            found = inner


def _is_task(folder: Path) -> bool:
    return any(
        entry.name.casefold() in MEDIA_FOLDERS if entry.is_dir() else entry.suffix.casefold() == ".json"
        for entry in folder.iterdir()
    )
