"""The record of a run of ours (``.runs/KEY``): documents of runs that are unfinished, or that kept no samples."""

from __future__ import annotations

import json
import os
import weakref
from array import array
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

import orjson

from lmms_eval.api.request import task_of
from lmms_eval.engine.headline import place_in
from lmms_eval.engine.records import RESPONSE, SCORE, written_response
from lmms_eval.errors import DataError, JournalError
from lmms_eval.results.facts import part_of
from lmms_eval.results.samples_file import record_rows, thoughts_of
from lmms_eval.storage.lines import LineReader, record_in


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


@dataclass(frozen=True, slots=True)
class JsonLine:
    """An object, the number of its line from 1 on, and its place: in a file the offset of the first byte."""

    number: int
    offset: int
    record: dict[str, Any]


def read_json_lines(path: Path) -> Iterator[JsonLine]:
    """Read the objects of a file; blank lines are passed over.

    Raises:
        DataError: the file cannot be read, or a line holds no JSON object.
    """
    for number, offset, line in _raw_lines(path):
        yield JsonLine(number, offset, _record(line, path, number))


def _raw_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Number, offset and bytes of the lines that are not blank."""
    offset = 0
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                start, offset = offset, offset + len(line)
                if line.strip():
                    yield number, start, line
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


class FileSamples:
    """The lines of a samples file; a place is the offset of a line.

    Args:
        path: the file.
        is_strict: a line that is no JSON object is an error; else it is passed over and counted.
    """

    def __init__(self, path: Path, is_strict: bool = True) -> None:
        self.path, self.is_strict = path, is_strict
        self.where = str(path)
        self._at = LinesAt(path)
        self.damaged = 0
        """Lines that the last reading passed over."""

    def lines(self) -> Iterator[JsonLine]:
        """Go through the lines. Raises ``DataError`` as ``read_json_lines``."""
        if self.is_strict:
            yield from read_json_lines(self.path)
            return
        self.damaged = 0
        for number, offset, data in _raw_lines(self.path):
            try:
                record = load_json(data)
            except ValueError:
                record = None
            if isinstance(record, dict):
                yield JsonLine(number, offset, record)
            else:
                self.damaged += 1

    def at(self, place: int) -> dict[str, Any]:
        """Read the line at a place. Raises ``DataError``."""
        return self._at.record(place)


class SampleLines(Protocol):
    """Lines of a samples file, wherever they come from, each found again by its place."""

    @property
    def where(self) -> str:
        """The file or folder, for messages."""
        ...

    @property
    def damaged(self) -> int:
        """Lines that the last reading passed over."""
        ...

    def lines(self) -> Iterator[JsonLine]: ...

    def at(self, place: int) -> dict[str, Any]: ...


class LinesAt:
    """The objects of a file by the offset of their line; the file is opened for the first, and kept open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def record(self, offset: int) -> dict[str, Any]:
        """Read the object whose line begins at an offset.

        Raises:
            DataError: the file cannot be read, or has changed since the offset was noted.
        """
        try:
            if self._file is None:
                self._file = open(self.path, "rb")  # noqa: SIM115 - closed with this object
                weakref.finalize(self, self._file.close)
            self._file.seek(offset)
            line = self._file.readline()
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error
        return _record(line, self.path, None)


def load_json(data: bytes) -> Any:
    """Read JSON; NaN and infinities, which Python's own writer lets through, are read too. Raises ``ValueError``."""
    try:
        return orjson.loads(data)
    except ValueError:
        try:
            return json.loads(data)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _record(line: bytes, path: Path, number: int | None) -> dict[str, Any]:
    where = f"{path}, line {number}" if number else f"{path} (changed while it was read?)"
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
