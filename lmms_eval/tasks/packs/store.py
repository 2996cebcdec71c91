"""The packs of this machine: a folder for each, and ``packs.json`` with a record of each."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from lmms_eval.errors import DataError, UnknownNameError
from lmms_eval.storage.atomic import read_json, replacing

VARIABLE = "LMMS_EVAL_PACKS"
_TABLE = "packs.json"
_INDEX = ".index.json"
DOWNLOADING = ".download-"
"""Prefix of the folders of downloads."""
USE = ".use"
"""File that every process using the folder has locked, so that its files stay until they end. Only folders that have
this file are ever removed."""
_used: dict[Path, Pack] = {}
"""The packs that this process uses, by the folders of their task files."""
_REMEDY = "remove the file, then add the packs again (lmms-eval packs add)"
_kept = contextlib.ExitStack()
"""Locks of their folders, which end with the process."""


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
    """Folder below that of the packs, or the absolute path of a folder that stays in its place."""
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
    models: tuple[str, ...] = ()
    """Modules of models in the wheel, which are not unpacked."""

    @property
    def path(self) -> Path:
        """The folder of the task files."""
        return packs_folder() / self.folder / self.tasks

    @property
    def package(self) -> str:
        """The package that the task files' code imports itself from, such as ``lm_eval``."""
        own = Path(self.folder)
        parts = [own.parent.name, own.name, *(part for part in self.tasks.split("/") if part != ".")]
        above = [part for part, below in itertools.pairwise(parts) if below == "tasks"]
        return above[-1] if above else parts[min(2, len(parts) - 1)]

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
    """Return the packs, the oldest first. Raises ``DataError`` if the table is damaged."""
    table = packs_folder() / _TABLE
    if not table.is_file():
        return []
    try:
        return msgspec.convert(read_json(table), list[Pack])
    except msgspec.ValidationError as error:
        raise DataError(f"{table} is no table of packs: {error}; {_REMEDY}") from error
    except DataError as error:
        raise DataError(f"{error}; {_REMEDY}") from error


def pack_named(name: str) -> Pack:
    """Return a pack. Raises ``UnknownNameError`` if it is unknown."""
    known = {pack.name: pack for pack in packs()}
    if name not in known:
        raise UnknownNameError("pack", name, known, "(lmms-eval packs list shows those that are here)")
    return known[name]


def use(pack: Pack) -> None:
    """Keep the files of a pack until this process ends, even if it is removed meanwhile.

    Raises ``DataError`` if the files are gone.
    """
    if _used.get(pack.path.resolve()) == pack:
        return
    if not Path(pack.folder).is_absolute():
        _kept.enter_context(held(packs_folder() / pack.folder))
    check_files(pack)
    _used[pack.path.resolve()] = pack


def used_pack(file: Path) -> Pack | None:
    """Return the pack that a task file belongs to, if this process uses it."""
    return next((pack for folder, pack in _used.items() if file.is_relative_to(folder)), None)


def check_files(pack: Pack) -> None:
    """Raise ``DataError`` if the files of a pack are gone."""
    if not pack.path.is_dir():
        again = f"packs add {pack.requirement or pack.source}{'' if pack.version else f' --name {pack.name}'}"
        raise DataError(
            f"pack {pack.name}: {pack.path} is gone; remove the pack (lmms-eval packs remove {pack.name}), then add it "
            f"again (lmms-eval {again})"
        )


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep a folder from being removed while the block runs. Nothing happens if this user may not write there."""
    try:
        handle = os.open(folder / USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:  # a read-only folder, which nobody removes while it is used; or the folder is gone
        yield
        return
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def changing() -> Iterator[list[Pack]]:
    """Change the table of packs: the block changes the list, which is written when it ends.

    Files of packs that are not in it any more are removed unless a process uses them. Raises ``DataError`` if the
    folder of the packs cannot be written.
    """
    from lmms_eval.tasks._task_utils.archives import alone

    root = packs_folder()
    with alone(root):
        table = packs()
        yield table
        document = msgspec.json.format(msgspec.json.encode(table), indent=1)
        try:
            with replacing(root / _TABLE) as file:
                file.write(document + b"\n")
        except OSError as error:
            raise DataError(f"{root} cannot be written: {error.strerror or error}; nothing was changed") from error
        sweep()


def sweep() -> None:
    """Remove everything that killed processes left, and the files of removed packs that no process uses.

    The caller has locked the folder of the packs (``alone``).
    """
    from lmms_eval.tasks._task_utils.archives import UNPACKING

    root, table = packs_folder(), packs()
    for folder in root.glob(f"{UNPACKING}*"):  # wheels are unpacked with the lock, too
        shutil.rmtree(folder, ignore_errors=True)
    named = {pack.folder for pack in table}
    for mark in [*root.glob(f"[!.]*/*/{USE}"), *root.glob(f"{DOWNLOADING}*/{USE}")]:
        if mark.parent.relative_to(root).as_posix() in named:
            continue
        try:
            with mark.open("a", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(mark.parent)
        except OSError:  # a process uses it: the next change removes it
            continue
        with contextlib.suppress(OSError):  # it holds another version
            mark.parent.parent.rmdir()
    kept = {index_file(pack) for pack in table}
    for file in [*root.glob(f"*{_INDEX}"), *root.glob(f".{_TABLE}.*.tmp")]:
        if file not in kept:
            file.unlink(missing_ok=True)


def index_file(pack: Pack) -> Path:
    """Return the file that keeps the names of a pack."""
    return packs_folder() / f"{pack.name}{_INDEX}"


def is_in_use(pack: Pack) -> bool:
    """Return whether the files of a pack are still there because a process uses them."""
    return not Path(pack.folder).is_absolute() and (packs_folder() / pack.folder).is_dir()


def replaced(table: list[Pack], pack: Pack) -> None:
    """Put a pack into the table, at the place of the one of its name if there is one."""
    names = [known.name for known in table]
    place = names.index(pack.name) if pack.name in names else len(table)
    table[place : place + 1] = [pack]
