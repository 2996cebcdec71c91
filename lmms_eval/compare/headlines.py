"""Differences of numbers over several documents or tasks that are no plain mean: groups, aggregations of a task's own,
and the benchmarks' headline numbers, redrawn by their own rules (``docs/statistics.md``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Protocol

from lmms_eval import stats
from lmms_eval.compare.aggregations import own_aggregations
from lmms_eval.compare.benchmarks import BENCHMARKS
from lmms_eval.compare.benchmarks.contract import Headlines, TaskPair
from lmms_eval.compare.groups import group_headlines
from lmms_eval.compare.redrawing import USUAL, Redrawing, redraw
from lmms_eval.compare.runs import RunRows, TaskRows
from lmms_eval.compare.verdicts import Bounds, Difference, Pairing

if TYPE_CHECKING:
    from numpy import intp
    from numpy.typing import NDArray


class SharedRows(Protocol):
    """The rows of a task that two runs share."""

    @property
    def first(self) -> TaskRows: ...

    @property
    def second(self) -> TaskRows: ...

    @property
    def first_rows(self) -> NDArray[intp]: ...

    @property
    def second_rows(self) -> NDArray[intp]: ...


@dataclass(frozen=True, slots=True)
class HeadlineFinding:
    """A difference with what tests against a margin need of it."""

    row: Difference
    error: float
    """Standard error of the difference; NaN where none is known."""
    freedom: float
    """Degrees of freedom of the error."""

    def tail(self, bound: float) -> float | None:
        """One-sided p of the hypothesis that the true difference is ``bound`` or less; ``None`` without an error."""
        if not self.error > 0:
            return None
        statistic = (self.row.value - bound) / self.error
        if self.freedom >= stats.MANY - 1:
            return NormalDist().cdf(-statistic)
        return stats.t_cdf(-statistic, self.freedom)

    def equivalence_p(self, margin: float) -> float | None:
        """The greater p of two one-sided tests that the difference is smaller than the margin."""
        above, below = self.tail(-margin), self.tail(margin)
        return None if above is None or below is None else max(above, 1 - below)


def headline_differences(
    first: RunRows, second: RunRows, pairs: Mapping[str, SharedRows], options: Redrawing = USUAL
) -> list[Difference]:
    """Compare groups, own aggregations and benchmarks' numbers of two runs; see ``find_headlines``."""
    return [found.row for found in find_headlines(first, second, pairs, options)]


def find_headlines(
    first: RunRows, second: RunRows, pairs: Mapping[str, SharedRows], options: Redrawing = USUAL
) -> list[HeadlineFinding]:
    """Compare all numbers of two runs that are no plain mean over the documents of a task.

    Args:
        first, second: the runs.
        pairs: the documents that both have, by task.
        options: level, redraws and seed.

    Raises:
        LmmsEvalError: a benchmark's rule is not the weighted mean that it is said to be.
    """
    tasks = [
        TaskPair(task, one.first, one.second, list(zip(one.first_rows.tolist(), one.second_rows.tolist(), strict=True)))
        for task, one in pairs.items()
    ]
    return [found for headlines in _all(tasks, first, second) for found in _compare(headlines, tasks, options)]


def _all(tasks: Sequence[TaskPair], first: RunRows, second: RunRows) -> Iterator[Headlines]:
    def is_owned(task: str, column: str) -> bool:
        return any(benchmark.owns(task, column) for benchmark in BENCHMARKS)

    yield from own_aggregations(tasks, first, is_owned)
    yield from group_headlines(tasks, first, second)
    for benchmark in BENCHMARKS:
        yield from benchmark.headlines(tasks)


def _compare(headlines: Headlines, tasks: Sequence[TaskPair], options: Redrawing) -> Iterator[HeadlineFinding]:
    wholes = {name: part.whole() for name, part in headlines.parts.items()}
    sides = [headlines.numbers({name: whole[side] for name, whole in wholes.items()}) for side in (0, 1)]
    stopped = {pair.task for pair in tasks if pair.first.early_stop is not None or pair.second.early_stop is not None}
    redrawn = redraw(headlines, sides, options)
    for key, number in headlines.rows.items():
        first, second = (side.get(key, math.nan) for side in sides)
        if not math.isfinite(first - second):
            continue
        found = redrawn[key]
        of_tasks = dict.fromkeys(headlines.tasks[name] for name in found.parts)
        is_stopped = not stopped.isdisjoint(of_tasks)
        bounds = found.bounds
        reason = "a run stopped early: redraws hold for whole runs only" if is_stopped else found.reason
        if bounds is not None and not is_stopped:
            most = number.within.high - number.within.low
            bounds = Bounds(max(bounds.low, -most), min(bounds.high, most), bounds.method)
        row = Difference(
            name=number.name,
            metric=number.metric,
            filter=number.filter,
            first=first,
            second=second,
            value=first - second,
            interval=None if is_stopped else bounds,
            p=None if is_stopped else found.p,
            pairing=_joined([headlines.pairings[task] for task in of_tasks]),
            unit=number.unit,
            no_interval=reason,
            test="" if is_stopped else found.test,
            notes=(*number.notes, *filter(None, [found.note])),
            higher_is_better=number.higher_is_better,
        )
        yield HeadlineFinding(row, math.nan if is_stopped else found.error, found.freedom)


def _joined(pairings: Sequence[Pairing]) -> Pairing:
    return Pairing(
        paired=sum(one.paired for one in pairings),
        only_first=sum(one.only_first for one in pairings),
        only_second=sum(one.only_second for one in pairings),
        unscored=(sum(one.unscored[0] for one in pairings), sum(one.unscored[1] for one in pairings)),
        failed=(sum(one.failed[0] for one in pairings), sum(one.failed[1] for one in pairings)),
    )
