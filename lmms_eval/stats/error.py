"""Standard errors of means (harness specification §6.1, §6.2). Undefined values are NaN."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval.errors import UsageError


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _squared_deviations(values: Sequence[float]) -> float:
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
    (Miller 2024, "Adding error bars to evals", eq. 4). Where clusters are negatively correlated the right side
    can fall below 0 and is taken as 0. NaN for n < 2.

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


@dataclass(frozen=True, slots=True)
class ItemErrors:
    """Errors of a mean over per-document values; ``None`` where one is not defined."""

    clt: float | None
    clustered: float | None


def item_number(item: Any, score_key: str = "score") -> float | None:
    """The number that a per-document value stands for: itself, or its field ``score_key``; ``None`` if neither."""
    if not isinstance(item, int | float) and isinstance(item, Mapping):
        item = item.get(score_key)
    return item if isinstance(item, int | float) else None


def item_errors(
    items: Iterable[Any], cluster_key: str | None = None, score_key: str = "score", scale: float = 1.0
) -> ItemErrors:
    """CLT and clustered error of the per-document values of a metric.

    Items that hold no number are left out. The clustered error is defined for mappings with more than one
    distinct cluster id; those without an id form one cluster. ``scale`` is 100 for an aggregate in percent of
    values that are fractions.
    """
    kept = [(number, item) for item in items if (number := item_number(item, score_key)) is not None]
    numbers = [number for number, _ in kept]
    if len(numbers) < 2:
        return ItemErrors(None, None)
    clt = mean_stderr(numbers) * scale
    if not cluster_key or not all(isinstance(item, Mapping) for _, item in kept):
        return ItemErrors(clt, None)
    clusters = [item.get(cluster_key) for _, item in kept]
    if len({cluster for cluster in clusters if cluster is not None}) < 2:
        return ItemErrors(clt, None)
    return ItemErrors(clt, clustered_stderr(numbers, clusters) * scale)
