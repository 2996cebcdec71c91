"""One-sided limits for a weighted mean of the means of finite lists: macro means and groups of tasks.

The mean of each stratum is unknown, and only their weighted sum θ = Σ w_k μ_k is asked for. The documents are taken
into account by rounds: round ρ of R is, in each stratum, those from (ρ − 1)/R to ρ/R of its own random order. One
process runs over all strata together,

    exp( Σ λ_i (x_i − c_i) − ψ(λ_i) (x_i − g_i)² ),   ψ(λ) = − log(1 − λ) − λ,

with c_i the mean of what is left of the document's stratum and g_i a guess made before: a supermartingale for values
from 0 to 1 (Howard, Ramdas, McAuliffe and Sekhon 2021, "Time-uniform, nonparametric, nonasymptotic confidence
sequences", Annals of Statistics 49, theorem 4; without replacement: Waudby-Smith and Ramdas, NeurIPS 2020, theorem
3.2). As c_i = (N_k μ_k − sum so far) / (values left), the stakes of a round can be chosen such that the unknown means
come in as Σ w_k μ_k alone; hence no correction for the number of strata, and errors add up as those of independent
parts do. The capital is spread over several rates, each exponential in θ, and the limit is where their sum reaches 1/α.

Documents of a round that is not yet complete in all strata wait, so that strata may come in any order; which of them
come first must not depend on the values to come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.int64]

MOST_ROUNDS = 1000
LEFT_OUT = 0.005
"""Weight of the strata that may have fewer documents than there are rounds; the range alone bounds what they lack."""
MOST = 0.75
"""Greatest stake of a document, as a share of the range."""
_RATES = 8
_RATIO = 2.0
_NEWTON_STEPS = 20


@dataclass(frozen=True, slots=True)
class Plan:
    """The documents of the strata that have a place in every round, by round; fixed before the first value."""

    rounds: int
    is_included: list[bool]
    place: Places
    """Of each document in round order: its place in stratum order."""
    ends: Places
    """Documents in the first 0, 1, 2, ... rounds."""
    left: Floats
    """Documents of the stratum that are left, this one included."""
    before: Floats
    """Documents of the stratum that came before."""
    share: Floats
    """Weight of the document in the mean: w_k / N_k."""
    stake: Floats
    """Stake at rate 1."""
    growth: Floats
    """Of each round: the coefficient of θ at rate 1."""
    rates: Floats
    scale: Floats
    """Rates × rounds: by how much stakes are cut so that none exceeds ``MOST``."""

    @classmethod
    def of(cls, totals: Sequence[int], weights: Sequence[float], alpha: float) -> Plan:
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
        # Within a round as 1 / (values left), with which the sample mean is used best.
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
    """As many as the documents of the strata, but of some that weigh next to nothing."""
    missing = 0.0
    for total, weight in sorted(zip(totals, weights, strict=True)):
        missing += weight
        if missing > LEFT_OUT:
            return min(total, MOST_ROUNDS)
    return MOST_ROUNDS  # not reached: the weights sum to 1


def rounds_before(count: Any, total: Any, rounds: int) -> Any:
    """The complete rounds of a stratum of which ``count`` documents are there, that is ⌊ρ N / R⌋ for the greatest ρ."""
    return ((count + 1) * rounds + total - 1) // total - 1


class StrataFloor:
    """Limit below which the weighted mean of the included strata does not lie."""

    def __init__(self, plan: Plan, total: int, alpha: float) -> None:
        import numpy as np

        self._plan = plan
        self._threshold = math.log(_RATES / alpha)
        self.values, self.sums_before = np.zeros(total), np.zeros(total)
        self._constant, self._slope = np.zeros(_RATES), np.zeros(_RATES)
        self._shares, self._weighted = 0.0, 0.0
        self.bound = 0.0

    def advance(self, start: int, stop: int) -> Floats:
        """Limits after each of the rounds ``start`` to ``stop``, without ``stop``; they never fall."""
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
        """The θ at which Σ exp(constant − slope θ) is the threshold, for each column."""
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
