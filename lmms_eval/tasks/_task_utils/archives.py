"""Unpacking archives of data sets: complete or not at all, nothing outside the target, no links.

``.zip``, and ``.tar`` plain or compressed (gzip, bzip2, xz).
"""

from __future__ import annotations

import contextlib
import fcntl
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from lmms_eval.errors import DataError

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError)
_UNREADABLE = (OSError, *_DAMAGED, NotImplementedError, RuntimeError)
"""``RuntimeError``: an encrypted zip; ``NotImplementedError``: a compression that zipfile does not know."""


def is_archive(path: Path) -> bool:
    """Whether a file is one of these, by its name."""
    return path.name.casefold().endswith(SUFFIXES)


@contextlib.contextmanager
def alone(target: Path) -> Iterator[None]:
    """One process at a time in a folder, which is made if it is missing.

    Raises:
        DataError: the folder cannot be made or opened.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
        handle = os.open(target, os.O_RDONLY)
    except OSError as error:
        raise DataError(f"{target} cannot be made or opened: {error.strerror or error}") from error
    try:
        with contextlib.suppress(OSError):  # a file system without locks: renaming keeps what another one finished
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def unpacked(archive: Path, target: Path) -> Iterator[Path]:
    """The content of an archive in a folder on ``target``'s disk, from which the caller renames what it wants.

    The folder is removed at the end, with all that is left in it.

    Raises:
        DataError: the archive is damaged, holds links or names that lead outside, or does not fit on the disk.
    """
    try:
        folder = tempfile.TemporaryDirectory(dir=target, prefix=".unpacking-")
    except OSError as error:
        raise _refused(archive, target, error) from error
    with folder as name:
        try:
            _check_room(archive.stat().st_size, archive, target)
            if archive.name.casefold().endswith(".zip"):
                _unzip(archive, Path(name), target)
            else:
                _untar(archive, Path(name), target)
        except _UNREADABLE as error:
            raise _refused(archive, target, error) from error
        yield Path(name)


def merge(source: Path, target: Path) -> None:
    """Rename everything in a folder into another on the same disk; files that are there already are kept.

    JSON files come last, so that a folder whose annotation is there has its media too.

    Raises:
        DataError: something cannot be renamed, or is a file in one and a folder in the other.
    """
    for entry in sorted(source.iterdir(), key=lambda path: (path.suffix.casefold() == ".json", path.name)):
        place = target / entry.name
        if place.is_dir() and entry.is_dir():
            merge(entry, place)
        elif place.is_dir() or (place.exists() and entry.is_dir()):
            raise DataError(f"{place} is a folder in one place and a file in the other; remove it, then try again")
        elif not place.exists():
            try:
                entry.rename(place)
            except OSError as error:
                raise DataError(f"{place} cannot be written: {error.strerror or error}") from error


def _refused(archive: Path, target: Path, error: Exception) -> DataError:
    remedy = "; download it again" if isinstance(error, _DAMAGED) else ""
    return DataError(f"{archive} cannot be unpacked into {target}: {error}{remedy}")


def _check_room(needed: int, archive: Path, target: Path) -> None:
    free = shutil.disk_usage(target).free
    if needed > free:
        raise DataError(
            f"{archive} needs at least {needed / 1e9:.1f} GB in {target}, which has {free / 1e9:.1f} GB free"
        )


def _unzip(archive: Path, folder: Path, target: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            _check_name(entry.filename, archive)
            if not _is_plain(entry.external_attr >> 16):
                raise _special(entry.filename, archive)
        _check_room(sum(entry.file_size for entry in opened.infolist()), archive, target)
        opened.extractall(folder)


def _is_plain(mode: int) -> bool:
    """Archives made elsewhere than on Unix state no kind of file."""
    return stat.S_IFMT(mode) in (0, stat.S_IFREG, stat.S_IFDIR)


def _untar(archive: Path, folder: Path, target: Path) -> None:
    free = shutil.disk_usage(target).free
    needed = 0
    with tarfile.open(archive, "r|*") as opened:
        for member in opened:
            _check_name(member.name, archive)
            if not (member.isfile() or member.isdir()):
                raise _special(member.name, archive)
            needed += member.size
            if needed > free:
                _check_room(needed, archive, target)
            opened.extract(member, folder, filter="data")


def _check_name(name: str, archive: Path) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        raise DataError(f"{archive} holds {name!r}, which leads outside its folder: nothing was unpacked")


def _special(name: str, archive: Path) -> DataError:
    return DataError(f"{archive} holds {name!r}, which is a link or device: nothing was unpacked")
