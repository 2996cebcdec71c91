"""Intervals for the mean of a finite list, valid at every look while its values come in random order.

The ordinary interval is valid for one look, at a number of documents that was fixed in advance. These intervals contain
the mean over all documents of the task at all looks at once, with the stated probability. So a run may be watched, and
stopped as soon as the interval is narrow enough (``docs/certainty.md``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.errors import UsageError
from lmms_eval.stats.interval import Interval
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.int64]

MOST_ROUNDS = 1000
LEFT_OUT = 0.005
"""Total weight of strata that may have fewer documents than rounds; only the range limits their missing documents."""
MOST = 0.75
"""Greatest stake of a document, as a share of the range."""
_RATES = 8
_RATIO = 2.0
_NEWTON_STEPS = 20


class StrataPlan(Struct, frozen=True):
    """The order, by round, of documents of the strata that take part in every round; fixed before the first value."""

    rounds: int
    is_included: list[bool]
    place: Places
    """For each document in round order, its place in stratum order."""
    ends: Places
    """Number of documents in the first 0, 1, 2, ... rounds."""
    left: Floats
    """Number of remaining documents of the stratum, this one included."""
    before: Floats
    """Number of previous documents of the stratum."""
    share: Floats
    """Weight of the document in the mean: w_k / N_k."""
    stake: Floats
    """Stake at rate 1."""
    growth: Floats
    """For each round, the coefficient of θ at rate 1."""
    rates: Floats
    scale: Floats
    """Rates × rounds: the factor that keeps stakes at or below ``MOST``."""

    @classmethod
    def of(cls, totals: Sequence[int], weights: Sequence[float], alpha: float) -> StrataPlan:
        import numpy as np

        rounds = _number_of_rounds(totals, weights)
        is_included = [total >= rounds and weight > 0 for total, weight in zip(totals, weights, strict=True)]
        stratum = np.repeat(np.arange(len(totals)), totals)
        sizes, parts = np.array(totals)[stratum], np.array(weights)[stratum]
        index = np.arange(len(stratum)) - np.repeat(np.cumsum(totals) - np.array(totals), totals)
        turn = rounds_before(index, sizes, rounds)
        # The last round ends with all documents, where the mean is known.
        places = np.flatnonzero(np.array(is_included)[stratum] & (turn < rounds - 1))
        place = places[np.argsort(turn[places], kind="stable")]
        turn, stratum, sizes, parts, index = (each[place] for each in (turn, stratum, sizes, parts, index))
        done = np.arange(rounds) / rounds
        growth = np.diff(done / (1 - done))
        # Within a round as 1 / (values left), which uses the sample mean best.
        left = sizes - index
        key = turn * len(totals) + stratum
        sums = np.bincount(key, weights=sizes / left**2, minlength=rounds * len(totals))
        stake = parts * growth[turn] / left / sums[key] if len(place) else np.zeros(0)
        ends = np.concatenate(([0], np.cumsum(np.bincount(turn, minlength=rounds - 1)))).astype(np.int64)
        largest = np.maximum.reduceat(stake, ends[:-1]) if len(place) else np.zeros(0)
        variance = sum(w * w / n for w, n, used in zip(weights, totals, is_included, strict=True) if used) / 4
        least = math.sqrt(2 * math.log(1 / alpha) * 0.05 / 0.95 / variance) if variance else 1.0
        rates = np.array([least * _RATIO**step for step in range(_RATES)])
        scale = np.minimum(1.0, MOST / (rates[:, None] * largest)) if len(place) else np.zeros((_RATES, 0))
        before = index.astype(np.float64)
        return cls(rounds, is_included, place, ends, sizes - before, before, parts / sizes, stake, growth, rates, scale)


def _number_of_rounds(totals: Sequence[int], weights: Sequence[float]) -> int:
    """Return the documents of the smallest stratum, ignoring strata of negligible weight; at most ``MOST_ROUNDS``."""
    missing = 0.0
    for total, weight in sorted(zip(totals, weights, strict=True)):
        missing += weight
        if missing > LEFT_OUT:
            return min(total, MOST_ROUNDS)
    return MOST_ROUNDS  # not reached: the weights sum to 1


def rounds_before(count: Any, total: Any, rounds: int) -> Any:
    """Return the complete rounds of a stratum with ``count`` known documents: the greatest ρ with ⌊ρ N / R⌋ ≤ count."""
    return ((count + 1) * rounds + total - 1) // total - 1


class StrataFloor:
    """Lower limit of the weighted mean of the included strata."""

    def __init__(self, plan: StrataPlan, total: int, alpha: float) -> None:
        import numpy as np

        self._plan = plan
        self._threshold = math.log(_RATES / alpha)
        self.values, self.sums_before = np.zeros(total), np.zeros(total)
        self._constant, self._slope = np.zeros(_RATES), np.zeros(_RATES)
        self._shares, self._weighted = 0.0, 0.0
        self.bound = 0.0

    def advance(self, start: int, stop: int) -> Floats:
        """Return the limits after each of the rounds ``start`` to ``stop`` (exclusive); they never decrease."""
        import numpy as np

        plan = self._plan
        docs = slice(int(plan.ends[start]), int(plan.ends[stop]))
        ends = plan.ends[start : stop + 1] - plan.ends[start]
        turn = np.repeat(np.arange(stop - start), np.diff(ends))
        place = plan.place[docs]
        x, before = self.values[place], self.sums_before[place]
        shares = np.cumsum(np.concatenate(([self._shares], plan.share[docs])))
        weighted = np.cumsum(np.concatenate(([self._weighted], plan.share[docs] * x)))
        one = plan.share[0]
        usual = (one / 2 + weighted[ends]) / (one + shares[ends])  # of all strata, at the start of the round
        guess = (usual[turn] + before) / (1 + plan.before[docs])
        stakes = plan.rates[:, None] * plan.scale[:, start + turn] * plan.stake[docs]
        gains = stakes * (x + before / plan.left[docs]) + (np.log1p(-stakes) + stakes) * (x - guess) ** 2
        constants = np.cumsum(np.concatenate((self._constant[:, None], gains), axis=1), axis=1)[:, ends[1:]]
        growth = plan.rates[:, None] * plan.scale[:, start:stop] * plan.growth[start:stop]
        slopes = np.cumsum(np.concatenate((self._slope[:, None], growth), axis=1), axis=1)[:, 1:]
        limits = np.maximum.accumulate(np.maximum(self.bound, self._limits(constants, slopes)))
        self._constant, self._slope = constants[:, -1], slopes[:, -1]
        self._shares, self._weighted, self.bound = float(shares[-1]), float(weighted[-1]), float(limits[-1])
        return limits

    def _limits(self, constants: Floats, slopes: Floats) -> Floats:
        """Return the θ that makes Σ exp(constant − slope θ) equal the threshold, for each column."""
        import numpy as np

        theta: Floats = np.max((constants - self._threshold) / slopes, axis=0)
        for _ in range(_NEWTON_STEPS):
            # The logarithm of a sum of exponentials of lines is convex: Newton's steps from the left stay left.
            lines = constants - slopes * theta
            top = lines.max(axis=0)
            terms = np.exp(lines - top)
            whole = terms.sum(axis=0)
            theta = theta + np.maximum(0.0, top + np.log(whole) - self._threshold) * whole / (terms * slopes).sum(
                axis=0
            )
        return theta


CANDIDATES = 17
"""Number of candidates for the mean, evenly spaced over the window."""
GREATEST_STAKE = 0.95
"""Greatest share of the capital that a gambler stakes."""

_GREATEST_RATE = 1.0
_BET_STEPS = 6
_LARGEST_LOGARITHM = 700.0


def rates(total: int, alpha: float) -> list[float]:
    """Return the rates of the gamblers, each twice the previous one.

    The best rate for a look after n values with the variance s² is √(2 log(1/α) (N − n) / (N n s²)). The lowest rate is
    the best one for nearly the whole list and the largest variance, 1/4.
    """
    seen = 0.95
    least = math.sqrt(2 * math.log(1 / alpha) * (1 - seen) / (seen * total / 4))
    count = 1 + max(2, math.ceil(math.log(_GREATEST_RATE / least, _RATIO)))
    return [least * _RATIO**step for step in range(count)]


class Floor:
    """Lower limit of a mean of values between 0 and 1, which fails at any look with probability alpha.

    ``bound`` depends only on the values and the windows, not on how calls of ``add`` divide the values.

    Args:
        total: number of values in the list.
        alpha: probability that the limit ever exceeds the mean.
        is_of_list: the mean is that of the ``total`` values, which are drawn without replacement; else that of the
            population that the values are drawn from, independently of each other.
    """

    def __init__(self, total: int, alpha: float, is_of_list: bool = True) -> None:
        import numpy as np

        self.bound = 0.0
        self._total, self._alpha, self._is_of_list = total, alpha, is_of_list
        self._rates = np.array(rates(total, alpha))
        self._shares = np.full(len(self._rates), 1 / len(self._rates))
        self._grid = np.linspace(0.0, 1.0, CANDIDATES)
        self._capital = np.ones((len(self._rates), CANDIDATES))
        self._is_straight = np.ones(self._capital.shape, dtype=bool)
        self._seen, self._sum = 0, 0.0

    def add(self, values: Floats) -> Floats:
        """Return the limits after each of the values; they never decrease."""
        import numpy as np

        sums = np.cumsum(np.concatenate(([self._sum], values)))
        if self._is_of_list:
            left = self._total - np.arange(self._seen, self._seen + len(values))
            means = (self._total * self._grid - sums[:-1, None]) / left[:, None]
        else:
            left, means = np.full(len(values), self._total), np.tile(self._grid, (len(values), 1))
        gaps = values[:, None] - means
        stakes = np.minimum(self._rates * (self._total / left)[:, None], np.maximum(self._rates, GREATEST_STAKE))
        allowed = GREATEST_STAKE / np.maximum(means, 1e-12)
        factors = np.empty((len(values) + 1, *self._capital.shape))
        factors[0] = self._capital
        factors[1:] = stakes[:, :, None] * gaps[:, None, :] + 1
        is_straight = np.tile(self._is_straight, (len(values), 1, 1))
        for gambler in np.flatnonzero((stakes > allowed[:, -1:]).any(axis=0)):  # the greatest candidate is strictest
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
        """Narrow the candidates to those between ``low`` and ``high``, which lie within the present ones."""
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
        """Return, at each time, the mean where the total capital of all gamblers falls below 1/α."""
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
        for _ in range(_BET_STEPS):
            # The logarithm of a sum of exponentials of lines is convex: Newton's steps from the left stay left.
            above, slope = _above(near, slopes, part, self._alpha)
            step = np.divide(above, -slope, out=np.zeros_like(part), where=(above > 0) & (slope < 0))
            part = np.minimum(1.0, part + step)
        limits[rows[is_higher]] = left[is_higher] + part * width[is_higher]
        return limits

    @staticmethod
    def _lines(near: Floats, far: Floats, is_straight: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return log capital at a candidate and the slope to the next one, of lines that never exceed the capital."""
        import numpy as np

        with np.errstate(divide="ignore"):
            left, right = np.minimum(np.log(near), _LARGEST_LOGARITHM), np.log(far)
        is_usable = is_straight & np.isfinite(right)
        left = np.where(is_usable, np.maximum(left, right), right)
        return left, np.subtract(right, left, out=np.zeros_like(left), where=is_usable)


def _above(near: Floats, slopes: Floats, part: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return the log of α times the total capital at a part of the way to the next candidate, and its slope."""
    import numpy as np

    lines = near + part[:, None] * slopes
    top = np.maximum(lines.max(axis=1, initial=-1e9), -1e9)
    terms = np.exp(lines - top[:, None])
    whole = np.maximum(terms.sum(axis=1), 1e-300)
    return top + np.log(whole) + math.log(alpha), (terms * slopes).sum(axis=1) / whole


BLOCK = 128
"""After so many values the window of candidates is narrowed to the interval."""
_NARROWER = 0.7
_DOCUMENTS_AT_ONCE = 4096


class Sampled:
    """Interval for the mean of ``total`` values ``within`` a range; some are known, in random order.

    The values are fixed and the order is random. Nothing is assumed about their distribution, and documents need not be
    independent. With probability ``level`` the interval contains the mean over all ``total`` values after every ``add``
    at once. After the last one it is the exact mean. It depends on the values and their order, not on when it is
    computed.

    For the difference of two runs with scores from 0 to 1, add the difference of each document in the order that both
    runs share, with ``ScoreRange(-1, 1)``.

    Limits are computed to about a thousandth of the interval's width and rounded outwards.

    Args:
        total: number of documents of the list.
        within: range of the values.
        level: probability.
        is_of_list: whether the interval is for the mean of this list. If it is ``False``, the interval is for the mean
            of the population that the documents were drawn from, independently of each other.

    Raises:
        UsageError: a range without two ends, fewer than one document, a level outside of (0, 1).
    """

    def __init__(self, total: int, within: ScoreRange, level: float = 0.95, is_of_list: bool = True) -> None:
        _check_question(total, within, level)
        self.total, self.within, self.level = total, within, level
        self._is_of_list = is_of_list
        self._width = within.high - within.low
        self._low, self._high = (Floor(total, (1 - level) / 2, is_of_list) for _ in range(2))
        self._waiting: list[tuple[float, float]] = []
        self._seen = 0
        self._ends = (0.0, 1.0)
        self._window = (0.0, 1.0)
        self._sums = (0.0, 0.0)

    @property
    def seen(self) -> int:
        """Number of values so far."""
        return self._seen + len(self._waiting)

    def add(self, low: float, high: float | None = None) -> None:
        """Add the next document of the random order.

        If its score is not known (failed, not scored), give ``high`` too: the score lies between ``low`` and ``high``.

        Raises:
            UsageError: the number lies outside the range, or all documents have been added.
        """
        value = _checked_value(low, high, self.within)
        if self.seen >= self.total:
            raise UsageError(f"confidence sequence: more than {self.total} documents; give each of them once")
        self._waiting.append(value)

    def interval(self) -> Interval:
        """Return the interval of the mean of all ``total`` values, in their units."""
        self._work()
        return Interval(self._in_units(self._ends[0]), self._in_units(self._ends[1]), "betting")

    def after_each(self, lows: Sequence[float], highs: Sequence[float] | None = None) -> list[tuple[float, float]]:
        """Add several documents at once; return the ends of the interval after each of them.

        Raises:
            UsageError: as ``add``.
        """
        self._work()
        for low, high in zip(lows, lows if highs is None else highs, strict=True):
            self.add(low, high)
        return [(self._in_units(low), self._in_units(high)) for low, high in self._work()]

    def _in_units(self, share: float) -> float:
        return self.within.low + share * self._width

    def _work(self) -> list[tuple[float, float]]:
        """Process the waiting values; return the ends after each of them, from 0 to 1."""
        import numpy as np

        found: list[tuple[float, float]] = []
        start = 0
        while start < len(self._waiting):
            stop = start + BLOCK - self._seen % BLOCK
            values = (np.array(self._waiting[start:stop]) - self.within.low) / self._width
            found.extend(self._take(values[:, 0], values[:, 1]))
            start = stop
        self._waiting.clear()
        return found

    def _take(self, low: Floats, high: Floats) -> list[tuple[float, float]]:
        """Process values from 0 to 1, all of one block; return the ends after each of them."""
        import numpy as np

        count = self._seen + np.arange(1, len(low) + 1)
        both = (self._sums[0], low), (self._sums[1], high)
        sums = [np.cumsum(np.concatenate(([before], values)))[1:] for before, values in both]
        least, most = sums[0] / self.total, (sums[1] + (self.total - count)) / self.total
        if not self._is_of_list:
            least, most = np.zeros(len(low)), np.ones(len(low))
        floors, ceilings = self._low.add(low), 1 - self._high.add(1 - high)
        self._seen, self._sums = int(count[-1]), (float(sums[0][-1]), float(sums[1][-1]))
        found = []
        for each in zip(floors.tolist(), ceilings.tolist(), least.tolist(), most.tolist(), strict=True):
            # Limits that have crossed are wrong, which the level allows for; the previous ones remain.
            ends = each[:2] if each[0] <= each[1] else self._ends
            self._ends = _within_limits((max(ends[0], self._ends[0]), min(ends[1], self._ends[1])), *each[2:])
            found.append(self._ends)
        if self._seen % BLOCK == 0:
            self._narrow()
        return found

    def _narrow(self) -> None:
        low, high = self._ends
        is_inside = self._window[0] <= low < high <= self._window[1]
        if is_inside and high - low < _NARROWER * (self._window[1] - self._window[0]):
            self._low.watch(low, high)
            self._high.watch(1 - high, 1 - low)
            self._window = low, high


class StratifiedSampled:
    """Interval for Σ w_k μ_k, the weighted mean of the means of finite strata, each in random order.

    With probability ``level`` it contains that number after every ``add`` at once; after the last document it is exact.
    It is narrowest if the strata advance at the same pace (document j of N_k at the time (j − ½) / N_k): values of
    strata that are ahead wait for the others. There are as many rounds as the smaller strata have documents; between
    rounds only the limits from the range become narrower. A stratum without known values counts with the whole range.

    ``weights`` are normalised by their sum. For one task use ``Sampled``, which is narrower.

    Raises:
        UsageError: a range without two ends, an empty stratum, invalid weights, a level outside (0, 1).
    """

    def __init__(
        self, totals: Sequence[int], weights: Sequence[float], within: ScoreRange, level: float = 0.95
    ) -> None:
        _check_question(min(totals, default=0), within, level)
        whole = math.fsum(weights)
        if len(totals) != len(weights) or not all(weight >= 0 for weight in weights) or not 0 < whole < math.inf:
            raise UsageError(
                f"confidence sequence: weights {list(weights)[:5]} for {len(totals)} strata; give each one, 0 or more"
            )
        self.within, self.level = within, level
        self.totals, self.weights = tuple(totals), tuple(weight / whole for weight in weights)
        self._width = within.high - within.low
        alpha = (1 - level) / 2
        self._plan = StrataPlan.of(self.totals, self.weights, alpha)
        self._sides = StrataFloor(self._plan, sum(totals), alpha), StrataFloor(self._plan, sum(totals), alpha)
        self._first = [sum(self.totals[:k]) for k in range(len(totals))]
        self._counts = [0] * len(totals)
        self._sums = [(0.0, 0.0)] * len(totals)
        self._reached = [0] * (self._plan.rounds + 1)
        self._complete = self._done = 0
        self._strata = sum(self._plan.is_included)
        self._included = math.fsum(w for w, used in zip(self.weights, self._plan.is_included, strict=True) if used)
        self._ends = (0.0, self._included)

    @property
    def seen(self) -> int:
        """Number of values so far."""
        return sum(self._counts)

    def add(self, stratum: int, low: float, high: float | None = None) -> None:
        """Add the next document of a stratum's random order; ``high`` as in ``Sampled.add``.

        Raises:
            UsageError: no such stratum, a number outside the range, or all its documents have been added.
        """
        if not 0 <= stratum < len(self.totals):
            raise UsageError(f"confidence sequence: stratum {stratum} of {len(self.totals)}; they count from 0")
        count, total = self._counts[stratum], self.totals[stratum]
        if count >= total:
            raise UsageError(f"confidence sequence: more than {total} documents of stratum {stratum}; give each once")
        least, most = _checked_value(low, high, self.within)
        least, most = (least - self.within.low) / self._width, (self.within.high - most) / self._width
        sums = self._sums[stratum]
        for side, value, before in zip(self._sides, (least, most), sums, strict=True):
            side.values[self._first[stratum] + count] = value
            side.sums_before[self._first[stratum] + count] = before
        self._sums[stratum] = sums[0] + least, sums[1] + most
        self._counts[stratum] = count = count + 1
        if self._plan.is_included[stratum]:
            plan = self._plan
            reached = rounds_before(count, total, plan.rounds) if count < total else plan.rounds
            if reached > rounds_before(count - 1, total, plan.rounds):
                self._reached[reached] += 1
            while self._complete < plan.rounds - 1 and self._reached[self._complete + 1] == self._strata:
                self._complete += 1

    def interval(self) -> Interval:
        """Return the interval of the weighted mean, in the units of the scores."""
        import numpy as np

        ends = self._plan.ends
        while self._done < self._complete:
            room = int(np.searchsorted(ends, ends[self._done] + _DOCUMENTS_AT_ONCE, side="right")) - 1
            self._advance(min(self._complete, max(room, self._done + 1)))
        everything = self._limits(range(len(self.totals)))
        rest = self._limits([k for k, is_included in enumerate(self._plan.is_included) if not is_included])
        ends_now = self._ends[0] + rest[0], self._ends[1] + rest[1]
        low, high = _within_limits(ends_now, *everything)
        return Interval(
            self.within.low + low * self._width, self.within.low + high * self._width, "empirical bernstein"
        )

    def _advance(self, stop: int) -> None:
        import numpy as np

        floors = self._sides[0].advance(self._done, stop)
        ceilings = self._included - self._sides[1].advance(self._done, stop)
        self._done = stop
        agreeing = int(np.count_nonzero(floors <= ceilings))
        if agreeing:
            self._ends = float(floors[agreeing - 1]), float(ceilings[agreeing - 1])

    def _limits(self, strata: Iterable[int]) -> tuple[float, float]:
        """Return the least and greatest contribution of the strata that the known values and the range allow."""
        least = math.fsum(self.weights[k] * self._sums[k][0] / self.totals[k] for k in strata)
        most = math.fsum(self.weights[k] * (1 - self._sums[k][1] / self.totals[k]) for k in strata)
        return least, most


def _within_limits(ends: tuple[float, float], least: float, most: float) -> tuple[float, float]:
    """Clip the ends to the values that the known documents and the range allow; if outside, return those."""
    low, high = max(ends[0], least), min(ends[1], most)
    return (low, high) if low <= high else (least, max(least, most))


def _check_question(total: int, within: ScoreRange, level: float) -> None:
    """Check the parameters of an interval.

    Raises:
        UsageError: a range without two ends, fewer than one document, a level outside of (0, 1).
    """
    if not 0 < within.high - within.low < math.inf:
        raise UsageError(
            f"confidence sequence: scores from {within}; it needs a range with two ends: state it in metric_list, "
            "such as range: [0, 1]"
        )
    if total < 1:
        raise UsageError(f"confidence sequence: {total} documents; give at least one")
    if not 0 < level < 1:
        raise UsageError(f"confidence sequence: level {level}; give a probability between 0 and 1, such as 0.95")


def _checked_value(low: float, high: float | None, within: ScoreRange) -> tuple[float, float]:
    """Return the least and greatest value of a document.

    Raises:
        UsageError: they lie outside the range, are NaN, or the greatest is below the least.
    """
    most = low if high is None else high
    if within.low <= low <= most <= within.high:
        return low, most
    if not (low <= most and low in within and most in within):  # also where one is NaN
        number = f"{low}" if high is None else f"{low} to {high}"
        raise UsageError(
            f"confidence sequence: a score of {number} in a range from {within}: "
            "the task states a wrong range, or scores wrongly"
        )
    return min(max(low, within.low), within.high), min(max(most, within.low), within.high)
