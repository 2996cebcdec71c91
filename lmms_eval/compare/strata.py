"""Parts of a number that are redrawn for two runs at once, with documents drawn within each part.

A part is a task, a data set or a category. A number (a macro mean, a group, a level) is a function of the parts'
values. Both runs get the same draws, so that effects common to both cancel out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from lmms_eval.errors import LmmsEvalError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import NDArray

    Values = NDArray[float64]

_BLOCK = 2_000_000
"""Most random numbers held in memory at once."""

NORMAL_FROM = 5_000
"""With more different sizes, sums of random signs are drawn from their normal limit."""
Numbers = Callable[[Mapping[str, float]], Mapping[str, float]]
"""Function from the values of all parts to the numbers of a benchmark, both by name."""
Sides = tuple[Sequence[Any], Sequence[Any]]
"""Documents' values in the first and in the second run."""


class PairedStratum(Protocol):
    """Documents that both runs have, drawn with replacement."""

    @property
    def documents(self) -> int: ...

    @property
    def units(self) -> int:
        """Number of documents or clusters that are drawn independently."""
        ...

    def whole(self) -> tuple[float, float]:
        """Return the value of the first and of the second run over all documents."""
        ...

    def redrawn(self, draws: int, rng: Generator) -> Values:
        """Return both values (draws × 2) over redrawn documents, the same ones for both runs."""
        ...

    def swapped(self, draws: int, rng: Generator) -> Values:
        """Return both values (draws × 2) with each document's two answers swapped with probability 1/2."""
        ...


class MeanPart(Struct, frozen=True):
    """A part whose value is the mean of its documents' numbers."""

    sums: Values
    """Units × 2: the sum of a unit's scores in the first and in the second run."""
    sizes: Values
    """Number of documents of each unit."""

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]], clusters: Sequence[Hashable] | None = None) -> MeanPart:
        """Make a part from each document's two scores, and its cluster if the task has clusters."""
        import numpy as np

        scores = np.asarray(pairs, dtype=np.float64).reshape(len(pairs), 2)
        if clusters is None:
            return cls(scores, np.ones(len(scores)))
        numbers: dict[Hashable, int] = {}
        places = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
        sums = np.zeros((len(numbers), 2))
        np.add.at(sums, places, scores)
        return cls(sums, np.bincount(places, minlength=len(numbers)).astype(np.float64))

    def scaled(self, scale: float, shift: float) -> MeanPart:
        """Return the part whose value is ``scale`` times this one's, plus ``shift``."""
        return MeanPart(scale * self.sums + shift * self.sizes[:, None], self.sizes)

    @property
    def documents(self) -> int:
        return int(self.sizes.sum())

    @property
    def units(self) -> int:
        return len(self.sizes)

    def whole(self) -> tuple[float, float]:
        return (
            math.fsum(self.sums[:, 0]) / self.documents,
            math.fsum(self.sums[:, 1]) / self.documents,
        )

    def redrawn(self, draws: int, rng: Generator) -> Values:
        """Draw one unit fewer than the part has, so that the variance of the mean is unbiased.

        The method is that of Rao and Wu (1988), "Resampling inference with complex survey data", JASA 83.
        """
        import numpy as np

        rows = np.column_stack([self.sums, self.sizes])
        found, counts = np.unique(rows, axis=0, return_counts=True)
        taken = max(1, self.units - 1)
        drawn = np.empty((draws, 3))
        few = len(found) * 4 < self.units or len(found) < 8
        width = len(found) if few else taken
        for start in range(0, draws, step := max(1, _BLOCK // width)):
            stop = min(draws, start + step)
            if few:
                drawn[start:stop] = rng.multinomial(taken, counts / self.units, size=stop - start) @ found
            else:
                drawn[start:stop] = rows[rng.integers(self.units, size=(stop - start, taken))].sum(axis=1)
        means: Values = drawn[:, :2] / drawn[:, 2:]
        return means

    def swapped(self, draws: int, rng: Generator) -> Values:
        import numpy as np

        middle = self.sums.sum() / 2 / self.documents
        half = sign_sums((self.sums[:, 0] - self.sums[:, 1]) / 2 / self.documents, draws, rng)
        return np.column_stack([middle + half, middle - half])


@dataclass(frozen=True, slots=True)
class FunctionPart:
    """A part whose value is a function of all its documents' values, called once per draw and run."""

    function: Callable[[Sequence[Any]], float]
    """May raise or return NaN for documents without a joint value; the draw is then left out."""
    first: Sequence[Any]
    second: Sequence[Any]
    clusters: Sequence[Hashable] | None = None
    drawn: dict[tuple[str, int], Values] = field(default_factory=dict, compare=False, repr=False)
    """Earlier draws, since a part of several numbers is drawn once."""

    @property
    def documents(self) -> int:
        return len(self.first)

    @property
    def units(self) -> int:
        return len(self._members())

    def whole(self) -> tuple[float, float]:
        return self._value(self.first), self._value(self.second)

    def redrawn(self, draws: int, rng: Generator) -> Values:
        members = self._members()

        def draw() -> tuple[bytes, Sides]:
            chosen = sorted(rng.integers(len(members), size=max(1, len(members) - 1)).tolist())
            places = [place for unit in chosen for place in members[unit]]
            return str(chosen).encode(), ([self.first[p] for p in places], [self.second[p] for p in places])

        return self._values("redrawn", draw, draws)

    def swapped(self, draws: int, rng: Generator) -> Values:
        members = self._members()

        def draw() -> tuple[bytes, Sides]:
            is_swapped = rng.random(len(members)) < 0.5
            sides = list(self.first), list(self.second)
            for place in (place for unit, is_one in zip(members, is_swapped, strict=True) if is_one for place in unit):
                sides[0][place], sides[1][place] = self.second[place], self.first[place]
            return is_swapped.tobytes(), sides

        return self._values("swapped", draw, draws)

    def _members(self) -> list[list[int]]:
        names = range(self.documents) if self.clusters is None else self.clusters
        found: dict[Hashable, list[int]] = {}
        for place, name in enumerate(names):
            found.setdefault(name, []).append(place)
        return list(found.values())

    def _values(self, kind: str, draw: Callable[[], tuple[bytes, Sides]], draws: int) -> Values:
        """Call the function on each draw. Equal draws, which are frequent for few documents, are computed once."""
        import numpy as np

        if (kind, draws) in self.drawn:
            return self.drawn[kind, draws]
        values = self.drawn[kind, draws] = np.empty((draws, 2))
        known: dict[bytes, tuple[float, float]] = {}
        for number in range(draws):
            key, (first, second) = draw()
            if key not in known:
                known[key] = self._value(first), self._value(second)
            values[number] = known[key]
        return values

    def _value(self, items: Sequence[Any]) -> float:
        try:
            return self.function(items)
        except Exception:  # noqa: BLE001 - a task's own function; some documents have no joint value
            return math.nan


def sign_sums(values: Values, draws: int, rng: Generator) -> Values:
    """Draw sums of the values with independent random signs.

    Values of one size are drawn together. With more than ``NORMAL_FROM`` sizes, the normal limit is used.
    """
    import numpy as np

    sizes, counts = np.unique(np.abs(values[values != 0]), return_counts=True)
    sums = np.zeros(draws)
    if not len(sizes):
        return sums
    if len(sizes) > NORMAL_FROM:
        return rng.standard_normal(draws) * math.sqrt(float(counts @ sizes**2))
    for start in range(0, draws, step := max(1, _BLOCK // len(sizes))):
        stop = min(draws, start + step)
        heads = rng.binomial(counts, 0.5, size=(stop - start, len(sizes)))
        sums[start:stop] = (2 * heads - counts) @ sizes
    return sums


def weights_of(parts: Mapping[str, PairedStratum], numbers: Numbers) -> dict[str, dict[str, float]]:
    """Return the weight of each part in each number, for numbers that are linear in the parts' values.

    The function is called with one part at 1 and the others at 0, and the weights are checked on the values of both
    runs.

    Raises:
        LmmsEvalError: the function is not linear.
    """
    nothing = dict.fromkeys(parts, 0.0)
    found: dict[str, dict[str, float]] = {}
    for name in parts:
        for number, weight in numbers({**nothing, name: 1.0}).items():
            if weight:
                found.setdefault(number, {})[name] = weight
    for side in (0, 1):
        values = {name: part.whole()[side] for name, part in parts.items()}
        for number, value in numbers(values).items():
            made = math.fsum(weight * values[name] for name, weight in found.get(number, {}).items())
            if math.isfinite(made) and not math.isclose(made, value, rel_tol=1e-9, abs_tol=1e-9):
                raise LmmsEvalError(f"{number}: {value} of the benchmark is not a weighted mean of its parts ({made})")
    return found
