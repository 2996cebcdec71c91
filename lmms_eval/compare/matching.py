"""Matching of runs: pairs of runs, and the tasks, columns and documents that both runs of a pair have."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.compare.readers.samples import scale_of
from lmms_eval.compare.runs import MetricColumn, RunRows, TaskRows
from lmms_eval.compare.verdicts import CompareOptions, Pairing
from lmms_eval.errors import DataError, UsageError
from lmms_eval.stats.interval import ANY_NUMBER
from lmms_eval.utils.names import some_of
from lmms_eval.utils.numbers import SHARES, ScoreRange

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.typing import NDArray


_MOST_NAMED = 10


class Shared(Struct, frozen=True):
    """The documents of a task that both runs have, in the order of the first run.

    Runs that stopped early have the first documents of a random order, so two of them share those of the shorter run.
    """

    first: TaskRows
    second: TaskRows
    first_rows: NDArray[intp]
    """Row in the first run of each shared document."""
    second_rows: NDArray[intp]
    only_first: int
    only_second: int

    @property
    def task(self) -> str:
        return self.first.task

    @property
    def clusters(self) -> Sequence[str | None] | None:
        """Cluster names of the shared documents, from the first run that names them; ``None`` if neither run does."""
        named = [
            [task.clusters[row] for row in rows]
            for task, rows in ((self.first, self.first_rows), (self.second, self.second_rows))
            if task.clusters is not None
        ]
        if len(named) < 2:
            return named[0] if named else None
        return [first if first is not None else second for first, second in zip(*named, strict=True)]

    @property
    def stopped_early(self) -> bool:
        """Whether one of the runs stopped early."""
        return self.first.early_stop is not None or self.second.early_stop is not None

    def counts(self, has_first: NDArray[bool_], has_second: NDArray[bool_], where: NDArray[bool_]) -> Pairing:
        """Count documents by their status in the two runs.

        Args:
            has_first: marks the shared documents with a number in the first run.
            has_second: the same for the second run.
            where: marks the documents to count. Documents of only one run count only if all are marked.
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
        second: the rows of the second run.
        names: the two runs, for messages.

    Raises:
        DataError: an id occurs twice in a run, or documents of the same id have different hashes.
    """
    import numpy as np

    rows_of_first, rows_of_second = (_rows_by_id(task, name) for task, name in zip((first, second), names, strict=True))
    ids = [one for one in rows_of_first if one in rows_of_second]
    left = np.fromiter((rows_of_first[one] for one in ids), np.intp, len(ids))
    right = np.fromiter((rows_of_second[one] for one in ids), np.intp, len(ids))
    if first.hashes is not None and second.hashes is not None:
        hashes = [(one, first.hashes[a], second.hashes[b]) for one, a, b in zip(ids, left, right, strict=True)]
        if different := [one for one, mine, its in hashes if mine and its and mine != its]:
            raise DataError(
                f"{first.task}: {len(different)} of {len(ids)} documents have the same id in {names[0]} and {names[1]} "
                f"but different content (doc_hash): {_named(different)}; the runs used different questions or versions "
                "of the data and cannot be compared"
            )
    return Shared(first, second, left, right, len(rows_of_first) - len(ids), len(rows_of_second) - len(ids))


def _rows_by_id(task: TaskRows, run: str) -> dict[str, int]:
    rows = {one.strip(): number for number, one in enumerate(task.ids)}
    if len(rows) < len(task.ids):
        twice = [one for one, count in Counter(map(str.strip, task.ids)).items() if count > 1]
        raise DataError(
            f"{run}: {task.task}: {len(twice)} ids occur in more than one row: {_named(twice)}; give a file with one "
            "row for each document"
        )
    return rows


def _named(ids: Sequence[str]) -> str:
    return some_of([repr(one)[1:-1][:60] for one in ids], _MOST_NAMED)


def renamed_tasks(runs: Sequence[RunRows], names: Mapping[str, str]) -> list[RunRows]:
    """Rename tasks that have different names in different runs.

    Args:
        runs: all runs of the comparison.
        names: name in the comparison -> name in the runs that lack the first name (``--task A=B``).

    Raises:
        UsageError: no run has a task of one of the names.
    """
    for wanted, other in names.items():
        for name in (wanted, other):
            if not any(name in run.tasks for run in runs):
                raise UsageError(f"--task {wanted}={other}: no run has a task {name}; they have: {_tasks_of(runs)}")
    found = []
    for run in runs:
        new = {other: wanted for wanted, other in reversed([*names.items()]) if wanted not in run.tasks}
        tasks = {(name := new.get(task, task)): replace(rows, task=name) for task, rows in run.tasks.items()}
        found.append(replace(run, tasks=tasks))
    return found


def joined_tasks(runs: Sequence[RunRows]) -> list[RunRows]:
    """Give one name to tasks that are named after their file, if they are alone in their run without a counterpart."""

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


def shared_tasks(first: RunRows, second: RunRows) -> list[str]:
    """Return the names of the tasks that both runs have, in the order of the first run.

    Raises:
        UsageError: the runs have no task in common.
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


def shared_columns(first: TaskRows, second: TaskRows) -> list[tuple[MetricColumn, MetricColumn]]:
    """Pair the columns of a task by ``METRIC,FILTER``.

    A metric that has a single filter pipeline in each run is paired whatever the pipelines are called, since harnesses
    name them differently. If the results have numbers for some of the task's columns, columns without a number in both
    runs are left out: they are written to a submission or used by a report.
    """
    pairs: list[tuple[MetricColumn, MetricColumn]] = []
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
    """Rename the metrics that have another name in this run (``--metric A=B``)."""
    has = {column.metric for column in task.columns.values()}
    new = {other: wanted for wanted, other in names.items() if other != wanted and wanted not in has}
    columns = [replace(column, metric=new.get(column.metric, column.metric)) for column in task.columns.values()]
    return replace(task, columns={str(column): column for column in columns})


class PairedColumn(Struct, frozen=True):
    """The scores of one metric in two runs, over the documents that both have; NaN for missing scores."""

    task: str
    metric: str
    filter: str
    shared: Shared
    first: NDArray[float64]
    second: NDArray[float64]
    within: ScoreRange
    """Range of the scores; ``ANY_NUMBER`` if it is not known or does not hold all scores."""
    higher_is_better: bool
    is_mean: bool
    """Whether the task's own number is the mean of these scores, or a multiple of it."""
    notes: tuple[str, ...] = ()
    second_filter: str = ""
    """The second run's name of the filter pipeline, if it differs."""

    def __str__(self) -> str:
        return f"{self.metric},{self.filter}"

    @property
    def is_share(self) -> bool:
        """Whether scores range from 0 to 1."""
        return self.within == SHARES

    def better(self) -> NDArray[float64]:
        """Return by how much the first run is better, for each document."""
        return self.first - self.second if self.higher_is_better else self.second - self.first

    @property
    def has_both(self) -> NDArray[bool_]:
        """Marks of the documents with a number in both runs."""
        import numpy as np

        found: NDArray[bool_] = np.isfinite(self.first) & np.isfinite(self.second)
        return found

    @property
    def expected(self) -> NDArray[bool_]:
        """Marks of the documents that have a number in both runs, or lack it because of a run.

        The others were scored in both runs and do not have this metric.
        """
        import numpy as np

        found: NDArray[bool_] = np.isfinite(self.first) | np.isfinite(self.second)
        for task, rows in (
            (self.shared.first, self.shared.first_rows),
            (self.shared.second, self.shared.second_rows),
        ):
            found = found | np.fromiter((task.statuses[row] != "scored" for row in rows), bool, len(rows))
        return found

    def completed(self, favours_first: bool) -> tuple[NDArray[float64], NDArray[float64]] | None:
        """Return the scores with missing ones at the ends of the range; ``None`` if the range lacks an end.

        Args:
            favours_first: whether missing scores are the best ones in the first run and the worst ones in the second;
                otherwise it is the reverse.
        """
        import numpy as np

        if not math.isfinite(self.within.high - self.within.low):
            return None
        is_high = favours_first == self.higher_is_better
        ends = (self.within.high, self.within.low) if is_high else (self.within.low, self.within.high)
        first, second = (
            np.where(np.isfinite(side), side, end) for side, end in zip((self.first, self.second), ends, strict=True)
        )
        return first, second


class MatchedPair(Struct, frozen=True):
    """Two runs and their common columns."""

    first: RunRows
    second: RunRows
    columns: Sequence[PairedColumn]
    notes: tuple[str, ...] = ()


def runs_of(pairs: Sequence[MatchedPair]) -> list[RunRows]:
    """Return the runs of the pairs, each once, with the names of the comparison."""
    return list({run.name: run for pair in pairs for run in (pair.first, pair.second)}.values())


def match_runs(runs: Sequence[RunRows], options: CompareOptions) -> list[MatchedPair]:
    """Match all pairs of runs, or all other runs with the reference.

    Raises:
        UsageError: there are fewer than two runs, no run has a given name, or two runs have nothing in common.
        DataError: the same id means different documents.
    """
    if len(runs) < 2:
        raise UsageError("compare: name at least two runs: lmms-eval compare RUN RUN [RUN ...]")
    return [match_pair(first, second, options) for first, second in pairs_of(chosen_runs(runs, options), options)]


def chosen_runs(runs: Sequence[RunRows], options: CompareOptions) -> list[RunRows]:
    """Rename tasks and metrics for the comparison, and leave out the tasks that are not chosen.

    Raises:
        UsageError: no run has a given name.
    """
    named = joined_tasks(renamed_tasks(runs, options.task_names))
    if absent := [task for task in options.tasks if not any(task in run.tasks for run in named)]:
        known = ", ".join(list(dict.fromkeys(task for run in named for task in run.tasks))[:10])
        raise UsageError(f"--tasks: no run has {', '.join(absent)}; they have: {known}")
    return [
        replace(
            run,
            tasks={
                task: renamed_metrics(rows, options.metrics)
                for task, rows in run.tasks.items()
                if task in options.tasks or not options.tasks
            },
        )
        for run in named
    ]


def pairs_of(runs: Sequence[RunRows], options: CompareOptions) -> list[tuple[RunRows, RunRows]]:
    """Return all pairs of runs, or all other runs with the reference.

    Raises:
        UsageError: the reference does not name one of the runs.
    """
    reference = options.reference
    if not reference:
        return list(itertools.combinations(runs, 2))
    found = [run for run in runs if run.name == reference]
    found = found or [run for run in runs if Path(run.source) == Path(reference)]
    if len(found) != 1:
        raise UsageError(f"--reference {reference}: name one of the runs: {', '.join(run.name for run in runs)}")
    return [(run, found[0]) for run in runs if run is not found[0]]


def match_pair(first: RunRows, second: RunRows, options: CompareOptions, *, keeps_rest: bool = False) -> MatchedPair:
    """Match the tasks, columns and documents of two runs.

    Args:
        first: a run, with the names of the comparison.
        second: another run.
        options: the chosen metrics; empty for all.
        keeps_rest: whether a task whose documents differ becomes a note instead of an error.

    Raises:
        UsageError: the runs have no task, metric or document in common.
        DataError: the same id means different documents.
    """
    columns, notes = [], []
    for task in shared_tasks(first, second):
        try:
            of_task, reason = _match_task(task, first, second, options)
        except DataError as error:
            if not keeps_rest:
                raise
            of_task, reason = [], str(error)
        columns += of_task
        notes += [reason] if reason else []
    if not columns:
        raise UsageError(f"{first.name} and {second.name} cannot be compared: {'; '.join(notes)}")
    for run, other in ((first, second), (second, first)):
        if alone := [task for task in run.tasks if task not in other.tasks]:
            notes.append(f"only {run.name} has {some_of(alone, 5)}")
    return MatchedPair(first, second, columns, tuple(notes))


def _match_task(task: str, first: RunRows, second: RunRows, options: CompareOptions) -> tuple[list[PairedColumn], str]:
    """Pair the columns of a task; without a pair, the text states why."""
    names = first.name, second.name
    shared = share(first.tasks[task], second.tasks[task], names)
    pairs = [
        pair
        for pair in shared_columns(shared.first, shared.second)
        if pair[0].metric in options.metrics or not options.metrics
    ]
    if not options.metrics:
        pairs = [pair for pair in pairs if not _is_count(*pair)] or pairs
    if not len(shared.first_rows):
        return [], f"{task}: {names[0]} and {names[1]} have no document in common"
    if not pairs:
        has = [", ".join(map(str, side.columns)) or "none" for side in (shared.first, shared.second)]
        return [], (
            f"{task}: no metric in common ({names[0]}: {has[0]}; {names[1]}: {has[1]}); "
            "--metric A=B names the metric B of one run that is A in the other"
        )
    return [_paired(task, shared, *pair, names) for pair in pairs], ""


def _is_count(first: MetricColumn, second: MetricColumn) -> bool:
    """Return whether a column is bookkeeping: all values are equal and the task's number is not their mean.

    This is the case for counts of documents or queries: each document adds 1.
    """
    import numpy as np

    seen = np.concatenate([one.scores[~np.isnan(one.scores)] for one in (first, second)])
    numbers = [one.reported for one in (first, second) if one.reported is not None]
    is_constant = len(seen) > 0 and bool((seen == seen[0]).all())
    return is_constant and bool(numbers) and not any(scale_of(float(seen[0]), number) for number in numbers)


def _paired(
    task: str, shared: Shared, first: MetricColumn, second: MetricColumn, names: tuple[str, str]
) -> PairedColumn:
    """Pair two columns. Raises ``DataError`` if the runs disagree on whether higher is better."""
    import numpy as np

    directions = {one.higher_is_better for one in (first, second) if one.higher_is_better is not None}
    if len(directions) > 1:
        raise DataError(
            f"{task}: {first.metric}: higher is better in one of {names[0]} and {names[1]}, and lower in the other"
        )
    scores = first.scores[shared.first_rows], second.scores[shared.second_rows]
    seen = np.concatenate([one[np.isfinite(one)] for one in scores])
    within, notes = _range(first, second, float(seen.min(initial=np.inf)), float(seen.max(initial=-np.inf)))
    if first.filter != second.filter:
        notes.append(f"filter {first.filter} of {names[0]} is paired with {second.filter} of {names[1]}")
    if any(np.isinf(one).any() for one in scores):
        notes.append("infinite scores count as none")
    return PairedColumn(
        task=task,
        metric=first.metric,
        filter=first.filter,
        shared=shared,
        first=scores[0],
        second=scores[1],
        within=within,
        higher_is_better=directions.pop() if directions else True,
        is_mean=bool(first.scale and second.scale),
        notes=tuple(notes),
        second_filter=second.filter if second.filter != first.filter else "",
    )


def _range(first: MetricColumn, second: MetricColumn, least: float, most: float) -> tuple[ScoreRange, list[str]]:
    """Return the range of the scores, and a note if the stated range is not used."""
    stated = {one.score_range for one in (first, second)} - {None, ANY_NUMBER}
    if len(stated) > 1:
        return ANY_NUMBER, ["the runs state different ranges of the scores: methods that need none are used"]
    within = stated.pop() if stated else None
    if within is None:
        return (SHARES if least >= 0 and most <= 1 else ANY_NUMBER), []
    if least <= most and not (least in within and most in within):
        text = f"scores from {least:g} to {most:g} lie outside the stated range {within}"
        return ANY_NUMBER, [f"{text}: methods that need no range are used"]
    return within, []


def metric_names(words: Sequence[str], option: str) -> Mapping[str, str]:
    """Parse ``A`` and ``A=B``: names in the comparison -> names in runs that use another one.

    Raises:
        UsageError: a side of ``=`` is empty.
    """
    found = {}
    for word in words:
        name, has_other, other = word.partition("=")
        if not name.strip() or (has_other and not other.strip()):
            raise UsageError(f"{option} {word}: write A=B")
        found[name.strip()] = other.strip() or name.strip()
    return found
