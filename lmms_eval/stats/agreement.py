"""Agreement of scores given twice: between repeats of a judge, between two judges, between a judge and people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmms_eval.errors import UsageError
from lmms_eval.stats.error import pop_stddev


def weighted_kappa(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Cohen's κ with quadratic weights, of two raters who scored the same items.

    κ = 1 − Σ w_ij o_ij / Σ w_ij e_ij with w_ij = (i − j)², o the observed shares of pairs of scores and e those of
    independent raters with the same margins (Cohen 1968, "Weighted kappa", Psychological Bulletin 70). ``None`` where
    it is not defined: no items, or both raters gave all items one and the same score.

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
    """Krippendorff's α for interval data: items by raters, ``None`` where a rater gave no score.

    α = 1 − D_o / D_e, with D_o = (1/n) Σ_u Σ_{i≠j} (x_ui − x_uj)² / (m_u − 1) over the items with m_u ≥ 2 scores and
    D_e = Σ_{i≠j} (x_i − x_j)² / (n (n − 1)) over all n scores of these items (Krippendorff 2004, "Content Analysis",
    chapter 11). ``None`` where it is not defined: no item with two scores, or all scores alike.
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
    """Pearson's correlation; ``None`` for fewer than two items, or where a side does not vary.

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
    """Cosine of the angle between two lists of scores as vectors; ``None`` where one of them is 0 throughout.

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
