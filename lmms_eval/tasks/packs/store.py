"""The packs of this machine: a folder for each, and ``packs.json`` with a record of each."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from lmms_eval.errors import DataError, UnknownNameError
from lmms_eval.storage.atomic import read_json, write_atomically
from lmms_eval.tasks._task_utils.archives import alone

VARIABLE = "LMMS_EVAL_PACKS"
_TABLE = "packs.json"
_DAY_S = 86_400
DOWNLOADING = ".download-"
"""Prefix of the folders of downloads. Those that a killed process left are removed a day later."""
_USE = ".use"
"""File that every process using the pack has locked, so that ``remove`` leaves its files until they end."""
_used: list[int] = []
"""Open lock files of the packs that this process uses. They are closed when the process ends."""


class Pack(Struct, frozen=True):
    """The tasks of another package."""

    name: str
    version: str
    """Version of the wheel; empty for a folder, which may change."""
    source: str
    """The wheel's file name, or the folder's path."""
    sha256: str
    """Hash of the wheel; empty for a folder, which may change."""
    folder: str
    """Folder below that of the packs, or the absolute path of a folder that is used where it is."""
    tasks: str
    """Path of the task files below ``folder``."""
    licence: str
    """Path of the licence below ``folder``; empty if the package has none."""
    added: str
    """Date and time, in UTC."""
    requirement: str = ""
    """Name of the package in the index; empty if the pack was added from a file or folder."""
    is_trusted: bool = False
    """Whether the tasks that bring Python code may run."""
    shared: tuple[str, ...] = ()
    """Names that this package has too."""

    @property
    def path(self) -> Path:
        """The folder of the task files."""
        return packs_folder() / self.folder / self.tasks

    @property
    def package(self) -> str:
        """The package that the task files' code imports itself from, such as ``lm_eval``."""
        return self.tasks.split("/")[0] if "/" in self.tasks else Path(self.folder).name

    @property
    def identity(self) -> dict[str, str]:
        """The parts of the record that results state."""
        return {"pack": self.name, "version": self.version, "sha256": self.sha256}


def packs_folder() -> Path:
    """Return the folder of all packs: ``LMMS_EVAL_PACKS``, else ``lmms_eval/packs`` in the user's cache.

    The path is free of symbolic links, as are those of included folders.
    """
    stated = os.environ.get(VARIABLE)
    folder = Path(stated) if stated else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "lmms_eval", "packs")
    return folder.expanduser().resolve()


def packs() -> list[Pack]:
    """Return the packs, in the order in which they were added. Raises ``DataError`` if the table is damaged."""
    table = packs_folder() / _TABLE
    if not table.is_file():
        return []
    try:
        return msgspec.convert(read_json(table), list[Pack])
    except msgspec.ValidationError as error:
        raise DataError(f"{table}: {error}; remove the file and add the packs again") from error


def pack_named(name: str) -> Pack:
    """Return a pack. Raises ``UnknownNameError`` if there is none of this name."""
    known = {pack.name: pack for pack in packs()}
    if name not in known:
        raise UnknownNameError("pack", name, known, "(lmms-eval packs list shows those that are here)")
    return known[name]


def use(pack: Pack) -> None:
    """Keep the files of a pack until this process ends, even if it is removed meanwhile.

    Raises ``DataError`` if the files are gone.
    """
    if not pack.path.is_dir():
        raise DataError(f"pack {pack.name}: {pack.path} is gone; add it again: lmms-eval packs add {pack.name}")
    if Path(pack.folder).is_absolute():
        return
    with contextlib.suppress(OSError):  # a read-only folder, which nobody removes while it is used
        handle = os.open(packs_folder() / pack.folder / _USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(handle, fcntl.LOCK_SH)
        _used.append(handle)


@contextlib.contextmanager
def changing() -> Iterator[list[Pack]]:
    """Change the table of packs: the block changes the list, which is written when it ends.

    Files of packs that are not in it any more are removed unless a process uses them. Raises ``DataError`` if the
    folder of the packs cannot be written.
    """
    root = packs_folder()
    with alone(root):
        table = packs()
        yield table
        document = msgspec.json.format(msgspec.json.encode(table), indent=1)
        write_atomically(root / _TABLE, document + b"\n")
        _sweep(root, {pack.folder for pack in table})


def _sweep(root: Path, named: set[str]) -> None:
    for folder in [*root.glob("[!.]*/*/"), *root.glob(f"{DOWNLOADING}*/"), *root.glob(".unpacking-*/")]:
        is_kept = folder.relative_to(root).as_posix() in named
        if is_kept or (folder.parent == root and time.time() - folder.stat().st_mtime < _DAY_S):
            continue
        try:
            with open(folder / _USE, "a", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
        except OSError:  # a process uses it: the next change removes it
            continue
    for folder in root.glob("[!.]*/"):
        with contextlib.suppress(OSError):  # not empty
            folder.rmdir()


def is_in_use(pack: Pack) -> bool:
    """Return whether the files of a pack are still there because a process uses them."""
    return not Path(pack.folder).is_absolute() and (packs_folder() / pack.folder).is_dir()


def replaced(table: list[Pack], pack: Pack) -> None:
    """Put a pack into the table, at the place of the one of its name if there is one."""
    names = [known.name for known in table]
    place = names.index(pack.name) if pack.name in names else len(table)
    table[place : place + 1] = [pack]
