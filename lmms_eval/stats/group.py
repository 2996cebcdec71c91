"""Means and errors of groups of tasks (harness specification §6.3, engine rules §10)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmms_eval.errors import UsageError


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

    NaN where no part has more than one sample.
    """
    _check_lengths(stderrs, sizes)
    total, freedom = math.fsum(sizes), math.fsum(sizes) - len(sizes)
    if freedom <= 0:
        return math.nan
    squares = math.fsum((n - 1) * n * se * se for n, se in zip(sizes, stderrs, strict=True))
    return math.sqrt(squares / freedom / total)


def combined_sample_stderr(stderrs: Sequence[float], sizes: Sequence[float], metrics: Sequence[float]) -> float:
    """Error that also counts the spread between the parts, folding them in one after the other.

    With (v, m) so far and the next part (se, n, x), N the size of the first part:
    m ← (N m + n x)/(N + n); v ← ((N − 1) v + (n − 1) se²)/(N + n − 1) + N n (m − x)²/((N + n)(N + n − 1)).
    Kept for those who call it; groups use ``pooled_sample_stderr`` or ``unweighted_group_stderr``.
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
