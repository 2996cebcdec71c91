"""Contract of the benchmarks' modules: numbers computed from the documents that two runs share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.compare.matching import Shared
from lmms_eval.compare.runs import TaskRows
from lmms_eval.compare.strata import MeanPart, Numbers, PairedStratum
from lmms_eval.compare.verdicts import Pairing
from lmms_eval.utils.numbers import SHARES, ScoreRange


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

    headlines: Callable[[Sequence[Shared]], Iterator[Headlines]]
    """The benchmark's numbers over the tasks that two runs share."""
    owns: Callable[[str, str], bool] = lambda _task, _column: False
    """Whether the number of a task's column (``METRIC,FILTER``) is computed only by this benchmark."""


class Kept(Struct, frozen=True):
    """Documents with a value in both runs."""

    values: list[tuple[Any, Any]]
    clusters: list[Hashable] | None
    """``None`` if the task has no clusters. A document without a cluster is its own cluster."""
    pairing: Pairing

    def means(self, name_of: Callable[[Any], str]) -> dict[str, MeanPart]:
        """Return the mean scores of the documents by a name, which their values in the first run give."""
        places: dict[str, list[int]] = {}
        for place, (value, _) in enumerate(self.values):
            places.setdefault(name_of(value), []).append(place)
        return {
            name: MeanPart.of(
                [(float(self.values[place][0]["score"]), float(self.values[place][1]["score"])) for place in own],
                None if self.clusters is None else [self.clusters[place] for place in own],
            )
            for name, own in places.items()
        }


def scored(column: str) -> Callable[[TaskRows, int], Mapping[str, Any] | None]:
    """Return a function that reads a row's value in a column if it has a ``score``."""

    def value(side: TaskRows, row: int) -> Mapping[str, Any] | None:
        found = side.raw(column, row)
        return found if isinstance(found, Mapping) and found.get("score") is not None else None

    return value


def kept(pair: Shared, value: Callable[[TaskRows, int], Any]) -> Kept:
    """Return the documents of a task that have a ``value`` other than ``None`` in both runs."""
    rows: list[tuple[int, int]] = []
    values: list[tuple[Any, Any]] = []
    unscored, failed = [0, 0], [0, 0]
    for row in zip(pair.first_rows.tolist(), pair.second_rows.tolist(), strict=True):
        found = [value(side, place) for side, place in zip((pair.first, pair.second), row, strict=True)]
        for number, side in enumerate((pair.first, pair.second)):
            if found[number] is None:
                counts = failed if side.statuses[row[number]] == "failed" else unscored
                counts[number] += 1
        if found[0] is not None and found[1] is not None:
            rows.append(row)
            values.append((found[0], found[1]))
    side, number = (pair.first, 0) if pair.first.clusters is not None else (pair.second, 1)
    clusters: list[Hashable] | None = None
    if side.clusters is not None:
        names = [(row[number], side.clusters[row[number]]) for row in rows]
        clusters = [("document", place) if name is None else name for place, name in names]
    return Kept(
        values,
        clusters,
        Pairing(
            paired=len(rows),
            only_first=len(pair.first.ids) - len(pair.first_rows),
            only_second=len(pair.second.ids) - len(pair.first_rows),
            unscored=(unscored[0], unscored[1]),
            failed=(failed[0], failed[1]),
        ),
    )
