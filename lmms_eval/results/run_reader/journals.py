"""The record of a run of ours (``.runs/KEY``): documents of runs that are unfinished, or that kept no samples."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.api.request import task_of
from lmms_eval.engine.order import place_in
from lmms_eval.engine.records import RESPONSE, SCORE, written_response
from lmms_eval.errors import DataError, JournalError
from lmms_eval.results.run_reader.document import part_of
from lmms_eval.results.run_reader.json_lines import JsonLine
from lmms_eval.results.run_reader.tails import JournalTails, TailRecord
from lmms_eval.results.samples import record_rows, thoughts_of
from lmms_eval.storage.lines import LineReader

JOURNALS = "scores-*.jsonl"
RESPONSES = "responses-*.jsonl"
NOT_SCORED_YET = "answered, not scored yet"


@dataclass(slots=True)
class _Document:
    """Place of the record of a document that counts, and the key of the settings under which it was scored."""

    file: int
    offset: int
    is_failed: bool
    key: Any


@dataclass(slots=True)
class Journals:
    """The journals of one run's folder, read once; memory holds the places of the records."""

    folder: Path
    damaged: int = 0
    """Lines that a kill has torn, or something has damaged."""
    files: list[Path] = field(default_factory=list)
    _documents: dict[str, dict[int, _Document]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tails = JournalTails(self.folder, JOURNALS, SCORE)
        key: Any = None
        for found in tails.news():
            key = found.record.get("key")
            self._note(found.record, _Document(found.file, found.offset, "failed" in found.record, key))
        self.files, self.damaged = tails.files, tails.damaged + tails.torn
        for documents in self._documents.values():
            for doc_id in [doc_id for doc_id, found in documents.items() if found.key != key]:
                del documents[doc_id]  # scored by functions or settings that have changed since

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self._documents)

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.damaged:
            return ()
        return (f"{self.folder}: {self.damaged} torn or damaged lines of the journal are passed over",)

    def samples(self, task: str, asked: int | None = None, order: str = "") -> JournalSamples:
        """Return the scored and failed documents of a task, in their order.

        Args:
            task: the task.
            asked: where it has ended early, the number of documents that count; others are left out.
            order: the random order whose first documents these are.

        Raises:
            DataError: the order is no random one.
        """
        documents = self._documents.get(task, {})
        counted = sorted(documents)
        if asked is not None:  # all that count were finished, so they are the first ones of those that are here
            try:
                counted = sorted(sorted(documents, key=lambda one: place_in(order, task, str(one)))[:asked])
            except ValueError as error:
                raise DataError(f"{self.folder}: {task} stopped early: {error}") from error
        places = [(documents[number].file, documents[number].offset) for number in counted]
        return JournalSamples(self.files, places)

    def counted(self, task: str, facts: Mapping[str, Any]) -> JournalSamples:
        """Return the documents that count, of a task that has ended early the first ones.

        Args:
            task: the task.
            facts: the results document, or what a record tells in its place.

        Raises:
            DataError: the order of the early end is no random one.
        """
        stop = part_of(facts, "early_stop", task)
        asked = stop.get("asked")
        return self.samples(task, asked if isinstance(asked, int) else None, str(stop.get("order", "")))

    def unscored(self) -> dict[str, UnscoredSamples]:
        """Read the responses and return, by task, the documents that were answered and are not scored yet.

        Raises:
            DataError: a file cannot be read.
        """
        tails = JournalTails(self.folder, RESPONSES, RESPONSE)
        places: dict[str, dict[int, list[tuple[int, int]]]] = {}
        for found in tails.news():
            named = str(found.record.get("id", ""))
            task, words = task_of(named), named.rsplit("/", 4)
            if "error" in found.record or len(words) != 5 or not words[1].isdigit():
                continue
            if int(words[1]) not in self._documents.get(task, ()):
                places.setdefault(task, {}).setdefault(int(words[1]), []).append((found.file, found.offset))
        self.damaged += tails.damaged + tails.torn
        return {task: UnscoredSamples(tails.files, dict(sorted(found.items()))) for task, found in places.items()}

    def _note(self, record: Mapping[str, Any], found: _Document) -> None:
        """A later record of a document replaces an earlier one, but no failure a score."""
        known = self._documents.setdefault(str(record.get("task")), {})
        doc_id = record.get("doc_id")
        if isinstance(doc_id, int) and not (found.is_failed and doc_id in known and known[doc_id].key == found.key):
            known[doc_id] = found


class _Records:
    """Records of several files, found again by their number; each file is opened once."""

    def __init__(self, files: list[Path], places: Sequence[tuple[int, int]]) -> None:
        self._files = files
        self._numbers = array("H", (file for file, _ in places))
        self._offsets = array("q", (offset for _, offset in places))
        self._readers: dict[int, LineReader] = {}
        weakref.finalize(self, _close, self._readers)

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, file: int, offset: int) -> int:
        """Add a record; returns its number. Its file stays open from now on, so that it outlives its name.

        Raises:
            DataError: the file cannot be opened.
        """
        self._numbers.append(file)
        self._offsets.append(offset)
        try:
            self._reader(file)
        except JournalError as error:
            raise DataError(str(error)) from error
        return len(self._offsets) - 1

    def at(self, number: int) -> dict[str, Any]:
        """Read a record. Raises ``DataError`` if it is no longer as it was."""
        file = self._numbers[number]
        try:
            return self._reader(file).at(self._offsets[number])
        except JournalError as error:
            raise DataError(str(error)) from error

    def _reader(self, file: int) -> LineReader:
        if file not in self._readers:
            self._readers[file] = LineReader(self._files[file])
        return self._readers[file]


def _close(readers: dict[int, LineReader]) -> None:
    for reader in readers.values():
        reader.close()


_MOST_PIPELINES = 1 << 10


class JournalSamples:
    """Lines of a samples file as the journals would give them; a place is the number of a document and pipeline."""

    def __init__(self, files: list[Path], places: Sequence[tuple[int, int]] = ()) -> None:
        self._records = _Records(files, places)
        self.where = str(files[0].parent) if files else ""
        self.damaged = 0
        """Always none: damaged lines are counted once, for all tasks."""

    def lines(self) -> Iterator[JsonLine]:
        """Go through the rows, document after document.

        Raises:
            DataError: a record is none of a scored document.
        """
        for number in range(len(self._records)):
            for index, row in enumerate(self._rows(number)):
                yield JsonLine(number + 1, number * _MOST_PIPELINES + index, row)

    def add(self, found: TailRecord, rows: Sequence[dict[str, Any]]) -> list[JsonLine]:
        """Add a record of a journal that grows, and its rows (``record_rows``). Raises ``DataError`` if the journal
        cannot be opened."""
        number = self._records.add(found.file, found.offset)
        return [JsonLine(number + 1, number * _MOST_PIPELINES + index, row) for index, row in enumerate(rows)]

    def at(self, place: int) -> dict[str, Any]:
        """Read the row at a place. Raises ``DataError``."""
        return self._rows(place // _MOST_PIPELINES)[place % _MOST_PIPELINES]

    def _rows(self, number: int) -> list[dict[str, Any]]:
        record = self._records.at(number)
        try:
            return list(record_rows(record))
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise DataError(
                f"{self.where}: {record.get('task')}, document {record.get('doc_id')}: no scored document ({error!r})"
            ) from error


class UnscoredSamples:
    """Documents that were answered and are not scored yet, as lines of a samples file."""

    def __init__(self, files: list[Path], places: Mapping[int, list[tuple[int, int]]]) -> None:
        self.damaged = 0
        self.where = str(files[0].parent) if files else ""
        self._doc_ids = list(places)
        self._ends = array("q")
        flat: list[tuple[int, int]] = []
        for found in places.values():
            flat += found
            self._ends.append(len(flat))
        self._records = _Records(files, flat)

    def lines(self) -> Iterator[JsonLine]:
        """Go through the documents. Raises ``DataError``."""
        for number in range(len(self._doc_ids)):
            yield JsonLine(number + 1, number, self.at(number))

    def at(self, place: int) -> dict[str, Any]:
        """Read the row at a place. Raises ``DataError``."""
        begin = self._ends[place - 1] if place else 0
        records = [self._records.at(number) for number in range(begin, self._ends[place])]
        said = [written_response(record) for record in records]
        keys = ("input_tokens", "output_tokens", "reasoning_tokens")
        row = {
            "doc_id": self._doc_ids[place],
            "status": "unscored",
            "reason": NOT_SCORED_YET,
            "raw_resps": said,
            "token_counts": [dict(zip(keys, record.get("usage", ()), strict=False)) or None for record in records],
            "request_id": records[0]["id"].rsplit("/", 3)[0],
        }
        row |= thoughts_of(records)
        for key, name in (("finish_reason", "finish_reason"), ("latency", "elapsed")):
            values = [record.get(key) for record in records]
            if any(value is not None for value in values):
                row[name] = values[0] if len(values) == 1 else values
        if media := [medium for record in records for medium in record.get("media", ())]:
            row["sent_media"] = media
        return row
