"""Journals of a folder that may still grow: each look reads what has come since the last one."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.storage.lines import record_in


class JournalReplaced(DataError):
    """A journal is no longer the file that was read: the run was begun anew."""


@dataclass(frozen=True, slots=True)
class TailRecord:
    """A record of a journal: the number of its file, and the offset of its line."""

    file: int
    offset: int
    record: dict[str, Any]


@dataclass(slots=True)
class _Tail:
    identity: tuple[int, int] | None = None
    read: int = 0
    """Bytes of whole lines that were read."""
    size: int = 0
    changed: int = 0
    """Time of the last change in nanoseconds."""


@dataclass(slots=True)
class JournalTails:
    """The journals of one kind, ``PATTERN`` in ``FOLDER``; memory holds offsets alone."""

    folder: Path
    pattern: str
    shape: Mapping[str, Any] | None = None
    """Of the records."""
    files: list[Path] = field(default_factory=list)
    """Those that are known, in the order of their numbers."""
    damaged: int = 0
    """Whole lines that are damaged: a kill has torn them, or something has changed them."""
    _tails: list[_Tail] = field(default_factory=list)

    @property
    def torn(self) -> int:
        """Files that end within a line: it is being written, or a kill has torn it."""
        return sum(tail.size > tail.read for tail in self._tails)

    @property
    def newest(self) -> int | None:
        """Number of the file that was written last; ``None`` without files."""
        return max(range(len(self._tails)), key=lambda number: self._tails[number].changed, default=None)

    def news(self) -> Generator[TailRecord]:
        """Read the records of all whole lines since the last look, file after file; who ends early goes on later.

        Raises:
            JournalReplaced: a file is gone, shorter than before, or another one.
            DataError: a file cannot be read.
        """
        for path in sorted(set(self.folder.glob(self.pattern)) - set(self.files)):
            self.files.append(path)
            self._tails.append(_Tail())
        for number, (path, tail) in enumerate(zip(self.files, self._tails, strict=True)):
            try:
                if self._has_grown(path, tail):
                    yield from self._read(number, path, tail)
            except FileNotFoundError as error:
                raise JournalReplaced(f"{path} is gone") from error
            except OSError as error:
                raise DataError(f"{path} cannot be read: {error.strerror or error}") from error

    def _has_grown(self, path: Path, tail: _Tail) -> bool:
        found = os.stat(path)
        identity = (found.st_dev, found.st_ino)
        if tail.identity not in (None, identity) or found.st_size < tail.read:
            raise JournalReplaced(f"{path} was begun anew")
        tail.identity, tail.size, tail.changed = identity, found.st_size, found.st_mtime_ns
        return tail.size > tail.read

    def _read(self, number: int, path: Path, tail: _Tail) -> Generator[TailRecord]:
        with open(path, "rb") as file:
            file.seek(tail.read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                start, tail.read = tail.read, tail.read + len(line)
                tail.size = max(tail.size, tail.read)
                record = record_in(line, self.shape)
                if record is not None:
                    yield TailRecord(number, start, record)
                elif line != b"\n":  # which closed a torn line
                    self.damaged += 1
