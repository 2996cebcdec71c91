"""Append-only files of JSON lines, each with its checksum, that survive a kill at any instant.

A line is a JSON object whose last field is ``"crc":"xxxxxxxx"``: the CRC-32, in hexadecimal digits, of all bytes of the
line before the comma of that field. A line that does not fit, or fits and holds no such object, is passed over, counted
and said.

One ``write`` per line, straight to the kernel: a killed process loses nothing that it had reported. A torn last line is
closed by a newline when the file is opened for writing again, and then fits no checksum.
"""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from loguru import logger

from lmms_eval.errors import JournalError
from lmms_eval.storage import codec
from lmms_eval.storage.codec import fits, load_record

LOOK_EVERY_S = 0.1
"""Seconds between two looks of a writer for its file."""
BLOCK_BYTES = 1 << 14
"""Read at a time where one line is wanted: some twenty of them."""
_FIELD = b',"crc":"'
_END_BYTES = len(_FIELD) + 8 + len(b'"}\n')


def sealed(content: bytes) -> bytes:
    """Make the line of a JSON object (one field at least, no newline at the end): checksum and newline are added."""
    fields = memoryview(content)[:-1]
    return b"".join((fields, b',"crc":"%08x"}\n' % zlib.crc32(fields)))


def unsealed(line: bytes) -> bytes | None:
    """Take the object out of a line of ``sealed``; ``None`` if one of its bytes is not as it was written."""
    fields = line[:-_END_BYTES]
    return fields + b"}" if line[len(fields) :] == b',"crc":"%08x"}\n' % zlib.crc32(fields) else None


@dataclass(frozen=True, slots=True)
class Line:
    """A record, and where its line begins."""

    offset: int
    record: dict[str, Any]


def record_in(line: bytes, shape: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Take the record out of a line; ``None`` if the line is damaged: its checksum, or what it holds.

    Args:
        line: with its newline.
        shape: of the records of this journal (``storage.shapes``).
    """
    content = unsealed(line)
    record = None if content is None else load_record(content)
    return record if record is not None and (shape is None or fits(record, shape)) else None


class LineWriter:
    """Appends lines to one file; safe for several threads of one process. A file of another form is set aside.

    Raises:
        JournalError: the file, or its folder, cannot be made or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._is_torn = False
        self._looked = 0.0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _set_aside_other_form(path)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            self._size = os.fstat(self._file).st_size
        except OSError as error:
            raise JournalError(f"cannot open the journal {path}: {error.strerror or error}") from error
        if self._size and os.pread(self._file, 1, self._size - 1) != b"\n":
            self._write(b"\n")

    def append_line(self, content: bytes) -> int:
        """Write one JSON object; returns the offset of its line.

        Raises:
            JournalError: the file system refused (full disk, quota, lost mount), or the file was deleted.
        """
        line = sealed(content)
        with self._lock:
            if self._is_torn:
                self._write(b"\n")
            offset = self._size
            self._write(line)
            return offset

    def _write(self, data: bytes) -> None:
        try:
            written = os.write(self._file, data)
            is_deleted = self._looks() and os.fstat(self._file).st_nlink == 0
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

    def _looks(self) -> bool:
        """Tell if it is time to look again: a further call of the system for every line would be felt."""
        now = time.monotonic()
        if now - self._looked < LOOK_EVERY_S:
            return False
        self._looked = now
        return True

    def _check_place(self) -> None:
        """Check that the file still has its name: what goes into a deleted or moved file is lost."""
        if not self.path.exists():
            raise JournalError(
                f"the journal {self.path} was deleted or moved while it was written: what it held is lost unless it "
                "is put back; start the same command again"
            )

    def sync(self) -> None:
        """Force what is written to the disk. Raises ``JournalError``, also if the file is no longer in its place."""
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
    """Random access to the lines of one file, several of which are read at a time: the next one is often beside it.

    Raises:
        JournalError: the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - held open for random access, closed by close()
        except OSError as error:
            raise JournalError(f"cannot read the journal {path}: {error.strerror or error}") from error
        self._lock = threading.Lock()
        self._begin, self._block = 0, b""
        """Offset of the bytes that were read last, and those bytes."""

    def at(self, offset: int) -> dict[str, Any]:
        """Read the record whose line begins there.

        Raises:
            JournalError: the line can no longer be read, or is damaged.
        """
        try:
            with self._lock:
                line = self._line_at(offset)
        except OSError as error:
            raise JournalError(f"cannot read the journal {self.path}: {error.strerror or error}") from error
        record = record_in(line)
        if record is None:
            raise JournalError(
                f"{self.path}: the line at byte {offset} is no longer what was written; start the same command again: "
                "what it held is asked or scored again"
            )
        return record

    def _line_at(self, offset: int) -> bytes:
        start = offset - self._begin
        end = self._block.find(b"\n", start) if 0 <= start < len(self._block) else -1
        size = BLOCK_BYTES
        while end < 0:
            start, self._begin, self._block = 0, offset, os.pread(self._file.fileno(), size, offset)
            end = self._block.find(b"\n")
            if end < 0 and len(self._block) < size:  # torn: there is no more of it
                return self._block
            size *= 4
        return self._block[start : end + 1]

    def close(self) -> None:
        self._file.close()


def read_lines(path: Path, quietly: bool = False, shape: Mapping[str, Any] | None = None) -> Iterator[Line]:
    """Read the records of all lines of a file that are not damaged; a missing file has none.

    ``quietly``: what is damaged has been said at an earlier reading. ``shape``: of the records.

    Raises:
        JournalError: the file cannot be read.
    """
    offset = damaged = 0
    form = _Form()
    try:
        with open(path, "rb") as file:
            for line in file:
                start, offset = offset, offset + len(line)
                record = record_in(line, shape)
                if record is not None:
                    form.is_ours = True
                    yield Line(start, record)
                elif line != b"\n":  # which closed a torn line
                    damaged += 1
                    form.see(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error.strerror or error}") from error
    if damaged and not quietly:
        _say(path, damaged, form.is_other)


def has_checksums(data: bytes) -> bool:
    """Tell lines of a journal, sound or damaged, from a person's JSON lines."""
    form = _Form()
    for line in data.splitlines(keepends=True):
        form.see(line)
    return form.is_ours


def records_in(data: bytes, place: Path | str) -> list[dict[str, Any]]:
    """Read the records of lines that came as a whole; damaged lines are counted and said, naming ``place``."""
    lines = [line for line in data.splitlines(keepends=True) if line != b"\n"]
    records = [record for line in lines if (record := record_in(line)) is not None]
    if len(records) < len(lines):
        _say(place, len(lines) - len(records))
    return records


def _say(place: Path | str, damaged: int, is_other: bool = False) -> None:
    if is_other:
        logger.warning("{} is a journal of another form (no checksums): nothing is taken from it", place)
        return
    lines = "1 line is damaged" if damaged == 1 else f"{damaged} lines are damaged"
    logger.warning("{}: {} (checksum or content): passed over; what was in it is asked or scored again", place, lines)


def _set_aside_other_form(path: Path) -> None:
    """Move a journal of another form away. Raises ``OSError``."""
    if not path.is_file():
        return
    form = _Form()
    with open(path, "rb") as file:
        for line in file:
            form.see(line)
            if form.is_ours:
                return
    if form.is_other:
        number = 1
        while (target := path.with_name(f"{path.name}.other-form-{number}")).exists():
            number += 1
        path.rename(target)
        logger.warning("{} is a journal of another form (no checksums): moved to {}, begun anew", path, target.name)


@dataclass(slots=True)
class _Form:
    """Tells whose lines a file holds."""

    is_ours: bool = False
    """A line has a checksum at its end, be it right or wrong."""
    has_foreign: bool = False
    """A line is a whole JSON object without one."""

    @property
    def is_other(self) -> bool:
        return self.has_foreign and not self.is_ours

    def see(self, line: bytes) -> None:
        if line[-_END_BYTES : len(_FIELD) - _END_BYTES] == _FIELD:
            self.is_ours = True
        elif not self.has_foreign and line.startswith(b"{"):
            try:
                self.has_foreign = isinstance(orjson.loads(line), dict)
            except ValueError:  # torn or damaged
                return


class JournalWriter(LineWriter):
    """Appends records to one file; safe for several threads of one process."""

    def append(self, record: dict[str, Any]) -> int:
        """Write one record; returns the offset of its line.

        Raises:
            JournalError: as ``append_line``.
            VolatileValue: the record holds a value that JSON cannot carry.
        """
        return self.append_line(codec.dumps(record))


@dataclass(frozen=True, slots=True)
class Place:
    """A record's place in a ``JournalSet``."""

    file: int
    offset: int


class JournalSet:
    """Several journals that are read as one: memory need hold no more than the places of their records."""

    def __init__(self) -> None:
        self._readers: list[LineReader] = []

    def add(self, path: Path) -> int:
        """Open a journal; returns its number. Raises ``JournalError``."""
        self._readers.append(LineReader(path))
        return len(self._readers) - 1

    def load(
        self, path: Path, quietly: bool = False, shape: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Place, dict[str, Any]]]:
        """Open a journal and read its records (``read_lines``)."""
        file = self.add(path)
        for entry in read_lines(path, quietly, shape):
            yield Place(file, entry.offset), entry.record

    def at(self, place: Place) -> dict[str, Any]:
        """Read one record. Raises ``JournalError`` (``LineReader.at``)."""
        return self._readers[place.file].at(place.offset)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
