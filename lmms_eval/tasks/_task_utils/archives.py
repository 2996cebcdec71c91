"""Unpacks archives of data sets: completely or not at all, only inside the target, without links, within bounds.

``.zip``, and ``.tar`` plain or compressed (gzip, bzip2, xz), also in parts. This is the one place that unpacks.
"""

from __future__ import annotations

import bz2
import contextlib
import fcntl
import gzip
import io
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
UNPACKING = ".unpacking-"
"""Prefix of the folders that archives are unpacked into. A process that is killed leaves one."""
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError)
_UNREADABLE = (OSError, *_DAMAGED, NotImplementedError, RuntimeError)
"""``RuntimeError``: an encrypted zip; ``NotImplementedError``: a compression that zipfile does not know."""


class ArchiveBounds(Struct, frozen=True):
    """Limits of an archive. The defaults are for media."""

    entries: int = 2_000_000
    ratio: int = 200
    """Unpacked size over packed size, above ``free_bytes``: what compresses better than this is no media."""
    free_bytes: int = 4 * 2**30


_MEDIA = ArchiveBounds()
_ZIPS = (".zip", ".whl")
_COMPRESSED: Mapping[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
"""Streams that decompress a whole file, by the bytes that it begins with. tarfile's own reader ends with gzip's first
member."""
_BLOCK = 4096
"""Bytes that the smallest file takes on a disk."""
_MAX_HEADER = 2**20
"""Bytes of a long name or of extended attributes in a tar: tarfile reads them as a whole."""
_HEADERS = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip


def is_archive(path: Path) -> bool:
    """Return whether a file is an archive of a known kind, by its name."""
    return path.name.casefold().endswith(SUFFIXES)


@contextlib.contextmanager
def alone(target: Path) -> Iterator[None]:
    """Lock a folder for one process at a time; the folder is made if it is missing.

    Raises ``DataError`` if the folder cannot be made or opened.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
        handle = os.open(target, os.O_RDONLY)
    except OSError as error:
        raise DataError(f"{target} cannot be made or opened: {error.strerror or error}") from error
    try:
        with contextlib.suppress(OSError):  # a file system without locks: renaming keeps files of other processes
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def unpacked(
    archive: Path | Sequence[Path], target: Path, remedy: str = "download it again", bounds: ArchiveBounds = _MEDIA
) -> Iterator[Path]:
    """Unpack an archive into a folder on ``target``'s disk. The caller renames files from there.

    The folder is removed at the end with everything left in it.

    Args:
        archive: a file, or the parts of a tar in order.
        target: the folder to unpack in.
        remedy: what to do about a damaged archive, for the message.
        bounds: most entries and growth.

    Raises:
        DataError: the archive is damaged, holds links or names that lead outside, exceeds the bounds, or does not fit
            on the disk.
    """
    parts = [archive] if isinstance(archive, Path) else list(archive)
    try:
        folder = tempfile.TemporaryDirectory(dir=target, prefix=UNPACKING)
    except OSError as error:
        raise _refused(parts[0], target, error, remedy) from error
    with folder as name:
        try:
            content = _Content(parts[0], target, sum(part.stat().st_size for part in parts), bounds)
            if parts[0].name.casefold().endswith(_ZIPS):
                _unzip(content, Path(name))
            else:
                _untar(parts, content, Path(name))
        except _UNREADABLE as error:
            raise _refused(parts[0], target, error, remedy) from error
        yield Path(name)


def merge(source: Path, target: Path) -> None:
    """Move everything in a folder into another one on the same disk; existing files are kept.

    JSON files come last, so that a folder whose annotation is there has its media too. Raises ``DataError`` if
    something cannot be renamed, or is a file in one and a folder in the other.
    """
    for entry in sorted(source.iterdir(), key=lambda path: (path.suffix.casefold() == ".json", path.name)):
        place = target / entry.name
        if place.is_dir() and entry.is_dir():
            merge(entry, place)
        elif place.is_dir() or (place.exists() and entry.is_dir()):
            raise DataError(f"{place} is a folder in one place and a file in the other; remove it, then try again")
        elif not place.exists():
            rename(entry, place)


def rename(source: Path, place: Path) -> None:
    """Rename on one disk. Raises ``DataError``."""
    try:
        source.rename(place)
    except OSError as error:
        raise DataError(f"{place} cannot be written: {error.strerror or error}") from error


def _refused(archive: Path, target: Path, error: Exception, remedy: str) -> DataError:
    remedy = f"; {remedy}" if isinstance(error, _DAMAGED) else ""
    return DataError(f"{archive} cannot be unpacked into {target}: {error}{remedy}")


class _Content:
    """Content of an archive: counts it while it is unpacked, and refuses too much of it before it is written."""

    def __init__(self, archive: Path, target: Path, packed: int, bounds: ArchiveBounds) -> None:
        self.archive, self._target, self._packed, self._bounds = archive, target, packed, bounds
        self._free = shutil.disk_usage(target).free
        self._entries = self._bytes = self._on_disk = 0
        self._check_room(packed)

    def add(self, name: str, size: int, is_plain: bool) -> None:
        """Count the next entry. Raises ``DataError`` if it is too much."""
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise DataError(f"{self.archive} holds {name!r}, which leads outside its folder: nothing was unpacked")
        if not is_plain:
            raise DataError(f"{self.archive} holds {name!r}, which is a link or device: nothing was unpacked")
        self._entries += 1
        self._bytes += size
        self._on_disk += max(size, _BLOCK)
        if self._entries > self._bounds.entries:
            raise DataError(f"{self.archive} holds more than {self._bounds.entries:,} entries: nothing was unpacked")
        if self._bytes > max(self._bounds.free_bytes, self._bounds.ratio * self._packed):
            raise DataError(
                f"{self.archive} of {self._packed / 1e9:.3f} GB grows to more than {self._bytes / 1e9:.1f} GB, over "
                f"{self._bounds.ratio} times its size: nothing was unpacked"
            )
        if self._on_disk > self._free:
            self._check_room(self._on_disk)

    def _check_room(self, needed: int) -> None:
        self._free = shutil.disk_usage(self._target).free
        if needed > self._free:
            raise DataError(
                f"{self.archive} needs at least {needed / 1e9:.1f} GB in {self._target}, which has "
                f"{self._free / 1e9:.1f} GB free"
            )


def _unzip(content: _Content, folder: Path) -> None:
    with zipfile.ZipFile(content.archive) as opened:
        for entry in opened.infolist():
            kind = stat.S_IFMT(entry.external_attr >> 16)  # archives made outside Unix state no mode
            content.add(entry.filename, entry.file_size, kind in (0, stat.S_IFREG, stat.S_IFDIR))
        opened.extractall(folder)  # an entry is read to its stated size, which its checksum must fit


def _untar(parts: Sequence[Path], content: _Content, folder: Path) -> None:
    for pieces in _whole_ones(parts):
        with io.BufferedReader(_Joined(pieces)) as joined:
            head = joined.peek(8)
            openers = (opener for mark, opener in _COMPRESSED.items() if head.startswith(mark))
            with next(openers, contextlib.nullcontext)(joined) as plain:
                with tarfile.open(fileobj=plain, mode="r|", tarinfo=_Entry) as opened:
                    for member in opened:
                        is_plain = member.isdir() or (member.isfile() and not member.issparse())
                        content.add(member.name, member.size, is_plain)
                        opened.extract(member, folder, filter="data")
                while block := plain.read(2**20):
                    if block.strip(b"\0"):
                        raise tarfile.ReadError("it continues after its end")


def _whole_ones(parts: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield the pieces of each tar: a part that begins like an archive is the first piece of one."""
    pieces: list[Path] = []
    for part in parts:
        with part.open("rb") as file:
            head = file.read(512)
        if pieces and (head.startswith(tuple(_COMPRESSED)) or head[257:262] == b"ustar"):
            yield pieces
            pieces = []
        pieces.append(part)
    if pieces:
        yield pieces


class _Entry(tarfile.TarInfo):
    """A member of a tar. Refuses large headers, which tarfile would read into memory as a whole."""

    def _proc_member(self, tar: Any) -> Any:
        if self.type in _HEADERS and self.size > _MAX_HEADER:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("a sparse file")
        return super()._proc_member(tar)  # type: ignore[misc]  # meant to be overridden, but not typed

    def _proc_gnusparse_10(self, *_: Any) -> None:
        raise tarfile.ReadError("a sparse file")


class _Joined(io.RawIOBase):
    """Several files, read as one."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = list(files)
        self._current: io.BufferedReader | None = None

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._current is None:
                if not self._files:
                    return 0
                self._current = self._files.pop(0).open("rb")
            count = self._current.readinto(buffer)
            if count:
                return count
            self._current.close()
            self._current = None
