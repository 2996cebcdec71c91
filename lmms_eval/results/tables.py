"""The table of results: its rows, and their Markdown (harness specification §5.4, engine rules §10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval import stats
from lmms_eval.api.task import Selection, Task
from lmms_eval.config.rules import control_name
from lmms_eval.engine.aggregate import MetricResult
from lmms_eval.engine.evaluate import RunScores
from lmms_eval.engine.looks import stop_mark
from lmms_eval.engine.outcomes import TaskOutcome, described_counts
from lmms_eval.engine.uncertainty import NO_ERROR, NOT_AVAILABLE
from lmms_eval.results.baseline import PairedScores
from lmms_eval.results.controls import NO_CONTROLS, Controls, Gap, Rotated
from lmms_eval.results.document import throughput
from lmms_eval.results.layout import directions, group_early_stop, group_outcome, table_layout
from lmms_eval.utils.records import to_dict
from lmms_eval.utils.redaction import redact, redact_text
from lmms_eval.utils.terminal import Column, markdown_table

OPTIONAL: Mapping[str, str] = {
    "Stderr_CLT": "stderr_clt",
    "Stderr_Clustered": "stderr_clustered",
    "EA": "expected_accuracy",
    "CA": "consensus_accuracy",
    "IV": "internal_variance",
    "CR": "consistency_rate",
}
"""Heading -> name of the number, for columns that are left out if no row has a value."""
_UNITS = {
    "total_gen_tokens": "tokens",
    "total_elapsed_time": "seconds",
    "avg_latency": "seconds/request",
    "avg_speed": "tokens/s",
}
_SIGNIFICANT = 0.05
_LEAST_SHOWN = 0.0001
"""Smaller p-values are printed as ``<0.0001``."""


class BaselineComparison(Struct, frozen=True):
    """A paired comparison with a baseline."""

    baseline: str
    unit: str
    """``percent``, or empty for the metric's own unit."""
    difference: float | None
    """Mean paired difference."""
    low: float | None
    high: float | None
    """The 95 % interval of the difference."""
    pvalue: float | None


class TableRow(Struct, frozen=True):
    """One metric of a task or group through one filter pipeline. A group without a number has only a name."""

    name: str
    alias: str
    """The displayed name."""
    metric: str = " "
    filter: str = ""
    shots: str = " "
    higher_is_better: bool | None = None
    value: str = " "
    """The printed text, or the reason for the missing number."""
    stderr: Any = NOT_AVAILABLE
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """Numbers of ``OPTIONAL``, by name."""
    comparison: BaselineComparison | None = None
    gap: Gap | None = None
    chance: str = ""
    """The score of guessing, in units of the metric."""
    interval: str = ""
    scored: int | None = None
    """Documents that emitted the metric."""
    answers: str = ""
    """Counts and shares of answers that are empty or truncated."""
    is_file: bool = False
    """The aggregation only wrote a file, whose name is printed below the table."""


NOT_EMITTED = f"{NOT_AVAILABLE} (no document has it)"
"""Value of a declared metric that no scored document emitted."""


def withheld(counts: Mapping[str, int], has_no_answer: bool, is_counted: bool = True) -> str:
    """Return why a number is withheld.

    Args:
        counts: numbers of documents by ``unscored``, ``failed``, ``not_asked`` and ``judge_unread`` (no readable reply
            of the judge), and of answers by ``truncated``, which is 0 unless it exceeds the budget.
        has_no_answer: every answer is blank or filtered.
        is_counted: the run itself states why a number is absent. Otherwise the failures are listed even if there are 0.
    """
    if counts["unscored"] and not any(counts[name] for name in ("failed", "not_asked", "judge_unread")):
        return f"not evaluated ({counts['unscored']} unscored)"
    reasons = [f"{counts['failed']} failed"] if counts["failed"] or not is_counted else []
    reasons += [f"{counts['not_asked']} not asked"] if counts["not_asked"] else []
    if not reasons and counts["judge_unread"]:
        reasons = [f"{counts['judge_unread']} unread by the judge"]
    if not reasons and counts["truncated"]:
        reasons = [f"{counts['truncated']} truncated"]
    if not reasons and has_no_answer:
        reasons = ["no answer"]
    return f"withheld ({', '.join(reasons)})" if reasons else "withheld"


def truncation_mark(truncated: int, answers: int) -> str:
    """Return the warning for a number whose share of truncated answers exceeds the budget."""
    return f"{truncated / answers:.1%} of answers truncated"


def marked(number: str, *marks: str) -> str:
    """Return a cell's text: the number, followed by warnings in brackets."""
    shown = "; ".join(mark for mark in marks if mark)
    return f"{number} ({shown})" if shown else number


def number_text(value: Any) -> str:
    """Return a number's text: four decimals for a ``float``, ``N/A`` for ``None``."""
    if value is None:
        return NOT_AVAILABLE
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def interval_text(low: float | None, high: float | None, reason: str = "") -> str:
    """Return an interval's text, or why it is missing; empty if the column of errors already shows the reason."""
    if low is None or high is None:
        return "" if reason == NO_ERROR else reason
    return f"[{low:.4f}, {high:.4f}]"


def rows_table(rows: Sequence[TableRow], heading: str) -> str:
    """Format rows as a Markdown table; ``heading`` is the heading of their names.

    Rows of written files are left out if their task has other rows.
    """
    with_numbers = {row.name for row in rows if not row.is_file}
    shown = [row for row in rows if not row.is_file or row.name not in with_numbers]
    return markdown_table(list(_columns(shown, heading)))


def throughput_table(throughput: Mapping[str, Any]) -> str:
    """Format the table of speeds: the known numbers first, in the family's order, then those of the back end."""
    names = [name for name in _UNITS if name in throughput]
    names += [name for name in throughput if name not in _UNITS]
    values = [throughput[name] for name in names]
    return markdown_table(
        [
            Column("Metric", tuple(names), is_text=True),
            Column("Value", tuple(f"{one:.4f}" if isinstance(one, int | float) else str(one) for one in values)),
            Column("Unit", tuple(_UNITS.get(name, "varies") for name in names), is_text=True),
        ]
    )


def _columns(rows: Sequence[TableRow], heading: str) -> Iterator[Column]:
    """Yield the columns of every table, then the columns that have a value in some row."""

    def column(heading: str, cell: Callable[[TableRow], str], is_text: bool = False) -> Column:
        return Column(heading, tuple(map(cell, rows)), is_text)

    def compared(heading: str, cell: Callable[[BaselineComparison], str], is_text: bool = False) -> Column:
        return column(
            heading, lambda row: _uncompared(row) if row.comparison is None else cell(row.comparison), is_text
        )

    yield column(heading, lambda row: row.alias, is_text=True)
    yield column("Filter", lambda row: row.filter, is_text=True)
    yield column("n-shot", lambda row: row.shots)
    yield column("Metric", lambda row: row.metric, is_text=True)
    yield column("", lambda row: {None: "", True: "↑", False: "↓"}[row.higher_is_better], is_text=True)
    yield column("Value", lambda row: row.value)
    yield column("", lambda _: "±", is_text=True)
    yield column("Stderr", lambda row: number_text(row.stderr))
    for title, name in OPTIONAL.items():
        values = [row.numbers.get(name, NOT_AVAILABLE) for row in rows]
        if any(value != NOT_AVAILABLE and value is not None for value in values):
            yield Column(title, tuple(map(number_text, values)))
    if any(row.comparison is not None for row in rows):
        yield compared("Baseline", lambda paired: paired.baseline, is_text=True)
        yield compared("Diff", lambda paired: _signed(paired.difference, paired.unit), is_text=True)
        yield compared("CI", _difference_interval, is_text=True)
        yield compared("P_Value", lambda paired: p_value_text(paired.pvalue))
    if any(row.gap is not None for row in rows):
        yield column("Gap", lambda row: "" if row.gap is None else f"{row.gap.gap:+.4g}", is_text=True)
        yield column("Gap_CI95", lambda row: "" if row.gap is None else _ends(row.gap.interval), is_text=True)
        yield column("Gap_P", lambda row: "" if row.gap is None else p_value_text(row.gap.p))
    added = (
        column("Chance", lambda row: row.chance, is_text=True),
        column("CI95", lambda row: row.interval, is_text=True),
        column("N", lambda row: "" if row.scored is None else str(row.scored)),
        column("Answers", lambda row: row.answers, is_text=True),
    )
    yield from (one for one in added if any(one.cells))


def _uncompared(row: TableRow) -> str:
    """Return the cell of a row without a comparison; a group without a number shows ``N/A`` in every column."""
    return NOT_AVAILABLE if row.metric == " " else ""


def _signed(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:+.1f}%" if unit == "percent" else f"{value:+.4g}"


def _difference_interval(paired: BaselineComparison) -> str:
    if paired.low is None or paired.high is None:
        return ""
    return f"[{_signed(paired.low, paired.unit)}, {_signed(paired.high, paired.unit)}]"


def p_value_text(pvalue: float | None) -> str:
    """Return a p-value's text, with a star below 0.05; empty for ``None``."""
    if pvalue is None:
        return ""
    shown = f"{pvalue:.4f}" if pvalue >= _LEAST_SHOWN else f"<{_LEAST_SHOWN}"
    return f"{shown}{'*' if pvalue < _SIGNIFICANT else ''}"


WITHOUT = {
    "no-media": "without its pictures, videos and sounds",
    "blank-media": "with grey pictures and silence",
    "shuffled-media": "with the media of another document",
    "choices-only": "with its choices alone",
}
MOST_SENTENCES = 6


def with_gaps(rows: Iterable[TableRow], task: Task, controls: Controls) -> list[TableRow]:
    """Add the chance level to the rows of a task, or the gaps to the rows of a control."""
    found = controls.tasks.get(task.control_of or task.name)
    if found is None:
        return list(rows)
    if not task.control_of:
        uniform, majority = found.chance.uniform, found.chance.majority
        level = majority if uniform is None else uniform
        right = {} if level is None else {row: f"{level * scale:.4f}" for row, scale in found.scales.items()}
        return [replace(row, chance=right.get(f"{row.metric},{row.filter}", "")) for row in rows]
    gaps = found.gaps.get(task.name.removeprefix(control_name(task.control_of, "")), {})
    return [replace(row, gap=gaps.get(f"{row.metric},{row.filter}")) for row in rows]


def rotation_rows(rows: Sequence[TableRow], controls: Controls) -> list[TableRow]:
    """Insert rows after each task's rows: the mean over rotations, and the share right in all rotations."""
    made: list[TableRow] = []
    for row in rows:
        made.append(row)
        found = controls.tasks.get(row.name)
        rotated = None if found is None else found.rotations.get(f"{row.metric},{row.filter}")
        if rotated is not None:
            made += _rotation_rows(row, rotated)
    return made


def _rotation_rows(row: TableRow, found: Rotated) -> list[TableRow]:
    depth = len(row.alias) - len(row.alias.lstrip(" -"))
    plain = TableRow(
        row.name, "", row.metric, row.filter, row.shots, row.higher_is_better, stderr="N/A", scored=found.n
    )
    shown = (
        (f"mean of {found.orders} rotations", found.mean, found.mean_interval),
        (f"right in all {found.orders}", found.all_right, found.all_right_interval),
    )
    return [
        replace(plain, alias=f"{' ' * depth} - {text}", value=f"{value:.4f}", interval=_ends(interval))
        for text, value, interval in shown
    ]


def _ends(found: stats.Interval | stats.NoInterval) -> str:
    if isinstance(found, stats.Interval):
        return interval_text(found.low, found.high)
    return interval_text(None, None, found.reason)


def control_lines(controls: Controls) -> list[str]:
    """Return sentences about scores that do not clearly differ from those of their controls, and about each group.

    Tasks are compared by their first metric.
    """
    unclear = [
        _sentence(name, control, next(iter(gaps.values())))
        for name, task in controls.tasks.items()
        for control, gaps in task.gaps.items()
        if gaps and not next(iter(gaps.values())).is_clear
    ]
    if len(unclear) > MOST_SENTENCES:
        more = len(unclear) - MOST_SENTENCES
        unclear = [
            *unclear[:MOST_SENTENCES],
            f"... and {more} more without a clear difference (controls in the results)",
        ]
    groups = [
        _sentence(f"{name} (mean over its tasks)", control, gap)
        for name, found in controls.groups.items()
        for control, gap in found.items()
    ]
    return [*unclear, *groups]


def _sentence(name: str, control: str, gap: Gap) -> str:
    left = (
        f"{gap.score:.4g} of {gap.plain:.4g} remain" if gap.gap >= 0 else f"{gap.score:.4g} instead of {gap.plain:.4g}"
    )
    shown = _ends(gap.interval)
    text = f"{name}: {WITHOUT.get(control, control)} {left} (gap {gap.gap:+.4g} {shown}, {gap.n} documents)"
    if not isinstance(gap.interval, stats.Interval):
        return f"{text}: too few documents to distinguish the two"
    if gap.is_clear:
        return f"{text}: the score {'falls' if gap.gap > 0 else 'rises'}"
    return f"{text}: no clear difference, so the score does not show that the model uses what was left out"


Paired = Mapping[str, Mapping[str, PairedScores]]
"""Comparisons with a baseline by task and ``METRIC,FILTER``."""


def tables(run: RunScores, selection: Selection, paired: Paired, controls: Controls = NO_CONTROLS) -> str:
    """Format the table of tasks, the speeds below it, and the table of groups if a group aggregates."""
    tasks = {result.task.name: result for result in run.tasks}
    higher = directions(tasks, run.groups)
    rows: list[TableRow] = []
    groups: list[TableRow] = []
    for line in table_layout(selection, run.groups, tasks):
        plain = TableRow(line.name, redact_text(line.alias))
        if line.group is None:
            result = tasks[line.name]
            plain = replace(plain, shots=str(result.task.num_fewshot))
            mark = "" if result.early_stop is None else result.early_stop.mark
            found = _rows(plain, result.metrics, result.outcome, higher[line.name], mark)
            rows += with_gaps(_compared(found, paired.get(line.name, {})), result.task, controls)
        elif line.group.metrics:
            stop = group_early_stop(line.group, tasks)
            mark = "" if stop is None else stop_mark(stop.asked, stop.of)
            found = _rows(plain, line.group.metrics, group_outcome(line.group, tasks), higher[line.name], mark)
            groups += found
            rows += found
        else:
            rows.append(plain)
    parts = [rows_table(rotation_rows(rows, controls), "Tasks")]
    if speeds := throughput(run.asking):
        parts[0] += f"\n\nThroughput Summary\n\n{throughput_table(speeds)}"
    if groups:
        parts.append(rows_table(groups, "Groups"))
    return "\n\n".join(part.rstrip("\n") for part in parts)


def _rows(
    plain: TableRow,
    metrics: Sequence[MetricResult],
    outcome: TaskOutcome,
    higher: Mapping[str, bool | None],
    mark: str,
) -> list[TableRow]:
    """Make a row for each metric, in the order of ``METRIC,FILTER``; every number is followed by ``mark``."""
    answers = outcome.answers.described()
    return [
        replace(
            plain,
            metric=metric.metric,
            filter=metric.filter,
            higher_is_better=higher.get(metric.metric),
            value=_value(metric, outcome, mark),
            stderr=metric.stderr if _has_error(metric) else NOT_AVAILABLE,
            numbers=_numbers(metric),
            interval=_interval(metric),
            scored=metric.n,
            answers=answers,
            is_file=metric.value is None and "submission_files" in metric.details,
        )
        for metric in sorted(metrics, key=lambda metric: f"{metric.metric},{metric.filter}")
    ]


def _compared(rows: Sequence[TableRow], paired: Mapping[str, PairedScores]) -> Iterator[TableRow]:
    """Add the comparisons with a baseline to the rows that have one."""
    for row in rows:
        one = paired.get(f"{row.metric},{row.filter}")
        if one is not None:
            comparison = BaselineComparison(
                redact_text(one.baseline), one.unit, one.difference, one.ci_lower, one.ci_upper, one.pvalue
            )
            row = replace(row, comparison=comparison)
        yield row


def _value(metric: MetricResult, outcome: TaskOutcome, mark: str) -> str:
    if metric.value is not None:
        return marked(number_text(redact(metric.value, by_name=False)), mark, _truncation_mark(outcome))
    if not metric.withheld_reason:
        return NOT_AVAILABLE
    if outcome.scored and not metric.n:
        return NOT_EMITTED
    counts = {
        "unscored": outcome.unscored,
        "failed": outcome.failed,
        "not_asked": outcome.not_asked,
        "judge_unread": outcome.judge_unread,
        "truncated": outcome.answers.truncated if outcome.over_truncation_budget else 0,
    }
    return withheld(counts, outcome.answers.are_empty)


def _truncation_mark(outcome: TaskOutcome) -> str:
    if not outcome.over_truncation_budget:
        return ""
    return truncation_mark(outcome.answers.truncated, outcome.answers.total)


def _has_error(metric: MetricResult) -> bool:
    """Return whether to show errors; the error of a withheld number would mislead."""
    return metric.value is not None or not metric.withheld_reason


def _numbers(metric: MetricResult) -> dict[str, Any]:
    errors = {"stderr_clt": metric.stderr_clt, "stderr_clustered": metric.stderr_clustered}
    stability = {} if metric.stability is None else to_dict(metric.stability)
    return {**(errors if _has_error(metric) else {}), **stability}


def _interval(metric: MetricResult) -> str:
    if metric.value is None:
        return ""
    found = metric.interval
    reason = redact_text(metric.certainty.no_interval)
    return interval_text(None, None, reason) if found is None else interval_text(found.low, found.high)


_STDERR = "stderr"
_SUFFIXES = tuple(f"_{suffix}" for suffix in (_STDERR, *OPTIONAL.values()))
_BLANK_METRIC = " "


def make_table(result_dict: Mapping[str, Any], column: str = "results") -> str:
    """Format a results dictionary as a Markdown table, with a newline at the end.

    Values that are ``None`` are printed as withheld.

    Args:
        result_dict: the results. In addition to the family's keys, these keys are used:
            ``intervals[task]["METRIC,FILTER"]`` (``{"low", "high"}`` or ``{"reason"}``) for the column ``CI95``;
            ``outcomes[task]["n"]["METRIC,FILTER"]``, else ``outcomes[task]["scored"]``, for the column ``N``;
            ``early_stop[task]`` for marks of tasks that stopped early; and
            ``paired[task]["METRIC,FILTER"]`` for the columns of the comparison with a baseline.
        column: ``results`` for the tasks, ``groups`` for the groups.
    """
    heading = "Tasks" if column == "results" else column.capitalize()
    rows = [row for task in result_dict.get(column) or {} for row in _family_rows(result_dict, column, task)]
    table = rows_table(rows, heading)
    throughput = result_dict.get("throughput")
    if column == "results" and throughput:
        table += f"\n\nThroughput Summary\n\n{throughput_table(throughput)}"
    return table


def _family_rows(results: Mapping[str, Any], part: str, task: str) -> Iterator[TableRow]:
    """Yield the rows of one task. A key that holds the error of another key is part of that key's row."""
    entry = results[part][task]

    def about(name: str) -> Mapping[str, Any]:
        return (results.get(name) or {}).get(task) or {}

    keys = sorted(key for key in entry if "," in key or key == _BLANK_METRIC)
    alias = str(entry.get("alias", task))
    shots = str((results.get("n-shot") or {}).get(task, " "))
    outcome, stop = about("outcomes"), about("early_stop")
    mark = stop_mark(stop["asked"], stop["of"]) if stop else ""
    is_cut = outcome.get("over_truncation_budget") and outcome.get("answers")
    warning = truncation_mark(outcome["truncated"], outcome["answers"]) if is_cut else ""
    for key in keys:
        metric, _, pipeline = key.rpartition(",")
        base = next((metric.removesuffix(one) for one in _SUFFIXES if metric.endswith(one)), None)
        if base is not None and f"{base},{pipeline}" in keys:
            continue
        if key == _BLANK_METRIC:
            yield TableRow(task, alias, shots=shots, scored=outcome.get("scored"), answers=_answers(outcome))
            continue
        around = about("intervals").get(key) or {}
        yield TableRow(
            name=task,
            alias=alias,
            metric=metric,
            filter=pipeline,
            shots=shots,
            higher_is_better=about("higher_is_better").get(metric),
            value=_absent(outcome, key) if entry[key] is None else marked(number_text(entry[key]), mark, warning),
            stderr=entry.get(f"{metric}_{_STDERR},{pipeline}", NOT_AVAILABLE),
            numbers={name: entry.get(f"{metric}_{name},{pipeline}", NOT_AVAILABLE) for name in OPTIONAL.values()},
            comparison=_comparison(entry, about("paired").get(key, {}) if "paired" in results else None),
            interval=interval_text(around.get("low"), around.get("high"), str(around.get("reason", ""))),
            scored=(outcome.get("n") or {}).get(key, outcome.get("scored")),
            answers=_answers(outcome),
            is_file=key in outcome.get("wrote_files", ()),
        )


def _absent(outcome: Mapping[str, Any], key: str) -> str:
    """Return why a value is missing; ``N/A`` for an aggregation that only writes a file."""
    known = outcome.get("partial")
    if known is not None and key not in known:
        return NOT_AVAILABLE
    if outcome.get("scored") and (outcome.get("n") or {}).get(key) == 0:
        return NOT_EMITTED
    has_no_answer = 0 < outcome.get("answers", 0) == outcome.get("blank", 0) + outcome.get("filtered", 0)
    counts = {name: outcome.get(name, 0) for name in ("unscored", "failed", "not_asked", "judge_unread")}
    counts["truncated"] = outcome.get("truncated", 0) if outcome.get("over_truncation_budget") else 0
    return withheld(counts, has_no_answer=has_no_answer, is_counted=known is not None)


def _answers(outcome: Mapping[str, Any]) -> str:
    shares = outcome.get("shares") or {}
    return described_counts(outcome, shares)


def _comparison(entry: Mapping[str, Any], paired: Mapping[str, Any] | None) -> BaselineComparison | None:
    """Read the row's comparison from ``paired``; if the document has no such part, from the family's keys."""
    if paired:
        return BaselineComparison(
            str(paired.get("baseline", "")), paired["unit"], paired.get("difference"), paired.get("ci_lower"),
            paired.get("ci_upper"), paired.get("pvalue"),
        )  # fmt: skip
    if paired is not None or "paired_baseline" not in entry:
        return None
    low, high = entry.get("paired_ci_lower"), entry.get("paired_ci_upper")
    middle = (low + high) / 2 if isinstance(low, int | float) and isinstance(high, int | float) else None
    return BaselineComparison(str(entry["paired_baseline"]), "percent", middle, low, high, entry.get("paired_pvalue"))
