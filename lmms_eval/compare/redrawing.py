"""Interval, test and error of a benchmark's number, by redrawing its parts for both runs at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval import stats
from lmms_eval.compare.benchmarks.contract import Headlines
from lmms_eval.compare.strata import FunctionPart, MeanPart, PairedStratum, sign_sums, weights_of

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import NDArray

MOST_VALUES = 3_000_000
"""Most documents' values passed to a task's own functions, over all redraws of a number."""
FEW = 10
"""A function of fewer documents (clusters) is not redrawn, since too few draws differ."""
_EXACT = 12
"""Up to this many units, the permutation test enumerates all changes of sides."""
_LEAST_DRAWS = 0.9
"""An interval needs this share of redraws with a number."""


class Redrawing(Struct, frozen=True):
    """Settings of redraws."""

    level: float = 0.95
    draws: int = 10_000
    own_draws: int = 1_000
    """Redraws of numbers whose own function is called for every redraw."""
    seed: int = 0


USUAL = Redrawing()


class Redrawn(Struct, frozen=True):
    """The difference in one number, by redraws."""

    parts: Sequence[str]
    """Parts of the number."""
    bounds: stats.Interval | None = None
    reason: str = ""
    """Why the interval is missing."""
    p: float | None = None
    test: str = ""
    error: float = math.nan
    freedom: float = 0.0
    note: str = ""


def redraw(headlines: Headlines, sides: Sequence[Mapping[str, float]], options: Redrawing) -> dict[str, Redrawn]:
    """Redraw the documents of all parts and return interval and test of each number made of them.

    For weighted sums of the parts' values, the interval comes from ``draws`` redraws of the parts' means (Rao and Wu),
    or from Student's t with Satterthwaite's degrees of freedom if these are below 29; the test is the permutation test
    that swaps the sides of documents (clusters). For other numbers, the benchmark's rule is called for each redraw.

    Args:
        headlines: parts and rule.
        sides: the numbers of both runs over all documents.
        options: level, redraws and seed.

    Raises:
        LmmsEvalError: a number declared as a weighted sum of its parts is not one.
    """
    if not headlines.is_linear:
        return _general(headlines, sides, options)
    weights = weights_of(headlines.parts, headlines.numbers)
    differences = _Differences(headlines.parts, options)
    return {
        key: differences.of(weights[key], number.within.high) if key in weights else Redrawn((), reason="no part")
        for key, number in headlines.rows.items()
    }


class _Differences:
    """The differences of parts, redrawn once and summed with the weights of each number."""

    def __init__(self, parts: Mapping[str, PairedStratum], options: Redrawing) -> None:
        import numpy as np

        self.parts, self.options = parts, options
        self.rng = np.random.default_rng(options.seed)
        own = [part for part in parts.values() if isinstance(part, FunctionPart)]
        self.draws = _own_draws(own, options) if own else options.draws
        self.redrawn: dict[str, NDArray[float64]] = {}
        for name, part in parts.items():
            both = part.redrawn(self.draws, self.rng)
            self.redrawn[name] = both[:, 0] - both[:, 1]
        self.spreads = {name: self._spread(name) for name in parts}
        self.is_own = bool(own)

    def of(self, weights: Mapping[str, float], best: float) -> Redrawn:
        """Return interval, p and error of a weighted sum, whose greatest value is ``best``."""
        import numpy as np

        units = sum(self.parts[name].units for name in weights)
        tested = self._tested(weights)
        if units == len(weights):
            return replace(tested, reason="n = 1" if units == 1 else "n = 1 in every part")
        if self.is_own and units < FEW:
            return replace(tested, reason=f"n = {units}: too few for redraws of this aggregation")
        shares = [abs(weight) for weight in weights.values()]
        spread = stats.MeanSpread.stratified([self.spreads[name] for name in weights], shares)
        error, freedom = spread.error * math.fsum(shares), spread.freedom
        value = math.fsum(weight * self._value(name) for name, weight in weights.items())
        drawn = np.zeros(self.draws)
        for name, weight in weights.items():
            drawn += weight * self._with_noise(name, weights)
        known = drawn[np.isfinite(drawn)]
        if len(known) < _LEAST_DRAWS * self.draws:
            return replace(tested, reason="too few redraws have a number")
        if not error > 1e-12 * max(1.0, abs(value)):
            return self._alike(tested, weights, spread.size, best)
        if freedom < stats.MANY - 1 and not self.is_own:
            half = stats.quantile(freedom, self.options.level) * error
            bounds = stats.Interval(value - half, value + half, "t, stratified")
        else:
            bounds = _percentiles(known, self.options.level)
        note = f"{self.draws:,} redraws of the task's own function" if self.is_own else ""
        return replace(tested, bounds=bounds, error=error, freedom=freedom, note=note)

    def _alike(self, tested: Redrawn, weights: Mapping[str, float], size: float, best: float) -> Redrawn:
        """Return the interval of right-or-wrong scores whose differences are equal in every part.

        It is the score interval of paired proportions over as many documents as a plain sample with the information of
        all parts would have. Other scores have none, since nothing limits how little they may spread.
        """
        import numpy as np

        from lmms_eval.stats.differences import Discordant, tango_interval

        parts = {name: part for name in weights if isinstance(part := self.parts[name], MeanPart)}
        right = max(
            (float(part.sums.max(initial=0.0)) for part in parts.values() if (part.sizes == 1).all()), default=0
        )
        if len(parts) < len(weights) or not all(np.isin(part.sums, (0.0, right)).all() for part in parts.values()):
            return replace(tested, reason="no spread")
        whole = math.fsum(abs(weight) for weight in weights.values())
        if not right:  # every score is 0, so the greatest one follows from the range of the number
            right = best / whole
        if not 0 < right < math.inf:
            return replace(tested, reason="no spread")
        shares = {name: weight / whole * np.sign(self._value(name)) for name, weight in weights.items()}
        wins = math.fsum(share for share in shares.values() if share > 0)
        losses = -math.fsum(share for share in shares.values() if share < 0)
        level = self.options.level
        low, high = (whole * right * end for end in tango_interval(Discordant(wins * size, losses * size, size), level))
        error = (high - low) / 2 / stats.quantile(math.inf, level)
        bounds = stats.Interval(low, high, "tango, no spread")
        return replace(tested, bounds=bounds, error=error, freedom=math.inf)

    def _value(self, name: str) -> float:
        first, second = self.parts[name].whole()
        return first - second

    def _spread(self, name: str) -> stats.MeanSpread:
        """Return the spread of a part's difference; the spread of a function comes from its redraws."""
        import numpy as np

        part = self.parts[name]
        if isinstance(part, MeanPart):
            # ratio of sums: deviations of units from what their size predicts
            deviations = part.sums[:, 0] - part.sums[:, 1] - self._value(name) * part.sizes
            scaled = deviations * part.units / part.documents
            return stats.MeanSpread.of_scores(scaled.tolist())
        known = self.redrawn[name][np.isfinite(self.redrawn[name])]
        error = float(np.std(known, ddof=1)) if part.units > 1 and len(known) > 1 else math.nan
        return stats.MeanSpread(error, part.units - 1, part.units)

    def _with_noise(self, name: str, weights: Mapping[str, float]) -> NDArray[float64]:
        """Return the redraws of a part. A part of a single unit gets the variance of a unit of the other parts."""
        import numpy as np

        if self.parts[name].units > 1:
            return self.redrawn[name]
        others = [self.spreads[one] for one in weights if self.parts[one].units > 1]
        variance = math.fsum(one.error**2 * one.size for one in others) / len(others)
        noise: NDArray[float64] = self.redrawn[name] + math.sqrt(variance) * self.rng.standard_normal(self.draws)
        return np.asarray(noise)

    def _tested(self, weights: Mapping[str, float]) -> Redrawn:
        import numpy as np

        if self.is_own:
            p, test = self._swapped_p(weights)
            return Redrawn(tuple(weights), p=p, test=test)
        changes = [
            weight * (part.sums[:, 0] - part.sums[:, 1]) / part.documents
            for name, weight in weights.items()
            if isinstance(part := self.parts[name], MeanPart)
        ]
        p, test = _sign_p(np.concatenate(changes), self.draws, self.rng)
        return Redrawn(tuple(weights), p=p, test=test)

    def _swapped_p(self, weights: Mapping[str, float]) -> tuple[float | None, str]:
        import numpy as np

        value = math.fsum(weight * self._value(name) for name, weight in weights.items())
        drawn = np.zeros(self.draws)
        for name, weight in weights.items():
            both = self.parts[name].swapped(self.draws, self.rng)
            drawn += weight * (both[:, 0] - both[:, 1])
        return _p_of(value, drawn)


def _general(headlines: Headlines, sides: Sequence[Mapping[str, float]], options: Redrawing) -> dict[str, Redrawn]:
    """Redraw numbers by calling the benchmark's rule for every redraw of the parts."""
    import numpy as np

    rng = np.random.default_rng(options.seed)
    parts = headlines.parts
    draws = _own_draws([part for part in parts.values() if isinstance(part, FunctionPart)], options)
    found: dict[str, list[NDArray[float64]]] = {key: [] for key in headlines.rows}
    for is_swapped in (False, True):
        drawn = {n: part.swapped(draws, rng) if is_swapped else part.redrawn(draws, rng) for n, part in parts.items()}
        values = [
            [headlines.numbers({name: float(both[draw, side]) for name, both in drawn.items()}) for side in (0, 1)]
            for draw in range(draws)
        ]
        for key in found:
            found[key].append(np.asarray([a.get(key, math.nan) - b.get(key, math.nan) for a, b in values]))
    units = sum(part.units for part in parts.values())
    result = {}
    for key, (redrawn, swapped) in found.items():
        p, test = _p_of(sides[0][key] - sides[1][key], swapped)
        error = float(np.std(redrawn, ddof=1))
        one = Redrawn(tuple(parts), p=p, test=test)
        if units == len(parts):
            one = replace(one, reason="n = 1 in every part")
        elif not error > 0:
            one = replace(one, reason=f"{redrawn[0]:.3g} in every redraw")
        else:
            bounds = _percentiles(redrawn, options.level)
            one = replace(one, bounds=bounds, error=error, freedom=units - len(parts), note=f"{draws:,} redraws")
        result[key] = one
    return result


def _own_draws(parts: Sequence[FunctionPart], options: Redrawing) -> int:
    documents = sum(part.documents for part in parts)
    return max(100, min(options.own_draws, MOST_VALUES // max(1, documents)))


def _percentiles(drawn: NDArray[float64], level: float) -> stats.Interval:
    import numpy as np

    low, high = np.quantile(drawn, (0.5 - level / 2, 0.5 + level / 2))
    return stats.Interval(float(low), float(high), "bootstrap percentile")


def _sign_p(changes: NDArray[float64], draws: int, rng: Generator) -> tuple[float, str]:
    """Return the two-sided p of a sum whose terms have either sign if the runs are alike (Fisher 1935)."""
    import numpy as np

    changed = changes[changes != 0]
    value = math.fsum(changed)
    if len(changed) <= _EXACT:
        signs = 1 - 2 * ((np.arange(2 ** len(changed))[:, None] >> np.arange(len(changed))) & 1)
        sums = signs @ changed
        return float(np.mean(np.abs(sums) >= abs(value) - _slack(changed))), "permutation exact"
    sums = sign_sums(changed, draws, rng)
    return (1 + int(np.sum(np.abs(sums) >= abs(value) - _slack(changed)))) / (1 + draws), "permutation"


def _slack(changes: NDArray[float64]) -> float:
    """Return the largest difference of sums that count as equal."""
    return 1e-12 * float(abs(changes).sum())


def _p_of(value: float, drawn: NDArray[float64]) -> tuple[float | None, str]:
    """Return the two-sided p of a value among draws that swap documents' answers between the sides."""
    import numpy as np

    known = drawn[np.isfinite(drawn)]
    if len(known) < _LEAST_DRAWS * len(drawn):
        return None, ""
    slack = 1e-12 * max(abs(value), float(np.abs(known).max(initial=0.0)))
    return (1 + int(np.sum(np.abs(known) >= abs(value) - slack))) / (1 + len(known)), "permutation"
