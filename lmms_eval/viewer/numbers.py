"""Numbers of a run's page: rows of results and breakdowns by metadata."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval.compare.runs import Column, TaskRows
from lmms_eval.results.audit import CHOSEN
from lmms_eval.results.cells import Asked, Cell, Documents, cells, divisions, whole_cell
from lmms_eval.results.run_reader.document import part_of
from lmms_eval.results.run_reader.sample import finite
from lmms_eval.stats import NoInterval
from lmms_eval.viewer.runs import ReportRun
from lmms_eval.viewer.samples import TaskFacts

Plain = dict[str, Any]
"""An object of JSON."""


def result_rows(run: ReportRun) -> list[Plain]:
    """List the numbers of a run: as its results document states them, else means over the documents."""
    results = part_of(run.document, "results")
    if not results or run.rows.kind != "lmms_eval":
        return [_mean_row(run, task, column) for task in run.rows.tasks.values() for column in _with_scores(task)]
    return [row for name in results for row in stated_rows(run.document, name)]


def _with_scores(task: TaskRows) -> list[Column]:
    return [column for column in task.columns.values() if not all(math.isnan(score) for score in column.scores)]


def _mean_row(run: ReportRun, task: TaskRows, column: Column) -> Plain:
    cell = whole_cell(_Task.of(run, task).documents(column))
    row: Plain = {"task": task.task, "metric": column.metric, "filter": column.filter, **_plain(cell, column)}
    if column.reported is not None and column.scale == 0:  # the whole is no mean: the documents give no interval of it
        row |= {"value": column.reported, "low": None, "high": None}
    elif column.reported is not None:
        row["value"] = column.reported
    return row | {"higher": column.higher_is_better is not False}


def stated_rows(document: Mapping[str, Any], name: str) -> Iterator[Plain]:
    """Go through the numbers of a task or group as its results document states them."""
    entry, outcome = part_of(document, "results", name), part_of(document, "outcomes", name)
    counts, partial = part_of(outcome, "n"), part_of(outcome, "partial")
    for key, count in counts.items():
        metric, _, pipeline = key.rpartition(",")
        interval = part_of(document, "intervals", name).get(key) or {}
        part = part_of(partial, key)
        if key in (outcome.get("wrote_files") or ()):
            continue
        yield {
            "task": name,
            "metric": metric,
            "filter": pipeline,
            "value": finite(entry.get(key)),
            "stderr": finite(entry.get(f"{metric}_stderr,{pipeline}")),
            "low": finite(interval.get("low")),
            "high": finite(interval.get("high")),
            "method": interval.get("method") or interval.get("reason") or "",
            "n": count,
            "higher": part_of(document, "higher_is_better", name).get(metric) is not False,
            **({"partial": part.get("value"), "withheld": str(part.get("reason", ""))} if part else {}),
        }


@dataclass(frozen=True, slots=True)
class _Task:
    """Facts of a task that the numbers of all its metrics share."""

    clusters: Sequence[str | None] | None
    asked: Asked | NoInterval | None

    @classmethod
    def of(cls, run: ReportRun, task: TaskRows) -> _Task:
        has_clusters = task.clusters is not None or run.facts(task.task).cluster_key is not None
        return cls(
            (task.clusters or [None] * len(task.ids)) if has_clusters else None,
            None if task.early_stop is None else Asked.find(task.early_stop, task.task, task.ids),
        )

    def documents(self, column: Column) -> Documents:
        return Documents.of(column.scores, column.score_range, self.clusters, self.asked)


def breakdowns(run: ReportRun, task: TaskRows, shown: TaskFacts, without_interval: str = "") -> list[Plain]:
    """Divide the documents by every column of metadata with few values: number, mean and interval of each metric.

    Args:
        run: the run.
        task: one of its tasks.
        shown: its samples that the report lists; the others stand in no part.
        without_interval: reason for which no part has an interval.
    """
    facts = _Task.of(run, task)
    columns = [(column, facts.documents(column)) for column in _with_scores(task)]
    # Of samples that an expression has chosen, perhaps by their scores, no interval holds.
    reason = CHOSEN if shown.is_chosen else without_interval
    without: Plain = {"low": None, "high": None, "method": reason} if reason else {}
    return [
        {
            "column": division.column,
            "metrics": {
                str(column): [
                    {"name": cell.value, **_plain(cell, column), **without} for cell in cells(documents, division)
                ]
                for column, documents in columns
            },
        }
        for division in (divisions(_of_all(shown, len(task.ids))) if columns else ())
    ]


def _of_all(shown: TaskFacts, count: int) -> Mapping[str, Sequence[str | None]]:
    """Return the columns of metadata with a place for each of the task's samples."""
    if len(shown.rows) == count:
        return shown.metadata
    columns: dict[str, list[str | None]] = {name: [None] * count for name in shown.metadata}
    for name, values in shown.metadata.items():
        for row, value in zip(shown.rows, values, strict=True):
            columns[name][row] = value
    return columns


def _plain(cell: Cell, column: Column) -> Plain:
    """Write a cell in the units of the run's own number."""
    scale = column.scale or 1.0
    value, low, high = (None if end is None else end * scale for end in (cell.mean, cell.low, cell.high))
    method = cell.method or cell.no_interval
    return {"n": cell.n, "value": value, "low": low, "high": high, "method": method, "few": cell.is_few}
