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
