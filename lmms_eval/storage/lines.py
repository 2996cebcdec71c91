"""Append-only files of JSON lines, each with its checksum, that survive a kill at any instant.

A line is a JSON object whose last field is ``"crc":"xxxxxxxx"``: the CRC-32, in hexadecimal digits, of all bytes of the
line before the comma of that field. A reader skips lines with a wrong checksum or without a record, and logs their
number.

Each line is one unbuffered ``write``: a killed process loses nothing that it had reported. When a file is opened for
writing again, a torn last line is closed by a newline; its checksum is then wrong.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
import zlib
from array import array
from collections.abc import Generator, Iterator, MutableMapping
from itertools import repeat
from pathlib import Path
from typing import Any

import orjson
from loguru import logger
from msgspec import Struct

from lmms_eval.errors import DataError, JournalError
from lmms_eval.storage import codec
from lmms_eval.storage.codec import is_record, load_record

LOOK_EVERY_S = 0.1
"""Seconds between two checks of a writer whether its file still exists."""
BLOCK_BYTES = 1 << 14
"""Bytes that are read for one line: about twenty lines."""
OURS, FOREIGN = "ours", "foreign"
_FIELD = b',"crc":"'
_END_BYTES = len(_FIELD) + 8 + len(b'"}\n')


def sealed(content: bytes) -> bytes:
    """Return the journal line of an encoded JSON object with at least one field: adds the checksum and the newline."""
    fields = memoryview(content)[:-1]
    return b"".join((fields, b',"crc":"%08x"}\n' % zlib.crc32(fields)))


def unsealed(line: bytes) -> bytes | None:
    """Return the encoded object of a line from ``sealed``; ``None`` if the checksum is wrong."""
    fields = line[:-_END_BYTES]
    return fields + b"}" if line[len(fields) :] == b',"crc":"%08x"}\n' % zlib.crc32(fields) else None


def record_in(line: bytes, kind: type[Struct] | None = None) -> dict[str, Any] | None:
    """Return the record of a line with its newline; ``None`` if its checksum or its content is damaged.

    Records of another form than ``kind`` count as damaged.
    """
    content = unsealed(line)
    record = None if content is None else load_record(content)
    return record if record is not None and (kind is None or is_record(record, kind)) else None


def read_sealed(path: Path) -> dict[str, Any] | None:
    """Return the record of a file that ``sealed`` encoded; ``None`` if the file is missing or damaged."""
    try:
        return record_in(path.read_bytes())
    except OSError:
        return None


class JournalWriter:
    """Appends records to a file; thread-safe. Raises ``JournalError`` if the file cannot be created or written.

    A file without checksums is moved aside.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._is_torn = False
        self._checked = 0.0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _set_aside_foreign(path)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            self._size = os.fstat(self._file).st_size
        except OSError as error:
            raise JournalError(f"cannot open the journal {path}: {error.strerror or error}") from error
        if self._size and os.pread(self._file, 1, self._size - 1) != b"\n":
            self._write(b"\n")

    def append(self, record: dict[str, Any]) -> int:
        """Append one record; returns the offset of its line (``append_line``). Raises ``VolatileValue`` too."""
        return self.append_line(sealed(codec.dumps(record)))

    def append_line(self, line: bytes) -> int:
        """Append a line that ``sealed`` returned; returns its offset. Raises ``JournalError`` if that fails."""
        with self._lock:
            if self._is_torn:
                self._write(b"\n")
            offset = self._size
            self._write(line)
            return offset

    def _write(self, data: bytes) -> None:
        try:
            written = os.write(self._file, data)
            now, is_deleted = time.monotonic(), False
            if now - self._checked >= LOOK_EVERY_S:  # a system call for each line would be too slow
                self._checked, is_deleted = now, os.fstat(self._file).st_nlink == 0
        except OSError as error:
            raise JournalError(
                f"cannot write to the journal {self.path}: {error.strerror or error}; what was finished before is "
                "kept: make room and start the same command again"
            ) from error
        self._size += written
        self._is_torn = written != len(data)
        if written != len(data):
            raise JournalError(
                f"the journal {self.path} took only {written} of {len(data)} bytes (full disk?); what was finished "
                "before is kept: make room and start the same command again"
            )
        if is_deleted:
            self._check_place()

    def _check_place(self) -> None:
        """Check that the file still has its name: anything written to a deleted or moved file is lost."""
        if not self.path.exists():
            raise JournalError(
                f"the journal {self.path} was deleted or moved while it was written: what it held is lost unless it "
                "is put back; start the same command again"
            )

    def sync(self) -> None:
        """Flush the file to the disk. Raises ``JournalError``, also if the file was deleted or moved."""
        with self._lock:
            try:
                os.fsync(self._file)
            except OSError as error:
                raise JournalError(f"cannot force {self.path} to the disk: {error.strerror or error}") from error
            self._check_place()

    def close(self) -> None:
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1


class LineReader:
    """Random access to the lines of a file. Raises ``JournalError`` if the file cannot be opened.

    It reads a block at a time, since neighbouring lines are often read together.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - held open for random access, closed by close()
        except OSError as error:
            raise JournalError(f"cannot read the journal {path}: {error.strerror or error}") from error
        self._lock = threading.Lock()
        self._begin, self._block = 0, b""
        """Offset and content of the last block."""

    def at(self, offset: int) -> dict[str, Any]:
        """Return the record of the line at an offset. Raises ``JournalError`` (``line_at``)."""
        return self.line_at(offset)[1]

    def line_at(self, offset: int) -> tuple[bytes, dict[str, Any]]:
        """Return the line at an offset, and its record. Raises ``JournalError`` if it is unreadable or damaged."""
        try:
            with self._lock:
                start = offset - self._begin
                end = self._block.find(b"\n", start) if 0 <= start < len(self._block) else -1
                size = BLOCK_BYTES
                while end < 0:
                    start, self._begin, self._block = 0, offset, os.pread(self._file.fileno(), size, offset)
                    end = self._block.find(b"\n")
                    if end < 0 and len(self._block) < size:  # a torn line at the end of the file
                        end = len(self._block)
                    size *= 4
                line = self._block[start : end + 1]
        except OSError as error:
            raise JournalError(f"cannot read the journal {self.path}: {error.strerror or error}") from error
        record = record_in(line)
        if record is None:
            raise JournalError(
                f"{self.path}: the line at byte {offset} is no longer what was written; start the same command again: "
                "what it held is asked or scored again"
            )
        return line, record

    def close(self) -> None:
        self._file.close()


def read_lines(
    path: Path, quietly: bool = False, kind: type[Struct] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the offset and the record of each undamaged line of a file; a missing file has no lines.

    ``quietly``: do not log damaged lines, since an earlier reading has. Raises ``JournalError`` if the file cannot be
    read.
    """
    offset = damaged = 0
    owners: set[str] = set()
    try:
        with open(path, "rb") as file:
            for line in file:
                start, offset = offset, offset + len(line)
                record = record_in(line, kind)
                if record is not None:
                    owners.add(OURS)
                    yield start, record
                elif line != b"\n":  # an empty line only closes a torn one
                    damaged += 1
                    owners.add(_owner_of(line))
    except FileNotFoundError:
        return
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error.strerror or error}") from error
    if damaged and not quietly:
        _warn(path, damaged, is_foreign=FOREIGN in owners and OURS not in owners)


def has_checksums(data: bytes) -> bool:
    """Return whether JSON lines are those of a journal, even if all of them are damaged."""
    return any(_owner_of(line) == OURS for line in data.splitlines(keepends=True))


def records_in(data: bytes, place: Path | str) -> list[dict[str, Any]]:
    """Return the records of several lines (``lines_in``)."""
    return [record for _, record in lines_in(data, place)]


def lines_in(data: bytes, place: Path | str) -> list[tuple[bytes, dict[str, Any]]]:
    """Return the undamaged lines with their records; logs the number of damaged ones under the name ``place``."""
    lines = [line for line in data.splitlines(keepends=True) if line != b"\n"]
    found = [(line, record) for line in lines if (record := record_in(line)) is not None]
    if len(found) < len(lines):
        _warn(place, len(lines) - len(found))
    return found


def _warn(place: Path | str, damaged: int, is_foreign: bool = False) -> None:
    if is_foreign:
        logger.warning("{} is a journal of another form (no checksums): nothing is taken from it", place)
        return
    lines = "1 line is damaged" if damaged == 1 else f"{damaged} lines are damaged"
    logger.warning("{}: {} (checksum or content) and skipped; what they held is asked or scored again", place, lines)


def _set_aside_foreign(path: Path) -> None:
    """Rename a file of JSON lines without checksums. Raises ``OSError``."""
    if not path.is_file():
        return
    is_foreign = False
    with open(path, "rb") as file:
        for line in file:
            owner = _owner_of(line)
            if owner == OURS:
                return
            is_foreign = is_foreign or owner == FOREIGN
    if is_foreign:
        number = 1
        while (target := path.with_name(f"{path.name}.other-form-{number}")).exists():
            number += 1
        path.rename(target)
        logger.warning("{} is a journal of another form (no checksums): moved to {}, begun anew", path, target.name)


def _owner_of(line: bytes) -> str:
    """Return ``OURS`` for a line that ends with a checksum, correct or not, and ``FOREIGN`` for other JSON objects."""
    if line[-_END_BYTES : len(_FIELD) - _END_BYTES] == _FIELD:
        return OURS
    if line.startswith(b"{"):
        try:
            return FOREIGN if isinstance(orjson.loads(line), dict) else ""
        except ValueError:
            pass
    return ""  # torn or damaged


class RecordPlace(Struct, frozen=True, gc=False):
    """Position of a record in a ``JournalSet``."""

    file: int
    offset: int


class DocumentPlaces(MutableMapping[int, RecordPlace]):
    """Positions of the records of a task's documents, by document number, in ascending order.

    A document takes 12 bytes; a dict takes 150.
    """

    def __init__(self) -> None:
        self._offsets, self._files = array("q"), array("i")
        """By document number; the file of a document without a record is -1."""
        self._count = 0

    def __getitem__(self, doc_id: int) -> RecordPlace:
        if 0 <= doc_id < len(self._files) and (file := self._files[doc_id]) >= 0:
            return RecordPlace(file, self._offsets[doc_id])
        raise KeyError(doc_id)

    def __setitem__(self, doc_id: int, place: RecordPlace) -> None:
        if doc_id < 0:
            raise KeyError(doc_id)
        if (more := doc_id + 1 - len(self._files)) > 0:
            self._offsets.extend(repeat(0, more))
            self._files.extend(repeat(-1, more))
        self._count += self._files[doc_id] < 0
        self._offsets[doc_id], self._files[doc_id] = place.offset, place.file

    def __delitem__(self, doc_id: int) -> None:
        if doc_id not in self:
            raise KeyError(doc_id)
        self._files[doc_id] = -1
        self._count -= 1

    def __contains__(self, doc_id: object) -> bool:
        return isinstance(doc_id, int) and 0 <= doc_id < len(self._files) and self._files[doc_id] >= 0

    def __iter__(self) -> Iterator[int]:
        return (doc_id for doc_id, file in enumerate(self._files) if file >= 0)

    def __len__(self) -> int:
        return self._count


class JournalSet:
    """Several journals that are read as one, so that memory holds only the positions of their records."""

    def __init__(self) -> None:
        self._readers: list[LineReader] = []

    def add(self, path: Path) -> int:
        """Open a journal; returns its number. Raises ``JournalError``."""
        self._readers.append(LineReader(path))
        return len(self._readers) - 1

    def load(
        self, path: Path, quietly: bool = False, kind: type[Struct] | None = None
    ) -> Iterator[tuple[RecordPlace, dict[str, Any]]]:
        """Open a journal and yield its records (``read_lines``)."""
        file = self.add(path)
        for offset, record in read_lines(path, quietly, kind):
            yield RecordPlace(file, offset), record

    def at(self, place: RecordPlace) -> dict[str, Any]:
        """Return one record. Raises ``JournalError`` (``LineReader.line_at``)."""
        return self._readers[place.file].line_at(place.offset)[1]

    def line_at(self, place: RecordPlace) -> tuple[bytes, dict[str, Any]]:
        """Return one line with its record. Raises ``JournalError`` (``LineReader.line_at``)."""
        return self._readers[place.file].line_at(place.offset)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


class JournalReplaced(DataError):
    """A journal was replaced by another file since it was read: the run started from scratch."""


class _Tail(Struct):
    identity: tuple[int, int] | None = None
    read: int = 0
    """Bytes of complete lines read so far."""
    size: int = 0
    changed: int = 0
    """Time of the last change, in nanoseconds."""


class JournalTails:
    """Reader of the journals whose names fit a pattern, also while they grow. It reads a record again by its place."""

    def __init__(self, folder: Path, pattern: str, kind: type[Struct] | None = None) -> None:
        self.folder, self.pattern, self._kind = folder, pattern, kind
        self.files: list[Path] = []
        """The files found so far; a file's index is its place here."""
        self.damaged = 0
        """Complete lines that are damaged: torn by a kill, or changed."""
        self._tails: list[_Tail] = []
        self._readers: dict[int, LineReader] = {}
        weakref.finalize(self, _close, self._readers)

    @property
    def torn(self) -> int:
        """Number of files that end within a line, which is being written or was torn by a kill."""
        return sum(tail.size > tail.read for tail in self._tails)

    @property
    def newest(self) -> int | None:
        """Index of the file that changed last; ``None`` without files."""
        return max(range(len(self._tails)), key=lambda number: (self._tails[number].changed, number), default=None)

    def at(self, place: RecordPlace) -> dict[str, Any]:
        """Read a record. Raises ``DataError`` if it has changed."""
        try:
            return self.open(place.file).at(place.offset)
        except JournalError as error:
            raise DataError(str(error)) from error

    def open(self, file: int) -> LineReader:
        """Open a file, which then stays open, so that it can be read after its removal. Raises ``DataError``."""
        if file not in self._readers:
            try:
                self._readers[file] = LineReader(self.files[file])
            except JournalError as error:
                raise DataError(str(error)) from error
        return self._readers[file]

    def news(self) -> Generator[tuple[RecordPlace, dict[str, Any]]]:
        """Yield the records of complete lines that were added since the last call, file after file.

        A caller may stop at any record; the next call continues after it.

        Raises:
            JournalReplaced: a file is gone, shorter than before, or another file.
            DataError: a file cannot be read.
        """
        for path in sorted(set(self.folder.glob(self.pattern)) - set(self.files)):
            self.files.append(path)
            self._tails.append(_Tail())
        for number, (path, tail) in enumerate(zip(self.files, self._tails, strict=True)):
            try:
                found = os.stat(path)
                identity = (found.st_dev, found.st_ino)
                if tail.identity not in (None, identity) or found.st_size < tail.read:
                    raise JournalReplaced(f"{path} was started from scratch")
                tail.identity, tail.size, tail.changed = identity, found.st_size, found.st_mtime_ns
                if tail.size > tail.read:
                    yield from self._read(number, path, tail)
            except FileNotFoundError as error:
                raise JournalReplaced(f"{path} is gone") from error
            except OSError as error:
                raise DataError(f"{path} cannot be read: {error.strerror or error}") from error

    def _read(self, number: int, path: Path, tail: _Tail) -> Generator[tuple[RecordPlace, dict[str, Any]]]:
        with open(path, "rb") as file:
            file.seek(tail.read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                start, tail.read = tail.read, tail.read + len(line)
                tail.size = max(tail.size, tail.read)
                record = record_in(line, self._kind)
                if record is not None:
                    yield RecordPlace(number, start), record
                elif line != b"\n":  # an empty line closes a torn line
                    self.damaged += 1


def _close(readers: dict[int, LineReader]) -> None:
    for reader in readers.values():
        reader.close()
