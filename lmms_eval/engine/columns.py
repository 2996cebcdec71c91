"""The values of a task's metrics by pipeline, as the journal holds them, and what follows from them alone."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, field, structs

from lmms_eval import stats
from lmms_eval.api.outcome import SubScore
from lmms_eval.api.task import Task
from lmms_eval.engine.clusters import Clusters
from lmms_eval.engine.records import is_cut
from lmms_eval.engine.uncertainty import Errors, Variance, is_bounded, variance_of
from lmms_eval.utils.numbers import ScoreRange


class TruncationScores(Struct, frozen=True):
    """Separate scores of documents with completed answers and of those with an answer truncated by the token limit."""

    completed: SubScore | None
    """Documents with completed answers only, if there are any."""
    truncated: SubScore
    """Documents with an answer that reached the token limit."""
    low: float | None
    """The score if every truncated document had the lowest number of the metric's range, if that range is finite. How
    these answers would have ended is unknown, so the true score lies between ``low`` and ``high``."""
    high: float | None
    """The score if every truncated document had the highest number."""


class ValueColumn(Struct):
    """The values of one metric and pipeline in document order; the lists are parallel except the last two."""

    values: list[Any] = field(default_factory=list)
    doc_ids: array[int] = field(default_factory=partial(array, "q"))
    drew: bytearray = field(default_factory=bytearray)
    """1 if scoring used a random choice, else 0."""
    truncated: bytearray = field(default_factory=bytearray)
    """1 if an answer of the document was truncated by the token limit, else 0."""
    per_answer: list[list[Any]] = field(default_factory=list)
    per_verdict: list[list[list[Any]]] = field(default_factory=list)
    """For each document and answer, the values by each asking of the judge."""
    clusters: list[str] | None = None
    """``None`` if the documents are independent."""
    unscored: int = 0
    """Documents that could not be scored in this pipeline, without a value of this metric."""


_FLOATS: dict[float, float] = {}
_MOST_FLOATS = 4096


def shared(value: Any) -> Any:
    """Return the same object for equal numbers, since most metrics have few: a float takes 24 bytes."""
    if type(value) is not float or not value or (value not in _FLOATS and len(_FLOATS) >= _MOST_FLOATS):
        return 0.0 if value == 0 and type(value) is float and math.copysign(1, value) > 0 else value
    return _FLOATS.setdefault(value, value)


class ValueColumns:
    """The columns of a task by metric and pipeline."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], ValueColumn] = {}
        self.scored: set[str] = set()
        """Pipelines with at least one scored document."""
        self._unscored: Counter[str] = Counter()
        """By pipeline, documents that could not be scored."""
        self._partly: Counter[tuple[str, str]] = Counter()
        """By metric and pipeline, documents among them with a value of the metric."""

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a document's journal record."""
        is_truncated = any(is_cut(answer) for answer in record["answers"])
        for score in record["scores"]:
            if score.get("status", "scored") == "scored":
                self.scored.add(score["filter"])
            else:
                self._unscored[score["filter"]] += 1
                self._partly.update((metric, score["filter"]) for metric in score["metrics"])
            for metric, value in score["metrics"].items():
                column = self.found.setdefault((metric, score["filter"]), ValueColumn())
                column.values.append(shared(value))
                column.doc_ids.append(record["doc_id"])
                column.drew.append(score.get("drew", False))
                column.truncated.append(is_truncated)
                answers = [metrics[metric] for metrics in score.get("per_answer", ()) if metric in metrics]
                if answers:
                    column.per_answer.append(answers)
                judged = [[one[metric] for one in answer if metric in one] for answer in score.get("per_verdict", ())]
                if judged:
                    column.per_verdict.append(judged)

    def place_clusters(self, clusters: Clusters) -> None:
        """Set the clusters of all columns."""
        for column in self.found.values():
            column.clusters = clusters.of(column.doc_ids)

    def column(self, metric: str, pipeline: str) -> ValueColumn:
        """Return the values of a metric and pipeline, or an empty column."""
        unscored = self._unscored[pipeline] - self._partly[metric, pipeline]
        return structs.replace(self.found.get((metric, pipeline), ValueColumn()), unscored=unscored)


def missing_by_stratum(task: Task, columns: ValueColumns, doc_ids: Sequence[int]) -> Mapping[str, int]:
    """Count documents without a value of any metric, by stratum; under the empty name if the task has no strata."""
    lost: list[int] = []
    if all(len(column.doc_ids) < len(doc_ids) for column in columns.found.values()):
        valued = {doc_id for column in columns.found.values() for doc_id in column.doc_ids}
        lost = [doc_id for doc_id in doc_ids if doc_id not in valued]
    names = task.strata(lost) if lost else ()
    return {"": len(lost)} if names is None else Counter(names)


def variance_in(column: ValueColumn, errors: Errors, value: Any, score_key: str) -> Variance | None:
    """Return the sources of the variance of a mean over documents whose values are the means over their answers.

    ``None`` without repeats, or if the value is another one, such as that of a vote.
    """
    answers = _numbers(column.per_answer, errors.scale, score_key)
    verdicts = [_numbers(judged, errors.scale, score_key) for judged in column.per_verdict]
    if not answers:  # one answer each
        answers = [[one[0] for one in document if one] for document in verdicts]
    n = len(column.values)
    if not errors.scale or len(answers) != n or (verdicts and len(verdicts) != n):
        return None
    means = _numbers([[item] for item in column.values], errors.scale, score_key)
    for of_answers, mean in zip(answers, means, strict=True):
        if not of_answers or not mean or not math.isclose(math.fsum(of_answers) / len(of_answers), mean[0]):
            return None
    return variance_of(float(value), answers, verdicts, errors.certainty)


def _numbers(rows: Sequence[Sequence[Any]], scale: float, score_key: str) -> list[list[float]]:
    """Return the numbers of values, times the scale."""
    return [
        [scale * number for item in row if (number := stats.item_number(item, score_key)) is not None] for row in rows
    ]


def document_scores(
    column: ValueColumn, stated: Sequence[float], scale: float, score_key: str
) -> Sequence[float] | None:
    """Return the documents' numbers whose mean is the score; ``None`` if it is not a mean over documents.

    ``stated``: the numbers that the aggregation returned, if any. ``scale``: ``MetricResult.scale``.
    """
    if len(stated) == len(column.values):
        return stated
    if not scale:
        return None
    return array("d", (scale * (stats.item_number(value, score_key) or 0.0) for value in column.values))


def truncation_scores(
    column: ValueColumn, scores: Sequence[float] | None, within: ScoreRange
) -> TruncationScores | None:
    """Return the scores of completed and truncated answers; ``None`` if no answer was truncated."""
    if scores is None or not any(column.truncated):
        return None
    completed = [score for score, is_cut in zip(scores, column.truncated, strict=True) if not is_cut]
    truncated = mean_and_error([score for score, is_cut in zip(scores, column.truncated, strict=True) if is_cut])
    assert truncated is not None
    low = high = None
    if is_bounded(scores, within):
        low, high = ((math.fsum(completed) + end * truncated.n) / len(scores) for end in (within.low, within.high))
    return TruncationScores(mean_and_error(completed), truncated, low, high)


def mean_and_error(scores: Sequence[float]) -> SubScore | None:
    """Return the mean of the scores with its error; ``None`` for no scores."""
    if not scores:
        return None
    return SubScore(
        math.fsum(scores) / len(scores), len(scores), stats.mean_stderr(scores) if len(scores) > 1 else None
    )
