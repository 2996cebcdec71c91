"""A judge held against human scores: how far they agree, and the mean corrected for the judge's bias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval.errors import UsageError
from lmms_eval.stats.agreement import cosine, covariance, pearson
from lmms_eval.stats.error import sample_stddev
from lmms_eval.stats.interval import ANY_NUMBER, Interval, Spread, score_interval
from lmms_eval.utils.numbers import ScoreRange


@dataclass(frozen=True, slots=True)
class HumanAgreement:
    """Four measures of a judge against people over the same items; ``None`` where one is not defined."""

    n: int
    pearson: float | None
    cosine: float | None
    mse: float | None
    """Mean squared difference."""
    mae: float | None
    """Mean absolute difference."""
    bias: float | None
    """Mean of judge − human."""


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """A mean corrected for the judge's bias."""

    value: float
    stderr: float
    interval: Interval | None
    """``None`` where the mean or its error gives none."""
    weight: float
    """λ: how far the judge is relied on, from 0 (the human scores alone) to 1."""
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
    """The mean human score, from many scores by the judge and few by people: prediction-powered inference.

    θ = λ mean(f(unlabelled)) + mean(Y − λ f(labelled)), with the error
    √(λ² Var f(unlabelled)/N + Var(Y − λ f(labelled))/n) (Angelopoulos et al. 2023, "Prediction-powered inference",
    Science 382), and λ = Cov(Y, f) / ((1 + n/N) Var f) within 0 … 1, by which a poor judge does no harm (Angelopoulos,
    Duchi and Zrnic 2023, "PPI++"). The interval is that of the project's rule, with n − 1 degrees of freedom. People
    must have scored a random part of the items.

    Args:
        judged: the judge's scores of the N items that people did not score.
        judge: its scores of the n items that people scored.
        human: theirs.
        within: what a score can be.
        level: of the interval.

    Returns:
        ``None`` for fewer than two items with human scores, or none without.

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
    found = score_interval(value, Spread(error, few - 1, few), within, level)
    return CorrectedMean(value, error, found if isinstance(found, Interval) else None, weight, many, few)
