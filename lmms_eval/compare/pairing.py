"""The documents that two runs share: by id, and by hash where both carry one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lmms_eval.compare.runs import Column, RunRows, TaskRows
from lmms_eval.compare.verdicts import Pairing
from lmms_eval.errors import DataError, UsageError

if TYPE_CHECKING:
    from numpy import bool_, intp
    from numpy.typing import NDArray

_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Shared:
    """The documents of a task that both runs have, in the order of the first run.

    Runs that stopped early have only the first documents of a random order: two of them share those of the shorter.
    """

    first: TaskRows
    second: TaskRows
    first_rows: NDArray[intp]
    """Rows of the first run, one for each shared document."""
    second_rows: NDArray[intp]
    only_first: int
    only_second: int

    @property
    def clusters(self) -> Sequence[str | None] | None:
        """Names of clusters of all shared documents; ``None``: neither run has any."""
        for task, rows in ((self.first, self.first_rows), (self.second, self.second_rows)):
            if task.clusters is not None:
                return [task.clusters[row] for row in rows]
        return None

    @property
    def stopped_early(self) -> bool:
        """Tell whether a run ended before its documents did."""
        return self.first.early_stop is not None or self.second.early_stop is not None

    def counts(self, has_first: NDArray[bool_], has_second: NDArray[bool_], where: NDArray[bool_]) -> Pairing:
        """Count documents by what the runs have of them.

        Args:
            has_first: which of the shared documents have a number in the first run.
            has_second: the same of the second one.
            where: the part of the documents that is counted; documents of one run alone are counted for all only.
        """
        sides = ((self.first, self.first_rows, has_first), (self.second, self.second_rows, has_second))
        unscored, failed = [], []
        for task, rows, has in sides:
            statuses = [task.statuses[row] for row in rows[~has & where]]
            failed.append(statuses.count("failed"))
            unscored.append(len(statuses) - failed[-1])
        is_whole = bool(where.all())
        return Pairing(
            paired=int((has_first & has_second & where).sum()),
            only_first=self.only_first if is_whole else 0,
            only_second=self.only_second if is_whole else 0,
            unscored=(unscored[0], unscored[1]),
            failed=(failed[0], failed[1]),
        )


def share(first: TaskRows, second: TaskRows, names: tuple[str, str]) -> Shared:
    """Pair the rows of a task by document id.

    Args:
        first: the rows of the first run.
        second: those of the second one.
        names: the two runs, for messages.

    Raises:
        DataError: an id occurs twice in a run, or documents of the same id have different hashes.
    """
    import numpy as np

    rows_of_first, rows_of_second = (_rows_by_id(task, name) for task, name in zip((first, second), names, strict=True))
    ids = [one for one in rows_of_first if one in rows_of_second]
    left = np.fromiter((rows_of_first[one] for one in ids), np.intp, len(ids))
    right = np.fromiter((rows_of_second[one] for one in ids), np.intp, len(ids))
    _refuse_other_documents(first, second, list(zip(ids, left, right, strict=True)), names)
    return Shared(first, second, left, right, len(rows_of_first) - len(ids), len(rows_of_second) - len(ids))


def _rows_by_id(task: TaskRows, run: str) -> dict[str, int]:
    rows = {one.strip(): number for number, one in enumerate(task.ids)}
    if len(rows) < len(task.ids):
        twice = [one for one, count in Counter(map(str.strip, task.ids)).items() if count > 1]
        raise DataError(
            f"{run}: {task.task}: {len(twice)} ids stand in more than one row: {_named(twice)}; give a file with one "
            "row for each document"
        )
    return rows


def _refuse_other_documents(
    first: TaskRows, second: TaskRows, pairs: Sequence[tuple[str, int, int]], names: tuple[str, str]
) -> None:
    if first.hashes is None or second.hashes is None:
        return
    different = [
        one for one, left, right in pairs if (a := first.hashes[left]) and (b := second.hashes[right]) and a != b
    ]
    if different:
        raise DataError(
            f"{first.task}: {len(different)} of {len(pairs)} documents have the same id in {names[0]} and {names[1]} "
            f"but another content (doc_hash): {_named(different)}; the runs asked other questions or another version "
            "of the data, and cannot be compared"
        )


def _named(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return ", ".join(repr(one)[1:-1][:60] for one in ids[:_MOST_NAMED]) + more


def renamed_tasks(runs: Sequence[RunRows], names: Mapping[str, str]) -> list[RunRows]:
    """Give tasks that runs call otherwise one name.

    Args:
        runs: all runs of the comparison.
        names: name in the comparison -> name in the runs that have it not (``--task A=B``).

    Raises:
        UsageError: no run has a task of such a name.
    """
    for wanted, other in names.items():
        for name in (wanted, other):
            if not any(name in run.tasks for run in runs):
                raise UsageError(f"--task {wanted}={other}: no run has a task {name}; they have: {_tasks_of(runs)}")
    return [
        replace(
            run,
            tasks={(new := _name_of(task, run, names)): replace(rows, task=new) for task, rows in run.tasks.items()},
        )
        for run in runs
    ]


def joined_tasks(runs: Sequence[RunRows]) -> list[RunRows]:
    """Give one name to the tasks of runs that have a single one, called after its file, that no other run has."""

    def is_alone(run: RunRows) -> bool:
        (task, rows), *more = run.tasks.items()
        return not more and rows.is_called_after_file and sum(task in other.tasks for other in runs) == 1

    alone = [run.name for run in runs if run.tasks and is_alone(run)]
    found = []
    wanted = ""
    for run in runs:
        task = next(iter(run.tasks), "")
        if run.name in alone:
            wanted = wanted or task
            if task != wanted:
                note = f"{task} is compared with {wanted}: each file holds one task, called after the file"
                rows = replace(run.tasks[task], task=wanted)
                run = replace(run, tasks={wanted: rows}, notes=(*run.notes, note))
        found.append(run)
    return found


def _name_of(task: str, run: RunRows, names: Mapping[str, str]) -> str:
    return next((wanted for wanted, other in names.items() if other == task and wanted not in run.tasks), task)


def shared_tasks(first: RunRows, second: RunRows) -> list[str]:
    """Names of the tasks that both runs have, in the order of the first.

    Raises:
        UsageError: there is none.
    """
    found = [task for task in first.tasks if task in second.tasks]
    if not found:
        hint = ""
        if len(first.tasks) == len(second.tasks) == 1:
            hint = f"; if these are the same documents: --task {next(iter(first.tasks))}={next(iter(second.tasks))}"
        raise UsageError(
            f"{first.name} and {second.name} have no task in common: {_tasks_of([first])} against "
            f"{_tasks_of([second])}{hint}"
        )
    return found


def _tasks_of(runs: Sequence[RunRows]) -> str:
    return _named(list(dict.fromkeys(task for run in runs for task in run.tasks))) or "none"


def shared_columns(first: TaskRows, second: TaskRows) -> list[tuple[Column, Column]]:
    """Pair the columns of a task by ``METRIC,FILTER``.

    A metric that each run has through a single filter pipeline is paired whatever the pipelines are called: other
    harnesses have other names for them. Columns that are no number in either run's results, while others of the task
    are, are left out: what a task writes into a submission, or hands to its report.
    """
    pairs: list[tuple[Column, Column]] = []
    for key, column in first.columns.items():
        other = second.columns.get(key)
        if other is None:
            ours, theirs = (
                [one for one in task.columns.values() if one.metric == column.metric] for task in (first, second)
            )
            other = theirs[0] if len(ours) == len(theirs) == 1 else None
        if other is not None:
            pairs.append((column, other))
    states = all(any(one.reported is not None for one in task.columns.values()) for task in (first, second))
    return [pair for pair in pairs if not states or any(one.reported is not None for one in pair)]


def renamed_metrics(task: TaskRows, names: Mapping[str, str]) -> TaskRows:
    """Give columns whose metric this run calls otherwise the name of the comparison (``--metric A=B``)."""
    has = {column.metric for column in task.columns.values()}
    new = {other: wanted for wanted, other in names.items() if other != wanted and wanted not in has}
    columns = [replace(column, metric=new.get(column.metric, column.metric)) for column in task.columns.values()]
    return replace(task, columns={str(column): column for column in columns})
