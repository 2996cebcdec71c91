"""Differences of runs of which one stopped early, by a confidence sequence: valid at whatever look it stopped.

Both runs are followed along the random order of the one that stopped first: its documents are a random sample of all,
taken one after the other, and so are the differences over them. What is not known of a difference (a document without
a score) enters with the least and the greatest value that it can have.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmms_eval.compare.options import CompareOptions
from lmms_eval.compare.runs import TaskRows
from lmms_eval.engine.order import STRATA, place_in
from lmms_eval.results.run_reader.document import EarlyStop
from lmms_eval.stats.interval import ANY_NUMBER, Interval, NoInterval
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from numpy import bool_
    from numpy.typing import NDArray

    from lmms_eval.compare.matching import PairedColumn

TEST = "confidence sequence"
_SHARES_OF_ALPHA = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 4096, 16384)
_ABOVE_ALPHA = (0.5, 0.2, 0.1)


@dataclass(frozen=True, slots=True)
class SequentialFinding:
    """The difference over all documents of the task, by those that were asked."""

    interval: Interval | NoInterval
    p: float | None = None
    """The smallest of a list of levels at which the interval leaves 0 out, there and at all greater ones; valid at
    every look."""
    equivalence_p: float | None = None
    """The same for the interval lying within the margin."""
    test: str = ""
    note: str = ""


def sequential(column: PairedColumn, options: CompareOptions, where: NDArray[bool_] | None = None) -> SequentialFinding:
    """Follow the differences of a column in the order in which the documents were asked.

    Args:
        column: the paired scores.
        options: level and margin.
        where: marks the documents of a part, whose difference it then is.
    """
    first, second = column.shared.first, column.shared.second
    stops = [task.early_stop for task in (first, second) if task.early_stop is not None]
    if len({(stop.order, stop.of) for stop in stops}) > 1:
        return SequentialFinding(NoInterval("stopped early in different random orders"))
    if any(stop.order.startswith(STRATA) for stop in stops):
        return SequentialFinding(NoInterval("stopped early over strata: only --until decided:RUN tells the difference"))
    if not math.isfinite(column.within.high - column.within.low):
        why = "no range known" if column.within == ANY_NUMBER else f"range {column.within}"
        return SequentialFinding(NoInterval(f"stopped early, {why}"))
    shorter = min((task for task in (first, second) if task.early_stop is not None), key=lambda task: len(task.ids))
    if shorter.early_stop is None or (places := _in_order(column, shorter, shorter.early_stop)) is None:
        return SequentialFinding(NoInterval("stopped early in an order that is not known here"))
    # A document that one run lacks may belong to the part, with any difference.
    inside = None if where is None else [place is None or bool(where[place]) for place in places]
    differences = [_ends(column, place) for place in places]
    look = _Look(differences, shorter.early_stop.of, _range_of_differences(column.within), inside)
    margin = options.margin
    stopped = "both" if len(stops) > 1 else "one of them"
    return SequentialFinding(
        interval=look.interval(1 - options.alpha),
        p=_smallest_level(lambda one: one.low > 0 or one.high < 0, look, options.alpha),
        equivalence_p=None
        if margin is None
        else _smallest_level(lambda one: -margin < one.low and one.high < margin, look, options.alpha),
        test=TEST,
        note=f"valid although {stopped} stopped early: over the first {len(differences):,} of "
        f"{shorter.early_stop.of:,} documents of the random order",
    )


class _Look:
    """The interval of the differences at the last look, at any level."""

    def __init__(
        self, differences: list[tuple[float, float]], total: int, within: ScoreRange, inside: list[bool] | None
    ) -> None:
        self._differences, self._total, self._within = differences, total, within
        self._inside = inside
        """Of a part: marks of its documents."""

    def interval(self, level: float) -> Interval:
        from lmms_eval.stats.sequence import Sampled

        if self._inside is not None:
            return self._of_part(self._inside, level)
        sampled = Sampled(self._total, self._within, level)
        for low, high in self._differences:
            sampled.add(low, high)
        return sampled.interval()

    def _of_part(self, inside: list[bool], level: float) -> Interval:
        import numpy as np

        from lmms_eval.stats.cell_sequence import sampled_cells

        low, width = self._within.low, self._within.high - self._within.low
        ends = (np.array(self._differences).reshape(-1, 2) - low) / width
        codes = np.where(inside, 0, -1)
        ((least,), (most,)) = sampled_cells(ends[:, 0], ends[:, 1], codes, 1, self._total, level)
        return Interval(low + width * float(least), low + width * float(most), "betting")


def _smallest_level(holds: Callable[[Interval], bool], look: _Look, alpha: float) -> float:
    """Go from great to small levels for as long as the statement holds; 1 if it never does."""
    levels = (*(one for one in _ABOVE_ALPHA if one > alpha), *(alpha / share for share in _SHARES_OF_ALPHA))
    held = list(itertools.takewhile(lambda level: holds(look.interval(1 - level)), levels))
    return held[-1] if held else 1.0


def _range_of_differences(within: ScoreRange) -> ScoreRange:
    return ScoreRange(within.low - within.high, within.high - within.low)


def _in_order(column: PairedColumn, shorter: TaskRows, stop: EarlyStop) -> list[int | None] | None:
    """Places among the shared documents in the order of asking (``None``: one run lacks it), if that is known."""
    try:
        order = sorted(range(len(shorter.ids)), key=lambda row: place_in(stop.order, shorter.task, shorter.ids[row]))
    except ValueError:
        return None
    rows = column.shared.first_rows if shorter is column.shared.first else column.shared.second_rows
    places = {int(row): place for place, row in enumerate(rows)}
    return [places.get(row) for row in order]


def _ends(column: PairedColumn, place: int | None) -> tuple[float, float]:
    """The least and greatest value of a difference; a document that one run lacks is known of no side."""
    within = column.within

    def side(score: float) -> tuple[float, float]:
        return (score, score) if math.isfinite(score) else (within.low, within.high)

    first = side(math.nan if place is None else float(column.first[place]))
    second = side(math.nan if place is None else float(column.second[place]))
    return first[0] - second[1], first[1] - second[0]
