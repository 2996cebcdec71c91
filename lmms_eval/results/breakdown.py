"""A task's scores by the values of its documents' metadata."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmms_eval.engine.early import NO_EARLY_INTERVAL
from lmms_eval.results.run_reader.document import metric_range, part_of
from lmms_eval.results.run_reader.metadata import metadata_of
from lmms_eval.results.run_reader.run import Choice, Run, RunTask
from lmms_eval.results.run_reader.sample import Sample
from lmms_eval.results.table import interval_text
from lmms_eval.stats import MANY, Interval, Spread, score_interval
from lmms_eval.stats.interval import range_of_scores
from lmms_eval.utils.markdown import Column, escaped, markdown_table
from lmms_eval.utils.numbers import ScoreRange

MOST_CELLS = 24
"""A column with more values is left out."""
_LONGEST = 60
FEW = "few"
"""Mark of numbers that rest on fewer documents than the normal quantile needs."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The mean of a metric over the documents with one value of a column."""

    by: str
    """The column; empty for all documents."""
    value: str
    n: int
    mean: float | None
    low: float | None
    high: float | None
    no_interval: str = ""
    """Why there is no interval."""

    @property
    def is_few(self) -> bool:
        return self.n < MANY


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A metric of a task through one filter pipeline."""

    task: str
    metric: str
    filter: str
    cells: tuple[Cell, ...]
    """All documents first, then value by value of each column."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """Samples by outcome, those without a number too."""
    note: str = ""


def breakdown(run: Run, task: RunTask, metric: str = "", chosen: Choice | None = None) -> Breakdown:
    """Divide a task's documents by every column of metadata with few values.

    The number of a part is the mean of its documents' scores, with the interval of the project's rule; scores of the
    first filter pipeline count.

    Args:
        run: the run.
        task: one of its tasks.
        metric: the metric; the task's first one if it is empty.
        chosen: the samples that count.

    Raises:
        DataError: a sample cannot be read.
    """
    outcomes: Counter[str] = Counter()
    numbers: list[float] = []
    fields: list[Mapping[str, Any]] = []
    pipeline: str | None = None
    for sample in task.samples(chosen):
        if sample.status != "failed":
            pipeline = sample.filter if pipeline is None else pipeline
            if sample.filter != pipeline:
                continue
        outcomes[sample.outcome] += 1
        metric = metric or _first_metric(sample)
        if (number := sample.number(metric)) is not None and sample.status == "scored":
            numbers.append(number)
            fields.append(sample.fields)
    within = range_of_scores(numbers, metric_range(run.facts, task.name, metric))
    columns = metadata_of(len(fields), enumerate(fields))
    cells = [_cell("", "", numbers, within)]
    for name, values in columns.items():
        found = sorted({value for value in values if value is not None})
        if 2 <= len(found) <= MOST_CELLS:
            cells += (
                _cell(name, one, [n for n, value in zip(numbers, values, strict=True) if value == one], within)
                for one in found
            )
    if reason := _no_plain_interval(run, task.name):
        cells = [replace(cell, low=None, high=None, no_interval=reason) for cell in cells]
    note = _note(run, task.name, f"{metric},{pipeline}", cells[0].mean) if chosen is None else ""
    return Breakdown(task.name, metric, pipeline or "", tuple(cells), dict(outcomes), note)


def _no_plain_interval(run: Run, task: str) -> str:
    """Tell why intervals of independent documents, whose number was settled beforehand, do not hold; empty if they
    do."""
    if part_of(run.facts, "early_stop", task):
        return NO_EARLY_INTERVAL
    return "clusters" if part_of(run.facts, "configs", task).get("cluster_key") else ""


def _first_metric(sample: Sample) -> str:
    names = sample.keys.metrics or tuple(sample.metrics)
    return next((name for name in names if sample.number(name) is not None), "")


def _cell(by: str, value: str, numbers: Sequence[float], within: ScoreRange) -> Cell:
    if not numbers:
        return Cell(by, value, 0, None, None, None, "n = 0")
    mean = math.fsum(numbers) / len(numbers)
    found = score_interval(mean, Spread.of_scores(numbers, within), within)
    if isinstance(found, Interval):
        return Cell(by, value, len(numbers), mean, found.low, found.high)
    return Cell(by, value, len(numbers), mean, None, None, found.reason)


def _note(run: Run, task: str, column: str, mean: float | None) -> str:
    """Say where the task's own number is none of the mean of its documents."""
    reported = part_of(run.document, "results", task).get(column)
    if not isinstance(reported, int | float) or mean is None:
        return ""
    if any(math.isclose(reported, scale * mean, rel_tol=1e-6, abs_tol=1e-9) for scale in (1, 100)):
        return ""
    return f"the task's own number is {reported:.4f}, which is no mean over documents; below stand means"


def breakdown_text(found: Breakdown) -> str:
    """Write a breakdown as Markdown: n and interval beside every number, few documents marked."""
    lines = [f"{escaped(found.task)}: {escaped(found.metric)}, {escaped(found.filter)}"]
    lines += ["outcomes: " + ", ".join(f"{count} {name}" for name, count in found.outcomes.items())]
    lines += [found.note] if found.note else []
    return "\n".join(lines) + "\n\n" + markdown_table(list(_columns(found.cells))).rstrip("\n")


def _columns(cells: Sequence[Cell]) -> Iterable[Column]:
    yield Column("By", tuple(escaped(cell.by[:_LONGEST]) for cell in cells), is_text=True)
    yield Column("Value", tuple(escaped(cell.value[:_LONGEST]) for cell in cells), is_text=True)
    yield Column("N", tuple(str(cell.n) for cell in cells))
    yield Column("Mean", tuple("" if cell.mean is None else f"{cell.mean:.4f}" for cell in cells))
    yield Column("CI95", tuple(interval_text(cell.low, cell.high, cell.no_interval) for cell in cells), is_text=True)
    yield Column("", tuple(FEW if cell.is_few else "" for cell in cells), is_text=True)
