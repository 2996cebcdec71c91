"""Contract of the benchmarks' modules: numbers computed from the documents that two runs share."""

from __future__ import annotations

import math
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
    missing: int = 0
    """Documents without a score that ``ends`` are about."""
    ends: Mapping[str, tuple[MeanPart, MeanPart]] | None = None
    """By part, the ones with the least and the greatest difference that documents without a score allow; ``None`` if
    their range lacks an end."""


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
    missing: list[tuple[Any, Any]]
    """The values of documents that lack one because of a run; ``None`` for those that are missing."""
    missing_clusters: list[Hashable] | None
    """The clusters of these documents."""

    def ends(
        self,
        scores: Sequence[tuple[float, float]],
        missing: Sequence[tuple[float | None, float | None]],
        within: ScoreRange,
    ) -> tuple[MeanPart, MeanPart] | None:
        """Return the parts with the least and the greatest difference; ``None`` if the range lacks an end.

        Args:
            scores: numbers of the documents in ``values``.
            missing: numbers of the documents in ``missing``; ``None`` for unknown ones.
            within: the range of the numbers. It is not used if a number lies outside.
        """
        if not math.isfinite(within.high - within.low) or not all(one in within for pair in scores for one in pair):
            return None
        clusters = self.clusters
        if clusters is not None and self.missing_clusters is not None:
            clusters = [*clusters, *self.missing_clusters]
        least, greatest = (
            MeanPart.of(
                [*scores, *[(first if a is None else a, second if b is None else b) for a, b in missing]], clusters
            )
            for first, second in ((within.low, within.high), (within.high, within.low))
        )
        return least, greatest

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
    missing_rows: list[tuple[int, int]] = []
    missing: list[tuple[Any, Any]] = []
    unscored, failed = [0, 0], [0, 0]
    sides = (pair.first, pair.second)
    for row in zip(pair.first_rows.tolist(), pair.second_rows.tolist(), strict=True):
        found = [value(side, place) for side, place in zip(sides, row, strict=True)]
        for number, side in enumerate(sides):
            if found[number] is None:
                counts = failed if side.statuses[row[number]] == "failed" else unscored
                counts[number] += 1
        if found[0] is not None and found[1] is not None:
            rows.append(row)
            values.append((found[0], found[1]))
        elif found != [None, None] or any(
            side.statuses[place] != "scored" for side, place in zip(sides, row, strict=True)
        ):
            missing_rows.append(row)
            missing.append((found[0], found[1]))
    return Kept(
        values,
        _clusters(pair, rows),
        Pairing(
            paired=len(rows),
            only_first=len(pair.first.ids) - len(pair.first_rows),
            only_second=len(pair.second.ids) - len(pair.first_rows),
            unscored=(unscored[0], unscored[1]),
            failed=(failed[0], failed[1]),
        ),
        missing,
        _clusters(pair, missing_rows),
    )


def _clusters(pair: Shared, rows: Sequence[tuple[int, int]]) -> list[Hashable] | None:
    """Return the clusters of documents by their rows in both runs, from the first run that names them."""
    named = [(side.clusters, number) for number, side in enumerate((pair.first, pair.second)) if side.clusters]
    if not named:
        return None
    found: list[Hashable] = []
    for row in rows:
        names = [clusters[row[number]] for clusters, number in named]
        found.append(next((name for name in names if name is not None), ("document", row[0])))
    return found
