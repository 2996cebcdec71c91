"""The record of a run of ours (``.runs/KEY``): documents of runs that are unfinished, or that kept no samples."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lmms_eval.compare.readers.building import Lookups, TaskBuilder, finite, metadata_of
from lmms_eval.compare.readers.samples import ReadTask, SampleFacts, cluster_of, plain_text, sample_fields
from lmms_eval.compare.runs import Answer, EarlyStop
from lmms_eval.engine.order import place_in
from lmms_eval.errors import DataError, JournalError
from lmms_eval.storage import codec
from lmms_eval.storage.journal import JournalReader
from lmms_eval.storage.lines import unsealed

JOURNALS = "scores-*.jsonl"


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
    files: list[Path] = field(init=False)
    damaged: int = 0
    """Lines that do not fit their checksum: a kill has torn them, or something has damaged them."""
    _documents: dict[str, dict[int, _Document]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.files = sorted(self.folder.glob(JOURNALS))
        key: Any = None
        for number, path in enumerate(self.files):
            for offset, record in self._read(path):
                key = record.get("key")
                self._note(record, _Document(number, offset, "failed" in record, key))
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

    def task(self, name: str, facts: SampleFacts, stop: EarlyStop | None = None) -> ReadTask:
        """Read the documents of a task, in their order.

        Args:
            name: the task.
            facts: knowledge of it beside the journal.
            stop: its early end; documents that were finished beyond the counted ones are left out.

        Raises:
            DataError: a record is none of a scored document, or the early end is of no random order.
        """
        documents = self._documents.get(name, {})
        counted = sorted(documents if stop is None else self._first(name, stop))
        places = [documents[doc_id] for doc_id in counted]
        builder = TaskBuilder(name)
        records = _Records(self.files)
        for doc_id, place in zip(counted, places, strict=True):
            record = records.at(place)
            try:
                _add(builder, builder.row(str(doc_id)), record, facts)
            except (KeyError, TypeError, AttributeError) as error:
                raise DataError(f"{self.folder}: {name}, document {doc_id}: no scored document ({error!r})") from error
        return ReadTask(builder.rows(_lookups(places, records, facts)), builder.notes)

    def _first(self, task: str, stop: EarlyStop) -> list[int]:
        """The documents that count: all of them were finished, so they are the first ones of those that are here."""
        try:
            ordered = sorted(self._documents.get(task, {}), key=lambda one: place_in(stop.order, task, str(one)))
        except ValueError as error:
            raise DataError(f"{self.folder}: {task} stopped early: {error}") from error
        return ordered[: stop.asked]

    def _read(self, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        offset = 0
        try:
            with open(path, "rb") as file:
                for line in file:
                    start, offset = offset, offset + len(line)
                    content = unsealed(line)
                    if content is not None:
                        yield start, codec.loads(content)
                    elif line != b"\n":
                        self.damaged += 1
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror or error}") from error

    def _note(self, record: Mapping[str, Any], found: _Document) -> None:
        """A later record of a document replaces an earlier one, but no failure a score."""
        known = self._documents.setdefault(str(record.get("task")), {})
        doc_id = record.get("doc_id")
        if isinstance(doc_id, int) and not (found.is_failed and doc_id in known and known[doc_id].key == found.key):
            known[doc_id] = found


class _Records:
    """Records by their place; a journal is opened for the first one, and kept open."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        self._readers: dict[int, JournalReader] = {}

    def at(self, place: _Document) -> dict[str, Any]:
        """Read one. Raises ``DataError`` if it can no longer be read."""
        try:
            if place.file not in self._readers:
                reader = self._readers[place.file] = JournalReader(self._files[place.file])
                weakref.finalize(self, reader.close)
            return self._readers[place.file].at(place.offset)
        except JournalError as error:
            raise DataError(str(error)) from error


def _add(builder: TaskBuilder, row: int, record: Mapping[str, Any], facts: SampleFacts) -> None:
    if "failed" in record:
        builder.end(row, "failed")
        return
    values = []
    for score in record["scores"]:
        has_number = lacks = False
        for metric, value in score["metrics"].items():
            number = finite(value, facts.score_key)
            builder.score(row, metric, score["filter"], number)
            values.append(value)
            has_number = has_number or number is not None
            if number is None and isinstance(value, float | None):
                lacks = True
                builder.pass_over(f"values of {metric},{score['filter']} that are no finite number: unscored")
        stated = score.get("status", "scored")
        builder.end(row, "scored" if stated == "scored" and (has_number or not lacks) else "unscored")
    cluster = None if facts.cluster_key is None else cluster_of(facts.cluster_key, values, record["doc"])
    builder.describe(row, record["doc_hash"], cluster)


def _lookups(places: Sequence[_Document], records: _Records, facts: SampleFacts) -> Lookups:
    def raw(column: str, row: int) -> Any:
        values = {
            f"{metric},{score['filter']}": value
            for score in records.at(places[row]).get("scores", ())
            for metric, value in score["metrics"].items()
        }
        return values.get(column)

    def answer(row: int) -> Answer:
        record = records.at(places[row])
        asked = record.get("answers") or [{}]
        found = next((score["filtered"] for score in record.get("scores", ())), asked[0].get("value"))
        return Answer(plain_text(found), plain_text(record.get("target")), plain_text(asked[0].get("input")))

    def fields() -> Iterator[tuple[int, Mapping[str, Any]]]:
        for row, record in enumerate(map(records.at, places)):
            values = {name: value for score in record.get("scores", ()) for name, value in score["metrics"].items()}
            yield row, sample_fields({"doc": record.get("doc"), **values}, facts.score_key)

    return Lookups(cache(lambda: metadata_of(len(places), fields())), answer, raw)
