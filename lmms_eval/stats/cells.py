"""Means over the cells of a division of documents, with their spreads and intervals, for all cells at once.

The numbers equal those of ``MeanSpread.of_scores`` and ``MeanSpread.clustered`` for each cell, and are computed fast
enough for many columns of many documents.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.stats.interval import MeanSpread, dominant_share, exchangeable_variance, needs_bound
from lmms_eval.stats.sequence import GREATEST_STAKE, rates
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.typing import NDArray

    Floats = NDArray[float64]
    Codes = NDArray[intp]
    Values = NDArray[float64]

_STRETCH = math.log(1.05)
_HALVINGS, _STEPS = 5, 9


def sampled_cells(
    lows: Floats, highs: Floats, codes: Codes, count: int, total: int, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals for the means of ``count`` cells over all ``total`` documents.

    With probability ``level`` an interval contains its mean at every look at once. The level holds for each cell, not
    for all cells together.

    Args:
        lows: values from 0 to 1 of the first documents in their random order.
        highs: the same values, or larger ones for values that are not known.
        codes: the cell number of each document; −1 for documents without a cell.
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
    # Limits that have crossed are wrong, which the level allows for; the range of possible values remains.
    crossed = ends[0] > ends[1]
    return np.where(crossed, least, ends[0]), np.where(crossed, np.maximum(least, most), ends[1])


class _Stakes(Struct, frozen=True):
    """Stakes on the first documents of a list, at several rates."""

    stretch: Codes
    """For each document the number of its stretch; stakes are constant within a stretch."""
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
        of_stretch = np.minimum(each * np.exp(_STRETCH * np.arange(number)), GREATEST_STAKE)
        parts = of_stretch[:, stretch] / left
        later = parts.sum(axis=1, keepdims=True) - np.cumsum(parts, axis=1)
        return cls(stretch, of_stretch, later)


class _Bets(Struct, frozen=True):
    """Bets on the documents of all cells; equal documents are counted together."""

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
    """Return lower limits of the cells' means, rounded downwards. Each fails with probability ``alpha``."""
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
        # The Illinois rule: the end that stays counts half, so that the other end moves too.
        above, below = np.where(is_out, found, above / 2), np.where(is_out, below / 2, found)
        low, high = np.where(is_out, middle, low), np.where(is_out, high, middle)
    return np.where(has_floor, low, 0.0)


def cell_means(
    scores: Values, codes: Codes, count: int, within: ScoreRange, clusters: Codes | None = None
) -> list[tuple[int, float, MeanSpread]]:
    """Compute the number of documents, the mean (NaN without documents) and the spread of each cell.

    Args:
        scores: one score for each document, without NaN.
        codes: the cell number of each document, below ``count``; documents with other numbers belong to no cell.
        count: number of cells.
        within: the range of a score.
        clusters: the cluster number of each document, if documents come in clusters.
    """
    import numpy as np

    order = np.argsort(codes, kind="stable")
    order = order[(codes[order] >= 0) & (codes[order] < count)]
    cells = _Groups.of(codes[order], count)
    values = scores[order]
    means = cells.means(values)
    deviations = values - means[codes[order]]
    squares = cells.sums(deviations**2)
    if clusters is None:
        spreads = _of_scores(values, deviations, squares, cells, within)
    else:
        spreads = _clustered(values, deviations, squares, cells, clusters[order], within)
    return list(zip(cells.sizes.tolist(), means.tolist(), spreads, strict=True))


class _Groups(Struct, frozen=True):
    """Consecutive documents that belong together, by number of their group."""

    codes: Codes
    """For each document, in ascending order."""
    sizes: Codes

    @classmethod
    def of(cls, codes: Codes, count: int) -> _Groups:
        import numpy as np

        return cls(codes, np.bincount(codes, minlength=count).astype(np.intp))

    def means(self, values: Values) -> Values:
        """Compute the exactly rounded means; NaN of empty groups."""
        import numpy as np

        listed, start = values.tolist(), 0
        found = np.full(len(self.sizes), np.nan)
        for group, size in enumerate(self.sizes.tolist()):
            if size:
                found[group] = math.fsum(listed[start : start + size]) / size
            start += size
        return found

    def sums(self, values: Values | NDArray[bool_]) -> Values:
        import numpy as np

        return np.bincount(self.codes, weights=values, minlength=len(self.sizes)).astype(np.float64)

    def all_of(self, marks: NDArray[bool_]) -> NDArray[bool_]:
        """Mark the groups whose documents are all marked."""
        holds: NDArray[bool_] = self.sums(marks) == self.sizes
        return holds

    def are_alike(self, values: Values) -> NDArray[bool_]:
        """Mark the groups whose documents all have one value."""
        import numpy as np

        firsts = np.concatenate((np.zeros(1, np.intp), np.cumsum(self.sizes)[:-1]))
        return self.all_of(values == values[firsts[self.codes]])

    def freedom(self, deviations: Values) -> Values:
        """Degrees of freedom of each group's variance, by its kurtosis (``interval.variance_freedom``)."""
        import numpy as np

        largest = np.zeros(len(self.sizes))
        np.maximum.at(largest, self.codes, np.abs(deviations))
        scale = np.where(largest > 0, largest, 1.0)
        squares = (deviations / scale[self.codes]) ** 2
        second, fourth = self.sums(squares), self.sums(squares**2)
        kurtosis = np.divide(self.sizes * fourth, second**2, out=np.ones(len(scale)), where=second > 0)
        usual: Values = self.sizes.astype(np.float64) - 1
        by_kurtosis = np.divide(2.0 * self.sizes, kurtosis - 1, out=usual.copy(), where=kurtosis > 1)
        found: Values = np.where(kurtosis > 1, np.minimum(usual, np.maximum(2.0, by_kurtosis)), usual)
        return found


def _of_scores(
    values: Values, deviations: Values, squares: Values, cells: _Groups, within: ScoreRange
) -> list[MeanSpread]:
    """Spreads of the means of documents drawn independently (``MeanSpread.of_scores``)."""
    import numpy as np

    is_bounded = math.isfinite(within.high - within.low)
    binary = is_bounded & cells.all_of((values == within.low) | (values == within.high))
    freedom = np.where(is_bounded & ~binary, cells.freedom(deviations), cells.sizes - 1.0)
    alike = cells.are_alike(values)
    found, start = [], 0
    for cell, n in enumerate(cells.sizes.tolist()):
        error = math.nan if n < 2 else 0.0 if alike[cell] else math.sqrt(squares[cell] / (n - 1) / n)
        silent = 0.0 if error > 0 else 1 / max(1, n)
        is_graded = is_bounded and not binary[cell] and needs_bound(n, float(freedom[cell]))
        graded = tuple(values[start : start + n].tolist()) if is_graded else ()
        found.append(MeanSpread(error, float(freedom[cell]), n, bool(binary[cell]), silent=silent, graded=graded))
        start += n
    return found


def _clustered(
    values: Values, deviations: Values, squares: Values, cells: _Groups, clusters: Codes, within: ScoreRange
) -> list[MeanSpread]:
    """Spreads of the means of documents in clusters, these drawn independently (``MeanSpread.clustered``)."""
    import numpy as np

    width = int(clusters.max(initial=0)) + 1
    keys = cells.codes * width + clusters
    order = np.argsort(keys, kind="stable")
    found, places = np.unique(keys[order], return_inverse=True)
    members = _Groups.of(places.astype(np.intp), len(found))
    units = _Groups.of((found // width).astype(np.intp), len(cells.sizes))
    sums, sizes = members.sums(deviations[order]), members.sizes
    largest = np.zeros(len(cells.sizes), np.intp)
    np.maximum.at(largest, units.codes, sizes)
    whole = cells.sizes[units.codes]
    moved = np.divide(sums, whole - sizes, out=np.zeros(len(sums)), where=whole > sizes)
    centres = units.sums(moved) / np.maximum(1, units.sizes)
    left_out = units.sums((moved - centres[units.codes]) ** 2) * (units.sizes - 1) / np.maximum(1, units.sizes)
    between, of_sizes = units.sums(sums**2 / sizes), units.sums(sizes.astype(np.float64) ** 2)
    unanimous, alike = units.all_of(members.are_alike(values[order])), cells.are_alike(values)
    by_kurtosis = np.where(unanimous, units.sizes - 1.0, units.freedom(sums))
    is_bounded = math.isfinite(within.high - within.low)
    graded = is_bounded & ~cells.all_of((values == within.low) | (values == within.high))
    means, last = members.means(values[order]), np.cumsum(units.sizes).tolist()
    spreads = []
    for cell, (n, count) in enumerate(zip(cells.sizes.tolist(), units.sizes.tolist(), strict=True)):
        effective = n * n / float(of_sizes[cell]) if n else 0.0
        if share := dominant_share(int(largest[cell]), n, count, effective) if n else 0.0:
            spreads.append(MeanSpread(math.nan, count - 1, count, dominant=share))
        elif count < 2 or alike[cell]:
            error = math.nan if count < 2 else 0.0
            spreads.append(MeanSpread(error, count - 1, effective, silent=1 / max(1.0, effective)))
        else:
            model, freedom = exchangeable_variance(float(squares[cell]), float(between[cell]), n, count, effective)
            by_size = freedom if model > left_out[cell] else effective - 1
            error = math.sqrt(max(left_out[cell], model))
            spread = MeanSpread(error, min(float(by_kurtosis[cell]), by_size), effective)
            if graded[cell] and needs_bound(count, float(by_kurtosis[cell])):
                part = slice(last[cell] - count, last[cell])
                spread = replace(spread, graded=tuple(means[part].tolist()), sizes=tuple(sizes[part].tolist()))
            spreads.append(spread)
    return spreads
