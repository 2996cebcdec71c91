"""Rows of the results table from the results of tasks and groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from lmms_eval.api.task import Selection
from lmms_eval.engine.aggregate import MetricResult
from lmms_eval.engine.evaluate import RunResult
from lmms_eval.engine.outcomes import TaskOutcome
from lmms_eval.engine.uncertainty import NOT_AVAILABLE
from lmms_eval.results.baseline import PairedScores
from lmms_eval.results.control_rows import rotation_rows, with_gaps
from lmms_eval.results.controls import NO_CONTROLS, Controls
from lmms_eval.results.efficiency import throughput
from lmms_eval.results.layout import directions, group_early_stop, group_outcome, table_layout
from lmms_eval.results.table import (
    NOT_EMITTED,
    Comparison,
    TableRow,
    interval_text,
    marked,
    number_text,
    rows_table,
    throughput_table,
    truncation_mark,
    withheld,
)
from lmms_eval.utils.redaction import redact, redact_text

Paired = Mapping[str, Mapping[str, PairedScores]]
"""Comparisons with a baseline by task and ``METRIC,FILTER``."""


def tables(run: RunResult, selection: Selection, paired: Paired, controls: Controls = NO_CONTROLS) -> str:
    """Make the table of tasks with the speeds below it and, where a group aggregates, the table of groups."""
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
            mark = "" if stop is None else stop.mark
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
    """Make a row for each metric, in the order of ``METRIC,FILTER``; ``mark`` stands beside every number."""
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
            comparison = Comparison(
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
    return withheld(counts, outcome.answers.are_none)


def _truncation_mark(outcome: TaskOutcome) -> str:
    if not outcome.over_truncation_budget:
        return ""
    return truncation_mark(outcome.answers.truncated, outcome.answers.total)


def _has_error(metric: MetricResult) -> bool:
    """Tell whether errors are shown; that of a withheld number would mislead."""
    return metric.value is not None or not metric.withheld_reason


def _numbers(metric: MetricResult) -> dict[str, Any]:
    errors = {"stderr_clt": metric.stderr_clt, "stderr_clustered": metric.stderr_clustered}
    stability = {} if metric.stability is None else asdict(metric.stability)
    return {**(errors if _has_error(metric) else {}), **stability}


def _interval(metric: MetricResult) -> str:
    if metric.value is None:
        return ""
    found = metric.interval
    reason = redact_text(metric.certainty.no_interval)
    return interval_text(None, None, reason) if found is None else interval_text(found.low, found.high)
