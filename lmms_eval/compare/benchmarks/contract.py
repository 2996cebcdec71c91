"""Contract of the benchmarks' modules: numbers computed from the documents that two runs share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.compare.runs import TaskRows
from lmms_eval.compare.strata import Numbers, PairedStratum
from lmms_eval.compare.verdicts import Pairing
from lmms_eval.utils.numbers import SHARES, ScoreRange


class TaskPair(Struct, frozen=True):
    """A task of two runs."""

    task: str
    first: TaskRows
    second: TaskRows
    rows: Sequence[tuple[int, int]]
    """Rows of the shared documents in the first and in the second run."""

    def clusters(self, kept: Sequence[tuple[int, int]]) -> list[Hashable] | None:
        """Return the clusters of the documents in these rows; a document without a cluster is its own cluster."""
        side, number = (self.first, 0) if self.first.clusters is not None else (self.second, 1)
        if side.clusters is None:
            return None
        names = [(row[number], side.clusters[row[number]]) for row in kept]
        return [("document", place) if name is None else name for place, name in names]


class Number(Struct, frozen=True):
    """Name, unit and range of a benchmark's number."""

    name: str
    metric: str
    filter: str = "none"
    unit: Literal["percent", ""] = "percent"
    within: ScoreRange = SHARES
    higher_is_better: bool = True
    notes: tuple[str, ...] = ()


class Headlines(Struct, frozen=True):
    """Numbers that are computed from the same parts and redrawn together."""

    rows: Mapping[str, Number]
    """The numbers, by their names in ``numbers``."""
    parts: Mapping[str, PairedStratum]
    numbers: Numbers
    tasks: Mapping[str, str]
    """The task of each part."""
    pairings: Mapping[str, Pairing]
    """By task."""
    is_linear: bool = True
    """Whether the numbers are weighted sums of the parts' values."""


class Benchmark(Struct, frozen=True):
    """A benchmark that computes numbers over several tasks, or aggregations, by its own functions."""

    headlines: Callable[[Sequence[TaskPair]], Iterator[Headlines]]
    """The benchmark's numbers over the tasks that two runs share."""
    owns: Callable[[str, str], bool] = lambda _task, _column: False
    """Whether the number of a task's column (``METRIC,FILTER``) is computed only by this benchmark."""


class Kept(Struct, frozen=True):
    """Documents with a value in both runs."""

    rows: list[tuple[int, int]]
    values: list[tuple[Any, Any]]
    pairing: Pairing


def kept(pair: TaskPair, value: Callable[[TaskRows, int], Any]) -> Kept:
    """Return the documents of a task that have a ``value`` other than ``None`` in both runs."""
    rows: list[tuple[int, int]] = []
    values: list[tuple[Any, Any]] = []
    unscored, failed = [0, 0], [0, 0]
    for row in pair.rows:
        found = [value(side, place) for side, place in zip((pair.first, pair.second), row, strict=True)]
        for number, side in enumerate((pair.first, pair.second)):
            if found[number] is None:
                counts = failed if side.statuses[row[number]] == "failed" else unscored
                counts[number] += 1
        if found[0] is not None and found[1] is not None:
            rows.append(row)
            values.append((found[0], found[1]))
    return Kept(
        rows,
        values,
        Pairing(
            paired=len(rows),
            only_first=len(pair.first.ids) - len(pair.rows),
            only_second=len(pair.second.ids) - len(pair.rows),
            unscored=(unscored[0], unscored[1]),
            failed=(failed[0], failed[1]),
        ),
    )
