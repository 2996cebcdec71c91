"""Bounds for the mean of few bounded values by Gaffke's method, which assumes nothing about their distribution.

The mean of n values between ``low`` and ``high`` is compared with the mean of the same values, and of one more at an
end of the range, under random weights: w = E / Σ E, with n + 1 independent exponential E. If the values are drawn
independently from any distribution in the range, the probability that this weighted mean, with the extra value at
``low``, is at most the true mean is at least uniform (Gaffke 2005, "Three test statistics for a nonparametric one-sided
hypothesis on the mean of a nonnegative variable", Mathematical Methods of Statistics 14; Learned-Miller and Thomas
2020, "A new confidence interval for the mean of a bounded random variable", arXiv:1905.06208). A proof that it never
rejects too often exists for two values; it never did in simulations (``benchmarks/statistics.py``).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmms_eval.errors import UsageError
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

_NODES = 1000
_LOWEST, _HIGHEST = -25.0, 9.0
"""Natural logarithms of the ends of the integral: what lies outside is below 1e-10."""
_PRECISION = 1e-7
"""Precision of a limit, as a share of the range."""


def gaffke_p(values: Sequence[float], mean: float, within: ScoreRange, sizes: Sequence[float] = ()) -> float:
    """Return the one-sided p of the hypothesis that the true mean is ``mean`` or less.

    Args:
        values: independently drawn, all ``within`` the range; for clusters their means.
        mean: the largest mean of the hypothesis.
        within: a range with two ends.
        sizes: as in ``gaffke_limits``.

    Raises:
        UsageError: no values, a value outside of the range, or a range without two ends.
    """
    import numpy as np

    _check(values, within)
    if mean < within.low:
        return 0.0
    if mean >= within.high:
        return 1.0
    moved = _weights(sizes, len(values)) * (np.asarray(values, dtype=np.float64) - mean)
    return _share_below(np.concatenate(([within.low - mean], moved)))


def gaffke_limits(
    values: Sequence[float], within: ScoreRange, level: float = 0.95, sizes: Sequence[float] = ()
) -> tuple[float, float]:
    """Return the ends of the means that neither one-sided test rejects at (1 − ``level``) / 2.

    For clusters of different sizes, the test of a mean is that of a mean of 0 of (value − mean) · size / largest size,
    which lies between the same ends as (value − mean). Of equal sizes it is the test of the clusters' means.

    Args:
        values: independently drawn, all ``within`` the range; for clusters their means.
        within: a range with two ends.
        level: probability that such an interval contains the true mean.
        sizes: numbers of documents of the clusters; empty if all have one size.

    Raises:
        UsageError: as ``gaffke_p``, or ``level`` is not between 0 and 1.
    """
    import numpy as np

    if not 0 < level < 1:
        raise UsageError(f"interval: level {level}; give a probability between 0 and 1, such as 0.95")
    _check(values, within)
    width = within.high - within.low
    shares, tail = (np.asarray(values, dtype=np.float64) - within.low) / width, 0.5 - level / 2
    weights = _weights(sizes, len(values))
    return within.low + width * _lower(shares, weights, tail), within.high - width * _lower(1 - shares, weights, tail)


def _weights(sizes: Sequence[float], count: int) -> NDArray[float64]:
    import numpy as np

    return np.asarray(sizes, dtype=np.float64) / max(sizes) if len(sizes) else np.ones(count)


def _check(values: Sequence[float], within: ScoreRange) -> None:
    if not math.isfinite(within.high - within.low):
        raise UsageError(f"bounded mean: the range {within} has no two ends; give both")
    wrong = [value for value in values if value not in within]
    if wrong or not len(values):
        raise UsageError(f"bounded mean: {wrong[0] if wrong else 'no value'}; give numbers within {within}")


def _lower(shares: NDArray[float64], weights: NDArray[float64], tail: float) -> float:
    """Return the largest mean that the test rejects in favour of a greater one, for values from 0 to 1."""
    import numpy as np
    from scipy.optimize import brentq

    def excess(mean: float) -> float:
        return _share_below(np.concatenate(([-mean], weights * (shares - mean)))) - tail

    first, last = _PRECISION, float(shares.max()) - _PRECISION
    if last <= first or excess(first) >= 0:
        return 0.0
    return float(brentq(excess, first, last, xtol=_PRECISION)) if excess(last) > 0 else last


@functools.cache
def _nodes() -> tuple[NDArray[float64], float]:
    import numpy as np

    logarithms = np.linspace(_LOWEST, _HIGHEST, _NODES)
    return np.exp(logarithms), float(logarithms[1] - logarithms[0])


def _share_below(weights: NDArray[float64]) -> float:
    """Return P(Σ weight · E ≤ 0) for independent exponential E, by inversion of the characteristic function.

    P = ½ − (1/π) ∫₀^∞ sin(Σ arctan(w u)) / (u Π √(1 + w² u²)) du (Imhof 1961, "Computing the distribution of quadratic
    forms in normal variables", Biometrika 48, for exponentials). Over log u the integrand is smooth and vanishes at
    both ends, so that the trapezoidal rule is accurate to about 1e-10.
    """
    import numpy as np

    if weights.min() >= 0:
        return 0.0 if weights.max() > 0 else 1.0
    if weights.max() <= 0:
        return 1.0
    nodes, step = _nodes()
    parts = np.outer(nodes, weights / np.linalg.norm(weights))  # the integrand then changes over lengths of about 1
    angles, sizes = np.arctan(parts).sum(axis=1), np.log1p(parts * parts).sum(axis=1) / 2
    value = float(np.sum(np.sin(angles) * np.exp(-sizes))) * step
    return min(1.0, max(0.0, 0.5 - value / math.pi))
