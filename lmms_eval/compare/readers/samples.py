"""Samples files: ours, and those of the family (lmms-eval and lm-eval), a JSON object for each document."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import Status
from lmms_eval.compare.readers.building import NO_FILTER, Lookups, TaskBuilder, id_text
from lmms_eval.compare.runs import Answer, TaskRows
from lmms_eval.errors import DataError
from lmms_eval.results.run_reader.json_lines import FileSamples, JsonLine, SampleLines
from lmms_eval.results.run_reader.metadata import metadata_of
from lmms_eval.results.run_reader.sample import OWN_KEYS, cluster_of, finite, plain_text, prompt_of, sample_fields

RIGHT_OR_WRONG = frozenset({"acc", "accuracy", "exact_match"})
"""Metrics that a line without any score of its own has by comparing answer and target."""
_NOWHERE = -1


def _unscored(offset: int) -> int:
    """Turn the offset of an unscored line into a negative number below ``_NOWHERE``, and back."""
    return -2 - offset


@dataclass(frozen=True, slots=True)
class Wanted:
    """A metric through one filter pipeline that a reader is asked for."""

    metric: str
    filter: str


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """Knowledge of a task beside its samples."""

    score_key: str = "score"
    cluster_key: str | None = None
    metrics: Collection[str] | None = None
    """Names of the task's metrics; ``None``: every key that is not known to be something else, and no text."""
    wanted: Collection[Wanted] = ()
    """Only these columns, also where the lines have no metric of that name (``fallback_number``); empty: all that
    there are."""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The rows of a task, and sentences about what was left out."""

    rows: TaskRows
    notes: tuple[str, ...] = ()
    is_own: bool = True
    """Written by this project, as its keys tell."""


def is_sample(record: Mapping[str, Any]) -> bool:
    """Tell whether an object is a line of a samples file."""
    return "doc_id" in record and ("filtered_resps" in record or record.get("status") in ("failed", "unscored"))


def read_samples(path: Path, task: str, facts: SampleFacts = SampleFacts()) -> ReadTask:
    """Read a samples file (``read_lines``)."""
    return read_lines(FileSamples(path), task, facts)


def read_lines(source: SampleLines, task: str, facts: SampleFacts = SampleFacts()) -> ReadTask:
    """Read the samples of one task, from a file or from the journals of a run.

    A line without a filter belongs to every pipeline; of several lines of a document and pipeline the first that was
    scored counts. Lines without any metric have ``exact_match``, the equality of answer and target.

    Raises:
        DataError: they cannot be read, or a line is no sample.
    """
    file = SampleCollector(source, task, facts)
    file.read()
    found = file.task()
    if found.rows.columns or found.is_own or facts.wanted or not found.rows.ids:
        return found
    compared = read_lines(source, task, replace(facts, wanted=(Wanted("exact_match", NO_FILTER),)))
    note = f"{task}: the lines have no metric: exact_match is the equality of answer and target"
    return replace(compared, notes=(*compared.notes, note))


def fallback_number(sample: Mapping[str, Any], metric: str, score_key: str) -> float | None:
    """Read a metric of a line that may not have it by its name, as other harnesses write them.

    A metric whose name has ``score`` is then the first field so named, and a right-or-wrong one the equality of answer
    and target.
    """
    if metric in sample:
        return _compared(sample[metric], score_key)
    named = [key for key in sample if "score" in key]
    if named:
        return _compared(sample[named[0]], score_key) if "score" in metric else None
    return _equality(sample) if metric in RIGHT_OR_WRONG else None


def _equality(sample: Mapping[str, Any]) -> float:
    answer = sample["filtered_resps"]
    first = answer[0] if isinstance(answer, list) and answer else answer
    return float(str(sample["target"]) == str(first))


def _compared(value: Any, score_key: str) -> float | None:
    number = finite(value, score_key)
    if number is not None or not isinstance(value, Mapping):
        return number
    said = value.get("pred_answer", value.get("pred"))
    right = value.get("answer", value.get("target"))
    return None if said is None or right is None else float(str(said).lower() == str(right).lower())


@dataclass(slots=True)
class SampleCollector:
    """Lines while they are read, and the offsets of its lines afterwards."""

    source: SampleLines
    name: str
    facts: SampleFacts
    places: dict[str, array[int]] = field(default_factory=dict)
    """By pipeline the offset of each row's line; -1 where it has none, less than that where its line is unscored."""
    is_own: bool = False
    builder: TaskBuilder = field(init=False)

    def __post_init__(self) -> None:
        self.builder = TaskBuilder(self.name)

    def read(self) -> None:
        """Add all lines of the source. Raises ``DataError``."""
        for line in self.source.lines():
            self.add(line)

    def add(self, line: JsonLine) -> None:
        """Add one line of the source. Raises ``DataError`` if it is no sample."""
        try:
            self._add(line.record, line.offset)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{self.source.where}, line {line.number}: not a samples line ({error!r})") from error

    def forget(self, doc_id: str) -> None:
        """Forget the lines of a document: others take their place."""
        row = self.builder.row(doc_id)
        self.builder.forget(row)
        for places in self.places.values():
            if row < len(places):
                places[row] = _NOWHERE

    def task(self) -> ReadTask:
        """Return the rows of what has been added."""
        self.builder.states_filter = "" not in self.places
        lookups = Lookups(cache(self._metadata), self._answer, self._raw, self._lines)
        return ReadTask(self.builder.rows(lookups), self.builder.notes, self.is_own)

    def _add(self, sample: dict[str, Any], offset: int) -> None:
        row = self.builder.row(id_text(sample["doc_id"]))
        stated = sample.get("status")
        self.is_own = self.is_own or stated is not None
        pipeline = sample.get("filter", "")
        if not isinstance(pipeline, str):
            raise TypeError("filter")
        is_scored = stated in (None, "scored")
        if is_scored and "filtered_resps" not in sample:
            raise KeyError("filtered_resps")
        if not self._take(row, pipeline, offset, is_scored):
            self.builder.pass_over("further lines of documents that were there already: the first counts")
            return
        if is_scored:
            has_number, lacks = self._score(sample, row, pipeline)
            status: Status = "scored" if has_number or (stated and not lacks) else "unscored"
        else:
            status = "unscored" if stated == "unscored" else "failed"
        self.builder.end(row, status)
        self.builder.describe(row, _text(sample.get("doc_hash")), self._cluster(sample))

    def _take(self, row: int, pipeline: str, offset: int, is_scored: bool) -> bool:
        """Note where the line is, unless a scored one of this document and pipeline has been."""
        places = self.places.setdefault(pipeline, array("q"))
        if len(places) <= row:
            places.extend([_NOWHERE] * (row + 1 - len(places)))
        if places[row] >= 0:
            return False
        if is_scored:
            places[row] = offset
        elif places[row] == _NOWHERE:
            places[row] = _unscored(offset)
        return True

    def _score(self, sample: Mapping[str, Any], row: int, pipeline: str) -> tuple[bool, bool]:
        """Note the numbers of a line; tells whether there is one, and whether one is lacking."""
        has_number = lacks = False
        for metric, through, value in self._values(sample, pipeline):
            number = value if self.facts.wanted else finite(value, self.facts.score_key)
            self.builder.score(row, metric, through, number)
            if number is not None:
                has_number = True
            elif not isinstance(value, Mapping | list | str):
                lacks = True
                self.builder.pass_over(f"values of {metric},{through} that are no finite number: unscored")
        return has_number, lacks

    def _values(self, sample: Mapping[str, Any], pipeline: str) -> Iterator[tuple[str, str, Any]]:
        if self.facts.wanted:
            for row in self.facts.wanted:
                if not pipeline or row.filter == pipeline:
                    yield row.metric, row.filter, fallback_number(sample, row.metric, self.facts.score_key)
            return
        named = self.facts.metrics
        for key, value in sample.items():
            if key in named if named is not None else key not in OWN_KEYS and not isinstance(value, str):
                yield key, pipeline or NO_FILTER, value

    def _cluster(self, sample: Mapping[str, Any]) -> str | None:
        key = self.facts.cluster_key
        if key is None:
            return None
        return cluster_of(key, [value for name, value in sample.items() if name not in OWN_KEYS], sample.get("doc"))

    def _line(self, row: int, pipeline: str | None = None) -> dict[str, Any] | None:
        """Read the line of a row, of any pipeline if none is named; one that was scored before any other."""
        found = [
            places[row]
            for name, places in self.places.items()
            if (pipeline is None or name in (pipeline, "")) and row < len(places) and places[row] != _NOWHERE
        ]
        if not found:
            return None
        return self._read(next((place for place in found if place >= 0), found[0]))

    def _lines(self, row: int) -> list[dict[str, Any]]:
        """Read the lines of a row, one for each pipeline."""
        found = [places[row] for places in self.places.values() if row < len(places) and places[row] != _NOWHERE]
        return [self._read(place) for place in found]

    def _read(self, place: int) -> dict[str, Any]:
        return self.source.at(place if place >= 0 else _unscored(place))

    def _answer(self, row: int) -> Answer | None:
        sample = self._line(row)
        return None if sample is None else answer_of(sample)

    def _raw(self, column: str, row: int) -> Any:
        metric, _, pipeline = column.rpartition(",")
        sample = self._line(row, pipeline)
        return None if sample is None else sample.get(metric)

    def _metadata(self) -> dict[str, Any]:
        rows = {name: number for number, name in enumerate(self.builder.ids)}
        lines = ((rows.get(id_text(line.record["doc_id"]), -1), line.record) for line in self.source.lines())
        return metadata_of(
            len(rows), ((row, sample_fields(sample, self.facts.score_key)) for row, sample in lines if row >= 0)
        )


def answer_of(sample: Mapping[str, Any]) -> Answer:
    """Take the answer out of a sample's line."""
    said = sample.get("filtered_resps", sample.get("resps", sample.get("raw_resps")))
    return Answer(plain_text(said), plain_text(sample.get("target")), plain_text(prompt_of(sample)))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
