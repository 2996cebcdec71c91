"""Table of results: rows as values, and the Markdown made of them (harness specification §5.4, engine rules §10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.engine.uncertainty import NO_ERROR, NOT_AVAILABLE
from lmms_eval.utils.markdown import Column, markdown_table

OPTIONAL: Mapping[str, str] = {
    "Stderr_CLT": "stderr_clt",
    "Stderr_Clustered": "stderr_clustered",
    "EA": "expected_accuracy",
    "CA": "consensus_accuracy",
    "IV": "internal_variance",
    "CR": "consistency_rate",
}
"""Heading -> name of the number, for columns that are left out where no row has a value."""
_UNITS = {
    "total_gen_tokens": "tokens",
    "total_elapsed_time": "seconds",
    "avg_latency": "seconds/request",
    "avg_speed": "tokens/s",
}
_SIGNIFICANT = 0.05
_LEAST_SHOWN = 0.0001
"""Smaller p-values are printed as being below it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A paired comparison with a baseline."""

    baseline: str
    unit: str
    """``percent``, or empty: the metric's own."""
    difference: float | None
    """Mean paired difference."""
    low: float | None
    high: float | None
    """The 95 % interval of the difference."""
    pvalue: float | None


@dataclass(frozen=True, slots=True)
class GapCells:
    """The loss of a task's score in a control, as printed."""

    gap: str
    interval: str
    pvalue: float | None


@dataclass(frozen=True, slots=True)
class TableRow:
    """One metric of one task or group, through one filter pipeline; with a name alone, a group without a number."""

    name: str
    alias: str
    """The name as shown."""
    metric: str = " "
    filter: str = ""
    shots: str = " "
    higher_is_better: bool | None = None
    value: str = " "
    """Text as printed, or the reason why there is no number."""
    stderr: Any = NOT_AVAILABLE
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """Numbers of ``OPTIONAL``, by name."""
    comparison: Comparison | None = None
    gap: GapCells | None = None
    chance: str = ""
    """What guessing gives, in units of the metric."""
    interval: str = ""
    scored: int | None = None
    """Documents that emitted the metric."""
    answers: str = ""
    """Counts and shares of answers that are none or cut off."""
    is_file: bool = False
    """The aggregation has only written a file, whose name is printed below the table."""


NOT_EMITTED = f"{NOT_AVAILABLE} (no document has it)"
"""Value of a metric that the task declares and no scored document emitted."""


def withheld(counts: Mapping[str, int], has_no_answer: bool, is_counted: bool = True) -> str:
    """Say why a number is withheld.

    Args:
        counts: numbers of documents by ``unscored``, ``failed``, ``not_asked`` and ``judge_unread`` (no readable reply
            of the judge), and of answers by ``truncated``, 0 unless they are more than their budget allows.
        has_no_answer: every answer is blank or filtered.
        is_counted: the run says itself why a number is absent; else the failures are named, though there be none.
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
    """Return the warning at a number that rests on more truncated answers than their budget allows."""
    return f"{truncated / answers:.1%} of answers truncated"


def marked(number: str, *marks: str) -> str:
    """Return a cell's text with what its reader must know of the number, in brackets."""
    shown = "; ".join(mark for mark in marks if mark)
    return f"{number} ({shown})" if shown else number


def number_text(value: Any) -> str:
    """Return a cell's text: four decimals for a ``float``, ``N/A`` for ``None``."""
    if value is None:
        return NOT_AVAILABLE
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def interval_text(low: float | None, high: float | None, reason: str = "") -> str:
    """Return an interval's text, or the reason why there is none; the column of errors says itself that it has none."""
    if low is None or high is None:
        return "" if reason == NO_ERROR else reason
    return f"[{low:.4f}, {high:.4f}]"


def rows_table(rows: Sequence[TableRow], heading: str) -> str:
    """Make the Markdown table of rows; ``heading`` stands over their names.

    A row that stands for a written file is left out where its task has others.
    """
    told = {row.name for row in rows if not row.is_file}
    shown = [row for row in rows if not row.is_file or row.name not in told]
    return markdown_table(list(_columns(shown, heading)))


def throughput_table(throughput: Mapping[str, Any]) -> str:
    """Make the table of speeds: the known numbers first, in the family's order, then the back end's own."""
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
    """The columns of every table, then those that have a value in some row."""

    def column(heading: str, cell: Callable[[TableRow], str], is_text: bool = False) -> Column:
        return Column(heading, tuple(map(cell, rows)), is_text)

    def compared(heading: str, cell: Callable[[Comparison], str], is_text: bool = False) -> Column:
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
        yield column("Gap", lambda row: "" if row.gap is None else row.gap.gap, is_text=True)
        yield column("Gap_CI95", lambda row: "" if row.gap is None else row.gap.interval, is_text=True)
        yield column("Gap_P", lambda row: "" if row.gap is None else p_value_text(row.gap.pvalue))
    added = (
        column("Chance", lambda row: row.chance, is_text=True),
        column("CI95", lambda row: row.interval, is_text=True),
        column("N", lambda row: "" if row.scored is None else str(row.scored)),
        column("Answers", lambda row: row.answers, is_text=True),
    )
    yield from (one for one in added if any(one.cells))


def _uncompared(row: TableRow) -> str:
    """Return the cell of a row that is compared with nothing: a group without a number has none in any column."""
    return NOT_AVAILABLE if row.metric == " " else ""


def _signed(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:+.1f}%" if unit == "percent" else f"{value:+.4g}"


def _difference_interval(paired: Comparison) -> str:
    if paired.low is None or paired.high is None:
        return ""
    return f"[{_signed(paired.low, paired.unit)}, {_signed(paired.high, paired.unit)}]"


def p_value_text(pvalue: float | None) -> str:
    """Return a p-value's text, with a star below 0.05; empty for none."""
    if pvalue is None:
        return ""
    shown = f"{pvalue:.4f}" if pvalue >= _LEAST_SHOWN else f"<{_LEAST_SHOWN}"
    return f"{shown}{'*' if pvalue < _SIGNIFICANT else ''}"
