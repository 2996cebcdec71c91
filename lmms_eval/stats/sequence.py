"""Intervals for the mean of a finite list, valid at every look while its values come in random order.

The ordinary interval is right for one look at a number of documents that was fixed before. These ones hold the mean
over all documents of the task at all looks at once with the stated probability, so a run may be watched and stopped as
soon as the interval says enough (``docs/certainty.md``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lmms_eval.errors import UsageError
from lmms_eval.stats.betting import Floor
from lmms_eval.stats.interval import Interval
from lmms_eval.stats.strata import Plan, StrataFloor, rounds_before
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from lmms_eval.stats.betting import Floats

BLOCK = 128
"""Values after which the window of candidates is narrowed to the interval."""
_NARROWER = 0.7
_DOCUMENTS_AT_ONCE = 4096


class Sampled:
    """Interval for the mean of ``total`` values ``within`` a range, of which some are known, in random order.

    The values are fixed and the order is random: nothing is assumed of how they spread, nor that documents are
    independent of each other. With probability ``level`` the interval holds the mean over all ``total`` values after
    every ``add`` at once. After the last one it is the exact mean. It depends on the values and their order, not on
    when it was asked for.

    A difference of two runs over the same documents is a value from −1 to 1 (scores from 0 to 1): give the differences
    and ``ScoreRange(-1, 1)``, one for each document in the order that both runs share.

    Limits are computed to about a thousandth of the interval's width and rounded outwards.

    Raises:
        UsageError: a range without two ends, fewer than one document, a level outside of (0, 1).
    """

    def __init__(self, total: int, within: ScoreRange, level: float = 0.95) -> None:
        _check_question(total, within, level)
        self.total, self.within, self.level = total, within, level
        self._width = within.high - within.low
        self._low, self._high = Floor(total, (1 - level) / 2), Floor(total, (1 - level) / 2)
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
        """Take the next document of the random order.

        ``high`` is given where its number is not known (failed, not scored): it lies between ``low`` and ``high``.

        Raises:
            UsageError: the number lies outside of the range, or all documents were there already.
        """
        value = _checked_value(low, high, self.within)
        if self.seen >= self.total:
            raise UsageError(f"confidence sequence: more than {self.total} documents; give each of them once")
        self._waiting.append(value)

    def interval(self) -> Interval:
        """Interval of the mean of all ``total`` values, in their units."""
        self._work()
        return Interval(self._in_units(self._ends[0]), self._in_units(self._ends[1]), "betting")

    def after_each(self, lows: Sequence[float], highs: Sequence[float] | None = None) -> list[tuple[float, float]]:
        """Take several documents at once; the ends of the interval after each of them.

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
        """Take what waits; the ends after each value, from 0 to 1."""
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
        """Take values from 0 to 1, all of one block; the ends after each."""
        import numpy as np

        count = self._seen + np.arange(1, len(low) + 1)
        both = (self._sums[0], low), (self._sums[1], high)
        sums = [np.cumsum(np.concatenate(([before], values)))[1:] for before, values in both]
        least, most = sums[0] / self.total, (sums[1] + (self.total - count)) / self.total
        floors, ceilings = self._low.add(low), 1 - self._high.add(1 - high)
        self._seen, self._sums = int(count[-1]), (float(sums[0][-1]), float(sums[1][-1]))
        found = []
        for each in zip(floors.tolist(), ceilings.tolist(), least.tolist(), most.tolist(), strict=True):
            # Limits that have crossed are wrong, which is as rare as the level says: the last ones before that stay.
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
    """Interval for Σ w_k μ_k, the weighted mean of the means of finite strata, each of them in a random order.

    With probability ``level`` it holds that number after every ``add`` at once; after the last document it is exact.
    It is tight where the strata are asked at the same pace (document j of N_k at the time (j − ½) / N_k): those that
    are ahead wait for the others. Between rounds, of which there are as many as the smaller strata have documents, only
    the limits that the range sets become narrower. A stratum of which nothing is known counts from end to end of the
    range, as it must.

    ``weights`` are taken as shares of their sum. Of one task use ``Sampled``, which is narrower.

    Raises:
        UsageError: a range without two ends, an empty stratum, weights that are none, a level outside of (0, 1).
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
        self._plan = Plan.of(self.totals, self.weights, alpha)
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
        """Take the next document of a stratum's random order; ``high`` as in ``Sampled.add``.

        Raises:
            UsageError: no such stratum, the number lies outside of the range, all its documents were there already.
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
            self._count_rounds(count, total)

    def _count_rounds(self, count: int, total: int) -> None:
        plan = self._plan
        reached = rounds_before(count, total, plan.rounds) if count < total else plan.rounds
        if reached > rounds_before(count - 1, total, plan.rounds):
            self._reached[reached] += 1
        while self._complete < plan.rounds - 1 and self._reached[self._complete + 1] == self._strata:
            self._complete += 1

    def interval(self) -> Interval:
        """Interval of the weighted mean, in the units of the scores."""
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
        """Least and greatest that the strata may contribute by what was seen and the range."""
        least = math.fsum(self.weights[k] * self._sums[k][0] / self.totals[k] for k in strata)
        most = math.fsum(self.weights[k] * (1 - self._sums[k][1] / self.totals[k]) for k in strata)
        return least, most


def _within_limits(ends: tuple[float, float], least: float, most: float) -> tuple[float, float]:
    """Ends cut to what the values seen and the range leave possible; these alone where the ends lie outside."""
    low, high = max(ends[0], least), min(ends[1], most)
    return (low, high) if low <= high else (least, max(least, most))


def _check_question(total: int, within: ScoreRange, level: float) -> None:
    """Refuse what has no answer.

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
    """Least and greatest value of a document.

    Raises:
        UsageError: they lie outside of the range, are no numbers, or the greatest is below the least.
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
