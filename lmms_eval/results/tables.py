"""The table of results: its rows, and their Markdown (harness specification §5.4, engine rules §10)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval import stats
from lmms_eval.api.task import Task
from lmms_eval.config.rules import control_name
from lmms_eval.engine.evaluate import RunScores
from lmms_eval.engine.looks import stop_mark
from lmms_eval.engine.outcomes import described_counts
from lmms_eval.engine.plan import sample_mark
from lmms_eval.engine.uncertainty import NO_ERROR, NOT_AVAILABLE
from lmms_eval.results.baseline import SIGNIFICANT, PairedScores
from lmms_eval.results.controls import NO_CONTROLS, Controls, Gap
from lmms_eval.results.document import stream_speeds, throughput
from lmms_eval.results.facts import aggregation_of, count_label, is_count, part_of
from lmms_eval.utils.latex import latex_table
from lmms_eval.utils.terminal import Column, markdown_table, named_table, printable

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
_LEAST_SHOWN = 0.0001
"""Smaller p-values are printed as ``<0.0001``."""


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
    comparison: PairedScores | None = None
    gap: Gap | None = None
    flips: str = ""
    """Share of documents whose score changed when they were asked again."""
    flips_interval: str = ""
    chance: str = ""
    """The score of guessing, in units of the metric."""
    interval: str = ""
    scored: int | None = None
    """Documents that emitted the metric."""
    answers: str = ""
    """Counts and shares of answers that are empty or truncated."""
    published: str = ""
    """A published number of the model; ``(+N)`` if there are others too."""
    verdict: str = ""
    """The comparison with it."""
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
    shown = [f"{one:.4f}" if isinstance(one, int | float) else str(one) for one in values]
    units = [_UNITS.get(name, "varies") for name in names]
    return named_table({"Metric": names, "Value": shown, "Unit": units}, ("Value",))


def streams_table(streams: Mapping[str, Any]) -> str:
    """Format the table of the speeds of streamed answers."""

    def shown(name: str, key: str) -> list[str]:
        spreads = [entry.get(name) for entry in streams.values()]
        return ["" if spread is None else f"{spread[key]:.4g}" for spread in spreads]

    columns = {
        "Task": list(streams),
        "Answers": [str(entry["answers"]) for entry in streams.values()],
        "TTFT median (s)": shown("ttft", "median"),
        "TTFT p95 (s)": shown("ttft", "p95"),
        "Tokens/s median": shown("tokens_per_second", "median"),
        "Tokens/s p95": shown("tokens_per_second", "p95"),
    }
    return named_table(columns, tuple(columns)[1:])


def _speeds(throughput: Mapping[str, Any] | None, streams: Mapping[str, Any] | None) -> str:
    """Format the tables of speeds below the table of tasks; empty without any."""
    found = [("Throughput Summary", throughput_table(throughput))] if throughput else []
    found += [("Streams", streams_table(streams))] if streams else []
    texts = [f"\n\n{heading}\n\n{table}" for heading, table in found]
    return "".join([*(text.rstrip("\n") for text in texts[:-1]), *texts[-1:]])


def _columns(rows: Sequence[TableRow], heading: str) -> Iterator[Column]:
    """Yield the columns of every table, then the columns that have a value in some row."""

    def column(heading: str, cell: Callable[[TableRow], str], is_text: bool = False) -> Column:
        return Column(heading, tuple(map(cell, rows)), is_text)

    def compared(heading: str, cell: Callable[[PairedScores], str], is_text: bool = False) -> Column:
        # A group without a number shows `N/A` in every column.
        return column(
            heading,
            lambda row: (
                (NOT_AVAILABLE if row.metric == " " else "") if row.comparison is None else cell(row.comparison)
            ),
            is_text,
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
        yield compared("CI", _difference_ends, is_text=True)
        yield compared("P_Value", lambda paired: p_value_text(paired.pvalue, paired.depends))
    if any(row.gap is not None for row in rows):
        yield column("Gap", lambda row: "" if row.gap is None else f"{row.gap.gap:+.4g}", is_text=True)
        yield column("Gap_CI95", lambda row: "" if row.gap is None else _ends(row.gap.interval), is_text=True)
        yield column("Gap_P", lambda row: "" if row.gap is None else p_value_text(row.gap.p))
    added = (
        column("Flips", lambda row: row.flips),
        column("Flips_CI95", lambda row: row.flips_interval, is_text=True),
        column("Chance", lambda row: row.chance, is_text=True),
        column("CI95", lambda row: row.interval, is_text=True),
        column("N", lambda row: "" if row.scored is None else str(row.scored)),
        column("Answers", lambda row: row.answers, is_text=True),
        column("Published", lambda row: row.published),
        column("Verdict", lambda row: row.verdict, is_text=True),
    )
    yield from (one for one in added if any(one.cells))


def _signed(value: float, unit: str) -> str:
    if math.isnan(value):
        return ""
    return f"{value:+.1f}%" if unit == "percent" else f"{value:+.4g}"


def _difference_ends(paired: PairedScores) -> str:
    if paired.ci_lower is None or paired.ci_upper is None:
        return ""
    return f"[{_signed(paired.ci_lower, paired.unit)}, {_signed(paired.ci_upper, paired.unit)}]"


def p_value_text(pvalue: float | None, depends: str = "") -> str:
    """Return a p-value's text, with a star below 0.05, or with what it depends on; empty for ``None``."""
    if pvalue is None:
        return ""
    shown = f"{pvalue:.4f}" if pvalue >= _LEAST_SHOWN else f"<{_LEAST_SHOWN}"
    if depends:
        return f"{shown} ({depends})"
    return f"{shown}{'*' if pvalue < SIGNIFICANT else ''}"


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
        task = controls.tasks.get(row.name)
        found = None if task is None else task.rotations.get(f"{row.metric},{row.filter}")
        if found is None:
            continue
        depth = len(row.alias) - len(row.alias.lstrip(" -"))
        for text, value, interval in (
            (f"mean of {found.orders} rotations", found.mean, found.mean_interval),
            (f"right in all {found.orders}", found.all_right, found.all_right_interval),
        ):
            alias, shown = f"{' ' * depth} - {text}", TableRow(row.name, "", row.metric, row.filter, row.shots)
            made.append(
                replace(
                    shown, alias=alias, higher_is_better=row.higher_is_better, value=f"{value:.4f}", scored=found.n,
                    interval=_ends(interval),
                )
            )  # fmt: skip
    return made


def _ends(found: stats.Interval | stats.NoInterval) -> str:
    if isinstance(found, stats.Interval):
        return interval_text(found.low, found.high)
    return interval_text(None, None, found.reason)


_ALPHA = 0.05


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
    tests = [gap.p for task in controls.tasks.values() for gaps in task.gaps.values() for gap in gaps.values()]
    return [*unclear, *groups, *gap_lines(tests)]


def gap_lines(tests: Iterable[float | None]) -> list[str]:
    """Return a line about the gaps of all tasks and controls together, if there are several p-values."""
    known = [p for p in tests if p is not None]
    if len(known) < 2:
        return []
    from lmms_eval.stats.differences import holm

    clear = sum(p is not None and p <= _ALPHA for p in holm(known))
    return [
        f"Gap_P is of each row alone; corrected over all {len(known)} rows (Holm), {clear} gaps differ from 0 at "
        f"{_ALPHA}"
    ]


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


def tables(document: Mapping[str, Any], run: RunScores, controls: Controls = NO_CONTROLS) -> str:
    """Format the table of tasks, the speeds below it, and the table of groups if a group aggregates."""
    tasks = {result.task.name: result.task for result in run.tasks}
    metrics = [(result.task.name, result.metrics) for result in run.tasks]
    metrics += [(group.group.name, group.metrics) for group in run.groups if group.metrics]
    keys = {name: [(one.metric, one.filter) for one in of_name] for name, of_name in metrics}
    rows: list[TableRow] = []
    for name in document["results"]:
        found = list(_rows(document, "results", name, keys.get(name)))
        rows += with_gaps(found, tasks[name], controls) if name in tasks else found
    groups = [row for name in document.get("groups") or {} for row in _rows(document, "groups", name, keys.get(name))]
    speeds = _speeds(throughput(run.asking), stream_speeds(run.asking))
    return _shown_tables(document, rotation_rows(rows, controls), groups, speeds)


def document_tables(document: Mapping[str, Any]) -> str:
    """Format the tables of a results document as a run prints them, without what only the run itself knows."""
    rows, groups = (
        [row for name in document.get(part) or {} for row in _rows(document, part, name)]
        for part in ("results", "groups")
    )
    return _shown_tables(document, rows, groups, _speeds(document.get("throughput"), document.get("streams")))


def _shown_tables(
    document: Mapping[str, Any], rows: Sequence[TableRow], groups: Sequence[TableRow], speeds: str
) -> str:
    """Format the tables that people see: scores, what is only counted, speeds, groups, and scores of parts."""
    rows, counts = _apart(document, rows)
    first = rows_table(rows, "Tasks") if rows or not counts else ""
    below = "\n".join(["", *counts, ""] if first and counts else [*counts, ""] if counts else [])
    parts = [first + below + speeds, *([rows_table(groups, "Groups")] if groups else []), *part_tables(document)]
    return "\n\n".join(part.rstrip("\n") for part in parts)


MAX_COUNTED = 4
"""Tasks whose counts are listed one by one."""


def _apart(document: Mapping[str, Any], rows: Sequence[TableRow]) -> tuple[list[TableRow], list[str]]:
    """Return the rows of scores, and a line for each kind of count: ``scored documents: megabench_demo 59``.

    A count stays a row if its task has no other row and nothing was counted, so that the row shows the reason; and if
    nothing is scored at all (``--predict_only``), as in the family's table.
    """
    counted = [_is_count_row(document, row) for row in rows]
    having = {row.name for row, is_counted in zip(rows, counted, strict=True) if not is_counted}
    left: list[TableRow] = []
    found: dict[str, dict[str, int]] = {}
    for row, is_counted in zip(rows, counted, strict=True):
        value = part_of(document, "results", row.name).get(f"{row.metric},{row.filter}")
        number = value if row.metric == "scored" else row.scored
        has_count = number is not None and (row.value == NOT_AVAILABLE or row.metric == "scored")
        if is_counted and (row.name in having or has_count):
            if number is not None:
                found.setdefault(count_label(row.metric), {}).setdefault(row.alias.strip(" -"), int(number))
        else:
            left.append(row)
    return left, [_count_line(label, by_task) for label, by_task in found.items()]


def _is_count_row(document: Mapping[str, Any], row: TableRow) -> bool:
    value = part_of(document, "results", row.name).get(f"{row.metric},{row.filter}")
    return is_count(row.metric, value, aggregation_of(document, row.name, row.metric))


def _count_line(label: str, by_task: Mapping[str, int]) -> str:
    if len(by_task) > MAX_COUNTED:
        return f"{label}: {sum(by_task.values()):,} of {len(by_task)} tasks"
    return f"{label}: {', '.join(f'{name} {number:,}' for name, number in by_task.items())}"


MAX_PARTS = 40
"""Rows of a table of parts; the results file has all."""
MAX_NAME = 60
"""Characters shown of a part's name, which comes from the data."""


def part_tables(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table for each division of a task's documents: number and score of each part, by every metric.

    Parts without documents have no score, so they have no row. Metrics of a withheld score are left out.
    """
    for task, metrics in part_of(document, "sub_scores").items():
        divisions: dict[str, dict[str, Mapping[str, Any]]] = {}
        for key, by_column in metrics.items():
            if part_of(document, "results", task).get(key) is None:
                continue
            for column, parts in by_column.items():
                held = {name: one for name, one in parts.items() if one.get("n")}
                divisions.setdefault(column, {}).update({key: held} if held else {})
        for column, scores in divisions.items():
            if scores:
                yield f"{_named(task)} by {_named(column)}\n\n{_part_table(column, scores)}"


def _part_table(heading: str, scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Format the parts of one division: a row for each part, and columns for each metric (``METRIC,FILTER``)."""
    names = list(dict.fromkeys(name for parts in scores.values() for name in parts))
    shown = names[:MAX_PARTS]
    columns = [Column(_named(heading).capitalize(), tuple(map(_named, shown)), is_text=True)]
    before: Sequence[str] = ()
    for key, parts in scores.items():
        metric, _, pipeline = key.rpartition(",")
        found = [parts.get(name) for name in shown]
        counts = ["" if one is None else str(one["n"]) for one in found]
        columns += [Column("N", tuple(counts))] if counts != before else []
        values = tuple("" if one is None else f"{one['value']:.4f}" for one in found)
        columns.append(Column(_named(metric if pipeline in ("none", "") else f"{metric} ({pipeline})"), values))
        errors = tuple("" if one is None or not one.get("stderr") else f"{one['stderr']:.4f}" for one in found)
        columns += [Column("Stderr", errors)] if any(errors) else []
        before = counts
    more = len(names) - len(shown)
    return markdown_table(columns) + (f"and {more} more (sub_scores in the results file)\n" if more else "")


def _named(text: str) -> str:
    """Return a name from the data in one line of at most ``MAX_NAME`` characters."""
    name = printable(" ".join(text.split()))
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


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
            ``noise_floor[task]["scores"]["METRIC,FILTER"]`` for the columns of changed scores;
            ``early_stop[task]`` for marks of tasks that stopped early, ``sampled[task]`` of random samples;
            ``paired[task]["METRIC,FILTER"]`` for the columns of the comparison with a baseline; and
            ``published[task]`` for the columns of published numbers.
        column: ``results`` for the tasks, ``groups`` for the groups.
    """
    heading = "Tasks" if column == "results" else column.capitalize()
    rows = [row for task in result_dict.get(column) or {} for row in _rows(result_dict, column, task)]
    table = rows_table(rows, heading)
    if column == "results":
        table += _speeds(result_dict.get("throughput"), result_dict.get("streams"))
    return table


_LATEX_LEAVES_OUT = ("", "Stderr_CLT", "Stderr_Clustered")


def make_latex(result_dict: Mapping[str, Any]) -> str:
    """Format a results dictionary as a LaTeX ``tabular`` for the package booktabs.

    The sources of published numbers are comments below it.

    The columns are those of ``make_table``, without signs between numbers and further errors, and without the filter if
    no task has one.
    """
    rows = [row for task in result_dict.get("results") or {} for row in _rows(result_dict, "results", task)]
    with_numbers = {row.name for row in rows if not row.is_file}
    shown = [row for row in rows if not row.is_file or row.name not in with_numbers]
    left_out = {*_LATEX_LEAVES_OUT, *(() if any(row.filter not in ("", "none") for row in shown) else ("Filter",))}
    table = latex_table([column for column in _columns(shown, "Task") if column.heading not in left_out])
    comments = [
        f"% {task}: {one['published']} ({one['kind']}: {one['source']}): {one['shown']}"
        + (f", {one['reason']}" if one["reason"] else "")
        for task, listed in (result_dict.get("published") or {}).items()
        for one in listed
    ]
    return table + "".join(f"{printable(' '.join(line.split()))}\n" for line in comments)


def _rows(
    results: Mapping[str, Any], part: str, task: str, known: Iterable[tuple[str, str]] | None = None
) -> Iterator[TableRow]:
    """Yield the rows of one task or group.

    Without the ``known`` pairs of metric and filter, they are taken from the keys of its entry. A key that holds the
    error of another key is part of that key's row.
    """
    entry = results[part][task]

    def about(name: str) -> Mapping[str, Any]:
        return (results.get(name) or {}).get(task) or {}

    outcome, stop, drawn = about("outcomes"), about("early_stop"), about("sampled")
    plain = TableRow(
        task,
        str(entry.get("alias", task)),
        shots=str((results.get("n-shot") or {}).get(task, " ")),
        scored=outcome.get("scored"),
        answers=described_counts(outcome, outcome.get("shares") or {}),
    )
    mark = stop_mark(stop["asked"], stop["of"]) if stop else ""
    mark = sample_mark(drawn["asked"], drawn["of"]) if drawn else mark
    is_cut = outcome.get("over_truncation_budget") and outcome.get("answers")
    warning = truncation_mark(outcome["truncated"], outcome["answers"]) if is_cut else ""
    if _BLANK_METRIC in entry:
        yield plain
    for metric, pipeline in pairs_in(entry) if known is None else sorted(known, key=",".join):
        key = f"{metric},{pipeline}"
        around = about("intervals").get(key) or {}
        flips = (about("noise_floor").get("scores") or {}).get(key) or {}
        yield replace(
            plain,
            metric=metric,
            filter=pipeline,
            higher_is_better=about("higher_is_better").get(metric),
            value=absent_text(outcome, key) if entry[key] is None else marked(number_text(entry[key]), mark, warning),
            stderr=entry.get(f"{metric}_{_STDERR},{pipeline}", NOT_AVAILABLE),
            numbers={name: entry.get(f"{metric}_{name},{pipeline}", NOT_AVAILABLE) for name in OPTIONAL.values()},
            comparison=_comparison(entry, about("paired").get(key, {}) if "paired" in results else None),
            interval=interval_text(around.get("low"), around.get("high"), str(around.get("reason", ""))),
            scored=(outcome.get("n") or {}).get(key, outcome.get("scored")),
            is_file=key in outcome.get("wrote_files", ()),
            flips=number_text(flips["share"]) if flips else "",
            flips_interval=interval_text(flips.get("low"), flips.get("high")) if flips else "",
            **_published((results.get("published") or {}).get(task, ()), key),
        )


def _published(known: Iterable[Mapping[str, Any]], key: str) -> dict[str, str]:
    """Return number and verdict of the first published number that is compared with a row."""
    fitting = [one for one in known if one["metric"] == key]
    if not fitting:
        return {}
    first = str(fitting[0]["published"])
    more = f" (+{len(fitting) - 1})" if len(fitting) > 1 else ""
    return {"published": f"{first}{more}", "verdict": str(fitting[0]["shown"])}


def pairs_in(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of metric and filter in the keys ``METRIC,FILTER``, without keys that hold errors of others."""
    keys = sorted(key for key in entry if "," in key)
    for key in keys:
        metric, _, pipeline = key.rpartition(",")
        base = next((metric.removesuffix(one) for one in _SUFFIXES if metric.endswith(one)), None)
        if base is None or f"{base},{pipeline}" not in keys:
            yield metric, pipeline


def absent_text(outcome: Mapping[str, Any], key: str) -> str:
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


def _comparison(entry: Mapping[str, Any], paired: Mapping[str, Any] | None) -> PairedScores | None:
    """Read the row's comparison from ``paired``; if the document has no such part, from the family's keys."""
    if paired:
        known: dict[str, Any] = {name: paired.get(name) for name in ("ci_lower", "ci_upper", "pvalue", "estimand")}
        for name in ("baseline_score", "difference"):
            known[name] = math.nan if paired.get(name) is None else paired[name]
        known |= {"n": paired.get("n", 0), "depends": str(paired.get("depends", ""))}
        return PairedScores(str(paired.get("baseline", "")), paired["unit"], **known)
    if paired is not None or "paired_baseline" not in entry:
        return None
    low, high = entry.get("paired_ci_lower"), entry.get("paired_ci_upper")
    middle = (low + high) / 2 if isinstance(low, int | float) and isinstance(high, int | float) else math.nan
    score, pvalue = entry.get("paired_baseline_score", math.nan), entry.get("paired_pvalue")
    return PairedScores(str(entry["paired_baseline"]), "percent", score, middle, low, high, pvalue, n=0)
