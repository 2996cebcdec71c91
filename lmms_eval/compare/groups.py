"""Groups of tasks: the mean over their leaves, weighted by size or not, as the runs' own numbers say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lmms_eval.compare.aggregations import column_part
from lmms_eval.compare.benchmarks.contract import Headlines, Kept, Number, TaskPair
from lmms_eval.compare.runs import Column, RunRows
from lmms_eval.compare.strata import Part
from lmms_eval.stats.interval import ANY_NUMBER
from lmms_eval.utils.numbers import SHARES, ScoreRange


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf task in a group's number."""

    pair: TaskPair
    key: str
    weight: float
    scale: float = 1.0
    """What the leaf's number is multiplied by before the mean is taken,"""
    shift: float = 0.0
    """and what is added to it."""


def group_headlines(pairs: Sequence[TaskPair], first: RunRows, second: RunRows) -> Iterator[Headlines]:
    """Yield the number of each group that both runs have.

    A group's rule (which metric of each leaf, which weights) is that of the group as it is installed here, or the
    plain or weighted mean: the first one that gives the numbers of both runs. Without any the group is left out.
    """
    by_task = {pair.task: pair for pair in pairs}
    for group, names in first.groups.items():
        if group not in second.groups:
            continue
        for key in _keys(group, first):
            members = [by_task[name] for name in names if name in by_task]
            leaves = next(
                (
                    one
                    for one in _rules(group, key, members, first)
                    if one and all(_gives(one, group, key, run, side) for side, run in enumerate((first, second)))
                ),
                None,
            )
            if leaves is not None and (made := _headlines(group, key, leaves, first)) is not None:
                yield made


def _keys(group: str, run: RunRows) -> list[str]:
    """Names ``METRIC,FILTER`` of the group's numbers."""
    entry = _results(run, "groups").get(group, {})
    return [
        key
        for key, value in entry.items()
        if "," in key and not key.partition(",")[0].endswith("_stderr") and isinstance(value, int | float)
    ]


def _results(run: RunRows, part: str) -> Mapping[str, Any]:
    found = (run.results or {}).get(part)
    return found if isinstance(found, Mapping) else {}


def _rules(group: str, key: str, members: Sequence[TaskPair], first: RunRows) -> Iterator[list[_Leaf]]:
    having = [pair for pair in members if key in pair.first.columns and key in pair.second.columns]
    sizes = _results(first, "n-samples")
    yield [_Leaf(pair, key, 1.0) for pair in having]
    counts = [sizes.get(pair.task, {}).get("effective") for pair in having]
    if all(isinstance(count, int) and count > 0 for count in counts):
        yield [_Leaf(pair, key, float(count)) for pair, count in zip(having, counts, strict=True) if count]
    yield _installed(group, key, members)


def _installed(group: str, key: str, members: Sequence[TaskPair]) -> list[_Leaf]:
    """Leaves by the rule of a group that names another metric of each of them, put on 0 to 100; empty: none is here."""
    from lmms_eval.errors import LmmsEvalError
    from lmms_eval.tasks.catalogue import Catalogue
    from lmms_eval.tasks.selection import choose

    try:
        groups = choose((group,), Catalogue()).groups
    except LmmsEvalError:
        return []
    metric, _, pipeline = key.rpartition(",")
    wanted = [
        one
        for found in groups
        if found.name == group
        for one in found.metrics
        if one.metric == metric and pipeline in one.filters and one.aggregation == "mean" and one.of
    ]
    leaves = []
    for pair in members if wanted else ():
        own = wanted[0].of.get(pair.task)
        if own is None or own not in pair.first.columns or own not in pair.second.columns:
            continue
        within = pair.first.columns[own].score_range
        if within is None or not math.isfinite(within.high - within.low):
            return []
        scale = 100 / (within.high - within.low)
        leaves.append(_Leaf(pair, own, 1.0, scale, -scale * within.low))
    return leaves


def _gives(leaves: Sequence[_Leaf], group: str, key: str, run: RunRows, side: int) -> bool:
    """Tell whether the leaves' own numbers give that of the group."""
    value = _results(run, "groups").get(group, {}).get(key)
    columns = [(leaf.pair.first, leaf.pair.second)[side].columns[leaf.key] for leaf in leaves]
    numbers = [column.reported for column in columns]
    if not isinstance(value, int | float) or any(number is None for number in numbers):
        return False
    total = math.fsum(
        leaf.weight * (leaf.scale * number + leaf.shift)
        for leaf, number in zip(leaves, numbers, strict=True)
        if number is not None
    )
    return math.isclose(total / math.fsum(leaf.weight for leaf in leaves), value, rel_tol=1e-6, abs_tol=1e-9)


def _headlines(group: str, key: str, leaves: Sequence[_Leaf], first: RunRows) -> Headlines | None:
    parts: dict[str, Part] = {}
    taken: dict[str, Kept] = {}
    for leaf in leaves:
        made = column_part(leaf.pair, leaf.key, first, leaf.scale, leaf.shift)
        if made is None:
            return None
        parts[leaf.pair.task], taken[leaf.pair.task] = made
    whole = math.fsum(leaf.weight for leaf in leaves)

    def numbers(values: Mapping[str, float]) -> Mapping[str, float]:
        return {key: math.fsum(leaf.weight * values[leaf.pair.task] for leaf in leaves) / whole}

    columns = [leaf.pair.first.columns[leaf.key] for leaf in leaves]
    metric, _, pipeline = key.rpartition(",")
    unit, within = _unit(leaves, columns)
    number = Number(
        group,
        metric,
        pipeline,
        unit,
        within,
        all(column.higher_is_better is not False for column in columns),
        (f"mean over {len(leaves)} tasks" + ("" if len({one.weight for one in leaves}) == 1 else ", by size"),),
    )
    tasks = {leaf.pair.task: leaf.pair.task for leaf in leaves}
    return Headlines({key: number}, parts, numbers, tasks, {task: one.pairing for task, one in taken.items()})


def _unit(leaves: Sequence[_Leaf], columns: Sequence[Column]) -> tuple[Literal["percent", ""], ScoreRange]:
    if all(column.score_range == SHARES and column.scale == 1 for column in columns):
        return ("percent", SHARES) if all(leaf.scale == 1 for leaf in leaves) else ("", ScoreRange(0.0, 100.0))
    return "", ANY_NUMBER
