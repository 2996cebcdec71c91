"""A task's scores by the values of its documents' metadata."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.results.cells import Asked, Cell, Documents, cells, divisions, whole_cell
from lmms_eval.results.run_reader.document import metric_range, part_of
from lmms_eval.results.run_reader.metadata import metadata_of
from lmms_eval.results.run_reader.run import Run, RunTask
from lmms_eval.results.run_reader.sample import Sample
from lmms_eval.results.table import interval_text
from lmms_eval.utils.markdown import Column, escaped, markdown_table

_LONGEST = 60
FEW = "few"
"""Mark of numbers that rest on few documents."""


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


def breakdown(run: Run, task: RunTask, metric: str = "") -> Breakdown:
    """Divide a task's documents by every column of metadata with few values.

    The number of a part is the mean of its documents' scores, with the interval of the project's rule; scores of the
    first filter pipeline count.

    Args:
        run: the run.
        task: one of its tasks.
        metric: the metric; the task's first one if it is empty.

    Raises:
        DataError: a sample cannot be read.
    """
    outcomes: Counter[str] = Counter()
    rows = _Rows()
    pipeline: str | None = None
    for sample in task.samples():
        if sample.status != "failed":
            pipeline = sample.filter if pipeline is None else pipeline
            if sample.filter != pipeline:
                continue
        outcomes[sample.outcome] += 1
        metric = metric or _first_metric(sample)
        rows.add(sample, metric)
    documents = rows.documents(run, task, metric)
    found = [whole_cell(documents)]
    for division in divisions(metadata_of(len(rows.ids), enumerate(rows.fields))):
        found += cells(documents, division)
    note = _note(run, task.name, f"{metric},{pipeline}", found[0].mean)
    return Breakdown(task.name, metric, pipeline or "", tuple(found), dict(outcomes), note)


@dataclass(slots=True)
class _Rows:
    """The samples of a pipeline, as columns."""

    ids: list[str] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    clusters: list[str | None] = field(default_factory=list)
    fields: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, sample: Sample, metric: str) -> None:
        number = sample.number(metric) if sample.status == "scored" else None
        self.ids.append(sample.doc_id)
        self.numbers.append(math.nan if number is None else number)
        self.clusters.append(sample.cluster)
        self.fields.append(sample.fields)

    def documents(self, run: Run, task: RunTask, metric: str) -> Documents:
        return Documents.of(
            self.numbers,
            metric_range(run.document, task.name, metric),
            None if task.keys.cluster_key is None else self.clusters,
            None if task.early_stop is None else Asked.find(task.early_stop, task.name, self.ids),
        )


def _first_metric(sample: Sample) -> str:
    names = sample.keys.metrics or tuple(sample.metrics)
    return next((name for name in names if sample.number(name) is not None), "")


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
