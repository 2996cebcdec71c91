"""The samples that a report shows: those of an outcome, of some numbers, or that fit an expression."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmms_eval.compare.runs import TaskRows
from lmms_eval.errors import DataError
from lmms_eval.results.run_reader.columns import column_names
from lmms_eval.results.run_reader.sample import Sample
from lmms_eval.utils.where import Where
from lmms_eval.viewer.options import ReportOptions
from lmms_eval.viewer.runs import ReportRun

_LONGEST = 300
"""Characters of an option that a page repeats."""


@dataclass(slots=True)
class Selection:
    """Samples of one task of a run."""

    run: ReportRun
    task: TaskRows
    options: ReportOptions
    problems: list[str] = field(default_factory=list)

    def rows(self) -> list[int]:
        """Return the numbers of the samples that are shown, in the order of the task."""
        found: list[int] = []
        for row in range(len(self.task.ids)):
            if len(found) == self.options.limit:
                break
            if self._takes(row):
                found.append(row)
        return found

    def _takes(self, row: int) -> bool:
        if self.options.only_failed and self.task.statuses[row] != "failed":
            return False
        choice = self.options.choice
        if choice.where is None:
            return choice.ids is None or choice.takes(Sample(self.task.task, {"doc_id": self.task.ids[row]}))
        try:
            return any(choice.takes(sample) for sample in samples_of(self.run, self.task, row))
        except DataError as error:
            self.problems.append(str(error))
            return False


def lines_of(task: TaskRows, row: int) -> list[Mapping[str, Any]]:
    """Read the lines of a sample; of a run of another format one in the form of ours. Raises ``DataError``."""
    found = list(task.lines(row))
    if found:
        return found
    answer = task.answer(row)
    line: dict[str, Any] = {"doc_id": task.ids[row], "status": task.statuses[row]}
    if answer is not None:
        line |= {"filtered_resps": answer.text, "target": answer.target, "input": answer.prompt}
    numbers = {column.metric: column.scores[row].item() for column in task.columns.values()}
    doc = {name: values[row] for name, values in task.metadata().items() if values[row] is not None}
    line |= {"doc": doc} if doc else {}
    return [line | {metric: number for metric, number in numbers.items() if not math.isnan(number)}]


def samples_of(run: ReportRun, task: TaskRows, row: int) -> Iterator[Sample]:
    """Read a sample through each of its filter pipelines. Raises ``DataError``."""
    keys = run.keys(task.task)
    for line in lines_of(task, row):
        yield Sample(task.task, line, keys)


def check_columns(runs: Sequence[ReportRun], where: Where | None) -> tuple[ReportRun, ...]:
    """Check that the columns of an expression exist; a run that lacks one says so among its problems.

    Raises:
        WhereError: no run has a column.
    """
    if where is None:
        return tuple(runs)
    known = [_known(run, set(where.columns)) for run in runs]
    where.check(set[str]().union(*known))
    return tuple(
        replace(run, problems=(*run.problems, f"--where: no sample here has {', '.join(map(repr, missing))}"))
        if (missing := [name for name in where.columns if name not in names])
        else run
        for run, names in zip(runs, known, strict=True)
    )


def _known(run: ReportRun, wanted: set[str]) -> set[str]:
    """Collect names of columns until all that are wanted are among them."""
    known: set[str] = set()
    for task in run.rows.tasks.values():
        for row in range(len(task.ids)):
            try:
                known |= set[str]().union(*map(column_names, samples_of(run, task, row)))
            except DataError:
                continue  # the writer of the samples says so
            if wanted <= known:
                return known
    return known


def options_told(options: ReportOptions) -> list[str]:
    """Return the options by which samples are chosen, as they are written; none where all are shown."""
    choice = options.choice
    return [
        *(["--only failed"] if options.only_failed else []),
        *([f"--ids {str(choice.ids)[:_LONGEST]}"] if choice.ids is not None else []),
        *([f"--where {choice.where.text[:_LONGEST]}"] if choice.where is not None else []),
        *([f"--limit {options.limit}"] if options.limit is not None else []),
    ]
