"""Runs whose documents have the values that benchmarks' own aggregations take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lmms_eval.compare.headlines import HeadlineFinding, find_headlines
from lmms_eval.compare.matching import Shared
from lmms_eval.compare.redrawing import USUAL, Redrawing
from lmms_eval.compare.runs import MetricColumn, RunRows, TaskRows
from lmms_eval.results.facts import EarlyStop
from lmms_eval.stats import item_number


def rows(task: str, values: Mapping[str, Sequence[Any]], reported: Mapping[str, float] = {}, **facts: Any) -> TaskRows:
    """A task whose documents have these values by ``METRIC,FILTER``; a number in ``reported`` is no mean of them."""
    count = len(next(iter(values.values())))
    columns = {}
    for key, column in values.items():
        numbers = [item_number(value) for value in column]
        scores = np.array([np.nan if number is None else number for number in numbers], dtype=float)
        metric, _, pipeline = key.rpartition(",")
        scale = 0.0 if key in reported else 1.0
        whole = reported.get(key, float(np.nanmean(scores)) if np.isfinite(scores).any() else None)
        columns[key] = MetricColumn(metric, pipeline, scores, facts.get("within"), None, whole, scale)
    statuses = ["scored" if values[next(iter(values))][row] is not None else "unscored" for row in range(count)]
    return TaskRows(
        task,
        [str(number) for number in range(count)],
        statuses,
        columns,
        clusters=facts.get("clusters"),
        raw=lambda key, row: values[key][row] if key in values else None,
        early_stop=EarlyStop(5, 10, "o", "r") if facts.get("is_stopped") else None,
    )


def run(*tasks: TaskRows, **facts: Any) -> RunRows:
    return RunRows("run", "run", "lmms_eval", {task.task: task for task in tasks}, **facts)


def found(first: RunRows, second: RunRows, options: Redrawing = USUAL) -> dict[str, HeadlineFinding]:
    """Headlines by name, over all documents."""
    pairs = {}
    for name, task in first.tasks.items():
        places = np.arange(len(task.ids))
        pairs[name] = Shared(task, second.tasks[name], places, places, 0, 0)
    return {one.row.name: one for one in find_headlines(first, second, pairs, options)}
