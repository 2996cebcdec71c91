"""Sums up the scores of queries by task and for a run.

A query whose fields are all left out scores -1 and counts as 0 in its task. ``None`` is a query that could not
be evaluated; its task has no mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.api.outcome import Estimate, Withheld
from lmms_eval.errors import TaskError
from lmms_eval.stats.interval import MeanSpread, NoInterval, score_interval
from lmms_eval.utils.numbers import SHARES

EvalType = Literal["rule", "llm"]
"""Scored by rules, or by a judge."""


class TaskTotals(Struct, frozen=True):
    """The totals of a task; ``total`` and ``mean`` are ``None`` if a query could not be evaluated."""

    name: str
    eval_type: EvalType
    num_query: int
    total: float | None
    """Sum of the query scores of 0 or more (``task_score`` in result files)."""
    mean: float | None
    """``total`` over the number of all queries (``mean_task_score``)."""
    fixed_mean: float | None = None
    """``mean`` with the official evaluator's faults repaired; ``None`` if that changes no query."""


def score_task(
    name: str, eval_type: EvalType, queries: Sequence[float | None], fixed: Mapping[int, float] | None = None
) -> TaskTotals:
    """Return a task's totals from the scores of its queries, at least one; ``fixed``: repaired ones by position."""
    if not queries:
        raise TaskError(f"task {name}: a task without queries has no score")
    known = [score for score in queries if score is not None]
    if len(known) < len(queries):
        return TaskTotals(name, eval_type, len(queries), None, None)
    repaired = [(fixed or {}).get(place, score) for place, score in enumerate(known)]
    total, fixed_total = (math.fsum(score for score in scores if score >= 0) for scores in (known, repaired))
    fixed_mean = fixed_total / len(queries) if fixed else None
    return TaskTotals(name, eval_type, len(queries), total, total / len(queries), fixed_mean)


class RunSummary(Struct, frozen=True):
    """Macro and micro means over the tasks that have a mean; 0 without any."""

    macro: float
    micro: float
    num_tasks: int
    num_queries: int
    not_evaluated: tuple[str, ...]
    """Names of the tasks without a mean. If there are any, the means are no headline numbers."""
    fixed_macro: float | None
    """The macro mean with repaired scores; ``None`` if no query of any task changes."""
    fixed_tasks: int
    """Number of tasks that the repair changes."""

    def as_dict(self) -> dict[str, Any]:
        """Return the summary under the keys of result files."""
        means: dict[str, Any] = {"macro_mean_score": self.macro, "micro_mean_score": self.micro}
        headline = dict.fromkeys(means) if self.not_evaluated else means
        summary = {**headline, "num_tasks": self.num_tasks, "num_queries": self.num_queries}
        if self.not_evaluated:
            summary |= {"partial": means, "not_evaluated": list(self.not_evaluated)}
        if self.fixed_macro is not None:
            summary["fixed"] = {"macro_mean_score": self.fixed_macro, "num_tasks_affected": self.fixed_tasks}
        return summary


def summarise(tasks: Iterable[TaskTotals]) -> RunSummary:
    """Compute macro and micro means over tasks; 0 if nothing was scored."""
    scored: list[TaskTotals] = []
    missing: list[TaskTotals] = []
    for task in tasks:
        (missing if task.mean is None else scored).append(task)
    count, queries = len(scored), sum(task.num_query for task in scored)
    affected = sum(task.fixed_mean is not None for task in scored)
    fixed = [(task.mean if task.fixed_mean is None else task.fixed_mean) or 0.0 for task in scored]
    return RunSummary(
        macro=math.fsum(task.mean or 0.0 for task in scored) / count if scored else 0.0,
        micro=math.fsum(task.total or 0.0 for task in scored) / queries if scored else 0.0,
        num_tasks=count,
        num_queries=queries,
        not_evaluated=tuple(task.name for task in missing),
        fixed_macro=math.fsum(fixed) / count if affected else None,
        fixed_tasks=affected,
    )


def macro_estimate(macro: float, queries: Sequence[Sequence[float]], details: Mapping[str, Any]) -> Estimate:
    """Return the macro mean over T tasks whose queries are samples, with its error sqrt(sum s_t^2 / n_t) / T.

    ``s_t^2`` is the sample variance of the n_t query scores of a task; a task with one query gets the mean variance
    of the others. Without a task that has two queries there is no error.
    """
    if not queries:
        return Estimate(macro, details=details)
    spread = MeanSpread.stratified([MeanSpread.of_scores(scores, SHARES) for scores in queries], [1.0] * len(queries))
    found = score_interval(macro, spread, SHARES)
    low, high = (None, None) if isinstance(found, NoInterval) else (found.low, found.high)
    return Estimate(macro, None if math.isnan(spread.error) else spread.error, details, low, high)


def task_scores(values: Sequence[Mapping[str, Any]]) -> list[TaskTotals]:
    """Return the totals of every task from the ``macro_mean`` values of its queries, in order of their first query."""
    queries: dict[str, list[float | None]] = {}
    kinds: dict[str, Any] = {}
    fixed: dict[str, dict[int, float]] = {}
    for value in values:
        name = value["task_name"]
        queries.setdefault(name, []).append(value["query"])
        kinds[name] = value["eval_type"]
        if value.get("fixed") is not None:
            fixed.setdefault(name, {})[len(queries[name]) - 1] = value["fixed"]
    return [score_task(name, kinds[name], of_task, fixed.get(name)) for name, of_task in queries.items()]


def macro_mean(values: Sequence[Mapping[str, Any]]) -> Estimate | Withheld:
    """Return the mean over tasks of the mean over a task's queries, with its error and every task's score.

    ``Withheld`` if a task could not be evaluated: the partial value is the mean over the others.
    """
    scores = task_scores(values)
    summary = summarise(scores)
    complete = {score.name for score in scores if score.mean is not None}
    queries: dict[str, list[float]] = {}
    for value in values:
        if value["task_name"] in complete:
            queries.setdefault(value["task_name"], []).append(value["score"])
    demonstrations = {value["task_name"]: value.get("num_demo", 0) for value in values}
    details = {
        "summary": summary.as_dict(),
        "tasks": {
            score.name: {
                "mean_task_score": score.mean,
                "task_score": score.total,
                "num_query": score.num_query,
                "eval_type": score.eval_type,
                "fixed_mean_task_score": score.fixed_mean,
                "num_demo": demonstrations.get(score.name, 0),
            }
            for score in scores
        },
    }
    parts: dict[str, Any] = {"megabench": details}
    sandboxes: list[Any] = []  # several only if a run was resumed on another machine
    for value in values:
        if value.get("sandbox") not in (None, *sandboxes):
            sandboxes.append(value["sandbox"])
    if sandboxes:
        parts["sandbox"] = sandboxes
    estimate = macro_estimate(summary.macro, list(queries.values()), parts)
    if not summary.not_evaluated:
        return estimate
    names = ", ".join(summary.not_evaluated[:5]) + (", ..." if len(summary.not_evaluated) > 5 else "")
    return Withheld(estimate, f"{len(summary.not_evaluated)} tasks not evaluated: {names}")
