"""The journals of a run (``.runs/KEY``), read as lines of a samples file, and the lines of samples files themselves.

Journals are the source for runs that are unfinished or that wrote no samples.
"""

from __future__ import annotations

import json
import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import orjson
from msgspec import Struct, field

from lmms_eval.api.outcome import Status
from lmms_eval.api.records import ResponseLine, ScoreRecord
from lmms_eval.api.request import task_of
from lmms_eval.engine.headline import STRATA, place_in
from lmms_eval.engine.live import read_outline
from lmms_eval.engine.records import written_response
from lmms_eval.engine.store import counts_now
from lmms_eval.errors import DataError
from lmms_eval.results.facts import part_of
from lmms_eval.results.samples_file import endings_of, record_rows, thoughts_of, token_counts
from lmms_eval.storage.lines import JournalTails, RecordPlace


class JsonLine(Struct, frozen=True):
    """A JSON object with its line number, from 1, and its place; in a file, the offset of its first byte."""

    number: int
    offset: int
    record: dict[str, Any]


class FileSamples:
    """The objects of a file of JSON lines, such as a samples file. The place of a line is its offset.

    The first call of ``at`` opens the file, which stays open. If ``is_strict``, a line that is not a JSON object is an
    error; otherwise it is skipped and counted.
    """

    def __init__(self, path: Path, is_strict: bool = True) -> None:
        self.path, self.is_strict = path, is_strict
        self.where = str(path)
        self.damaged = 0
        """Lines that the last iteration skipped."""
        self._file: IO[bytes] | None = None

    def lines(self) -> Iterator[JsonLine]:
        """Iterate over the lines, without blank ones.

        Raises:
            DataError: the file cannot be read, or a line is not a JSON object.
        """
        self.damaged = offset = 0
        try:
            with open(self.path, "rb") as file:
                for number, line in enumerate(file, 1):
                    start, offset = offset, offset + len(line)
                    if not line.strip():
                        continue
                    try:
                        record = _object(line, f"{self.path}, line {number}")
                    except DataError:
                        if self.is_strict:
                            raise
                        self.damaged += 1
                        continue
                    yield JsonLine(number, start, record)
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error

    def at(self, place: int) -> dict[str, Any]:
        """Read the line at a place.

        Raises:
            DataError: the file cannot be read, or has changed since the place was noted.
        """
        try:
            if self._file is None:
                self._file = open(self.path, "rb")  # noqa: SIM115 - closed with this object
                weakref.finalize(self, self._file.close)
            self._file.seek(place)
            line = self._file.readline()
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error
        return _object(line, f"{self.path} (changed while it was read?)")


class SampleLines(Protocol):
    """Lines of a samples file, from any source. Each line can be read again by its place."""

    @property
    def where(self) -> str:
        """The file or folder, for messages."""
        ...

    @property
    def damaged(self) -> int:
        """Lines that the last iteration skipped."""
        ...

    def lines(self) -> Iterator[JsonLine]: ...

    def at(self, place: int) -> dict[str, Any]: ...


class JoinedLines:
    """The lines of several sources, one source after the other."""

    def __init__(self, sources: Sequence[SampleLines]) -> None:
        self._sources = sources
        self.where = ", ".join(dict.fromkeys(source.where for source in sources))

    @property
    def damaged(self) -> int:
        return sum(source.damaged for source in self._sources)

    def lines(self) -> Iterator[JsonLine]:
        """Iterate over the lines. Raises ``DataError``."""
        for number, source in enumerate(self._sources):
            for line in source.lines():
                yield JsonLine(line.number, line.offset * len(self._sources) + number, line.record)

    def at(self, place: int) -> dict[str, Any]:
        """Read the line at a place. Raises ``DataError``."""
        return self._sources[place % len(self._sources)].at(place // len(self._sources))


def load_json(data: bytes) -> Any:
    """Read JSON, including NaN and infinities as Python's writer produces them. Raises ``ValueError``."""
    try:
        return orjson.loads(data)
    except ValueError:
        try:
            return json.loads(data)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _object(line: bytes, where: str) -> dict[str, Any]:
    """Read a JSON object. Raises ``DataError``."""
    try:
        record = load_json(line)
    except ValueError as error:
        raise DataError(f"{where}: no JSON: {error}") from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: a JSON object is needed, this is a {type(record).__name__}")
    return record


JOURNALS = "scores-*.jsonl"
RESPONSES = "responses-*.jsonl"
NOT_SCORED_YET = "answered, not scored yet"


class Ending(Struct, frozen=True, gc=False):
    """The ending of a document, and the place of the record that states it."""

    place: RecordPlace
    status: Status
    reason: str = ""
    tokens_in: int = 0
    tokens_out: int = 0

    @classmethod
    def of(cls, record: Mapping[str, Any], place: RecordPlace) -> Ending:
        """Read it from a record of the journal.

        Raises ``KeyError``, ``TypeError``, ``AttributeError`` or ``IndexError`` if the record is not one of a document.
        """
        tokens_in = tokens_out = 0
        for answer in record["answers"]:
            for usage in answer.get("usage", ()):
                if usage:
                    tokens_in += usage[0] or 0
                    tokens_out += usage[1] or 0
        if "failed" in record:
            return cls(place, "failed", str(record["failed"]), tokens_in, tokens_out)
        scores = record["scores"]
        if scores and not [score for score in scores if score.get("status", "scored") == "scored"]:
            return cls(place, "unscored", str(scores[0].get("reason", "")), tokens_in, tokens_out)
        return cls(place, "scored", "", tokens_in, tokens_out)


class TaskCounts(Struct):
    """The finished documents of a task, counted by how they ended."""

    endings: dict[int, Ending] = field(default_factory=dict)
    """The ending that counts, by document."""
    counts: Counter[Status] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    tokens_in: int = 0
    tokens_out: int = 0
    version: int = 0
    """Increases with every change."""

    @property
    def done(self) -> int:
        return len(self.endings)

    def end(self, doc_id: int, ending: Ending) -> None:
        """Count a document that is finished, possibly for a second time."""
        before = self.endings.get(doc_id)
        for one, sign in ((before, -1), (ending, 1)):
            if one is None:
                continue
            self.counts[one.status] += sign
            self.tokens_in += sign * one.tokens_in
            self.tokens_out += sign * one.tokens_out
            if one.reason:
                self.reasons[one.reason] += sign
        self.endings[doc_id] = ending
        self.version += 1


class Finished(Struct, frozen=True):
    """A document that is finished, possibly for a second time."""

    key: str
    """Key of the settings that scored it."""
    task: str
    doc_id: int
    record: dict[str, Any]
    ending: Ending
    before: Ending | None
    """How it ended before, if it is finished for a second time."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Its lines of a samples file, one for each filter pipeline. Raises ``DataError`` if it has none."""
        return _scored_rows([self.record])


class Journals:
    """The journals of one run's folder, as far as they were read. Memory holds the places of records, not the records.

    Only the documents that were scored with the settings of the latest score count. Of the tasks in ``only``, only
    these documents are read.
    """

    def __init__(self, folder: Path, only: Mapping[str, Collection[int]] | None = None) -> None:
        self.folder, self._only = folder, only or {}
        self.tails = JournalTails(folder, JOURNALS, ScoreRecord)
        self._by_key: dict[str, dict[str, TaskCounts]] = {}
        self._last_keys: dict[int, str] = {}
        self._responses_damaged = 0
        self.key = ""
        """Key of the settings whose documents count."""
        self.problems: dict[str, None] = {}
        """Sentences about records that could not be used."""

    @classmethod
    def read(cls, folder: Path) -> Journals:
        """Read all journals of a folder. Raises ``DataError`` if a file cannot be read."""
        found = cls(folder)
        for _ in found.news():
            pass
        found.choose_key()
        return found

    @property
    def tasks(self) -> Mapping[str, TaskCounts]:
        return self._by_key.get(self.key) or {}

    @property
    def damaged(self) -> int:
        """Lines that were torn by a kill, or damaged."""
        return self.tails.damaged + self.tails.torn + self._responses_damaged

    @property
    def notes(self) -> tuple[str, ...]:
        notes = tuple(self.problems)
        if self.damaged:
            notes += (f"{self.folder}: {self.damaged} torn or damaged lines of the journal are skipped",)
        return notes

    def news(self) -> Generator[Finished]:
        """Yield the documents that were finished since the last call, unless an earlier record counts.

        A caller may stop at any document; the next call continues after it. Afterwards it calls ``choose_key``.

        Raises:
            JournalReplaced: a file is gone, shorter than before, or another file.
            DataError: a file cannot be read.
        """
        for place, record in self.tails.news():
            task, doc_id = record["task"], record["doc_id"]
            if doc_id not in self._only.get(task, (doc_id,)):
                continue
            key = self._last_keys[place.file] = str(record.get("key"))
            self.key = self.key or key
            try:
                ending = Ending.of(record, place)
            except (KeyError, TypeError, AttributeError, IndexError) as error:
                self.problems[f"{task}, document {doc_id}: not the record of a scored document ({error})"] = None
                continue
            tasks = self._by_key.setdefault(key, {})
            progress = tasks.get(task)
            if progress is None:  # a default for setdefault would cost a third of the time of reading
                progress = tasks[task] = TaskCounts()
            before = progress.endings.get(doc_id)
            if counts_now(ending.status == "failed", None if before is None else before.status == "failed"):
                progress.end(doc_id, ending)
                yield Finished(key, task, doc_id, record, ending, before)

    def choose_key(self) -> None:
        """Let the documents count that were scored with the settings of the latest score."""
        newest = self.tails.newest
        self.key = self.key if newest is None else self._last_keys.get(newest, self.key)

    def answered(self) -> dict[tuple[str, int], RecordPlace]:
        """Return the places of the records of all documents with answers, scored with any settings, by task and id."""
        keys = [*(key for key in self._by_key if key != self.key), self.key]
        return {
            (task, doc_id): ending.place
            for key in keys
            for task, progress in self._by_key.get(key, {}).items()
            for doc_id, ending in progress.endings.items()
            if ending.status != "failed"
        }

    def counted(self, task: str, facts: Mapping[str, Any]) -> list[int]:
        """Return the documents that count; if the task stopped early, only the first ones of its order.

        ``facts`` has the form of a results document. Raises ``DataError`` if the order of the early stop is not known.
        """
        stop = part_of(facts, "early_stop", task)
        asked, documents = stop.get("asked"), self.tasks[task].endings if task in self.tasks else {}
        if not isinstance(asked, int):
            return sorted(documents)
        # All documents that count are finished, so they are the first ones of the finished ones too.
        order = str(stop.get("order", ""))
        outline = read_outline(self.folder).tasks.get(task) if order.startswith(STRATA) else None
        if outline is not None and outline.order:  # an order over strata is only known from the outline
            return sorted([doc_id for doc_id in outline.order if doc_id in documents][:asked])
        try:
            return sorted(sorted(documents, key=lambda one: place_in(order, task, str(one)))[:asked])
        except ValueError as error:
            raise DataError(f"{self.folder}: {task} stopped early: {error}") from error

    def samples(self, task: str, facts: Mapping[str, Any]) -> JournalSamples:
        """Return the documents that count, in their order, as lines (``counted``)."""
        endings = self.tasks[task].endings if task in self.tasks else {}
        return JournalSamples(self.tails, [[endings[doc_id].place] for doc_id in self.counted(task, facts)])

    def unscored(self) -> dict[str, JournalSamples]:
        """Read the responses; returns the answered documents without scores, by task. Raises ``DataError``."""
        tails = JournalTails(self.folder, RESPONSES, ResponseLine)
        places: dict[str, dict[int, list[RecordPlace]]] = {}
        for place, record in tails.news():
            named = str(record.get("id", ""))
            task, words = task_of(named), named.rsplit("/", 4)
            if "error" in record or len(words) != 5 or not words[1].isdigit():
                continue
            if task not in self.tasks or int(words[1]) not in self.tasks[task].endings:
                places.setdefault(task, {}).setdefault(int(words[1]), []).append(place)
        self._responses_damaged = tails.damaged + tails.torn
        return {
            task: JournalSamples(tails, [found[doc_id] for doc_id in sorted(found)], _unscored_rows)
            for task, found in places.items()
        }


def _scored_rows(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        return list(record_rows(records[0]))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        name = f"{records[0].get('task')}, document {records[0].get('doc_id')}"
        raise DataError(f"{name}: not the record of a scored document ({error!r})") from error


def _unscored_rows(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the row of a document that is answered but not scored, from its responses."""
    row = {
        "doc_id": int(records[0]["id"].rsplit("/", 4)[1]),
        "status": "unscored",
        "reason": NOT_SCORED_YET,
        "raw_resps": [written_response(record) for record in records],
        "token_counts": [token_counts(record.get("usage", ())) for record in records],
        "request_id": records[0]["id"].rsplit("/", 3)[0],
    }
    row |= thoughts_of(records) | endings_of(records)
    if media := [medium for record in records for medium in record.get("media", ())]:
        row["sent_media"] = media
    return [row]


_MOST_PIPELINES = 1 << 10


class JournalSamples:
    """Documents of the journals as lines of a samples file. A place encodes the document and the pipeline.

    ``documents`` are the places of each document's records; ``rows`` makes the rows of a document from its records.
    """

    def __init__(
        self,
        tails: JournalTails,
        documents: Iterable[Sequence[RecordPlace]] = (),
        rows: Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]] = _scored_rows,
    ) -> None:
        self._tails, self._make_rows = tails, rows
        self.where = str(tails.folder)
        self.damaged = 0
        """Always 0: ``Journals`` counts damaged lines, for all tasks together."""
        self._files, self._offsets, self._ends = array("H"), array("q"), array("q")
        for places in documents:
            self._append(places)

    def _append(self, places: Sequence[RecordPlace]) -> None:
        for place in places:
            self._files.append(place.file)
            self._offsets.append(place.offset)
        self._ends.append(len(self._offsets))

    def lines(self) -> Iterator[JsonLine]:
        """Iterate over the rows, document by document. Raises ``DataError`` if a record has changed."""
        for number in range(len(self._ends)):
            yield from self._lines(number, self._rows(number))

    def add(self, found: Finished) -> list[JsonLine]:
        """Add a document of a growing journal and return its lines.

        Raises:
            DataError: the journal is gone, or the record is not one of a scored document.
        """
        rows = found.rows
        self._tails.open(found.ending.place.file)
        self._append([found.ending.place])
        return list(self._lines(len(self._ends) - 1, rows))

    def at(self, place: int) -> dict[str, Any]:
        """Read the row at a place. Raises ``DataError``."""
        return self._rows(place // _MOST_PIPELINES)[place % _MOST_PIPELINES]

    @staticmethod
    def _lines(number: int, rows: Sequence[dict[str, Any]]) -> Iterator[JsonLine]:
        for index, row in enumerate(rows):
            yield JsonLine(number + 1, number * _MOST_PIPELINES + index, row)

    def _rows(self, number: int) -> list[dict[str, Any]]:
        places = range(self._ends[number - 1] if number else 0, self._ends[number])
        return self._make_rows([self._tails.at(RecordPlace(self._files[one], self._offsets[one])) for one in places])
