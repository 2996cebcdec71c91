"""Intervals for the means of the cells of a finite list that is followed in random order, valid at every look.

Of N documents in random order the first n are known, with their cells. How many documents of a cell are left is not
known, so its own documents are no list of known length. But the mean of a cell is m exactly if

    z_i = 1{i in the cell} · (x_i − m)

has the mean 0 over all N documents, whose number is known. Before document i the expectation of z_i is then
c_i = − (z_1 + … + z_{i−1}) / (N − i + 1), and for stakes 0 ≤ λ_i ≤ 1 that are fixed before

    Π (1 + λ_i z_i) exp(− λ_i c_i)

is a supermartingale, since (1 + λ c) exp(− λ c) ≤ 1: it reaches 1/α ever with a probability of at most α (Ville 1939;
the bets are those of Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 2024).
It may be looked at when any rule says so, also one about the whole list or about other cells. Documents of other cells
cost next to nothing: z_i = 0. The capital falls with m, so the m against which it is below 1/α are an interval. A value
that is too low makes the capital smaller: what is not known of a document enters with its least value.

Stakes are r N / (values left), at rates r by factors of 2 among which the capital is spread evenly (``betting.py``),
constant over stretches of the list in which the values left fall by a twentieth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmms_eval.stats.betting import MOST, rates

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

    Floats = NDArray[float64]
    Codes = NDArray[intp]

_STRETCH = math.log(1.05)
_HALVINGS, _STEPS = 5, 9


def sampled_cells(
    lows: Floats, highs: Floats, codes: Codes, count: int, total: int, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Ends of the intervals for the means of ``count`` cells over all ``total`` documents.

    With probability ``level`` each of them holds its mean at every look at once (not all cells together).

    Args:
        lows: values from 0 to 1 of the first documents in their random order.
        highs: the same, or more where a value is not known.
        codes: of each document the number of its cell; of documents without one −1.
        count: number of cells.
        total: number of documents of the whole list.
        level: probability.
    """
    import numpy as np

    alpha = (1 - level) / 2
    stakes = _Stakes.of(len(codes), total, alpha)
    floors = _floors(lows, codes, count, stakes, alpha)
    ceilings = 1 - _floors(1 - highs, codes, count, stakes, alpha)
    inside = codes >= 0
    sizes, left = np.bincount(codes[inside], minlength=count), total - len(codes)
    least = np.bincount(codes[inside], weights=lows[inside], minlength=count) / np.maximum(1, sizes + left)
    most = (np.bincount(codes[inside], weights=highs[inside], minlength=count) + left) / np.maximum(1, sizes + left)
    ends = np.maximum(floors, least), np.minimum(ceilings, np.where(sizes + left > 0, most, 1.0))
    # Limits that have crossed are wrong, which is as rare as the level says: what the values leave possible stays.
    crossed = ends[0] > ends[1]
    return np.where(crossed, least, ends[0]), np.where(crossed, np.maximum(least, most), ends[1])


@dataclass(frozen=True, slots=True)
class _Stakes:
    """Stakes on the first documents of a list, at several rates."""

    stretch: Codes
    """Of each document the number of the stretch in which stakes are constant."""
    of_stretch: Floats
    """Rates × stretches."""
    later: Floats
    """Rates × documents: the sum of λ / (values left) over the documents that come later."""

    @classmethod
    def of(cls, seen: int, total: int, alpha: float) -> _Stakes:
        import numpy as np

        left = total - np.arange(seen)
        stretch = np.floor(np.log(total / left) / _STRETCH).astype(np.intp)
        number = int(stretch.max(initial=0)) + 1
        each = np.array(rates(total, alpha))[:, None]
        of_stretch = np.minimum(each * np.exp(_STRETCH * np.arange(number)), MOST)
        parts = of_stretch[:, stretch] / left
        later = parts.sum(axis=1, keepdims=True) - np.cumsum(parts, axis=1)
        return cls(stretch, of_stretch, later)


@dataclass(frozen=True, slots=True)
class _Bets:
    """Bets on the documents of all cells, those that are alike counted together."""

    cell: Codes
    value: Floats
    stakes: Floats
    """Rates × kinds of documents."""
    number: Floats
    """Documents of each kind."""
    constant: Floats
    """Rates × cells: the part of log capital that does not depend on the mean."""
    slope: Floats

    @classmethod
    def of(cls, values: Floats, codes: Codes, count: int, stakes: _Stakes) -> _Bets:
        import numpy as np

        known, places = np.unique(values, return_inverse=True)
        stretches = stakes.of_stretch.shape[1]
        keys, number = np.unique((codes * stretches + stakes.stretch) * len(known) + places, return_counts=True)
        rest = keys // len(known)
        sums = [
            (np.bincount(codes, weights=later * values, minlength=count), np.bincount(codes, later, count))
            for later in stakes.later
        ]
        return cls(
            cell=rest // stretches,
            value=known[keys % len(known)] if len(known) else values,
            stakes=stakes.of_stretch[:, rest % stretches],
            number=number.astype(np.float64),
            constant=np.array([constant for constant, _ in sums]),
            slope=np.array([slope for _, slope in sums]),
        )

    def log_capital(self, means: Floats) -> Floats:
        """Logarithm of the capital against one mean of each cell."""
        import numpy as np

        gaps = self.value - means[self.cell]
        lines = self.constant - self.slope * means
        for rate, stakes in enumerate(self.stakes):
            won = self.number * np.log1p(stakes * gaps)
            lines[rate] += np.bincount(self.cell, weights=won, minlength=len(means))
        top = lines.max(axis=0)
        capital: Floats = top + np.log(np.exp(lines - top).mean(axis=0))
        return capital


def _floors(values: Floats, codes: Codes, count: int, stakes: _Stakes, alpha: float) -> Floats:
    """Means below which those of the cells do not lie, but with probability ``alpha``; rounded downwards."""
    import numpy as np

    inside = codes >= 0
    here = _Stakes(stakes.stretch[inside], stakes.of_stretch, stakes.later[:, inside])
    bets = _Bets.of(values[inside], codes[inside], count, here)
    limit = math.log(1 / alpha)
    low, high = np.zeros(count), np.ones(count)
    above, below = bets.log_capital(low) - limit, bets.log_capital(high) - limit
    has_floor = above >= 0
    for step in range(_HALVINGS + _STEPS):
        with np.errstate(invalid="ignore", divide="ignore"):
            part = above / (above - below)
        part = np.where(np.isfinite(part) & (step >= _HALVINGS), np.clip(part, 1e-3, 1 - 1e-3), 0.5)
        middle = low + part * (high - low)
        found = bets.log_capital(middle) - limit
        is_out = found >= 0
        # The Illinois rule: the end that stays counts half, so that the other one moves too.
        above, below = np.where(is_out, found, above / 2), np.where(is_out, below / 2, found)
        low, high = np.where(is_out, middle, low), np.where(is_out, high, middle)
    return np.where(has_floor, low, 0.0)
