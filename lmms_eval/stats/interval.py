"""Intervals around a score (harness specification §6.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from lmms_eval.errors import UsageError
from lmms_eval.stats.student import t_ppf


@dataclass(frozen=True, slots=True)
class Interval:
    """``low`` and ``high`` in the units of the score; ``method`` says how they came about."""

    low: float
    high: float
    method: str


def _z(level: float) -> float:
    if not 0 < level < 1:
        raise UsageError(f"interval: level {level}; give a probability between 0 and 1, such as 0.95")
    return 1.96 if level == 0.95 else NormalDist().inv_cdf(0.5 + level / 2)


def _is_undefined(*numbers: float | None) -> bool:
    return any(number is None or math.isnan(number) for number in numbers)


def normal_interval(value: float | None, error: float | None, level: float = 0.95) -> Interval | None:
    """value ± 1.96 standard errors (for 95 %); ``None`` where either is not defined."""
    half = _z(level)
    if value is None or error is None or _is_undefined(value, error):
        return None
    return Interval(value - half * error, value + half * error, "normal")


def t_interval(value: float | None, error: float | None, n: int, level: float = 0.95) -> Interval | None:
    """value ± the t quantile with n − 1 degrees of freedom: wider than normal for small n."""
    _z(level)
    if value is None or error is None or _is_undefined(value, error) or n < 2:
        return None
    half = t_ppf(0.5 + level / 2, n - 1) * error
    return Interval(value - half, value + half, "t")


def wilson_interval(successes: float, n: int, level: float = 0.95) -> Interval | None:
    """Wilson's score interval of a share of right answers (Wilson 1927); stays within 0 … 1."""
    z = _z(level)
    if n < 1:
        return None
    if not 0 <= successes <= n:
        raise UsageError(f"Wilson interval: {successes} successes of {n}")
    share, square = successes / n, z * z
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = z / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return Interval(min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half)), "wilson")
