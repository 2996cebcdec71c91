"""The records of a run on disk: journals of JSON lines with checksums (``storage.lines``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.storage import codec
from lmms_eval.storage.lines import LineReader, LineWriter, read_lines


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
