"""Verdicts of ``compare`` for the numbers in a table of runs, and notes on what makes these numbers unequal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.compare.comparing import compare_pairs_of
from lmms_eval.compare.matching import MatchedPair, match_pair
from lmms_eval.compare.requests import setting_words
from lmms_eval.compare.runs import RunRows
from lmms_eval.compare.verdicts import CompareOptions, Difference, Verdict
from lmms_eval.errors import DataError, UsageError
from lmms_eval.exchange.table_numbers import ColumnForm, ColumnKey, TableRun
from lmms_eval.utils.names import some_of

_MIRRORED: Mapping[Verdict, Verdict] = {
    "better": "worse",
    "worse": "better",
    "ahead on this list": "behind on this list",
    "behind on this list": "ahead on this list",
}
WORSE, BEHIND = "†", "‡"
"""Marks of runs that are worse than the best one of a column, or behind it on this list of documents."""
MARKS: Mapping[Verdict, str] = {"worse": WORSE, "behind on this list": BEHIND}
_MOST_NAMED = 3


class Verdicts(Struct, frozen=True):
    """Verdicts of ``compare`` about every pair of runs in every column."""

    found: Mapping[tuple[ColumnKey, str, str], Verdict]
    """By column, run and other run."""
    tests: int = 0
    """Number of tests that were corrected together."""
    alpha: float = 0.05
    own_settings: bool = False
    """Whether some runs had different recipes."""
    reasons: tuple[str, ...] = ()
    """Why runs or columns could not be compared."""

    def of(self, key: ColumnKey, run: str, other: str) -> Verdict | None:
        """Return what a run is in comparison with another one; ``None`` if they were not compared."""
        if (found := self.found.get((key, run, other))) is not None:
            return found
        mirrored = self.found.get((key, other, run))
        return None if mirrored is None else _MIRRORED.get(mirrored, mirrored)

    def mark(self, key: ColumnKey, run: str, best: Sequence[str]) -> str:
        """Return the mark of a run that is worse than every best one of a column; empty if it is not."""
        found = [self.of(key, run, other) for other in best]
        marks = {MARKS.get(one, "") if one is not None else "" for one in found}
        return "" if not marks or "" in marks or run in best else (marks.pop() if len(marks) == 1 else BEHIND)

    def is_clear(self, key: ColumnKey, best: Sequence[str], others: Sequence[str]) -> bool:
        """Return whether the best run of a column is better than every other one."""
        return len(best) == 1 and bool(others) and all(self.of(key, best[0], other) == "better" for other in others)


def compare_columns(runs: Sequence[TableRun], columns: Sequence[ColumnKey], options: CompareOptions) -> Verdicts:
    """Compare each pair of runs in the columns of a table. The p-values of all of them are corrected together."""
    tasks = {task for run in runs for key in columns for task in run.tasks_of(key)}
    rows = [_with_tasks(run.rows, tasks) for run in runs]
    reasons = [f"{run.name} has no samples of these tasks" for run in rows if not run.tasks]
    options = replace(options, numbers=frozenset(key.compared for key in columns))
    pairs: list[MatchedPair] = []
    for first, second in combinations([run for run in rows if run.tasks], 2):
        try:
            pair = match_pair(first, second, options, keeps_rest=True)
        except (UsageError, DataError) as error:
            reasons.append(str(error))
            continue
        pairs.append(pair)
    if not pairs:
        return Verdicts({}, reasons=tuple(dict.fromkeys(reasons)), alpha=options.alpha)
    try:
        comparison = compare_pairs_of(pairs, [run.name for run in runs], options)
    except UsageError as error:
        return Verdicts({}, reasons=(*dict.fromkeys(reasons), str(error)), alpha=options.alpha)
    found = {
        (key, pair.first, pair.second): row.verdict
        for pair in comparison.pairs
        for key in columns
        if (row := _row_of(pair.rows, key)) is not None
    }
    rows_of_all = [row for pair in comparison.pairs for row in pair.rows]
    tests = sum(row.p is not None for row in rows_of_all)
    absent = [
        key
        for key in columns
        if sum(key in run.numbers for run in runs) > 1 and not any(one == key for one, _, _ in found)
    ]
    if absent:
        named = some_of([f"{key.task} {key.metric}" for key in absent], _MOST_NAMED)
        reasons.append(f"not compared: {named}")
    own_settings = any(row.own_settings for row in rows_of_all)
    return Verdicts(found, tests, options.alpha, own_settings, tuple(dict.fromkeys(reasons)))


def _row_of(rows: Sequence[Difference], key: ColumnKey) -> Difference | None:
    """Return the row of a comparison for a column, whatever its filter is called if it has only one."""
    fitting = [row for row in rows if key.compared == (row.name, row.metric)]
    exact = [row for row in fitting if row.filter == key.filter]
    return next(iter(exact or (fitting if len(fitting) == 1 else ())), None)


def _with_tasks(rows: RunRows, tasks: set[str]) -> RunRows:
    kept = {name: one for name, one in rows.tasks.items() if name in tasks}
    groups = {name: leaves for name, leaves in rows.groups.items() if all(leaf in kept for leaf in leaves)}
    return replace(rows, tasks=kept, groups=groups)


def best_runs(values: Mapping[str, float], form: ColumnForm) -> list[str]:
    """Return the runs with the best of a column's values, as they are shown: ties included; none if all are equal."""
    if not values:
        return []
    shown = {run: float(form.text(value)) for run, value in values.items()}
    best = min(shown.values()) if form.higher_is_better is False else max(shown.values())
    found = [run for run, value in shown.items() if value == best]
    return found if len(found) < len(shown) else []


def column_notes(runs: Sequence[TableRun], key: ColumnKey, form: ColumnForm) -> Iterator[str]:
    """Yield what makes the numbers of a column unequal: documents, settings, judges, an unknown direction."""
    having = [run for run in runs if key in run.numbers]
    if len(having) < 2:
        return
    counts = {run.name: run.numbers[key].n for run in having}
    has_one_count = len({count for count in counts.values() if count is not None}) < 2
    if not has_one_count:
        listed = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count is not None)
        yield f"over different numbers of {unit_of(key)}: {listed}"
    first, *others = [run for run in having if not run.baseline] or having  # baselines read no prompts
    found: dict[tuple[str, ...], list[str]] = {}
    for run in others:
        words = tuple(word for word in _differences(key, first, run) if has_one_count or word != "documents")
        if words:
            found.setdefault(words, []).append(run.name)
    for words, names in found.items():
        verb = "differs" if len(names) == 1 else "differ"
        yield f"{some_of(names, _MOST_NAMED)} {verb} from {first.name} in: {', '.join(words)}"
    judges = {run.name: run.judge_of(key) for run in having}
    if len(set(judges.values())) > 1:
        listed = ", ".join(f"{name} {judge or 'none'}" for name, judge in judges.items())
        yield f"different judges: {listed}"
    if form.higher_is_better is None:
        yield "the direction is not stated: higher counts as better"


def _differences(key: ColumnKey, first: TableRun, second: TableRun) -> tuple[str, ...]:
    """Return what differs between two runs in the tasks of a number, as far as both record it in the same way."""
    documents: list[Mapping[str, Any]] = [first.document, second.document]
    if not all(documents) or len({"run_key" in document for document in documents}) > 1:
        return ()
    shared = [task for task in first.tasks_of(key) if task in second.tasks_of(key)]
    words = (word for task in shared for word in setting_words(task, *documents))
    own = [] if set(first.tasks_of(key)) == set(second.tasks_of(key)) else ["tasks"]
    return tuple(dict.fromkeys([*own, *words]))


def unit_of(key: ColumnKey) -> str:
    """Return what a number counts: documents, or tasks for a mean over tasks."""
    return "tasks" if key.prefix in ("megabench", "general_bench") else "documents"
