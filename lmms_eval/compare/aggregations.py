"""Aggregations of a task that are no mean (F1, medians, a function of the task's own), called on redrawn documents."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval.api.outcome import Estimate, Withheld
from lmms_eval.compare.benchmarks.contract import Headlines, Kept, Number, TaskPair, kept
from lmms_eval.compare.runs import Column, RunRows, TaskRows
from lmms_eval.compare.strata import FunctionPart, MeanPart, Part
from lmms_eval.errors import LmmsEvalError
from lmms_eval.metrics.table import AGGREGATIONS, METRICS
from lmms_eval.stats.interval import ANY_NUMBER

Aggregation = Callable[[Sequence[Any]], float]


def own_aggregations(
    pairs: Sequence[TaskPair], first: RunRows, is_owned: Callable[[str, str], bool]
) -> Iterator[Headlines]:
    """Yield the number of each column that both runs have and that is no mean over its documents.

    Left out: columns that a benchmark's module makes, functions that take the command line or the task (they write
    files), and those that do not give the number which the run itself has.
    """
    for pair in pairs:
        for key, column in pair.first.columns.items():
            other = pair.second.columns.get(key)
            if other is None or (column.scale and other.scale) or is_owned(pair.task, key):
                continue
            made = function_part(pair, key, first)
            if made is None:
                continue
            part, taken = made
            number = Number(
                pair.task,
                column.metric,
                column.filter,
                unit="",
                within=column.score_range or ANY_NUMBER,
                higher_is_better=column.higher_is_better is not False,
            )
            tasks, pairings = {pair.task: pair.task}, {pair.task: taken.pairing}
            yield Headlines({pair.task: number}, {pair.task: part}, dict, tasks, pairings)


def function_part(pair: TaskPair, key: str, first: RunRows) -> tuple[FunctionPart, Kept] | None:
    """Make the part of a column by its aggregation; ``None`` where that is not at hand, or gives other numbers."""
    function = _aggregation(pair.task, pair.first.columns[key].metric, first.results or {})
    if function is None:
        return None
    for side in (pair.first, pair.second):
        if not _gives(function, side, side.columns[key]):
            return None
    taken = kept(pair, lambda side, row: side.raw(key, row))
    if not taken.values:
        return None
    firsts, seconds = [one for one, _ in taken.values], [two for _, two in taken.values]
    return FunctionPart(function, firsts, seconds, pair.clusters(taken.rows)), taken


def column_part(
    pair: TaskPair, key: str, first: RunRows, scale: float = 1.0, shift: float = 0.0
) -> tuple[Part, Kept] | None:
    """Make the part of a column whose value is ``scale`` times the task's own number, plus ``shift``."""
    column, other = pair.first.columns[key], pair.second.columns[key]
    if not (column.scale and other.scale):
        made = function_part(pair, key, first)
        if made is None:
            return None
        own = made[0].function
        return replace(made[0], function=lambda items: scale * own(items) + shift), made[1]
    taken = kept(pair, lambda side, row: _number(side.columns[key], row))
    if not taken.values:
        return None
    values = [(scale * column.scale * a + shift, scale * other.scale * b + shift) for a, b in taken.values]
    return MeanPart.of(values, pair.clusters(taken.rows)), taken


def _number(column: Column, row: int) -> float | None:
    score = float(column.scores[row])
    return score if math.isfinite(score) else None


def _gives(function: Aggregation, side: TaskRows, column: Column) -> bool:
    """Tell whether the function gives the number that the run has, where it has one."""
    values = [value for row in range(len(side.ids)) if (value := side.raw(str(column), row)) is not None]
    if column.reported is None or not values:
        return False
    try:
        found = function(values)
    except Exception:  # noqa: BLE001 - a task's own function
        return False
    return math.isclose(found, column.reported, rel_tol=1e-6, abs_tol=1e-9)


def _aggregation(task: str, metric: str, results: Mapping[str, Any]) -> Aggregation | None:
    name = _stated(task, metric, results)
    if name in AGGREGATIONS:
        return _plain(AGGREGATIONS[name].function())
    function = _installed(task, metric)
    return None if function is None or len(inspect.signature(function).parameters) != 1 else _plain(function)


def _stated(task: str, metric: str, results: Mapping[str, Any]) -> str:
    """Return the name of the aggregation in the run's results, else the metric's usual one."""
    config = results.get("configs", {}).get(task, {})
    for entry in config.get("metric_list") or ():
        if entry.get("metric") == metric and entry.get("aggregation"):
            return str(entry["aggregation"])
    return METRICS[metric].aggregation if metric in METRICS else ""


def _installed(task: str, metric: str) -> Callable[..., Any] | None:
    """Return the aggregation of the task that is installed here; ``None`` where there is none of that name."""
    from lmms_eval.api.task import TaskOptions
    from lmms_eval.tasks.catalogue import Catalogue
    from lmms_eval.tasks.selection import select_tasks

    try:
        chosen = select_tasks((task,), Catalogue(), TaskOptions()).tasks
    except LmmsEvalError:
        return None
    if len(chosen) != 1 or chosen[0].name != task:
        return None
    return next((one.aggregation for one in chosen[0].metrics if one.name == metric), None)


def _plain(function: Callable[..., Any]) -> Aggregation:
    """Take the number out of what an aggregation returns; NaN where it withholds it."""

    def value(items: Sequence[Any]) -> float:
        found = function(list(items))
        if isinstance(found, Withheld):
            return math.nan
        if isinstance(found, Estimate):
            found = found.value
        return math.nan if found is None else float(found)

    return value
