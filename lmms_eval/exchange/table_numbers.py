"""The numbers of runs for a table of runs and tasks: which columns there are, and what each run has in them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.compare.readers import harness_runs, unique_names
from lmms_eval.compare.runs import MetricColumn, RunRows
from lmms_eval.engine.uncertainty import NOT_AVAILABLE
from lmms_eval.errors import DataError, UsageError
from lmms_eval.exchange.numbers import PERCENT, ReportedNumber, is_control, numbers_of
from lmms_eval.exchange.origins import ModelFacts
from lmms_eval.results.facts import aggregation_of, is_count, leaves_of, part_of, selected
from lmms_eval.results.tables import NOT_EMITTED, absent_text, pairs_in
from lmms_eval.tasks.megabench.report import SETS
from lmms_eval.utils.names import some_of
from lmms_eval.utils.numbers import SHARES, ScoreRange
from lmms_eval.viewer.numbers import headlines, result_rows
from lmms_eval.viewer.runs import ReportRun, read_report_runs

_MARK_PARTIAL = ", partial"
_MMIE_RANGE = ScoreRange(0.0, 6.0)
_BASELINE = "baseline"
_MOST_NAMED = 6
_MOST_GAPS = 2
DEMONSTRATION = "demonstration data, no result of the benchmark"


class ColumnKey(Struct, frozen=True):
    """A number that runs may have: of a task or group, or a benchmark's own."""

    task: str
    metric: str
    filter: str = "none"
    is_headline: bool = False
    """Whether a benchmark computes it over several tasks."""

    @property
    def compared(self) -> tuple[str, str]:
        """Name and metric of the row that ``compare`` has for it."""
        if not self.is_headline:
            return self.task, self.metric
        part, _, name = self.task.partition(", ")
        name = name.removesuffix(" set").replace(" ", "_")
        if part == "MEGA-Bench":
            members = dict(zip(("core", "open"), SETS.get(name, ()), strict=False))
            if self.metric == "overall" and members:
                return f"megabench overall, {name.replace('_', ' ')} set", "macro_mean"
            return members.get(self.metric, f"megabench_{name}"), "macro_mean"
        if part == "MileBench":
            return f"{'milebench' if name == 'milebench' else f'milebench_{name}'} {self.metric}", "official"
        return (f"{name} AVG", "official") if part == "MMIE" else (f"{self.task} {self.metric}", "score")

    @property
    def benchmark(self) -> str:
        """Name of the benchmark, with the set of its data if that is not the whole one."""
        name, _, part = self.task.partition(", ")
        name = "General-Bench" if self.prefix == "general_bench" else name
        part = "demo" if is_demonstration(self) else part.removesuffix(" set")
        return name if part in ("", "full", "milebench", "mmie") else f"{name} ({part})"

    @property
    def prefix(self) -> str:
        """The beginning of the names of a benchmark's tasks; empty for a task's number."""
        kinds = {"MEGA-Bench": "megabench", "MileBench": "milebench", "MMIE": "mmie"}
        return kinds.get(self.task.partition(", ")[0], "general_bench") if self.is_headline else ""


class TableRun(Struct, frozen=True):
    """A run with its numbers."""

    name: str
    """Name in the table."""
    model: str
    rows: RunRows
    """Its documents, for comparisons; without tasks if the run has no samples."""
    document: Mapping[str, Any]
    """The results document; empty for runs of other harnesses."""
    numbers: Mapping[ColumnKey, ReportedNumber]
    absent: Mapping[ColumnKey, str] = field(default_factory=dict)
    """Why a number is missing."""
    baseline: str = ""
    """What answers in place of a model: the arguments of ``--model baseline``."""

    @property
    def keys(self) -> Iterator[ColumnKey]:
        yield from self.numbers
        yield from self.absent

    def alias(self, task: str) -> str:
        """The displayed name of a task."""
        alias = part_of(self.document, "results", task).get("alias")
        return str(alias).lstrip(" -") if alias else task

    def tasks_of(self, key: ColumnKey) -> tuple[str, ...]:
        """Return the leaf tasks that a number rests on."""
        if not key.is_headline:
            return leaves_of(self.document, key.task) or (key.task,)
        is_demo = is_demonstration(key)
        names: Iterable[str] = [name for name in part_of(self.document, "configs") if name.startswith(key.prefix)]
        if key.prefix == "mmie":  # another task of the name mmie_f1 is no part of it
            names = part_of(part_of(self.document, "mmie_report", key.task.partition(", ")[2]), "tasks")
        return tuple(name for name in names if ("_demo" in name) == is_demo)

    def reason(self, key: ColumnKey) -> str:
        """Return why the run has no number; empty if it was not asked for one."""
        if reason := self.absent.get(key, ""):
            return reason
        tasks = self.tasks_of(key) if key.is_headline or key in self.absent else ()
        withheld = [text for task in tasks for text in self._withheld(task)]
        outcomes = [part_of(self.document, "outcomes", task) for task in tasks]
        reasons = [reason for outcome in outcomes for reason in outcome.get("reasons") or ()]
        lost = sum(outcome.get(name) or 0 for outcome in outcomes for name in ("unscored", "failed", "not_asked"))
        why = f": {lost:,} documents are without one ({reasons[0]})" if lost and reasons else ""
        why = why or (f": {some_of(withheld, _MOST_GAPS)}" if withheld else "")
        return f"no score{why}" if tasks else ""

    def _withheld(self, task: str) -> Iterator[str]:
        """Yield why numbers of a task are withheld."""
        entry, outcome = part_of(self.document, "results", task), part_of(self.document, "outcomes", task)
        for metric, pipeline in pairs_in(entry):
            key = f"{metric},{pipeline}"
            text = absent_text(outcome, key) if entry[key] is None else NOT_AVAILABLE
            if text not in (NOT_AVAILABLE, NOT_EMITTED):
                yield f"{task} {text}"
                return

    def judge_of(self, key: ColumnKey) -> str:
        """Return the judge that a number depends on; empty if it asked none about these tasks."""
        asked = part_of(self.document, "judge", "by_task")
        judge = ModelFacts.of_judge(self.document)
        if judge is None or not any(task in asked for task in self.tasks_of(key)):
            return ""
        return judge.name


def is_demonstration(key: ColumnKey) -> bool:
    """Return whether a number is that of a benchmark's demonstration data."""
    return "demo" in key.task.replace(",", " ").replace("_", " ").split()


def read_table_runs(paths: Sequence[str], names: Sequence[str] = ()) -> tuple[TableRun, ...]:
    """Read the runs of files and folders. A folder may hold several runs.

    Args:
        paths: files and folders.
        names: names of the runs in the table; empty for those of their models.

    Raises:
        DataError: a path holds no run, or one that cannot be read.
        UsageError: the names are not as many as the runs.
    """
    found = read_report_runs(paths)
    if broken := [problem for run in found if run.rows.kind == "unreadable" for problem in run.problems]:
        raise DataError("; ".join(broken))
    named = [replace(run.rows, name=_name_of(run)) for run in found]
    unique = unique_names(named)
    if names and len(names) != len(found):
        listed = some_of([f"{run.rows.source} ({name})" for run, name in zip(found, unique, strict=True)], _MOST_NAMED)
        raise UsageError(f"--names: {len(names)} names for {len(found)} runs: {listed}")
    if len(set(names)) < len(names):
        raise UsageError("--names: two runs have the same name; give each its own")
    return _of_one_filter(
        [_table_run(run, replace(run.rows, name=name)) for run, name in zip(found, names or unique, strict=True)]
    )


def _of_one_filter(runs: Sequence[TableRun]) -> tuple[TableRun, ...]:
    """Give one name to the filter of a metric with a single one in each run: harnesses name them differently."""
    filters: dict[tuple[str, str], list[list[str]]] = {}
    for run in runs:
        of_run: dict[tuple[str, str], list[str]] = {}
        for key in run.keys:
            of_run.setdefault((key.task, key.metric), []).append(key.filter)
        for pair, names in of_run.items():
            filters.setdefault(pair, []).append(names)
    single = {pair: found[0][0] for pair, found in filters.items() if all(len(names) == 1 for names in found)}

    def named(key: ColumnKey) -> ColumnKey:
        return replace(key, filter=single.get((key.task, key.metric), key.filter))

    return tuple(
        replace(
            run,
            numbers={named(key): number for key, number in run.numbers.items()},
            absent={named(key): reason for key, reason in run.absent.items()},
        )
        for run in runs
    )


def _name_of(run: ReportRun) -> str:
    """Return the model's name: of a path or repository the last part."""
    if arguments := _baseline(run.document):
        return f"{_BASELINE} ({arguments})"
    return run.rows.name.rstrip("/").rpartition("/")[2] or run.rows.name


def _baseline(document: Mapping[str, Any]) -> str:
    config = part_of(document, "config")
    arguments = str(config.get("model_args") or "").replace("strategy=", "").replace(",", ", ")
    return arguments or "gold" if config.get("model") == _BASELINE else ""


def _table_run(run: ReportRun, rows: RunRows) -> TableRun:
    document = run.document
    if not part_of(document, "results"):
        return TableRun(rows.name, run.rows.name, rows, document, dict(_from_documents(run)))
    stated = [number for top in numbers_of(document) for number in top.shown]
    numbers = {ColumnKey(one.task, one.metric, one.filter): _ranged(one, document) for one in stated}
    absent: dict[ColumnKey, str] = {}
    for key, number, reason in benchmark_numbers(document):
        if number is None:
            absent[key] = reason
        else:
            numbers[key] = number
    for name, entry in part_of(document, "results").items():
        outcome = part_of(document, "outcomes", name)
        for metric, pipeline in () if is_control(name) else pairs_in(entry):
            key = ColumnKey(name, metric, pipeline)
            if key not in numbers and f"{metric},{pipeline}" not in (outcome.get("wrote_files") or ()):
                absent[key] = _reason(outcome, entry[f"{metric},{pipeline}"], f"{metric},{pipeline}")
    kept = {key: value for key, value in numbers.items() if _is_score(document, key, value.value)}
    left = {key: reason for key, reason in absent.items() if _is_score(document, key, None)}
    return TableRun(rows.name, run.rows.name, rows, document, kept, left, _baseline(document))


def _reason(outcome: Mapping[str, Any], value: Any, key: str) -> str:
    return absent_text(outcome, key) if value is None else f"the results have {str(value)[:40]!r} in place of a number"


def _is_score(document: Mapping[str, Any], key: ColumnKey, value: float | None) -> bool:
    return key.is_headline or not is_count(key.metric, value, aggregation_of(document, key.task, key.metric))


def _from_documents(run: ReportRun) -> Iterator[tuple[ColumnKey, ReportedNumber]]:
    """Yield the means over the documents of a run without a results document."""
    for row in result_rows(run):
        if row["value"] is None:
            continue
        key = ColumnKey(row["task"], row["metric"], row["filter"] or "none")
        column = run.rows.tasks[key.task].columns[f"{row['metric']},{row['filter']}"]
        yield (
            key,
            ReportedNumber(
                *(key.task, key.metric, key.filter, row["value"], row["n"]),
                low=row["low"],
                high=row["high"],
                method=row["method"],
                estimand=row["about"],
                marks=_document_marks(run, column, row["n"]),
                higher_is_better=column.higher_is_better,
                score_range=column.score_range,
            ),
        )


def _document_marks(run: ReportRun, column: MetricColumn, n: int) -> dict[str, str]:
    """Return what limits a mean over documents: a run that has not finished, or whose results are absent."""
    if run.state and run.state.get("state") not in ("complete", "stopped early"):
        return {"unfinished": f"unfinished: {n:,} documents so far"}
    kinds = (harness_runs.OWN, harness_runs.LMMS_EVAL, harness_runs.LM_EVAL)
    is_sure = run.rows.kind not in kinds or column.reported is not None
    return {} if is_sure else {"mean": "mean over documents: the run's results file is absent"}


def _ranged(number: ReportedNumber, document: Mapping[str, Any]) -> ReportedNumber:
    """Add the range of a group's number if it lies between its tasks' numbers, which all have that range."""
    leaves = leaves_of(document, number.task)
    if number.score_range is not None or number.task in leaves:
        return number
    below = [
        one
        for top in numbers_of(document)
        for one in top.shown
        if one.task in leaves and (one.metric, one.filter) == (number.metric, number.filter)
    ]
    ranges = {one.score_range for one in below}
    values = [one.value for one in below]
    is_between = bool(values) and min(values) - 1e-9 <= number.value <= max(values) + 1e-9
    return replace(number, score_range=ranges.pop()) if len(ranges) == 1 and is_between else number


def benchmark_numbers(document: Mapping[str, Any]) -> Iterator[tuple[ColumnKey, ReportedNumber | None, str]]:
    """Yield the benchmarks' own numbers, with the reason if one is missing."""
    for row in headlines(document):
        metric = str(row["metric"])
        key = ColumnKey(row["task"], metric.removesuffix(_MARK_PARTIAL), is_headline=True)
        if row["value"] is None:
            yield key, None, str(row["method"] or "")
            continue
        marks = dict(_marks(document, key, metric.endswith(_MARK_PARTIAL)))
        ranges = {"megabench": SHARES, "mmie": _MMIE_RANGE}
        yield key, ReportedNumber(
            *(key.task, key.metric, key.filter, row["value"], row["n"]),
            low=row["low"],
            high=row["high"],
            method=row["method"],
            estimand=row["about"],
            higher_is_better=True,
            score_range=ranges.get(key.prefix, PERCENT),
            marks=marks,
        ), ""  # fmt: skip


def _marks(document: Mapping[str, Any], key: ColumnKey, is_partial: bool) -> Iterator[tuple[str, str]]:
    """Yield what limits a benchmark's number: absent parts, demonstration data."""
    if is_demonstration(key):
        yield "demonstration", DEMONSTRATION
    parts = {"megabench": "megabench_breakdown", "mmie": "mmie_report", "milebench": "milebench_report"}
    part = part_of(document, parts.get(key.prefix, "general_bench_report"))
    name = key.task.partition(", ")[2].removesuffix(" set").replace(" ", "_")
    content = part_of(part, name or key.task)
    gaps = content.get("gaps") if not is_demonstration(key) else None
    if is_partial:
        gaps = part_of(part_of(content, "overall"), key.metric).get("gaps")
    if isinstance(gaps, list) and gaps:
        yield "partial", f"partial: {some_of([str(gap) for gap in gaps], _MOST_GAPS, '; ')}"


class ColumnChoice(Struct, frozen=True):
    """The columns that a table shows."""

    tasks: tuple[str, ...] = ()
    """Tasks and groups by name or alias; empty for what was selected, and the benchmarks' own numbers."""
    metrics: tuple[str, ...] = ()
    """Metrics by name; empty for the first one of each task, ``all`` for every one."""


def choose_columns(runs: Sequence[TableRun], choice: ColumnChoice) -> list[ColumnKey]:
    """Return the columns of a table, in the order of the runs' tasks.

    Raises ``UsageError`` if no run has a named task or metric.
    """
    known = list(dict.fromkeys(key for run in runs for key in run.keys))
    names = _named_tasks(runs, known, choice.tasks) if choice.tasks else _selected_tasks(runs, known)
    found = []
    for name in names:
        of_task = [key for key in known if key.task == name]
        found += of_task if choice.metrics else _first_metric(runs, of_task)
    if choice.metrics and choice.metrics != ("all",):
        having = {key.metric for key in found}
        if missing := [metric for metric in choice.metrics if metric not in having]:
            listed = some_of(sorted(having), _MOST_NAMED)
            raise UsageError(f"--metric: no run has {', '.join(missing)}; they have {listed or 'no number'}")
        found = [key for key in found if key.metric in choice.metrics]
    if not found:
        raise UsageError(f"no number to show: {', '.join(run.name for run in runs)} have none")
    return found


def _named_tasks(runs: Sequence[TableRun], known: Sequence[ColumnKey], wanted: Iterable[str]) -> list[str]:
    tasks = list(dict.fromkeys(key.task for key in known))
    found: list[str] = []
    for name in wanted:
        fitting = [task for task in tasks if name == task or any(run.alias(task) == name for run in runs)]
        fitting = fitting or [key.task for key in known if key.is_headline and name in (
            key.benchmark, key.benchmark.partition(" (")[0])]  # fmt: skip
        if not fitting:
            raise UsageError(f"--tasks: no run has a number of {name}; they have {some_of(tasks, _MOST_NAMED)}")
        found += fitting
    return list(dict.fromkeys(found))


def _selected_tasks(runs: Sequence[TableRun], known: Sequence[ColumnKey]) -> list[str]:
    """Return what was selected, with the benchmarks' own numbers in place of the tasks that these are made of."""
    headline = list(dict.fromkeys(key.task for key in known if key.is_headline))
    covered = {task for run in runs for key in known if key.is_headline for task in run.tasks_of(key)}
    found = headline
    for run in runs:
        tops = selected(run.document) if run.document else dict.fromkeys(key.task for key in run.numbers)
        found += [task for top in tops if not is_control(top) for task in _nearest(run, top) if task not in covered]
    return list(dict.fromkeys(found))


def _nearest(run: TableRun, name: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield a task or group that has a number or lacks one for a reason, else those below it."""
    if name in above:
        return
    if any(key.task == name for key in run.keys):
        yield name
        return
    below = part_of(run.document, "group_subtasks").get(name)
    for child in below if isinstance(below, list) else ():
        yield from _nearest(run, str(child), (*above, name))


def _first_metric(runs: Sequence[TableRun], keys: Sequence[ColumnKey]) -> list[ColumnKey]:
    """Return a task's headline number: the first metric of its list; of a benchmark all its numbers."""
    if not keys or keys[0].is_headline:
        return list(keys)
    declared = [
        str(entry.get("metric"))
        for run in runs
        for entry in part_of(run.document, "configs", keys[0].task).get("metric_list") or ()
        if isinstance(entry, Mapping)
    ]
    listed = [key for metric in declared for key in keys if key.metric == metric]
    with_numbers = [key for key in listed or keys if any(key in run.numbers for run in runs)]
    return (with_numbers or listed or list(keys))[:1]


class ColumnForm(Struct, frozen=True):
    """Scale, unit and decimals of the numbers in a column."""

    scale: float = 1.0
    decimals: int = 1
    is_percent: bool = False
    within: ScoreRange | None = None
    higher_is_better: bool | None = None

    def text(self, value: float) -> str:
        return f"{self.scale * value:z.{self.decimals}f}"


_SCALES = {SHARES: 100.0, _MMIE_RANGE: 100.0 / _MMIE_RANGE.high, PERCENT: 1.0}
_MOST_DECIMALS, _DIGITS = 4, 4


def column_form(numbers: Sequence[ReportedNumber], decimals: int | None = None) -> ColumnForm:
    """Return the one form of a column's numbers: in percent if their range is known, else as they are."""
    within = next((one.score_range for one in numbers if one.score_range in _SCALES), None)
    within = within or next((one.score_range for one in numbers if one.score_range is not None), None)
    higher = next((one.higher_is_better for one in numbers if one.higher_is_better is not None), None)
    if within in _SCALES:
        return ColumnForm(_SCALES[within], 1 if decimals is None else decimals, True, within, higher)
    largest = max((abs(one.value) for one in numbers), default=0.0)
    whole = math.floor(math.log10(largest)) + 1 if largest > 0 else 1
    usual = min(_MOST_DECIMALS, max(0, _DIGITS - max(1, whole)))
    return ColumnForm(1.0, usual if decimals is None else decimals, False, within, higher)


def misfit(number: ReportedNumber, form: ColumnForm) -> str:
    """Return why a number cannot be in a column; empty if it can."""
    if form.within is None or number.score_range == form.within:
        return ""
    if number.score_range is not None:
        return f"its scale is {number.score_range}, that of the column {form.within}"
    return "" if number.value in form.within else f"it lies outside of the column's scale, {form.within}"
