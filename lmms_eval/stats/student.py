"""Student's t distribution by the regularised incomplete beta function (no scipy)."""

from __future__ import annotations

import math
from statistics import NormalDist

from lmms_eval.errors import UsageError

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

    Relative error below 1e-12, but for |t| > 3 with more than 10,000 degrees: below 1e-9.

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
    """The quantile: t with P(T ≤ t) = q, to about 1e-12 (relative).

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
