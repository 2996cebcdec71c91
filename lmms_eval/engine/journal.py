"""Append-only JSON lines that survive a kill at any instant.

One ``write`` per record, straight to the kernel: a killed process loses nothing that it had reported. A torn last
line is skipped on reading and closed by a newline before the next append.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.engine import codec
from lmms_eval.errors import JournalError
from lmms_eval.utils.atomic import replacing


@dataclass(frozen=True, slots=True)
class Entry:
    """A record and where its line begins."""

    offset: int
    record: dict[str, Any]


class JournalWriter:
    """Appends records to one file; safe for several threads of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._is_torn = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            self._size = os.fstat(self._file).st_size
        except OSError as error:
            raise JournalError(f"cannot open the journal {path}: {error.strerror or error}") from error
        if self._size and os.pread(self._file, 1, self._size - 1) != b"\n":
            self._write(b"\n")

    def append(self, record: dict[str, Any]) -> int:
        """Write one record; returns the offset of its line.

        Raises:
            JournalError: the file system refused (full disk, quota, lost mount).
            VolatileValue: the record holds a value that JSON cannot carry.
        """
        return self.append_line(codec.dumps(record))

    def append_line(self, line: bytes) -> int:
        """``append`` for a record that is already encoded (without newline)."""
        with self._lock:
            if self._is_torn:
                self._write(b"\n")
            offset = self._size
            self._write(line + b"\n")
            return offset

    def _write(self, data: bytes) -> None:
        try:
            written = os.write(self._file, data)
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

    def sync(self) -> None:
        """Force what is written to the disk. Raises ``JournalError``."""
        with self._lock:
            try:
                os.fsync(self._file)
            except OSError as error:
                raise JournalError(f"cannot force {self.path} to the disk: {error.strerror or error}") from error

    def close(self) -> None:
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1


class JournalReader:
    """Random access to the records of one journal file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open(path, "rb")  # noqa: SIM115 - held open for random access, closed by close()
        self._lock = threading.Lock()

    def at(self, offset: int) -> dict[str, Any]:
        with self._lock:
            self._file.seek(offset)
            line = self._file.readline()
        record = codec.loads(line)
        if not isinstance(record, dict):
            raise JournalError(f"{self.path} at byte {offset}: not a record")
        return record

    def close(self) -> None:
        self._file.close()


def read_journal(path: Path) -> Iterator[Entry]:
    """All whole records of a file; torn lines are passed over. A missing file has none."""
    if not path.exists():
        return
    with open(path, "rb") as file:
        offset = 0
        for line in file:
            start, offset = offset, offset + len(line)
            if not line.endswith(b"\n"):
                return
            try:
                record = codec.loads(line)
            except ValueError:
                continue  # a line torn by a kill, closed by the next process's newline
            if isinstance(record, dict):
                yield Entry(start, record)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file as a whole, or leave it as it was.

    Raises:
        JournalError: the folder is missing, read-only or full.
    """
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror or error}") from error
