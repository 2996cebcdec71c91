"""Reading of samples files of this project, lmms-eval and lm-eval: a JSON object for each document."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from msgspec.structs import replace

from lmms_eval.api.outcome import Status
from lmms_eval.compare.readers.contract import NO_FILTER, TaskBuilder, id_text
from lmms_eval.compare.runs import DocumentTexts, MetricColumn, TaskRows
from lmms_eval.errors import DataError
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.results.baseline import BaselineRow
from lmms_eval.results.columns import metadata_of
from lmms_eval.results.facts import (
    aggregation_of,
    early_stop_of,
    metric_range,
    part_of,
    sample_keys,
)
from lmms_eval.results.journals import JsonLine, SampleLines
from lmms_eval.results.sample import (
    OWN_KEYS,
    SampleClusters,
    SampleKeys,
    cluster_in,
    finite,
    plain_text,
    prompt_of,
    sample_fields,
)
from lmms_eval.stats import MANY
from lmms_eval.utils.numbers import ScoreRange

RIGHT_OR_WRONG = frozenset({"acc", "accuracy", "exact_match"})
"""Metrics that are computed by comparing answer and target if a line has no score."""
ANY_KEYS = SampleKeys()
"""How to read samples about which nothing is known."""
_NOWHERE = -1


def _unscored(offset: int) -> int:
    """Turn the offset of an unscored line into a negative number below ``_NOWHERE``, and back."""
    return -2 - offset


class ReadTask(NamedTuple):
    """The rows of a task, with sentences about what was left out."""

    rows: TaskRows
    notes: tuple[str, ...] = ()
    is_own: bool = True
    """Whether this project wrote the samples, judged by their keys."""


def is_sample(record: Mapping[str, Any]) -> bool:
    """Return whether an object is a line of a samples file."""
    return "doc_id" in record and ("filtered_resps" in record or record.get("status") in ("failed", "unscored"))


def read_lines(
    source: SampleLines,
    task: str,
    keys: SampleKeys = ANY_KEYS,
    *,
    keeps_rest: bool = False,
    wanted: Collection[BaselineRow] = (),
) -> ReadTask:
    """Read the samples of one task, from a file or from the journals of a run.

    A line without a filter belongs to every pipeline. Among several lines of a document and pipeline, the first scored
    one counts. Lines without any metric get ``exact_match``, the equality of answer and target.

    Args:
        source: the lines.
        task: the task's name.
        keys: how to read its samples.
        keeps_rest: whether lines that are not samples are skipped and counted in a note, instead of being an error.
        wanted: only these columns, even if the lines have no metric of that name (``fallback_number``); empty for all
            columns of the lines.

    Raises:
        DataError: the lines cannot be read, or a line is not a sample.
    """
    file = SampleCollector(source, task, keys, keeps_rest, wanted)
    file.read()
    found = file.task()
    if found.rows.columns or found.is_own or wanted or not found.rows.ids:
        return found
    matched = (BaselineRow("exact_match", NO_FILTER),)
    compared = read_lines(source, task, keys, keeps_rest=keeps_rest, wanted=matched)
    note = f"{task}: the lines have no metric: exact_match is the equality of answer and target"
    return compared._replace(notes=(*compared.notes, note))


def fallback_number(sample: Mapping[str, Any], metric: str, score_key: str) -> float | None:
    """Read a metric of a line of another harness, which may lack a field of that name.

    For a metric whose name contains ``score``, the first field whose name contains it is used. For a right-or-wrong
    metric, the number is the equality of answer and target.
    """
    if metric in sample:
        return _compared(sample[metric], score_key)
    named = [key for key in sample if "score" in key]
    if named:
        return _compared(sample[named[0]], score_key) if "score" in metric else None
    if metric not in RIGHT_OR_WRONG:
        return None
    answer = sample["filtered_resps"]
    first = answer[0] if isinstance(answer, list) and answer else answer
    return float(str(sample["target"]) == str(first))


def _compared(value: Any, score_key: str) -> float | None:
    number = finite(value, score_key)
    if number is not None or not isinstance(value, Mapping):
        return number
    answer = value.get("pred_answer", value.get("pred"))
    right = value.get("answer", value.get("target"))
    return None if answer is None or right is None else float(str(answer).lower() == str(right).lower())


def _id_of(sample: Mapping[str, Any]) -> str:
    """Return the id of a line; empty if it is not a sample."""
    try:
        return id_text(sample["doc_id"])
    except (KeyError, TypeError):
        return ""


class SampleCollector:
    """Collector of a task's lines, which keeps only scores and the places of lines. For the arguments see
    ``read_lines``."""

    def __init__(
        self,
        source: SampleLines,
        name: str,
        keys: SampleKeys,
        keeps_rest: bool = False,
        wanted: Collection[BaselineRow] = (),
    ) -> None:
        self.source, self.keys, self.keeps_rest, self.wanted = source, keys, keeps_rest, wanted
        self.places: dict[str, array[int]] = {}
        """By pipeline: the place of each row's line, −1 for rows without a line, and less for unscored lines."""
        self.is_own = False
        self.builder = TaskBuilder(name)
        self._clusters = SampleClusters(keys)

    def read(self) -> None:
        """Add all lines of the source. Raises ``DataError``."""
        for line in self.source.lines():
            self.add(line)

    def add(self, line: JsonLine) -> None:
        """Add one line of the source. Raises ``DataError`` if it is not a sample, unless ``keeps_rest``."""
        try:
            self._add(line.record, line.offset)
        except (KeyError, TypeError, ValueError) as error:
            if not self.keeps_rest:
                text = f"{self.source.where}, line {line.number}: not a samples line ({error!r})"
                raise DataError(text) from error
            self.builder.pass_over("lines that are not samples: a key is missing or has another form")

    def forget(self, doc_id: str) -> None:
        """Forget the lines of a document, before others replace them."""
        row = self.builder.row(doc_id)
        self.builder.forget(row)
        self._clusters.forget(row)
        for places in self.places.values():
            if row < len(places):
                places[row] = _NOWHERE

    def task(self) -> ReadTask:
        """Return the rows of what has been added."""
        self.builder.states_filter = "" not in self.places
        found = self.builder.rows()
        rows = replace(
            found,
            clusters=self._clusters.of(range(len(found.ids))) if self.keys.finds_clusters else found.clusters,
            metadata=cache(self._metadata),
            answer=self._answer,
            raw=self._raw,
            lines=self._lines,
        )
        return ReadTask(rows, self.builder.notes, self.is_own)

    def _add(self, sample: dict[str, Any], offset: int) -> None:
        name = id_text(sample["doc_id"])
        stated = sample.get("status")
        pipeline = sample.get("filter", "")
        if not isinstance(pipeline, str):
            raise TypeError("filter")
        is_scored = stated in (None, "scored")
        if is_scored and "filtered_resps" not in sample:
            raise KeyError("filtered_resps")
        row = self.builder.row(name)
        self.is_own = self.is_own or stated is not None
        if not self._take(row, pipeline, offset, is_scored):
            self.builder.pass_over("further lines of documents that were there already: the first counts")
            return
        if is_scored:
            has_number, lacks = self._score(sample, row, pipeline)
            status: Status = "scored" if has_number or (stated and not lacks) else "unscored"
        else:
            status = "unscored" if stated == "unscored" else "failed"
        self.builder.end(row, status)
        stated_hash = sample.get("doc_hash")
        if is_scored and self.keys.finds_clusters:
            self._clusters.add(row, sample)
        self.builder.describe(row, stated_hash if isinstance(stated_hash, str) else None, cluster_in(sample, self.keys))

    def _take(self, row: int, pipeline: str, offset: int, is_scored: bool) -> bool:
        """Store the place of a line, unless a scored line of the document and pipeline is known."""
        places = self.places.get(pipeline)
        if places is None:
            places = self.places[pipeline] = array("q")
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
        """Add the numbers of a line; return whether it has a number, and whether it lacks one."""
        has_number = lacks = False
        for metric, through, value in self._values(sample, pipeline):
            number = value if self.wanted else finite(value, self.keys.score_key)
            self.builder.score(row, metric, through, number)
            if number is not None:
                has_number = True
            elif not isinstance(value, Mapping | list | str):
                lacks = True
                self.builder.pass_over(f"values of {metric},{through} that are not finite numbers: unscored")
        return has_number, lacks

    def _values(self, sample: Mapping[str, Any], pipeline: str) -> Iterator[tuple[str, str, Any]]:
        if self.wanted:
            for row in self.wanted:
                if not pipeline or row.filter == pipeline:
                    yield row.metric, row.filter, fallback_number(sample, row.metric, self.keys.score_key)
            return
        named = self.keys.metrics
        for key, value in sample.items():
            if key in named if named else key not in OWN_KEYS and not isinstance(value, str):
                yield key, pipeline or NO_FILTER, value

    def _line(self, row: int, pipeline: str | None = None) -> dict[str, Any] | None:
        """Read the line of a row and pipeline (``None`` for any), preferring scored lines."""
        found = [
            places[row]
            for name, places in self.places.items()
            if (pipeline is None or name in (pipeline, "")) and row < len(places) and places[row] != _NOWHERE
        ]
        if not found:
            return None
        return self._read(next((place for place in found if place >= 0), found[0]))

    def _lines(self, row: int) -> list[dict[str, Any]]:
        """Read the lines of a row, one per pipeline."""
        found = [places[row] for places in self.places.values() if row < len(places) and places[row] != _NOWHERE]
        return [self._read(place) for place in found]

    def _read(self, place: int) -> dict[str, Any]:
        return self.source.at(place if place >= 0 else _unscored(place))

    def _answer(self, row: int) -> DocumentTexts | None:
        sample = self._line(row)
        return None if sample is None else answer_of(sample)

    def _raw(self, column: str, row: int) -> Any:
        metric, _, pipeline = column.rpartition(",")
        sample = self._line(row, pipeline)
        return None if sample is None else sample.get(metric)

    def _metadata(self) -> dict[str, Any]:
        rows = {name: number for number, name in enumerate(self.builder.ids)}
        lines = ((rows.get(_id_of(line.record), -1), line.record) for line in self.source.lines())
        return metadata_of(
            len(rows), ((row, sample_fields(sample, self.keys.score_key)) for row, sample in lines if row >= 0)
        )


def answer_of(sample: Mapping[str, Any]) -> DocumentTexts:
    """Return the answer of a sample's line."""
    answer = sample.get("filtered_resps", sample.get("resps", sample.get("raw_resps")))
    return DocumentTexts(plain_text(answer), plain_text(sample.get("target")), plain_text(prompt_of(sample)))


def completed(rows: TaskRows, document: Mapping[str, Any]) -> TaskRows:
    """Add to the rows of a task what a results document states about its columns and its early stop."""
    columns = {name: _completed_column(rows, column, document) for name, column in rows.columns.items()}
    return replace(rows, columns=columns, early_stop=early_stop_of(document, rows.task))


def _completed_column(rows: TaskRows, column: MetricColumn, document: Mapping[str, Any]) -> MetricColumn:
    import numpy as np

    known = column.scores[~np.isnan(column.scores)]
    reported = finite(part_of(document, "results", rows.task).get(str(column)))
    # A metric whose aggregation only writes a file has no number to compare.
    wrote = part_of(document, "outcomes", rows.task).get("wrote_files")
    scale = 0.0 if isinstance(wrote, list) and str(column) in wrote else 1.0
    if reported is not None:
        can_be_mean = _can_be_mean(rows, column, document)
        scale = scale_of(math.fsum(known) / len(known), reported) if can_be_mean and len(known) else 0.0
    elif is_own(document) and not _is_mean(rows.task, column.metric, document):
        scale = 0.0
    within = metric_range(document, rows.task, column.metric)
    if within is not None and scale > 0:
        within = ScoreRange(within.low / scale, within.high / scale)
    if within is not None and len(known) and not (known.min() in within and known.max() in within):
        within = None  # a range of the task's number, not of documents' scores
    higher = part_of(document, "higher_is_better", rows.task).get(column.metric)
    return replace(
        column,
        score_range=within,
        higher_is_better=higher if isinstance(higher, bool) else None,
        reported=reported,
        scale=scale,
    )


def _is_mean(task: str, metric: str, document: Mapping[str, Any]) -> bool:
    """Return whether the aggregation takes a mean; unknown names may do so."""
    name = aggregation_of(document, task, metric)
    return name not in AGGREGATIONS or AGGREGATIONS[name].is_mean


def _can_be_mean(rows: TaskRows, column: MetricColumn, document: Mapping[str, Any]) -> bool:
    """Return whether the metric's aggregation takes a mean, or is a function that may do so.

    A function that sees further facts of a document may group by them, and equal the mean by chance if there are
    few documents or all scores are equal. The run uses the same rule for its errors.
    """
    if aggregation_of(document, rows.task, column.metric) in AGGREGATIONS:
        return _is_mean(rows.task, column.metric, document)
    keys = sample_keys(document, rows.task)
    known = [row for row, score in enumerate(column.scores) if not math.isnan(score)]
    value = rows.raw(str(column), known[0]) if known else None
    if not isinstance(value, Mapping) or {keys.score_key, keys.cluster_key}.issuperset(value):
        return True
    return len(known) >= MANY and len(set(column.scores[known])) > 1


def is_own(document: Mapping[str, Any]) -> bool:
    """Return whether this project wrote a results document, which then states more than the family's do."""
    return "run_key" in document


def scale_of(mean: float, whole: float) -> float:
    """Return the factor from the mean of scores to a task's number: 1, 100 (percent), or 0 if it is not a mean."""
    for scale in (1.0, 100.0):
        if math.isclose(whole, scale * mean, rel_tol=1e-9, abs_tol=1e-12):
            return scale
    return 0.0
