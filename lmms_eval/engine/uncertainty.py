"""Errors and intervals of a metric, from its documents' values or from the aggregation's own error."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field, structs

from lmms_eval import stats
from lmms_eval.api.outcome import Estimate
from lmms_eval.api.task import MetricDefinition, Task
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.stats.repeats import ChangedShare, RerunNoise, VarianceSplit, spread_within, variance_split
from lmms_eval.utils.numbers import SHARES, ScoreRange

NOT_AVAILABLE = "N/A"
NO_ERROR = "no standard error"
_LEAST_PAIRS, _LEAST_OF_LABEL = 100, 10
_CLUSTER_DRAWS = 2000
"""Most redraws of clusters: the error is then known to 1.6 %."""


class Certainty(Struct, frozen=True):
    """Error and interval of a number."""

    interval: stats.Interval | None = None
    """The 95 % interval."""
    no_interval: str = ""
    """Reason why there is no interval; empty if there is one, or the value is not a number."""
    spread: stats.MeanSpread | None = None
    """Error that gives the interval; ``None`` if it is undefined."""
    score_range: ScoreRange = stats.ANY_NUMBER
    is_clustered: bool = False
    """The interval is over the task's clusters."""

    @classmethod
    def of(cls, value: float, spread: stats.MeanSpread, within: ScoreRange, is_clustered: bool = False) -> Certainty:
        """Compute the interval by the standard rule (``stats.score_interval``)."""
        found = stats.score_interval(value, spread, within)
        if isinstance(found, stats.NoInterval):
            return cls(None, found.reason, spread, within, is_clustered)
        return cls(found, "", spread, within, is_clustered)


UNKNOWN = Certainty()


class FilledMean(Struct, frozen=True):
    """A mean over all documents if missing ones have the number at one end of the range."""

    value: float
    spread: stats.MeanSpread


class MissingBounds(Struct, frozen=True):
    """Bounds of a score that hold whatever the documents without a score would score."""

    n: int
    """Documents without a score."""
    low: float | None = None
    """Low end of the 95 % interval if each of them had the lowest number of the metric's range."""
    high: float | None = None
    """High end of the 95 % interval if each of them had the highest number."""
    reason: str = ""
    """Why there are no bounds."""

    @classmethod
    def of(cls, missing: int, ends: tuple[FilledMean, FilledMean], within: ScoreRange) -> MissingBounds:
        """Compute the bounds from the means with missing documents at the low and at the high end of the range."""
        found = []
        for end in ends:
            interval = stats.score_interval(end.value, end.spread, within)
            if isinstance(interval, stats.NoInterval):
                return cls(missing, reason=interval.reason)
            found.append(interval)
        return cls(missing, found[0].low, found[1].high)


def filled_means(
    scores: Sequence[float], missing: int, within: ScoreRange, spread: stats.MeanSpread | None = None
) -> tuple[FilledMean, FilledMean]:
    """Return the means with missing documents at the low and at the high end of the range.

    The missing documents count in the spread too, since their number would differ over other questions. In clusters,
    they are as alike as the scored documents, and form clusters of the mean size.

    Args:
        scores: numbers of the scored documents.
        missing: number of documents without a score.
        within: the range of the scores, with two ends.
        spread: the spread of the mean of ``scores``, if documents come in clusters.
    """

    def filled(end: float) -> FilledMean:
        numbers = [*scores, *[end] * missing]
        return FilledMean(math.fsum(numbers) / len(numbers), _filled_spread(numbers, within, scores, spread))

    return filled(within.low), filled(within.high)


def is_bounded(scores: Sequence[float], within: ScoreRange) -> bool:
    """Return whether a range has two ends and contains all scores."""
    return math.isfinite(within.high - within.low) and all(score in within for score in scores)


def _filled_spread(
    filled: Sequence[float], within: ScoreRange, scores: Sequence[float], spread: stats.MeanSpread | None
) -> stats.MeanSpread:
    """Return the spread of scores that include missing ones, with the design effect of the clusters of ``scores``."""
    plain = stats.MeanSpread.of_scores(filled, within)
    if spread is not None and spread.dominant:
        return structs.replace(plain, dominant=spread.dominant)
    if spread is not None and spread.graded and spread.sizes:
        usual = round(len(scores) / len(spread.sizes))
        further = [usual] * math.ceil((len(filled) - len(scores)) / usual)
        graded, sizes = (*spread.graded, *[filled[-1]] * len(further)), (*spread.sizes, *further)
        return structs.replace(spread, graded=graded, sizes=sizes, size=spread.size * len(filled) / len(scores))
    if spread is None or not spread.size < len(scores):
        return plain
    alone = stats.mean_stderr(scores) if len(scores) > 1 else 0.0
    effect = spread.error / alone if alone > 0 and spread.error > 0 else math.sqrt(len(scores) / spread.size)
    size = len(filled) * spread.size / len(scores)
    silent = 0.0 if plain.error > 0 else 1 / size
    return stats.MeanSpread(effect * plain.error, min(spread.freedom, plain.freedom), size, silent=silent)


class Errors(Struct, frozen=True):
    """Errors of a metric: numbers or ``"N/A"``. ``scale`` is ``MetricResult.scale``."""

    stderr: float | str = NOT_AVAILABLE
    clt: float | str = NOT_AVAILABLE
    clustered: float | str = NOT_AVAILABLE
    certainty: Certainty = UNKNOWN
    scale: float = 0.0


NO_REPEATS = "no repeats"
NO_JUDGE_REPEATS = "no repeats of the judge"


class Variance(Struct, frozen=True):
    """The sources of the variance of a mean over documents, and what would vary if parts were drawn again."""

    split: VarianceSplit
    """Components, in squared units of the score."""
    like_these: Certainty
    """If other questions like these were asked: the certainty of the score."""
    again: Certainty
    """If the same questions were asked again, and the answers judged."""
    rejudged: Certainty
    """If the judge judged the same answers again."""


class NoiseFloor(Struct, frozen=True):
    """Variation of scores and answers if the same requests are sent again, from a part of the documents."""

    asked: int
    """Documents that were drawn to be asked a second time."""
    answered: int
    """Documents among them with two answers that could be scored."""
    answers: ChangedShare | None = None
    """Documents whose second answer differs in its text or pictures."""
    metrics: Mapping[str, RerunNoise] = field(default_factory=dict)
    """Changed scores, by ``METRIC,FILTER``; variances are in squared units of a document's score."""


def variance_of(
    value: float, answers: Sequence[Sequence[float]], verdicts: Sequence[Sequence[Sequence[float]]], whole: Certainty
) -> Variance | None:
    """Split the variance of a mean of scores by its sources; ``None`` for fewer than two documents.

    Args:
        value: the mean over the documents of the means over their answers.
        answers: for each document, the scores of its answers.
        verdicts: for each document and answer, the scores by each asking of the judge (the first one counts); empty
            without repeats of the judge.
        whole: the certainty of the mean.
    """
    n = len(answers)
    if n < 2:
        return None
    again, rejudged = Certainty(no_interval=NO_REPEATS), Certainty(no_interval=NO_JUDGE_REPEATS)
    if all(len(each) > 1 for each in answers):
        spread = spread_within(answers, [1 / n] * n, [len(each) for each in answers])
        again = Certainty.of(value, spread, whole.score_range)
    groups = [one for document in verdicts for one in document]
    if groups and all(len(one) > 1 for one in groups):
        weights = [1 / n / len(document) for document in verdicts for _ in document]
        rejudged = Certainty.of(value, spread_within(groups, weights, [1] * len(groups)), whole.score_range)
    split = variance_split(verdicts or [[[score] for score in each] for each in answers])
    return Variance(split, whole, again, rejudged)


class _Sample(Struct, frozen=True):
    """The documents' values that have a number, in relation to the aggregated value."""

    numbers: Sequence[float]
    scale: float
    """0 if the central limit theorem does not apply to the aggregated value."""
    is_mean: bool
    """The aggregated value is ``scale`` times the mean of the numbers."""
    clusters: Sequence[str] | None
    """Cluster of each number; ``None`` if documents are independent."""

    @classmethod
    def of(
        cls, values: Sequence[Any], whole: float, score_key: str, can_be_mean: bool, clusters: Sequence[str] | None
    ) -> _Sample:
        found = [stats.item_number(value, score_key) for value in values]
        numbers = [number for number in found if number is not None]
        mean = math.fsum(numbers) / len(numbers) if numbers else math.nan
        scale = _scale(numbers, mean, whole)
        is_mean = can_be_mean and scale > 0 and math.isclose(whole, scale * mean, rel_tol=1e-9, abs_tol=1e-12)
        if clusters is not None:
            clusters = [cluster for cluster, number in zip(clusters, found, strict=True) if number is not None]
        return cls(numbers, scale, is_mean, clusters)


def errors_of(
    task: Task, definition: MetricDefinition, values: Sequence[Any], whole: Any, bootstrap_iterations: int,
    clusters: Sequence[str] | None = None,
) -> Errors:  # fmt: skip
    """Return the errors and the interval of a metric, according to the kind of aggregation.

    Args:
        whole: the result of the aggregation: any value, or an ``Estimate`` with its own error.
        clusters: the cluster of each value; ``None`` if the documents are independent. The interval is then over
            clusters. The standard errors are those of independent documents, as in the family's results.
    """
    value = whole.value if isinstance(whole, Estimate) else whole
    name = definition.aggregation_name
    if name == "bypass" or not isinstance(value, int | float) or isinstance(value, bool):
        return Errors()
    # A median, or a sum over groups of documents, may equal the mean by chance.
    can_be_mean = AGGREGATIONS[name].is_mean if name in AGGREGATIONS else not _may_coincide(task, values)
    sample = _Sample.of(values, float(value), task.score_key, can_be_mean, clusters)
    scale = sample.scale if sample.is_mean else 0.0
    if isinstance(whole, Estimate):
        own = None if whole.stderr is None else float(whole.stderr)
        certainty = _of_estimate(definition, whole, sample, clusters, len(values))
        return Errors(_shown(own), certainty=certainty, scale=scale)
    stderr = _stderr(definition, values, sample, bootstrap_iterations)
    items = stats.item_errors(values if sample.scale else (), task.cluster_key, task.score_key, sample.scale)
    labelled = _of_labels(name, values, clusters)
    if labelled is not None:
        certainty = labelled
    elif sample.is_mean:
        certainty = _of_mean(definition, float(value), sample)
    else:
        redrawn = stderr
        if clusters is not None and stderr is not None:
            redrawn = _stderr(definition, values, sample, min(bootstrap_iterations, _CLUSTER_DRAWS), clusters)
        spread = _whole_spread(redrawn, len(values), clusters)
        within = definition.score_range or stats.ANY_NUMBER
        certainty = Certainty.of(float(value), spread, within, clusters is not None)
        if name == "matthews_corrcoef" and certainty.interval is not None and abs(value) < 1:
            certainty = structs.replace(certainty, interval=_of_correlation(float(value), spread))
    return Errors(_shown(stderr), _shown(items.clt), _shown(items.clustered), certainty, scale)


def _stderr(
    definition: MetricDefinition, values: Sequence[Any], sample: _Sample, iterations: int,
    clusters: Sequence[str] | None = None,
) -> float | None:  # fmt: skip
    """Return the standard error of a built-in aggregation, by redraws if it is not a mean; else ``None``."""
    name = definition.aggregation_name
    if name not in AGGREGATIONS or len(values) < 2:
        return None
    if name == "mean" and clusters is None and len(sample.numbers) == len(values):
        return stats.mean_stderr(sample.numbers)
    entry = AGGREGATIONS[name]
    draws = min(iterations, entry.bootstrap_iterations)
    if draws < 2:
        return None
    return stats.bootstrap_stderr(entry.bootstrap_name or definition.aggregation, values, draws, clusters)


def _of_estimate(
    definition: MetricDefinition, whole: Estimate, sample: _Sample, clusters: Sequence[str] | None, n: int
) -> Certainty:
    """Return the certainty that an aggregate states, or that follows from what it states."""
    if whole.low is not None and whole.high is not None:
        return Certainty(stats.Interval(whole.low, whole.high, "own"))
    value = float(whole.value or 0.0)
    if whole.scores:
        within = _range(definition, whole.scores, whole.scale)
        return _within(value, whole.scores, within, whole.clusters or (clusters if len(whole.scores) == n else None))
    if sample.is_mean and whole.stderr is not None:
        return _of_mean(definition, value, sample)
    within = stats.ANY_NUMBER if whole.stderr is None else definition.score_range or stats.ANY_NUMBER
    return Certainty.of(value, _whole_spread(whole.stderr, n), within)


def _of_labels(
    name: str | None, pairs: Sequence[tuple[Any, Any]], clusters: Sequence[str] | None = None
) -> Certainty | None:
    """Return the certainty of F1 and, over too few documents, of a correlation; ``None`` if the usual rule applies.

    F1 = 2J / (1 + J) grows with J, the share of true positives among all documents that either side calls positive.
    So its interval is that of the share J. Intervals of a correlation by the bootstrap hold in as few as half of the
    cases with few documents (clusters) or few of the rarest label.
    """
    units: Sequence[Hashable] = range(len(pairs)) if clusters is None else clusters
    if name == "f1":
        found = [
            (float(bool(gold) and bool(predicted)), unit)
            for (gold, predicted), unit in zip(pairs, units, strict=True)
            if gold or predicted
        ]
        if not found:
            return Certainty(no_interval="no positive label")
        shares = [share for share, _ in found]
        spread = _spread(shares, SHARES, None if clusters is None else [unit for _, unit in found])
        interval = stats.score_interval(math.fsum(shares) / len(shares), spread, SHARES)
        if isinstance(interval, stats.NoInterval):
            is_single = len(found) == 1
            return Certainty(no_interval="one document with a positive label" if is_single else interval.reason)
        low, high = (2 * end / (1 + end) for end in (interval.low, interval.high))
        method = f"{interval.method}, of TP / (TP + FP + FN)"
        return Certainty(stats.Interval(low, high, method), is_clustered=clusters is not None)
    if name == "matthews_corrcoef":
        n = len(set(units))
        labels = {(gold, unit) for (gold, _), unit in zip(pairs, units, strict=True)}
        rarest = min(Counter(gold for gold, _ in labels).values(), default=0)
        if n < _LEAST_PAIRS or rarest < _LEAST_OF_LABEL:
            of = "" if clusters is None else " clusters"
            return Certainty(no_interval=f"n = {n}{of}, {rarest} of the rarest label: too few for a correlation")
    return None


def _of_correlation(value: float, spread: stats.MeanSpread) -> stats.Interval:
    """Return the interval of a correlation by Fisher's z: the error of artanh r is that of r over 1 − r².

    Fisher 1915, "Frequency distribution of the values of the correlation coefficient", Biometrika 10.
    """
    half = stats.quantile(spread.freedom) * spread.error / (1 - value * value)
    low, high = (math.tanh(math.atanh(value) + end) for end in (-half, half))
    return stats.Interval(low, high, "fisher z")


def _may_coincide(task: Task, values: Sequence[Any]) -> bool:
    """Return whether the result of a task's own aggregation may equal the mean without being one.

    That is possible if the values hold facts besides the score to group documents by. It is implausible for
    many documents with different scores. A task's aggregation is called only once, so this cannot be tested.
    """
    own = {task.score_key, task.cluster_key}
    if not any(isinstance(value, Mapping) and not own.issuperset(value) for value in values):
        return False
    return len(values) < stats.MANY or len({stats.item_number(value, task.score_key) for value in values}) < 2


def _whole_spread(stderr: float | None, n: int, clusters: Sequence[str] | None = None) -> stats.MeanSpread:
    """Return the spread of an aggregated value that is not a mean."""
    error = math.nan if stderr is None else float(stderr)
    if clusters is None:
        return stats.MeanSpread(error, n - 1, n, is_mean=False)
    sizes = list(Counter(clusters).values())
    effective = n * n / sum(size * size for size in sizes)
    largest = stats.dominant_share(max(sizes), n, len(sizes), effective)
    return stats.MeanSpread(error, effective - 1, effective, is_mean=False, dominant=largest)


def _of_mean(definition: MetricDefinition, value: float, sample: _Sample) -> Certainty:
    """Return the certainty of a mean of the documents' numbers."""
    scores = [sample.scale * number for number in sample.numbers]
    return _within(value, scores, _range(definition, scores, sample.scale), sample.clusters)


def _range(definition: MetricDefinition, scores: Sequence[float], right: float) -> ScoreRange:
    """Return the stated range; else 0 to ``right`` if all scores are one of these."""
    if definition.score_range is None and set(scores) <= {0, right}:
        return ScoreRange(0.0, right)
    return definition.score_range or stats.ANY_NUMBER


def _within(
    value: float, scores: Sequence[float], within: ScoreRange, clusters: Sequence[Hashable] | None
) -> Certainty:
    if not all(score in within for score in scores):
        return Certainty(no_interval=f"a score lies outside of the range, {within}")
    return Certainty.of(value, _spread(scores, within, clusters), within, bool(clusters))


def _spread(scores: Sequence[float], within: ScoreRange, clusters: Sequence[Hashable] | None) -> stats.MeanSpread:
    """Return the spread of scores, over clusters if the documents have them."""
    if clusters:
        return stats.MeanSpread.clustered(scores, clusters, within)
    return stats.MeanSpread.of_scores(scores, within)


def _shown(error: float | None) -> float | str:
    return NOT_AVAILABLE if error is None else error


def _scale(numbers: Sequence[float], mean: float, value: float) -> float:
    """Return 1 for an aggregate on the documents' scale, 100 for their mean in percent, else 0 (no CLT error)."""
    if not numbers or not math.isfinite(value):
        return 0.0
    if math.isclose(value, 100 * mean, rel_tol=1e-9) and not math.isclose(value, mean, rel_tol=1e-9):
        return 100.0
    slack = 1e-9 * max(1.0, abs(value))
    return 1.0 if min(numbers) - slack <= value <= max(numbers) + slack else 0.0


def mean_over_lists(parts: Sequence[tuple[float, Certainty, int]]) -> Certainty:
    """Return the interval of a plain mean over tasks, from their intervals over their whole lists.

    The tasks' documents are drawn independently. If several tasks were asked in part, each end is longer by 1.75 of the
    documents asked, as for strata (``stats.finite``).

    Args:
        parts: value, interval over the list, and number of scored documents of each task.
    """
    from lmms_eval.stats.finite import CONTINUITY, combined_interval

    found: list[tuple[float, float, stats.Interval]] = []
    steps: list[float] = []
    for value, certainty, n in parts:
        if certainty.interval is None:
            return Certainty(no_interval="a task has no interval over its list")
        found.append((1 / len(parts), float(value), certainty.interval))
        if certainty.interval.low < certainty.interval.high:
            steps.append((certainty.score_range.high - certainty.score_range.low) / max(1, n))
    more = CONTINUITY * math.fsum(steps) / len(steps) / len(parts) if len(steps) > 1 else 0.0
    return Certainty(combined_interval(found, more)[1])
