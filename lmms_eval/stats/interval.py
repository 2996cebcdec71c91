"""Standard errors, Student's t, and the interval of a score by the project's one rule (``docs/statistics.md``).

``MeanSpread`` describes the error of a mean over documents, clusters of documents, or other means. ``score_interval``
computes the interval from it, within the range of the score.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace as with_fields

from lmms_eval.errors import UsageError
from lmms_eval.stats.bounded import gaffke_limits
from lmms_eval.utils.numbers import SHARES, ScoreRange, item_number


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _squared_deviations(values: Sequence[float]) -> float:
    if values and min(values) == max(values):
        return 0.0  # their rounded mean may differ from them
    centre = _mean(values)
    return math.fsum((value - centre) ** 2 for value in values)


def pop_stddev(values: Sequence[float]) -> float:
    """Standard deviation with denominator n; NaN for no values."""
    return math.sqrt(_squared_deviations(values) / len(values)) if values else math.nan


def sample_stddev(values: Sequence[float]) -> float:
    """Standard deviation with denominator n − 1; NaN for fewer than two values."""
    return math.sqrt(_squared_deviations(values) / (len(values) - 1)) if len(values) > 1 else math.nan


def mean_stderr(values: Sequence[float]) -> float:
    """Standard error of the mean by the central limit theorem: sample deviation / √n; NaN for n < 2."""
    return sample_stddev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def clustered_stderr(values: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """Standard error of the mean of values that come in clusters of related items.

    SE² = s²/n + (1/n²) Σ_c [(Σ_i d_ic)² − Σ_i d_ic²] with d the deviations from the mean and s² with n − 1
    (Miller 2024, "Adding error bars to evals", eq. 4). For negatively correlated clusters the right side can be
    negative and counts as 0. NaN for n < 2.

    Raises:
        UsageError: not one cluster for each value.
    """
    if len(values) != len(clusters):
        raise UsageError(f"clustered error: {len(values)} values but {len(clusters)} cluster ids; give one for each")
    n = len(values)
    if n < 2:
        return math.nan
    centre = _mean(values)
    deviations: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        deviations.setdefault(cluster, []).append(value - centre)
    covariance = math.fsum(math.fsum(d) ** 2 - math.fsum(x * x for x in d) for d in deviations.values())
    return math.sqrt(max(0.0, _squared_deviations(values) / (n - 1) / n + covariance / n**2))


class ItemErrors(Struct, frozen=True):
    """Errors of a mean over per-document values; ``None`` for an error that is not defined."""

    clt: float | None
    clustered: float | None


def item_errors(
    items: Iterable[Any], cluster_key: str | None = None, score_key: str = "score", scale: float = 1.0
) -> ItemErrors:
    """CLT and clustered error of the per-document values of a metric.

    Items without a number are left out. The clustered error is defined for mappings with more than one distinct cluster
    id; items without an id form one cluster. ``scale`` is 100 if the aggregate is in percent and the values are
    fractions.
    """
    numbers: list[float] = []
    kept: list[Any] = []
    for item in items:
        number = item_number(item, score_key)
        if number is not None:
            numbers.append(number)
            kept.append(item)
    if len(numbers) < 2:
        return ItemErrors(None, None)
    clt = mean_stderr(numbers) * scale
    if not cluster_key or not all(isinstance(item, Mapping) for item in kept):
        return ItemErrors(clt, None)
    clusters = [item.get(cluster_key) for item in kept]
    if len({cluster for cluster in clusters if cluster is not None}) < 2:
        return ItemErrors(clt, None)
    return ItemErrors(clt, clustered_stderr(numbers, clusters) * scale)


def _check_lengths(*parts: Sequence[float]) -> None:
    if len({len(part) for part in parts}) != 1:
        raise UsageError(f"group: lists of {', '.join(str(len(p)) for p in parts)} numbers; give one for each part")


def aggregate_subtask_metrics(metrics: Sequence[float], sizes: Sequence[float], weight_by_size: bool = True) -> float:
    """Σ m_i w_i / Σ w_i with w the sizes, or 1 each; NaN for no parts or no weight."""
    _check_lengths(metrics, sizes)
    weights = sizes if weight_by_size else [1] * len(metrics)
    total = math.fsum(weights)
    return math.fsum(m * w for m, w in zip(metrics, weights, strict=True)) / total if total else math.nan


def pooled_sample_stderr(stderrs: Sequence[float], sizes: Sequence[float]) -> float:
    """Error of the size-weighted mean: √(Σ (n_i − 1) n_i se_i² / (Σ n_i − k) / Σ n_i).

    NaN if no part has more than one sample.
    """
    _check_lengths(stderrs, sizes)
    total, freedom = math.fsum(sizes), math.fsum(sizes) - len(sizes)
    if freedom <= 0:
        return math.nan
    squares = math.fsum((n - 1) * n * se * se for n, se in zip(sizes, stderrs, strict=True))
    return math.sqrt(squares / freedom / total)


def combined_sample_stderr(stderrs: Sequence[float], sizes: Sequence[float], metrics: Sequence[float]) -> float:
    """Error that includes the spread between the parts, which are combined one after the other.

    With (v, m) so far and the next part (se, n, x), N the size of the first part:
    m ← (N m + n x)/(N + n); v ← ((N − 1) v + (n − 1) se²)/(N + n − 1) + N n (m − x)²/((N + n)(N + n − 1)).
    Kept for existing callers; groups use ``pooled_sample_stderr`` or ``unweighted_group_stderr``.
    """
    _check_lengths(stderrs, sizes, metrics)
    if not stderrs:
        return math.nan
    first, variance, centre = sizes[0], stderrs[0] ** 2, metrics[0]
    for se, n, value in zip(stderrs[1:], sizes[1:], metrics[1:], strict=True):
        both = first + n
        centre = (centre * first + value * n) / both
        within = ((first - 1) * variance + (n - 1) * se * se) / (both - 1)
        variance = within + first * n / (both * (both - 1)) * (centre - value) ** 2
    return math.sqrt(variance)


def unweighted_group_stderr(stderrs: Sequence[float]) -> float:
    """Error of the plain mean over k independent parts: √(Σ se²)/k; NaN for no parts."""
    return math.sqrt(math.fsum(se * se for se in stderrs)) / len(stderrs) if stderrs else math.nan


_TINY = 1e-300
_MAX_STEPS = 100_000


def _half_gamma_ratio(a: float) -> float:
    """Γ(a + ½)/Γ(a), by its asymptotic series for large a (the difference of log-gammas would lose digits)."""
    if a < 50:
        return math.exp(math.lgamma(a + 0.5) - math.lgamma(a))
    x = 1.0 / a
    series = 1 - x / 8 + x**2 / 128 + 5 * x**3 / 1024 - 21 * x**4 / 32768 - 399 * x**5 / 262144
    return math.sqrt(a) * (series + 869 * x**6 / 4194304)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    result = d
    for m in range(1, _MAX_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for numerator in (even, odd):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + numerator / c
            c = c if abs(c) > _TINY else _TINY
            step = c * d
            result *= step
        if abs(step - 1.0) < 1e-16:
            break
    return result


def two_sided_p(t: float, df: float) -> float:
    """P(|T| ≥ |t|) for T with ``df`` degrees of freedom.

    The relative error is below 1e-12, or below 1e-9 for |t| > 3 with more than 10,000 degrees of freedom.

    Raises:
        UsageError: ``df`` is not positive.
    """
    if not df > 0:
        raise UsageError(f"Student's t: {df} degrees of freedom; needs more than 0")
    if math.isnan(t):
        return math.nan
    if t == 0.0:
        return 1.0
    if math.isinf(t) or math.isinf(t * t):
        return 0.0
    a, square = df / 2, t * t
    x, rest = df / (df + square), square / (df + square)
    front = math.exp(-a * math.log1p(square / df)) * math.sqrt(rest) * _half_gamma_ratio(a) / math.sqrt(math.pi)
    if x < (a + 1) / (a + 2.5) and (df < 100 or square > 9):  # with many degrees x is near 1 and carries few digits
        return min(1.0, front * _beta_fraction(a, 0.5, x) / a)
    return max(0.0, 1.0 - front * _beta_fraction(0.5, a, rest) / 0.5)


def t_cdf(t: float, df: float) -> float:
    """P(T ≤ t)."""
    tail = two_sided_p(t, df) / 2
    return 1.0 - tail if t > 0 else tail


def t_ppf(q: float, df: float) -> float:
    """Quantile: t with P(T ≤ t) = q, to about 1e-12 (relative).

    Raises:
        UsageError: ``q`` does not lie between 0 and 1, or ``df`` is not positive.
    """
    if not 0.0 < q < 1.0:
        raise UsageError(f"Student's t: quantile of {q}; give a probability between 0 and 1")
    if q == 0.5:
        return 0.0
    tail = min(q, 1.0 - q)
    low, high = 0.0, max(1.0, -NormalDist().inv_cdf(tail))
    while two_sided_p(high, df) / 2 > tail:
        low, high = high, high * 2
    t = high
    for _ in range(200):
        excess, density = two_sided_p(t, df) / 2 - tail, _density(t, df)
        if abs(excess) <= 1e-15 * tail:
            break
        low, high = (t, high) if excess > 0 else (low, t)
        newton = t + (excess / density if density else math.nan)
        following = newton if low < newton < high else (low + high) / 2
        if abs(following - t) <= 1e-15 * t:
            break
        t = following
    return t if q > 0.5 else -t


def _density(t: float, df: float) -> float:
    shape = math.exp(-(df + 1) / 2 * math.log1p(t * t / df))
    return shape * _half_gamma_ratio(df / 2) / math.sqrt(math.pi * df)


MANY = 30
"""Least number of documents for the normal quantile."""
ANY_NUMBER = ScoreRange()
_ROUNDING = 1e-12
"""Squares with a smaller relative difference are equal."""
_FEW_GRADED, _SKEWED_GRADED = 50, 200
_LARGEST_CLUSTER, _MOST_OF_VARIANCE = 0.3, 0.5
_UNEVEN = 1.1
"""A largest cluster of up to so many times the mean size does not dominate."""
_NO_SPREAD = 1e-9
"""An error below this share of the range is due to rounding: all scores are equal."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval in the units of the score, with the method that computed it."""

    low: float
    """Lower end."""
    high: float
    """Upper end."""
    method: str
    """``wilson``, ``t``, ``bootstrap percentile`` and the like."""

    @property
    def estimand(self) -> Estimand:
        """Quantity that the interval holds: ``BENCHMARK`` if it becomes a point when all documents are asked."""
        return BENCHMARK if self.method.removesuffix(WITH_ANCHORS) in _OF_A_LIST else GENERALISED


Estimand = Literal["benchmark accuracy", "generalised accuracy"]
BENCHMARK: Final = "benchmark accuracy"
"""The score over all documents of this list (NIST AI 800-3)."""
GENERALISED: Final = "generalised accuracy"
"""The expected score over documents like these; the list is a sample of them (NIST AI 800-3)."""
COMBINED: Final = "combined strata"
"""Method of ``stats.finite.combined_interval``."""
_OF_A_LIST = frozenset({"betting", "empirical bernstein", COMBINED})
"""Methods for documents drawn from a list without replacement."""
WITH_ANCHORS: Final = " with anchors"
"""End of the name of such a method if the scores of earlier runs were subtracted first (``--anchors``)."""


class NoInterval(Struct, frozen=True):
    """The reason why the data do not allow an interval."""

    reason: str


class MeanSpread(Struct, frozen=True):
    """The components of the interval of a mean."""

    error: float
    """Standard error, in the units of the score; NaN if it is not defined."""
    freedom: float
    """Degrees of freedom of the error."""
    size: float
    """Number of independently drawn parts: documents, or clusters. For a mean of strata, the size of a plain sample
    with the same information if all strata were alike."""
    is_binary: bool = False
    """Every score is at one end of the range: right or wrong."""
    is_mean: bool = True
    """The score is a mean. The spread of other statistics is not bounded by the range."""
    silent: float = 0.0
    """The share of 1/n from parts whose scores are all equal and so give no information about their spread: 1/size or 0
    for a plain sample, Σ w² silent for strata."""
    dominant: float = 0.0
    """Share of the documents in a cluster that is so large that no interval holds; else 0."""
    graded: Sequence[float] = ()
    """Scores that are not right or wrong, if they are too few or too skewed for an interval by their error; of
    documents in clusters the means of the clusters."""
    sizes: Sequence[int] = ()
    """Numbers of documents of these clusters; empty without clusters."""

    @classmethod
    def of_scores(cls, scores: Sequence[float], within: ScoreRange = ANY_NUMBER) -> MeanSpread:
        """Return the spread of the mean of independently drawn documents."""
        n = len(scores)
        is_bounded = math.isfinite(within.high - within.low)
        is_binary = is_bounded and all(x in (within.low, within.high) for x in scores)
        freedom = variance_freedom(scores) if is_bounded and not is_binary else n - 1
        error = mean_stderr(scores)
        graded = tuple(scores) if is_bounded and not is_binary and needs_bound(n, freedom) else ()
        return cls(error, freedom, n, is_binary, silent=0.0 if error > 0 else 1 / max(1, n), graded=graded)

    @classmethod
    def of_moments(cls, count: int, total: float, squares: float, within: ScoreRange) -> MeanSpread:
        """Return the same from the number, sum and sum of squares of scores ``within`` a range with two ends."""
        if count < 2:
            return cls(math.nan, count - 1, count, silent=1.0)
        inside = (within.low + within.high) * total - squares - within.low * within.high * count
        deviations = squares - total * total / count
        error = math.sqrt(deviations / (count - 1) / count) if deviations > _ROUNDING * squares else 0.0
        is_binary = inside <= _NO_SPREAD * count * (within.high - within.low) ** 2
        return cls(error, count - 1, count, is_binary, silent=0.0 if error > 0 else 1 / count)

    @classmethod
    def clustered(
        cls, scores: Sequence[float], clusters: Sequence[Hashable], within: ScoreRange = ANY_NUMBER
    ) -> MeanSpread:
        """Return the spread of the mean of documents in independently drawn clusters.

        Clusters of sizes m count as (Σ m)² / Σ m² clusters of one size. The variance of the mean is the larger one of
        two estimates. Leaving out one cluster after the other needs no assumption, but sees nothing if the few large
        clusters happen to agree. The other assumes that documents of a cluster are equally correlated whatever its
        size: s² (ρ Σ m² / n² + (1 − ρ) / n), with the intraclass correlation ρ by analysis of variance (Donner 1986,
        "A review of inference procedures for the intraclass correlation coefficient", International Statistical
        Review 54).
        """
        members: dict[Hashable, list[float]] = {}
        for score, cluster in zip(scores, clusters, strict=True):
            members.setdefault(cluster, []).append(score)
        n, count = len(scores), len(members)
        mean = math.fsum(scores) / n
        sizes = [len(each) for each in members.values()]
        sums = [math.fsum(score - mean for score in each) for each in members.values()]
        squares = math.fsum((score - mean) ** 2 for score in scores)
        effective = n * n / sum(size * size for size in sizes)
        if largest := dominant_share(max(sizes), n, count, effective):
            return cls(math.nan, count - 1, count, dominant=largest)
        if count < 2 or min(scores) == max(scores):
            return cls(math.nan if count < 2 else 0.0, count - 1, effective, silent=1 / effective)
        moved = [total / (n - size) for total, size in zip(sums, sizes, strict=True)]
        centre = math.fsum(moved) / count
        left_out = (count - 1) / count * math.fsum((each - centre) ** 2 for each in moved)
        between = math.fsum(total * total / size for total, size in zip(sums, sizes, strict=True))
        alike, freedom = exchangeable_variance(squares, between, n, count, effective)
        is_unanimous = all(min(each) == max(each) for each in members.values())
        by_kurtosis = count - 1 if is_unanimous else variance_freedom(sums)
        by_size = freedom if alike > left_out else effective - 1
        error = math.sqrt(max(left_out, alike))
        found = cls(error, min(by_kurtosis, by_size), effective, silent=0.0 if error > 0 else 1 / effective)
        is_graded = math.isfinite(within.high - within.low) and any(x not in (within.low, within.high) for x in scores)
        if not (is_graded and needs_bound(count, by_kurtosis)):
            return found
        means = tuple(math.fsum(each) / len(each) for each in members.values())
        return with_fields(found, graded=means, sizes=tuple(sizes))

    @classmethod
    def stratified(cls, parts: Sequence[MeanSpread], weights: Sequence[float]) -> MeanSpread:
        """Return the spread of a weighted mean of means, each over documents drawn within its own part.

        The error is √(Σ w² se²) with weights that sum to 1, its degrees of freedom Satterthwaite's (1946, "An
        approximate distribution of estimates of variance components", Biometrics Bulletin 2). A part of one document
        gets the mean variance of a document of the others.
        """
        if len(parts) == 1:
            return parts[0]
        largest = max(part.dominant for part in parts)
        known = [part.error**2 * part.size for part in parts if not math.isnan(part.error)]
        usual = math.fsum(known) / len(known) if known else math.nan
        squares, ratios, sizes, silent = [], [], [], []
        for part, weight in zip(parts, weights, strict=True):
            share = weight / math.fsum(weights)
            alone = math.isnan(part.error)
            square = share**2 * (usual / part.size if alone else part.error**2)
            squares.append(square)
            ratios.append(0.0 if alone or part.freedom <= 0 else square**2 / part.freedom)
            sizes.append(share**2 / part.size)
            silent.append(0.0 if alone and known else share**2 * part.silent)
        total, below = math.fsum(squares), math.fsum(ratios)
        freedom = total**2 / below if below > 0 else math.inf
        are_means = all(part.is_mean for part in parts)
        size = 1 / math.fsum(sizes)
        return cls(math.sqrt(total), freedom, size, is_mean=are_means, silent=math.fsum(silent), dominant=largest)


def needs_bound(n: int, freedom: float) -> bool:
    """Return whether graded scores get Gaffke's bound: they are few, or a few outliers make most of their variance."""
    return 1 < n < _FEW_GRADED or (freedom < MANY - 1 and n < _SKEWED_GRADED)


def dominant_share(largest: int, n: int, clusters: int, effective: float) -> float:
    """Return the share of ``n`` documents in the largest cluster if it is too large for an interval, else 0.

    It is too large above 30 %, or if it makes more than half of the variance of clusters whose documents are alike
    (size² / Σ size², with Σ size² = n² / ``effective``), unless all clusters are of nearly the same size: whether it is
    right or wrong then decides the mean alone.
    """
    share = largest / n
    is_large = share > _LARGEST_CLUSTER or share * share * effective > _MOST_OF_VARIANCE
    return share if clusters > 1 and is_large and share > _UNEVEN / clusters else 0.0


def exchangeable_variance(squares: float, between: float, n: int, count: int, effective: float) -> tuple[float, float]:
    """Return the variance of a mean if documents of a cluster are equally correlated, and its degrees of freedom.

    Args:
        squares: sum of the squared deviations of all scores from the mean.
        between: sum over the clusters of (sum of the deviations)² / size.
        n: documents.
        count: clusters, at least two.
        effective: number of clusters of one size with the same information, n² / Σ size².
    """
    among = between / (count - 1)
    inside = max(0.0, squares - between) / (n - count) if n > count else 0.0
    usual_size = n * (1 - 1 / effective) / (count - 1)
    whole = among + (usual_size - 1) * inside
    correlation = min(1.0, max(0.0, (among - inside) / whole)) if whole > 0 else 0.0
    variance = squares / (n - 1)
    of_clusters, of_documents = variance * correlation / effective, variance * (1 - correlation) / n
    below = of_clusters**2 / (effective - 1) + (of_documents**2 / (n - count) if n > count else 0.0)
    total = of_clusters + of_documents
    return total, total**2 / below if below > 0 else count - 1


def range_of_scores(scores: Sequence[float], stated: ScoreRange | None) -> ScoreRange:
    """Return the range of documents' scores: the stated one if it contains them, else the range of any number.

    If no range is stated and all scores are 0 or 1, it is the range of right-or-wrong scores.
    """
    if stated is not None and scores and min(scores) in stated and max(scores) in stated:
        return stated
    is_right_or_wrong = stated is None and scores and set(scores) <= {0.0, 1.0}
    return SHARES if is_right_or_wrong else ANY_NUMBER


def score_interval(
    value: float, spread: MeanSpread, within: ScoreRange = ANY_NUMBER, level: float = 0.95
) -> Interval | NoInterval:
    """Compute the interval of a score by the project's rule.

    Within a range with two ends it is Wilson's: for 0/1 scores with their number n, for others with the effective size
    that gives their standard error, and with the t quantile if that rests on fewer than 30 documents. It is never wider
    than the interval of 0/1 scores. Few or very skewed graded scores get Gaffke's bound instead. Within a range with
    one end it is the score interval of a mean whose variance is proportional to its distance from that end: the limit
    of Wilson's when the other end moves away. Without ends it is value ± quantile · error.

    Args:
        value: the score.
        spread: its spread, in the units of the score.
        within: the range of the score.
        level: probability that such an interval contains the true score.
    """
    _z(level)
    if spread.dominant:
        return NoInterval(f"one cluster holds {spread.dominant:.0%} of the documents")
    if spread.size < 2:
        return NoInterval("n = 1")
    if math.isnan(value):
        return NoInterval("the score is not a number (nan)")
    if value not in within:
        return NoInterval(f"the score lies outside of its range, {within}")
    width = within.high - within.low
    is_bounded = spread.is_mean and math.isfinite(width)
    if not is_bounded and not spread.error > _NO_SPREAD * abs(value):
        return NoInterval("no standard error" if math.isnan(spread.error) else "no spread")
    if math.isfinite(width) and spread.graded:
        limits = gaffke_limits(spread.graded, within, level, spread.sizes)
        return Interval(*limits, "gaffke, clusters" if spread.sizes else "gaffke")
    if math.isfinite(width):
        return _within_two_ends(min(1.0, max(0.0, (value - within.low) / width)), spread, within, level)
    if math.isfinite(within.low):
        near, far = _beyond_one_end(value - within.low, spread, level)
        return Interval(within.low + near, within.low + far, "score")
    if math.isfinite(within.high):
        near, far = _beyond_one_end(within.high - value, spread, level)
        return Interval(within.high - far, within.high - near, "score")
    half = quantile(spread.freedom, level) * spread.error
    return Interval(value - half, value + half, "normal" if spread.freedom >= MANY - 1 else "t")


@functools.lru_cache(maxsize=1024)
def quantile(freedom: float, level: float = 0.95) -> float:
    """Two-sided quantile: Student's t below 30 documents, the normal quantile from there (1.96 for 95 %)."""
    return _z(level) if freedom >= MANY - 1 else t_ppf(0.5 + level / 2, max(1.0, freedom))


def variance_freedom(values: Sequence[float]) -> float:
    """Degrees of freedom of a variance that a few outliers dominate: 2n / (kurtosis − 1), from 2 to n − 1.

    The variance of a sample variance s² is about s⁴ (kurtosis − 1) / n; with f degrees of freedom it is s⁴ · 2 / f.
    """
    n = len(values)
    mean = math.fsum(values) / n
    largest = max(abs(value - mean) for value in values)
    if largest == 0:
        return n - 1
    squares = [((value - mean) / largest) ** 2 for value in values]
    kurtosis = n * math.fsum(square * square for square in squares) / math.fsum(squares) ** 2
    return min(n - 1, max(2.0, 2 * n / (kurtosis - 1))) if kurtosis > 1 else n - 1


def _within_two_ends(share: float, spread: MeanSpread, within: ScoreRange, level: float) -> Interval:
    width = within.high - within.low
    found = plain = _share_interval(share, spread.size, _z(level), level)
    error = spread.error / width
    # Equal scores give no information about their spread: assume the spread of right-or-wrong scores.
    unseen = math.sqrt(share * (1 - share) * spread.silent)
    if not spread.is_binary and 0 < share < 1 and (error > 0 or unseen > 0):
        is_seen = error > unseen
        n = share * (1 - share) / error**2 if is_seen else 1 / spread.silent
        found = _share_interval(share, n, quantile(spread.freedom, level) if is_seen else _z(level), level)
        found = replace(found, method=f"{found.method}, effective n")
    if spread.is_mean and plain.high - plain.low < found.high - found.low:
        found = plain  # no scores within the range spread more than right-or-wrong scores of the same mean
    return Interval(within.low + width * found.low, within.low + width * found.high, found.method)


def _share_interval(share: float, n: float, q: float, level: float) -> Interval:
    """Interval within 0 and 1 for a share of n."""
    square = q * q
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = q / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    low, high = min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half))  # Wilson's
    rare, common = _rare_limit(share * n, n, 1 - level) / n, 1 - _rare_limit((1 - share) * n, n, 1 - level) / n
    if 0 < share < 1 and (rare < low or common > high):
        return Interval(min(low, rare), max(high, common), "modified wilson")
    return Interval(low, high, "wilson")


def _rare_limit(count: float, n: float, alpha: float) -> float:
    """Poisson limit that replaces Wilson's for 1 to 3 successes, since Wilson's covers the share in only 84 % there.

    It applies to up to 2 successes of up to 50, else to 3 (Brown, Cai and DasGupta 2001, "Interval estimation for a
    binomial proportion", Statistical Science 16, section 4.1.1); infinite for other counts.
    """
    most = 2.5 if n <= 50 else 3.5  # halfway, since an effective size gives fractional numbers of successes
    return _poisson_limit(count, alpha) if 0 < count < most else math.inf


def _poisson_limit(count: float, alpha: float) -> float:
    """Half the χ² quantile of ``alpha`` with 2 · ``count`` degrees: the mean that exceeds ``count`` this rarely."""
    low, high = 0.0, count
    for _ in range(60):
        middle = (low + high) / 2
        if _gamma_share(count, middle) < alpha:
            low = middle
        else:
            high = middle
    return high


def _gamma_share(a: float, x: float) -> float:
    """Regularised incomplete gamma function P(a, x) by its series (DLMF 8.7.1), for x up to a."""
    if x <= 0:
        return 0.0
    term = total = 1.0 / a
    k = a
    while term > 1e-17 * total:
        k += 1
        term *= x / k
        total += term
    return total * math.exp(a * math.log(x) - x - math.lgamma(a))


def _beyond_one_end(distance: float, spread: MeanSpread, level: float) -> tuple[float, float]:
    """Return the two m above 0 with |distance − m| = quantile · error · √(m / distance)."""
    half = quantile(spread.freedom, level) * spread.error
    if distance <= 0:
        return 0.0, half
    middle = distance + half * half / (2 * distance)
    reach = math.sqrt(max(0.0, middle * middle - distance * distance))
    count = (distance / spread.error) ** 2
    rare = distance * _rare_limit(count, math.inf, 1 - level) / count
    return min(distance * distance / (middle + reach), rare), middle + reach


def _z(level: float) -> float:
    if not 0 < level < 1:
        raise UsageError(f"interval: level {level}; give a probability between 0 and 1, such as 0.95")
    return 1.96 if level == 0.95 else NormalDist().inv_cdf(0.5 + level / 2)
