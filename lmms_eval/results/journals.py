"""The journals of a run (``.runs/KEY``), read as lines of a samples file, and the lines of samples files themselves.

Journals are the source for runs that are unfinished or that wrote no samples.
"""

from __future__ import annotations

import json
import os
import weakref
from array import array
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import orjson
from msgspec import Struct, field

from lmms_eval.api.request import task_of
from lmms_eval.engine.headline import STRATA, place_in
from lmms_eval.engine.live import read_outline
from lmms_eval.engine.records import RESPONSE, SCORE, written_response
from lmms_eval.errors import DataError, JournalError
from lmms_eval.results.facts import part_of
from lmms_eval.results.samples_file import record_rows, thoughts_of
from lmms_eval.storage.lines import LineReader, record_in


class JournalReplaced(DataError):
    """A journal was replaced by another file since it was read: the run started from scratch."""


class TailRecord(Struct, frozen=True):
    """A record of a journal, with the index of its file and the offset of its line."""

    file: int
    offset: int
    record: dict[str, Any]


class _Tail(Struct):
    identity: tuple[int, int] | None = None
    read: int = 0
    """Bytes of complete lines read so far."""
    size: int = 0
    changed: int = 0
    """Time of the last change, in nanoseconds."""


class JournalTails(Struct):
    """Incremental reader of the journals of one kind, ``pattern`` in ``folder``."""

    folder: Path
    pattern: str
    shape: Mapping[str, Any] | None = None
    """Shape of the records."""
    files: list[Path] = field(default_factory=list)
    """The files found so far; a file's index is its place here."""
    damaged: int = 0
    """Complete lines that are damaged: torn by a kill, or changed."""
    _tails: list[_Tail] = field(default_factory=list)

    @property
    def torn(self) -> int:
        """Number of files that end within a line, which is being written or was torn by a kill."""
        return sum(tail.size > tail.read for tail in self._tails)

    @property
    def newest(self) -> int | None:
        """Index of the file that changed last; ``None`` without files."""
        return max(range(len(self._tails)), key=lambda number: self._tails[number].changed, default=None)

    def news(self) -> Generator[TailRecord]:
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
            raise JournalReplaced(f"{path} was started from scratch")
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
                elif line != b"\n":  # an empty line closes a torn line
                    self.damaged += 1


class JsonLine(Struct, frozen=True):
    """A JSON object with its line number, from 1, and its place; in a file, the offset of its first byte."""

    number: int
    offset: int
    record: dict[str, Any]


def read_json_lines(path: Path) -> Iterator[JsonLine]:
    """Read the objects of a file, skipping blank lines.

    Raises:
        DataError: the file cannot be read, or a line is not a JSON object.
    """
    for number, offset, line in _raw_lines(path):
        yield JsonLine(number, offset, _record(line, path, number))


def _raw_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, offset and bytes of the lines that are not blank."""
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
    """The lines of a samples file. The place of a line is its offset.

    Args:
        path: the file.
        is_strict: whether a line that is not a JSON object is an error; otherwise it is skipped and counted.
    """

    def __init__(self, path: Path, is_strict: bool = True) -> None:
        self.path, self.is_strict = path, is_strict
        self.where = str(path)
        self._at = LinesAt(path)
        self.damaged = 0
        """Lines that the last iteration skipped."""

    def lines(self) -> Iterator[JsonLine]:
        """Iterate over the lines. Raises ``DataError`` as ``read_json_lines``."""
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


class LinesAt:
    """Objects of a file by the offset of their line. The file is opened on first use and stays open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def record(self, offset: int) -> dict[str, Any]:
        """Read the object of the line at an offset.

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
    """Read JSON, including NaN and infinities as Python's writer produces them. Raises ``ValueError``."""
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


class _Document(Struct):
    """Place of the record that counts for a document, and the key of the settings that scored it."""

    file: int
    offset: int
    is_failed: bool
    key: Any


class Journals(Struct):
    """The journals of one run's folder, read once. Only the places of the records are kept in memory."""

    folder: Path
    damaged: int = 0
    """Lines that were torn by a kill, or damaged."""
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
                del documents[doc_id]  # scored with other functions or settings

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self._documents)

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.damaged:
            return ()
        return (f"{self.folder}: {self.damaged} torn or damaged lines of the journal are skipped",)

    def samples(self, task: str, asked: int | None = None, order: str = "") -> JournalSamples:
        """Return the scored and failed documents of a task, in their order.

        Args:
            task: the task.
            asked: if the task stopped early, the number of documents that count; the others are left out.
            order: the random order of the documents.

        Raises:
            DataError: the order is not known.
        """
        documents = self._documents.get(task, {})
        counted = sorted(documents)
        if asked is not None:  # all documents that count are finished, so they are the first ones here
            counted = sorted(self._in_order(task, order)[:asked])
        places = [(documents[number].file, documents[number].offset) for number in counted]
        return JournalSamples(self.files, places)

    def _in_order(self, task: str, order: str) -> list[int]:
        """Return the documents of a task in a random order. An order over strata is only known from the outline."""
        documents = self._documents.get(task, {})
        outline = read_outline(self.folder).tasks.get(task) if order.startswith(STRATA) else None
        if outline is not None and outline.order:
            return [doc_id for doc_id in outline.order if doc_id in documents]
        try:
            return sorted(documents, key=lambda one: place_in(order, task, str(one)))
        except ValueError as error:
            raise DataError(f"{self.folder}: {task} stopped early: {error}") from error

    def counted(self, task: str, facts: Mapping[str, Any]) -> JournalSamples:
        """Return the documents that count; if the task stopped early, only the first ones of its order.

        Args:
            task: the task.
            facts: the results document, or the facts of a record in the same form.

        Raises:
            DataError: the order of the early stop is not known.
        """
        stop = part_of(facts, "early_stop", task)
        asked = stop.get("asked")
        return self.samples(task, asked if isinstance(asked, int) else None, str(stop.get("order", "")))

    def unscored(self) -> dict[str, UnscoredSamples]:
        """Read the responses and return, by task, the documents that are answered but not scored yet.

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
        """Keep the latest record of a document, but never replace a score by a failure."""
        known = self._documents.setdefault(str(record.get("task")), {})
        doc_id = record.get("doc_id")
        if isinstance(doc_id, int) and not (found.is_failed and doc_id in known and known[doc_id].key == found.key):
            known[doc_id] = found


class _Records:
    """Records of several files, by index. Each file is opened once."""

    def __init__(self, files: list[Path], places: Sequence[tuple[int, int]]) -> None:
        self._files = files
        self._numbers = array("H", (file for file, _ in places))
        self._offsets = array("q", (offset for _, offset in places))
        self._readers: dict[int, LineReader] = {}
        weakref.finalize(self, _close, self._readers)

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, file: int, offset: int) -> int:
        """Add a record and return its index. Its file stays open, so that it can be read after its removal.

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
        """Read a record. Raises ``DataError`` if it has changed."""
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
    """Scored documents of the journals as lines of a samples file. A place encodes the document and the pipeline."""

    def __init__(self, files: list[Path], places: Sequence[tuple[int, int]] = ()) -> None:
        self._records = _Records(files, places)
        self.where = str(files[0].parent) if files else ""
        self.damaged = 0
        """Always 0: ``Journals`` counts damaged lines, for all tasks together."""

    def lines(self) -> Iterator[JsonLine]:
        """Iterate over the rows, document by document.

        Raises:
            DataError: a record is not one of a scored document.
        """
        for number in range(len(self._records)):
            for index, row in enumerate(self._rows(number)):
                yield JsonLine(number + 1, number * _MOST_PIPELINES + index, row)

    def add(self, found: TailRecord, rows: Sequence[dict[str, Any]]) -> list[JsonLine]:
        """Add a record of a growing journal, with its rows (``record_rows``), and return its lines.

        Raises:
            DataError: the journal cannot be opened.
        """
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
            name = f"{record.get('task')}, document {record.get('doc_id')}"
            raise DataError(f"{self.where}: {name}: not a scored document ({error!r})") from error


class UnscoredSamples:
    """Documents that are answered but not scored yet, as lines of a samples file."""

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
        """Iterate over the documents. Raises ``DataError``."""
        for number in range(len(self._doc_ids)):
            yield JsonLine(number + 1, number, self.at(number))

    def at(self, place: int) -> dict[str, Any]:
        """Read the row at a place. Raises ``DataError``."""
        begin = self._ends[place - 1] if place else 0
        records = [self._records.at(number) for number in range(begin, self._ends[place])]
        keys = ("input_tokens", "output_tokens", "reasoning_tokens")
        row = {
            "doc_id": self._doc_ids[place],
            "status": "unscored",
            "reason": NOT_SCORED_YET,
            "raw_resps": [written_response(record) for record in records],
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
