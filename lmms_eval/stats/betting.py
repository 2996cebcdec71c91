"""One-sided bets about the mean of a finite list whose values, between 0 and 1, come in random order.

Against every candidate m for the mean of the N values a gambler stakes on the next value x being larger than a list
with that mean would have it: the rest of the list then has the mean c = (N m − sum so far) / (values left), and the
capital is multiplied by 1 + λ (x − c) with a stake 0 ≤ λ < 1/c that was chosen before x. If m is the mean, the capital
is a martingale, which reaches 1/α ever with a probability of at most α (Ville 1939): candidates against which it did
are out, at every look at once (Waudby-Smith and Ramdas, "Confidence sequences for sampling without replacement",
NeurIPS 2020, theorem 3.1, and "Estimating means of bounded random variables by betting", JRSS-B 2024, section 5).

The capital is spread over several gamblers, each with his own rate (the "diversified Kelly" of the second paper,
appendix B.6): λ = rate · N / (values left). Those stakes are the ones that use a list best which runs out: up to their
common factor they tell as much at each look as the sample mean does.

As no stake depends on m, two facts hold that make a few candidates enough. The capital falls with m, so all candidates
below one that is out are out. Its logarithm is a sum of logarithms of straight lines in m, hence concave: between two
candidates it lies above the straight line between them, and a limit that is computed from that line is too wide, not
too narrow. Only where a stake had to be cut (λ c < 1) the capital of the next greater candidate stands for the ones
between.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CANDIDATES = 17
"""Candidates for the mean that are followed, evenly over the window."""
MOST = 0.95
"""Share of his capital that a gambler stakes at most."""
_RATIO = 2.0
_GREATEST_RATE = 1.0
_NEWTON_STEPS = 6
_LARGEST_LOGARITHM = 700.0


def rates(total: int, alpha: float) -> list[float]:
    """Rates of the gamblers, by factors of 2.

    The best rate for a look after n values with the variance s² is √(2 log(1/α) (N − n) / (N n s²)): from that for
    nearly the whole list and the largest variance, 1/4, upwards.
    """
    seen = 0.95
    least = math.sqrt(2 * math.log(1 / alpha) * (1 - seen) / (seen * total / 4))
    count = 1 + max(2, math.ceil(math.log(_GREATEST_RATE / least, _RATIO)))
    return [least * _RATIO**step for step in range(count)]


class Floor:
    """Limit below which the mean of ``total`` values between 0 and 1 does not lie, ever, but with probability alpha.

    ``bound`` is a function of the values and of the windows alone, however they are cut into calls of ``add``.
    """

    def __init__(self, total: int, alpha: float) -> None:
        import numpy as np

        self.bound = 0.0
        self._total, self._alpha = total, alpha
        self._rates = np.array(rates(total, alpha))
        self._shares = np.full(len(self._rates), 1 / len(self._rates))
        self._grid = np.linspace(0.0, 1.0, CANDIDATES)
        self._capital = np.ones((len(self._rates), CANDIDATES))
        self._is_straight = np.ones(self._capital.shape, dtype=bool)
        self._seen, self._sum = 0, 0.0

    def add(self, values: Floats) -> Floats:
        """Limits after each of the values; they never fall."""
        import numpy as np

        left = self._total - np.arange(self._seen, self._seen + len(values))
        sums = np.cumsum(np.concatenate(([self._sum], values)))
        means = (self._total * self._grid - sums[:-1, None]) / left[:, None]
        gaps = values[:, None] - means
        stakes = np.minimum(self._rates * (self._total / left)[:, None], np.maximum(self._rates, MOST))
        allowed = MOST / np.maximum(means, 1e-12)
        factors = np.empty((len(values) + 1, *self._capital.shape))
        factors[0] = self._capital
        factors[1:] = stakes[:, :, None] * gaps[:, None, :] + 1
        is_straight = np.tile(self._is_straight, (len(values), 1, 1))
        for gambler in np.flatnonzero((stakes > allowed[:, -1:]).any(axis=0)):  # the greatest candidate allows least
            stake = stakes[:, gambler, None]
            factors[1:, gambler] = np.minimum(stake, allowed) * gaps + 1
            is_straight[:, gambler] &= np.logical_and.accumulate(stake <= allowed)
        with np.errstate(over="ignore", under="ignore"):
            capital = np.multiply.accumulate(factors)[1:]
        limits = np.maximum.accumulate(np.maximum(self.bound, self._limits(capital, is_straight)))
        self._capital, self._is_straight = capital[-1], is_straight[-1]
        self._seen, self._sum, self.bound = self._seen + len(values), float(sums[-1]), float(limits[-1])
        return limits

    def watch(self, low: float, high: float) -> None:
        """Follow candidates between ``low`` and ``high`` only, within the ones followed so far."""
        import numpy as np

        grid = np.linspace(low, high, CANDIDATES)
        right = np.clip(np.searchsorted(self._grid, grid), 1, CANDIDATES - 1)
        near, slope = self._lines(self._capital[:, right - 1], self._capital[:, right], self._is_straight[:, right])
        part = (grid - self._grid[right - 1]) / (self._grid[right] - self._grid[right - 1])
        with np.errstate(under="ignore"):
            self._capital = np.exp(near + part * slope)
        self._is_straight = self._is_straight[:, right]
        self._grid = grid

    def _limits(self, capital: Floats, is_straight: NDArray[np.bool_]) -> Floats:
        """Means at which the capital of all gamblers together, at each time, falls below 1/α; at most ``bound``."""
        import numpy as np

        out = np.count_nonzero(np.tensordot(self._shares, capital, (0, 1)) >= 1 / self._alpha, axis=1) - 1
        limits = np.where(out == CANDIDATES - 1, self._grid[-1], self.bound)
        rows = np.flatnonzero((out >= 0) & (out < CANDIDATES - 1))
        cell = out[rows]
        left, width = self._grid[cell], self._grid[cell + 1] - self._grid[cell]
        near, slopes = self._lines(capital[rows, :, cell], capital[rows, :, cell + 1], is_straight[rows, :, cell + 1])
        near = near + np.log(self._shares)
        known = np.clip((self.bound - left) / width, 0.0, 1.0)
        is_higher = _above(near, slopes, known, self._alpha)[0] >= 0
        near, slopes, part = near[is_higher], slopes[is_higher], np.zeros(np.count_nonzero(is_higher))
        for _ in range(_NEWTON_STEPS):
            # The logarithm of a sum of exponentials of lines is convex: Newton's steps from the left stay left.
            above, slope = _above(near, slopes, part, self._alpha)
            step = np.divide(above, -slope, out=np.zeros_like(part), where=(above > 0) & (slope < 0))
            part = np.minimum(1.0, part + step)
        limits[rows[is_higher]] = left[is_higher] + part * width[is_higher]
        return limits

    @staticmethod
    def _lines(near: Floats, far: Floats, is_straight: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Logarithm of the capital at a candidate, and the rise to the next one, of lines never above the capital."""
        import numpy as np

        with np.errstate(divide="ignore"):
            left, right = np.minimum(np.log(near), _LARGEST_LOGARITHM), np.log(far)
        is_usable = is_straight & np.isfinite(right)
        left = np.where(is_usable, np.maximum(left, right), right)
        return left, np.subtract(right, left, out=np.zeros_like(left), where=is_usable)


def _above(near: Floats, slopes: Floats, part: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Logarithm of the sum of the capitals, over 1/α, at a part of the way to the next candidate; and its slope."""
    import numpy as np

    lines = near + part[:, None] * slopes
    top = np.maximum(lines.max(axis=1, initial=-1e9), -1e9)
    terms = np.exp(lines - top[:, None])
    whole = np.maximum(terms.sum(axis=1), 1e-300)
    return top + np.log(whole) + math.log(alpha), (terms * slopes).sum(axis=1) / whole
