"""The difference of two runs in one column: value, interval and p, before the correction over the comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lmms_eval.compare.early import sequential
from lmms_eval.compare.matching import PairedColumn
from lmms_eval.compare.options import CompareOptions
from lmms_eval.compare.verdicts import Bounds, Difference, Sensitivity
from lmms_eval.stats.interval import Interval, NoInterval

if TYPE_CHECKING:
    from numpy import bool_
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Found:
    """A difference with what its verdict needs; its family is not known yet."""

    row: Difference
    spread: float
    """Standard deviation of one document's difference; NaN: not known, so that nothing follows for other sizes."""
    equivalence_p: float | None = None
    """That the difference is as large as the margin; ``None`` without a margin or a test."""


def find_difference(column: PairedColumn, options: CompareOptions, where: NDArray[bool_] | None = None) -> Found | None:
    """Compare the documents of a column, or those of a part of them; ``None`` where no document has both numbers.

    Args:
        column: the paired scores.
        options: level, margin and draws.
        where: marks the documents of the part.
    """
    import numpy as np

    inside = np.ones(len(column.first), bool) if where is None else where
    paired = column.has_both & inside
    count = int(paired.sum())
    if not count:
        return None
    first, second = column.first[paired], column.second[paired]
    better = column.better()[paired]
    row = Difference(
        name=column.task,
        metric=column.metric,
        filter=column.filter,
        first=math.fsum(first) / count,
        second=math.fsum(second) / count,
        value=math.fsum(first - second) / count,
        interval=None,
        p=None,
        pairing=column.shared.counts(np.isfinite(column.first), np.isfinite(column.second), inside),
        unit="percent" if column.is_share else "",
        notes=column.notes,
        higher_is_better=column.higher_is_better,
        changed=(int((better > 0).sum()), int((better < 0).sum())),
        sensitivity=_sensitivity(column, inside, count),
    )
    if not column.is_mean:
        row = replace(row, notes=(*row.notes, "means over documents, not the task's own number"))
    if column.shared.stopped_early:
        return _of_early(row, column, inside, options)
    return _of_all(row, column, paired, options)


def _of_all(row: Difference, column: PairedColumn, paired: NDArray[bool_], options: CompareOptions) -> Found:
    from lmms_eval.stats.differences import PairOptions, compare_pairs
    from lmms_eval.stats.equivalence import equivalence_p

    names = column.shared.clusters
    clusters = None if names is None else [name for name, has in zip(names, paired, strict=True) if has]
    found = compare_pairs(
        column.first[paired],
        column.second[paired],
        clusters,
        PairOptions(level=1 - options.alpha, draws=options.draws, seed=options.seed, within=column.within),
    )
    interval, reason = _bounds(found.interval)
    return Found(
        replace(row, interval=interval, no_interval=reason, p=found.p, test=found.test),
        found.spread,
        equivalence_p(found, options.margin) if options.margin is not None and interval else None,
    )


def _bounds(interval: Interval | NoInterval) -> tuple[Bounds | None, str]:
    if isinstance(interval, NoInterval):
        return None, interval.reason
    return Bounds(interval.low, interval.high, interval.method), ""


def _of_early(row: Difference, column: PairedColumn, inside: NDArray[bool_], options: CompareOptions) -> Found:
    """Interval and test by a confidence sequence, which holds whenever a run was stopped."""
    import numpy as np

    found = sequential(column, options, None if inside.all() else inside)
    interval, reason = _bounds(found.interval)
    notes = (*row.notes, found.note) if found.note else row.notes
    return Found(
        replace(row, interval=interval, no_interval=reason, p=found.p, test=found.test, notes=notes),
        math.nan
        if interval is None or row.pairing.paired < 2
        else float(np.nanstd((column.first - column.second)[inside], ddof=1)),
        found.equivalence_p,
    )


def _sensitivity(column: PairedColumn, inside: NDArray[bool_], paired: int) -> Sensitivity | None:
    """Count documents without a number as wrong; ``None`` where there is none, or no worst score is known."""
    import numpy as np

    documents = int(inside.sum())
    worst = column.within.low if column.higher_is_better else column.within.high
    if documents == paired or not math.isfinite(worst):
        return None
    sides = (np.where(np.isfinite(side), side, worst)[inside] for side in (column.first, column.second))
    first, second = (math.fsum(side) / documents for side in sides)
    return Sensitivity(first - second, documents)
