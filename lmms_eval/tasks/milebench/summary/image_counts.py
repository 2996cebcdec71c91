"""Scores over the number of images: levels, the curve, and grids of needles."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from lmms_eval.tasks.milebench.facts import datasets
from lmms_eval.tasks.milebench.summary.dataset import DatasetSummary, Moments, NeedleCell, Pair
from lmms_eval.tasks.milebench.summary.figures import Figure, combined_pair, figure, pair_of

BINS: Mapping[str, tuple[int, float]] = {
    "up to 2": (0, 2), "3": (3, 3), "4": (4, 4), "5": (5, 5),
    "6-8": (6, 8), "9-12": (9, 12), "13-20": (13, 20), "21-31": (21, 31),
    "32-48": (32, 48), "49-72": (49, 72), "73 and more": (73, math.inf),
}  # fmt: skip
"""Numbers of images, first and last, of the curve's points; no bin crosses a border between levels."""
ALL, REALISTIC, DIAGNOSTIC = "all", "realistic", "diagnostic"
MAX_TICKS = 12
"""Most ticks; more depths or lengths of needles are grouped into ``GRID_BINS`` ranges of equal width."""
GRID_BINS = 10


class CountPool(Struct, frozen=True):
    """The samples of a scope with certain numbers of images."""

    scope: str
    label: str
    samples: int
    images: float
    """Mean number of images."""
    datasets: int
    by_sample: Pair[Figure]
    """Score with equal weight for every sample."""
    by_dataset: Pair[Figure]
    """Score with equal weight for every data set with such samples."""


class NeedleGrid(Struct, frozen=True):
    """Official scores of a needle data set by depth (rows) and length (columns)."""

    dataset: str
    depths: tuple[str, ...]
    lengths: tuple[str, ...]
    figures: tuple[tuple[Figure | None, ...], ...]
    """Figures by row and column; ``None`` without samples."""
    counts: tuple[tuple[int, ...], ...]

    @property
    def cells(self) -> tuple[tuple[float | None, ...], ...]:
        """Return the values in percent."""
        return tuple(tuple(None if one is None else one.value for one in row) for row in self.figures)


def scopes(summaries: Sequence[DatasetSummary]) -> dict[str, list[DatasetSummary]]:
    """Return all data sets, the two sets, and each diagnostic group, without empty scopes."""
    facts = datasets()
    found: dict[str, list[DatasetSummary]] = {ALL: list(summaries)}
    for name in (REALISTIC, DIAGNOSTIC):
        found[name] = [summary for summary in summaries if facts[summary.dataset].set == name]
    for summary in found[DIAGNOSTIC]:
        found.setdefault(facts[summary.dataset].label, []).append(summary)
    return {name: members for name, members in found.items() if members}


def pools(found: Mapping[str, Sequence[DatasetSummary]], ranges: Mapping[str, tuple[int, float]]) -> list[CountPool]:
    """Return a pool for each scope and range of numbers of images with samples."""
    made = []
    for (scope, summaries), (label, (least, most)) in itertools.product(found.items(), ranges.items()):
        pairs: list[Pair[Figure]] = []
        counts: list[float] = []
        images = 0
        for summary in summaries:
            both = summary.within(least, most)
            if (pair := pair_of(both)) is not None:
                pairs.append(pair)
                counts.append(both.official.count)
                numbers = summary.by_images.items()
                images += sum(number * one.official.count for number, one in numbers if least <= number <= most)
        by_sample, by_dataset = combined_pair(pairs, counts), combined_pair(pairs)
        if by_sample is not None and by_dataset is not None:
            samples = round(math.fsum(counts))
            made.append(CountPool(scope, label, samples, images / samples, len(pairs), by_sample, by_dataset))
    return made


def needle_grids(summaries: Sequence[DatasetSummary]) -> list[NeedleGrid]:
    """Return a grid for every data set that states depth and length of all needles."""
    return [_grid(summary.dataset, summary.needles) for summary in summaries if summary.needles]


def _grid(name: str, cells: Sequence[NeedleCell]) -> NeedleGrid:
    depths, rows = _ticks([cell.depth for cell in cells])
    lengths, columns = _ticks([cell.length for cell in cells])
    members: dict[tuple[int, int], list[Moments]] = {}
    for cell, row, column in zip(cells, rows, columns, strict=True):
        members.setdefault((row, column), []).append(cell.official)
    pools = [
        [Moments.pooled(members.get((row, column), ())) for column in range(len(lengths))] for row in range(len(depths))
    ]
    figures = tuple(tuple(map(figure, row)) for row in pools)
    return NeedleGrid(name, depths, lengths, figures, tuple(tuple(pool.count for pool in row) for row in pools))


def _ticks(given: Sequence[float]) -> tuple[tuple[str, ...], list[int]]:
    """Return the labels of an axis and the place of each value on it.

    Its ticks are the distinct values, or ranges of equal width if there are many.
    """
    ticks = sorted(set(given))
    labels = [f"{value:g}" for value in ticks]
    if len(ticks) > MAX_TICKS:
        width = (ticks[-1] - ticks[0]) / GRID_BINS
        edges = [ticks[0] + number * width for number in range(GRID_BINS + 1)]
        labels, ticks = [f"{low:.3g}-{high:.3g}" for low, high in itertools.pairwise(edges)], edges[:-1]
    return tuple(labels), [bisect.bisect_right(ticks, value) - 1 for value in given]
