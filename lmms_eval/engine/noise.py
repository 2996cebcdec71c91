"""The noise floor: how scores vary if the same requests are sent again, from a part of the documents.

``--repeat_share`` asks these documents a second time, as a control of their task (``AskedAgain``). Its answers are
scored as usual and only compared here: they change no score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from lmms_eval import stats
from lmms_eval.engine.aggregate import MetricResult, TaskResult
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.uncertainty import NO_JUDGE_REPEATS, NOT_AVAILABLE, Certainty, NoiseFloor, Variance
from lmms_eval.stats.repeats import ChangedShare, RerunNoise, VarianceSplit, rerun_noise
from lmms_eval.utils.numbers import ScoreRange

TOLERANCE = 1e-4
"""Relative tolerance for log probabilities, as in the batch check."""

Values = dict[str, Any]


def with_noise_floors(results: Sequence[TaskResult], store: RunStore) -> tuple[TaskResult, ...]:
    """Add to each task what its documents that were asked again show, and to its means the split of their variance."""
    again = {result.task.control_of: result for result in results if result.task.asks_again}
    return tuple(
        result if (second := again.get(result.task.name)) is None else _with_noise(result, second, store)
        for result in results
    )


def _with_noise(result: TaskResult, again: TaskResult, store: RunStore) -> TaskResult:
    task, doc_ids = result.task, again.plan.doc_ids
    firsts = {record["doc_id"]: record for record in store.scores(task.name, doc_ids) if "failed" not in record}
    seconds = {record["doc_id"]: record for record in store.scores(again.task.name, doc_ids) if "failed" not in record}
    both = [(firsts[doc_id], seconds[doc_id]) for doc_id in doc_ids if doc_id in firsts and doc_id in seconds]
    if not both:
        return structs.replace(result, noise=NoiseFloor(len(doc_ids), 0))
    values = [(_values(first), _values(second)) for first, second in both]
    noise = {
        key: found
        for metric in result.metrics
        if (found := _noise(metric, key := f"{metric.metric},{metric.filter}", values, task.score_key)) is not None
    }
    changed = sum(not _same_answers(first["answers"], second["answers"]) for first, second in both)
    floor = NoiseFloor(len(doc_ids), len(both), ChangedShare.of(changed, len(both)), noise)
    metrics = tuple(
        structs.replace(metric, variance=_variance(metric, noise.get(f"{metric.metric},{metric.filter}")))
        for metric in result.metrics
    )
    return structs.replace(result, noise=floor, metrics=metrics)


def _values(record: Mapping[str, Any]) -> Values:
    """Return the values of a document by ``METRIC,FILTER``."""
    return {
        f"{metric},{score['filter']}": value
        for score in record["scores"]
        if score.get("status", "scored") == "scored"
        for metric, value in score["metrics"].items()
    }


def _noise(
    metric: MetricResult, key: str, values: Sequence[tuple[Values, Values]], score_key: str
) -> RerunNoise | None:
    """Return the noise of a metric in units of a document's score; ``None`` if its values are not numbers."""
    found = [
        (stats.item_number(first[key], score_key), stats.item_number(second[key], score_key))
        for first, second in values
        if key in first and key in second
    ]
    pairs = [(first, second) for first, second in found if first is not None and second is not None]
    if not pairs or len(pairs) < len(found):
        return None
    within, scale = metric.certainty.score_range, metric.scale or 1.0
    return rerun_noise(pairs, ScoreRange(within.low / scale, within.high / scale))


def _variance(metric: MetricResult, noise: RerunNoise | None) -> Variance | None:
    """Return the sources of the variance of a mean over documents with one answer each, if they are known.

    The interval for another run on the list takes the upper end of the variance of answers.
    """
    known, error = metric.variance, metric.stderr_clt
    is_mean = bool(metric.scale) and isinstance(metric.value, int | float) and error != NOT_AVAILABLE
    if noise is None or not is_mean or isinstance(error, str):
        return known
    judge = None if known is None else known.split.judge
    answers = max(0.0, metric.scale**2 * noise.answers - (judge or 0.0))
    whole = metric.n * error**2 if known is None else known.split.questions
    split = VarianceSplit(max(0.0, whole - answers), answers, judge, metric.n)
    rejudged = Certainty(no_interval=NO_JUDGE_REPEATS) if known is None else known.rejudged
    again = asked_again(float(metric.value), metric.n, noise, metric.certainty.score_range, metric.scale)
    return Variance(split, metric.certainty, again, rejudged)


def asked_again(value: float, n: int, noise: RerunNoise, within: ScoreRange, scale: float = 1.0) -> Certainty:
    """Return error and interval of a mean if the same questions were asked again.

    The interval takes the upper end of the variance of answers, so it is wider than the error alone would make it.

    Args:
        value: the mean over the documents, times ``scale``.
        n: the documents.
        noise: in units of a document's score.
        within: the range of the value.
        scale: the value divided by the mean of the documents' scores.
    """
    spreads = [
        stats.MeanSpread(abs(scale) * math.sqrt(variance / n), math.inf, n)
        for variance in (noise.answers, noise.answers_high)
        if variance is not None
    ]
    if len(spreads) < 2:
        return Certainty(no_interval="no range with two ends", spread=spreads[0])
    return structs.replace(Certainty.of(value, spreads[1], within), spread=spreads[0])


def _same_answers(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether texts and pictures are equal, and log probabilities almost so. Thoughts do not count."""
    return len(first) == len(second) and all(
        one.get("parts") == other.get("parts") and _same(one["value"], other["value"])
        for one, other in zip(first, second, strict=True)
    )


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=TOLERANCE)
    return bool(first == second)
