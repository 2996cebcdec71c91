"""The table of results that a run prints (harness specification §5.4, engine rules §10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval.utils.markdown import Column, markdown_table

_NOT_AVAILABLE = "N/A"
_STDERR = "stderr"
_NO_ERROR = "no standard error"
_OPTIONAL = {
    "Stderr_CLT": "stderr_clt",
    "Stderr_Clustered": "stderr_clustered",
    "EA": "expected_accuracy",
    "CA": "consensus_accuracy",
    "IV": "internal_variance",
    "CR": "consistency_rate",
}
_SUFFIXES = tuple(f"_{suffix}" for suffix in (_STDERR, *_OPTIONAL.values()))
_BLANK_METRIC = " "
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
class _Row:
    """One metric of one task or group: its name in ``results``, and where its numbers lie."""

    task: str
    entry: Mapping[str, Any]
    metric: str
    filter_name: str

    def named(self, suffix: str) -> Any:
        return self.entry.get(f"{self.metric}_{suffix},{self.filter_name}", _NOT_AVAILABLE)


def _number(value: Any) -> str:
    if value is None:
        return _NOT_AVAILABLE
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _rows(part: Mapping[str, Mapping[str, Any]]) -> Iterator[_Row]:
    for task, entry in part.items():
        keys = sorted(key for key in entry if "," in key or key == _BLANK_METRIC)
        metrics = {tuple(key.rsplit(",", 1)) for key in keys}
        for key in keys:
            metric, _, filter_name = key.rpartition(",") if "," in key else (key, "", "")
            base = next((metric.removesuffix(s) for s in _SUFFIXES if metric.endswith(s)), None)
            if base is None or (base, filter_name) not in metrics:
                yield _Row(task, entry, metric, filter_name)


class _ResultsTable:
    """Cells of the table from a results dictionary."""

    def __init__(self, results: Mapping[str, Any], part: str) -> None:
        self.results, self.part = results, part
        rows = list(_rows(results.get(part) or {}))
        told = {row.task for row in rows if not self.is_file(row)}
        self.rows = [row for row in rows if row.task not in told or not self.is_file(row)]

    def is_file(self, row: _Row) -> bool:
        """An aggregation that only wrote a file, whose name stands below the table, has no row beside others."""
        return f"{row.metric},{row.filter_name}" in self._about("outcomes", row.task).get("wrote_files", ())

    def _about(self, name: str, task: str) -> Mapping[str, Any]:
        return (self.results.get(name) or {}).get(task) or {}

    def shots(self, row: _Row) -> str:
        return str((self.results.get("n-shot") or {}).get(row.task, " "))

    def arrow(self, row: _Row) -> str:
        direction = self._about("higher_is_better", row.task).get(row.metric)
        return "" if direction is None else "↑" if direction else "↓"

    def value(self, row: _Row) -> str:
        if row.metric == _BLANK_METRIC:
            return " "
        value = row.entry[f"{row.metric},{row.filter_name}"]
        return self.absent(row) if value is None else _number(value)

    def absent(self, row: _Row) -> str:
        """Why a value is not there; an aggregation that returns nothing (it writes a file) has none to give."""
        outcome = self._about("outcomes", row.task)
        known = outcome.get("partial")
        if known is not None and f"{row.metric},{row.filter_name}" not in known:
            return _NOT_AVAILABLE
        failed, left = outcome.get("failed", 0), outcome.get("not_asked", 0)
        if outcome.get("unscored") and not failed and not left:
            return f"not evaluated ({outcome['unscored']} unscored)"
        reasons = [f"{failed} failed"] if failed or known is None else []
        reasons += [f"{left} not asked"] if left else []
        if not reasons and 0 < outcome.get("answers", 0) == outcome.get("blank", 0) + outcome.get("filtered", 0):
            reasons = ["no answer"]
        return f"withheld ({', '.join(reasons)})" if reasons else "withheld"

    def stderr(self, row: _Row) -> str:
        return "" if row.metric == _BLANK_METRIC else _number(row.named(_STDERR))

    def interval(self, row: _Row) -> str:
        found = self._about("intervals", row.task).get(f"{row.metric},{row.filter_name}")
        if not found:
            return ""
        if found.get("low") is None or found.get("high") is None:
            reason = str(found.get("reason", ""))
            return "" if reason == _NO_ERROR else reason  # the column of errors says so already
        return f"[{found['low']:.4f}, {found['high']:.4f}]"

    def count(self, row: _Row) -> str:
        scored = self._about("outcomes", row.task).get("scored")
        return "" if scored is None else str(scored)

    def answers(self, row: _Row) -> str:
        """Answers that are none or cut off, with their shares."""
        outcome = self._about("outcomes", row.task)
        shares = outcome.get("shares") or {}
        return ", ".join(f"{outcome[name]} {name} ({share:.1%})" for name, share in shares.items() if share)

    def column(self, heading: str, cell: Callable[[_Row], str], is_text: bool = False) -> Column:
        return Column(heading, tuple(cell(row) for row in self.rows), is_text)

    def optional_columns(self) -> Iterator[Column]:
        """Those of errors and stability that have a value in some row."""
        for heading, suffix in _OPTIONAL.items():
            values = [row.named(suffix) for row in self.rows]
            if any(value != _NOT_AVAILABLE and value is not None for value in values):
                yield Column(heading, tuple(_number(value) for value in values))

    def paired(self, row: _Row) -> Mapping[str, Any]:
        """The row's comparison with a baseline; without the part ``paired`` that which the family's keys hold."""
        if "paired" in self.results:
            found: Mapping[str, Any] = self._about("paired", row.task).get(f"{row.metric},{row.filter_name}", {})
            return found
        low, high = row.entry.get("paired_ci_lower"), row.entry.get("paired_ci_upper")
        if "paired_baseline" not in row.entry:
            return {}
        middle = (low + high) / 2 if isinstance(low, int | float) and isinstance(high, int | float) else None
        return {
            "baseline": row.entry["paired_baseline"],
            "unit": "percent",
            "difference": middle,
            "ci_lower": low,
            "ci_upper": high,
            "pvalue": row.entry.get("paired_pvalue"),
        }

    def baseline_columns(self) -> Iterator[Column]:
        """Of the paired comparison; ``Diff`` is the mean paired difference."""
        if any(self.paired(row) for row in self.rows):
            yield self.column("Baseline", lambda row: str(self.paired(row).get("baseline", "")), is_text=True)
            yield self.column("Diff", lambda row: _difference(self.paired(row)), is_text=True)
            yield self.column("CI", lambda row: _difference_interval(self.paired(row)), is_text=True)
            yield self.column("P_Value", lambda row: _p_value(self.paired(row)))

    def added_columns(self) -> Iterator[Column]:
        """``CI95`` and ``N``, where the run supplies them, and ``Answers`` where some are blank or cut off."""
        for heading, cell in (("CI95", self.interval), ("N", self.count), ("Answers", self.answers)):
            column = self.column(heading, cell, is_text=heading != "N")
            if any(column.cells):
                yield column

    def columns(self) -> list[Column]:
        return [
            self.column(
                self.part.capitalize() if self.part != "results" else "Tasks",
                lambda row: str(row.entry.get("alias", row.task)),
                is_text=True,
            ),
            self.column("Filter", lambda row: row.filter_name, is_text=True),
            self.column("n-shot", self.shots),
            self.column("Metric", lambda row: row.metric, is_text=True),
            self.column("", self.arrow, is_text=True),
            self.column("Value", self.value),
            self.column("", lambda row: "" if row.metric == _BLANK_METRIC else "±", is_text=True),
            self.column("Stderr", self.stderr),
            *self.optional_columns(),
            *self.baseline_columns(),
            *self.added_columns(),
        ]


def _signed(value: float, paired: Mapping[str, Any]) -> str:
    return f"{value:+.1f}%" if paired["unit"] == "percent" else f"{value:+.4g}"


def _difference(paired: Mapping[str, Any]) -> str:
    value = paired.get("difference")
    return _signed(value, paired) if isinstance(value, int | float) else ""


def _difference_interval(paired: Mapping[str, Any]) -> str:
    low, high = paired.get("ci_lower"), paired.get("ci_upper")
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return ""
    return f"[{_signed(low, paired)}, {_signed(high, paired)}]"


def _p_value(paired: Mapping[str, Any]) -> str:
    p = paired.get("pvalue")
    if not isinstance(p, int | float):
        return ""
    shown = f"{p:.4f}" if p >= _LEAST_SHOWN else f"<{_LEAST_SHOWN}"
    return f"{shown}{'*' if p < _SIGNIFICANT else ''}"


def _throughput_table(throughput: Mapping[str, Any]) -> str:
    """The known numbers first, in the family's order, then the back end's own."""
    names = [name for name in _UNITS if name in throughput]
    names += [name for name in throughput if name not in _UNITS]
    return markdown_table(
        [
            Column("Metric", tuple(names), is_text=True),
            Column("Value", tuple(_as_float(throughput[name]) for name in names)),
            Column("Unit", tuple(_UNITS.get(name, "varies") for name in names), is_text=True),
        ]
    )


def _as_float(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, int | float) else str(value)


def make_table(result_dict: Mapping[str, Any], column: str = "results") -> str:
    """The Markdown table of a results dictionary, with a newline at the end.

    Args:
        result_dict: the results; besides the family's keys ``intervals[task]["METRIC,FILTER"] = {"low", "high"}``
            (or ``{"reason"}``) and ``outcomes[task] = {"scored", "failed"}`` give the columns ``CI95`` and ``N``,
            ``paired[task]["METRIC,FILTER"]`` those of the comparison with a baseline, and a value that is ``None`` is
            printed as withheld.
        column: ``results`` for the tasks, ``groups`` for the groups.
    """
    table = markdown_table(_ResultsTable(result_dict, column).columns())
    throughput = result_dict.get("throughput")
    if column == "results" and throughput:
        table += f"\n\nThroughput Summary\n\n{_throughput_table(throughput)}"
    return table
