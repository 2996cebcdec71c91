"""Agreement of repeated scores: between repeats of a judge, between two judges, between a judge and people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from lmms_eval.errors import UsageError
from lmms_eval.stats.interval import ANY_NUMBER, Interval, MeanSpread, pop_stddev, sample_stddev, score_interval
from lmms_eval.utils.numbers import ScoreRange

Scores = Sequence[Sequence[float]]


class Stability(Struct, frozen=True):
    """Expected accuracy, consensus accuracy, internal variance and consistency rate of repeated answers."""

    expected_accuracy: float
    consensus_accuracy: float
    internal_variance: float
    consistency_rate: float


def expected_accuracy(scores: Scores) -> float:
    """Mean over all answers; NaN without answers."""
    flat = [score for question in scores for score in question]
    return math.fsum(flat) / len(flat) if flat else math.nan


def consensus_accuracy(scores: Scores) -> float:
    """Share of questions with more than half of the answers right; a tie or no answer counts as wrong."""
    if not scores:
        return math.nan
    return sum(bool(question) and math.fsum(question) > len(question) / 2 for question in scores) / len(scores)


def internal_variance(scores: Scores) -> float:
    """Mean sample variance over the questions with two answers or more; NaN without such questions."""
    variances = [sample_stddev(question) ** 2 for question in scores if len(question) > 1]
    return math.fsum(variances) / len(variances) if variances else math.nan


def consistency_rate(scores: Scores) -> float:
    """Share of questions whose answers all have the same score; a question needs an answer. NaN without questions."""
    if not scores:
        return math.nan
    return sum(len(set(question)) == 1 for question in scores) / len(scores)


def stability(scores: Scores) -> Stability:
    """Compute all four measures; each answer must have been scored alone."""
    return Stability(
        expected_accuracy(scores), consensus_accuracy(scores), internal_variance(scores), consistency_rate(scores)
    )


def weighted_kappa(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Cohen's κ with quadratic weights, of two raters who scored the same items.

    κ = 1 − Σ w_ij o_ij / Σ w_ij e_ij with w_ij = (i − j)², o the observed shares of pairs of scores and e those of
    independent raters with the same margins (Cohen 1968, "Weighted kappa", Psychological Bulletin 70). ``None`` if it
    is not defined: no items, or both raters gave all items the same score.

    Raises:
        UsageError: the two lists differ in length.
    """
    _check_pairs("weighted kappa", first, second)
    n = len(first)
    if not n:
        return None
    observed = math.fsum((a - b) ** 2 for a, b in zip(first, second, strict=True)) / n
    shift = math.fsum(first) / n - math.fsum(second) / n
    expected = pop_stddev(first) ** 2 + pop_stddev(second) ** 2 + shift**2
    return 1.0 - observed / expected if expected > 0 else None


def krippendorff_alpha(units: Sequence[Sequence[float | None]]) -> float | None:
    """Krippendorff's α for interval data: items by raters, with ``None`` for a missing score.

    α = 1 − D_o / D_e, with D_o = (1/n) Σ_u Σ_{i≠j} (x_ui − x_uj)² / (m_u − 1) over the items with m_u ≥ 2 scores and
    D_e = Σ_{i≠j} (x_i − x_j)² / (n (n − 1)) over all n scores of these items (Krippendorff 2004, "Content Analysis",
    chapter 11). ``None`` if it is not defined: no item with two scores, or all scores equal.
    """
    rated = [scores for unit in units if len(scores := [score for score in unit if score is not None]) > 1]
    pooled = [score for scores in rated for score in scores]
    n = len(pooled)
    if not n:
        return None
    observed = math.fsum(_pair_squares(scores) / (len(scores) - 1) for scores in rated) / n
    expected = _pair_squares(pooled) / (n * (n - 1))
    return 1.0 - observed / expected if expected > 0 else None


def pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's correlation; ``None`` for fewer than two items, or if one side does not vary.

    Raises:
        UsageError: the two lists differ in length.
    """
    _check_pairs("correlation", first, second)
    spread = pop_stddev(first) * pop_stddev(second) if len(first) > 1 else 0.0
    return max(-1.0, min(1.0, covariance(first, second) / spread)) if spread > 0 else None


def covariance(first: Sequence[float], second: Sequence[float]) -> float:
    """Covariance with denominator n; NaN for no items."""
    n = len(first)
    if not n:
        return math.nan
    centre, other = math.fsum(first) / n, math.fsum(second) / n
    return math.fsum((a - centre) * (b - other) for a, b in zip(first, second, strict=True)) / n


def cosine(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Cosine of the angle between two lists of scores as vectors; ``None`` if one of them is all 0.

    Raises:
        UsageError: the two lists differ in length.
    """
    _check_pairs("cosine", first, second)
    size = math.sqrt(math.fsum(a * a for a in first)) * math.sqrt(math.fsum(b * b for b in second))
    return math.fsum(a * b for a, b in zip(first, second, strict=True)) / size if size > 0 else None


def _pair_squares(scores: Sequence[float]) -> float:
    """Σ (x_i − x_j)² over ordered pairs i ≠ j: 2 m Σ (x − mean)²."""
    return 2 * len(scores) ** 2 * pop_stddev(scores) ** 2


def _check_pairs(what: str, first: Sequence[float], second: Sequence[float]) -> None:
    if len(first) != len(second):
        raise UsageError(f"{what}: {len(first)} scores against {len(second)}; give both for the same items")


class HumanAgreement(Struct, frozen=True):
    """Measures of a judge against people over the same items; ``None`` for a measure that is not defined."""

    n: int
    """Number of items."""
    pearson: float | None
    """Pearson's correlation."""
    cosine: float | None
    """Cosine of the angle between the scores of judge and people."""
    mse: float | None
    """Mean squared difference."""
    mae: float | None
    """Mean absolute difference."""
    bias: float | None
    """Mean of judge − human."""


class CorrectedMean(Struct, frozen=True):
    """A mean corrected for the judge's bias."""

    value: float
    stderr: float
    interval: Interval | None
    """``None`` if the mean or its error does not allow an interval."""
    weight: float
    """λ: the weight of the judge's scores, from 0 (only the human scores count) to 1."""
    n_judged: int
    """Items that only the judge scored."""
    n_human: int


def human_agreement(judge: Sequence[float], human: Sequence[float]) -> HumanAgreement:
    """Compare scores of the same items. Raises ``UsageError`` if the lists differ in length."""
    correlation, angle = pearson(judge, human), cosine(judge, human)
    differences = [a - b for a, b in zip(judge, human, strict=True)]
    n = len(differences)
    return HumanAgreement(
        n=n,
        pearson=correlation,
        cosine=angle,
        mse=math.fsum(d * d for d in differences) / n if n else None,
        mae=math.fsum(abs(d) for d in differences) / n if n else None,
        bias=math.fsum(differences) / n if n else None,
    )


def corrected_mean(
    judged: Sequence[float],
    judge: Sequence[float],
    human: Sequence[float],
    within: ScoreRange = ANY_NUMBER,
    level: float = 0.95,
) -> CorrectedMean | None:
    """Estimate the mean human score from many scores by the judge and few by people: prediction-powered inference.

    θ = λ mean(f(unlabelled)) + mean(Y − λ f(labelled)), with the error
    √(λ² Var f(unlabelled)/N + Var(Y − λ f(labelled))/n) (Angelopoulos et al. 2023, "Prediction-powered inference",
    Science 382), and λ = Cov(Y, f) / ((1 + n/N) Var f) within 0 … 1, so that a poor judge does no harm (Angelopoulos,
    Duchi and Zrnic 2023, "PPI++"). The interval follows the project's rule, with n − 1 degrees of freedom. The items
    that people scored must be a random part of all.

    Args:
        judged: the judge's scores of the N items that people did not score.
        judge: the judge's scores of the n items that people scored.
        human: people's scores of these n items.
        within: the range of a score.
        level: the level of the interval.

    Returns:
        ``None`` if fewer than two items have human scores, or all of them have.

    Raises:
        UsageError: ``judge`` and ``human`` differ in length.
    """
    if len(judge) != len(human):
        raise UsageError(f"corrected mean: {len(judge)} scores of the judge against {len(human)} of people")
    many, few = len(judged), len(human)
    if few < 2 or not many:
        return None
    variance = sample_stddev([*judged, *judge]) ** 2
    weight = covariance(human, judge) / ((1 + few / many) * variance) if variance > 0 else 1.0
    weight = max(0.0, min(1.0, weight))
    rest = [y - weight * f for y, f in zip(human, judge, strict=True)]
    value = weight * math.fsum(judged) / many + math.fsum(rest) / few
    spread = sample_stddev(judged) if many > 1 else 0.0
    error = math.sqrt(weight**2 * spread**2 / many + sample_stddev(rest) ** 2 / few)
    found = score_interval(value, MeanSpread(error, few - 1, few), within, level)
    return CorrectedMean(value, error, found if isinstance(found, Interval) else None, weight, many, few)
