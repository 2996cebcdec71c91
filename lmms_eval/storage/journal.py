"""The records of a run on disk: journals of JSON lines with checksums (``storage.lines``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.storage import codec
from lmms_eval.storage.lines import LineReader, LineWriter, read_lines


@dataclass(frozen=True, slots=True)
class Entry:
    """A record and where its line begins."""

    offset: int
    record: dict[str, Any]


class JournalWriter(LineWriter):
    """Appends records to one file; safe for several threads of one process."""

    def append(self, record: dict[str, Any]) -> int:
        """Write one record; returns the offset of its line.

        Raises:
            JournalError: as ``append_line``.
            VolatileValue: the record holds a value that JSON cannot carry.
        """
        return self.append_line(codec.dumps(record))


class JournalReader(LineReader):
    """Random access to the records of one journal file."""

    def at(self, offset: int) -> dict[str, Any]:
        """Read the record whose line begins there. Raises ``JournalError`` (``line_at``)."""
        record: dict[str, Any] = codec.loads(self.line_at(offset))
        return record


def read_journal(path: Path, quietly: bool = False) -> Iterator[Entry]:
    """Read all records of a file whose lines fit their checksums (``read_lines``); a missing file has none."""
    for line in read_lines(path, quietly):
        yield Entry(line.offset, codec.loads(line.content))


@dataclass(frozen=True, slots=True)
class Place:
    """A record's place in a ``JournalSet``."""

    file: int
    offset: int


class JournalSet:
    """Several journals that are read as one: memory need hold no more than the places of their records."""

    def __init__(self) -> None:
        self._readers: list[JournalReader] = []

    def add(self, path: Path) -> int:
        """Open a journal; returns its number. Raises ``JournalError``."""
        self._readers.append(JournalReader(path))
        return len(self._readers) - 1

    def load(self, path: Path, quietly: bool = False) -> Iterator[tuple[Place, dict[str, Any]]]:
        """Open a journal and read its records (``read_journal``)."""
        file = self.add(path)
        for entry in read_journal(path, quietly):
            yield Place(file, entry.offset), entry.record

    def at(self, place: Place) -> dict[str, Any]:
        """Read one record. Raises ``JournalError`` (``line_at``)."""
        return self._readers[place.file].at(place.offset)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
