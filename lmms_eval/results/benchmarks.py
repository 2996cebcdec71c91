"""Reports of benchmarks: numbers over several tasks of a run, which the tasks' YAML names (``report``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from loguru import logger

from lmms_eval.api.outcome import BenchmarkReport, TaskNumbers
from lmms_eval.api.task import Group, ReportFunction
from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.utils.places import place_of

UNSCORED = "unscored: "
"""Beginning of the reasons of documents that could not be evaluated."""


def benchmark_reports(
    results: Iterable[TaskResult], stem: Path | None, groups: Collection[Group] = ()
) -> list[BenchmarkReport]:
    """One report for each function that tasks of the run name, in order of the tasks; ``groups`` are the run's.

    A function that raises is named in a report of its own: the scores of its tasks stand without it.
    """
    inputs: dict[ReportFunction, dict[str, TaskNumbers]] = {}
    for result in results:
        if result.task.report is not None:
            inputs.setdefault(result.task.report, {})[result.task.name] = _numbers(result, groups)
    reports = []
    for function, tasks in inputs.items():
        try:
            report = function(tasks, stem)
        except Exception as error:  # noqa: BLE001 - a task's own code may raise anything; its scores are complete
            logger.opt(exception=error).debug("the report of {}", ", ".join(tasks))
            place = place_of(error, function)
            where = f" ({place})" if place else ""
            report = BenchmarkReport(f"no report over {', '.join(tasks)}: {type(error).__name__}: {error}{where}")
        if report is not None:
            reports.append(report)
    return reports


def _numbers(result: TaskResult, groups: Collection[Group]) -> TaskNumbers:
    details = {part: content for metric in result.metrics for part, content in metric.details.items()}
    reasons = [metric.withheld_reason for metric in result.metrics if metric.withheld_reason]
    if result.early_stop is not None:  # a benchmark's numbers are of all its documents
        reasons.insert(0, result.early_stop.mark)
    outcome = result.outcome
    unscored = next(iter(outcome.reasons), "") if outcome.unscored == outcome.requested else ""
    above: set[str] = set()  # the groups that hold the task, themselves or by others
    below = {result.task.name}
    while below:
        below = {group.name for group in groups if not below.isdisjoint(group.children)} - above
        above |= below
    reason = reasons[0] if reasons else ""
    return TaskNumbers(details, reason, unscored.removeprefix(UNSCORED), frozenset(above))
