"""Scores of the reference answers and of empty ones: full marks, and the floor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmms_eval.api.task import MetricDefinition, Task
from lmms_eval.checks.findings import Finding
from lmms_eval.checks.reasons import of_reason
from lmms_eval.checks.trial import ends, first_reason, number_of, tried
from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.models.baseline import Baseline

_NO_GOLD = "the task tells no reference answer; give doc_to_target, or doc_to_gold: an answer that deserves full marks"
_GENERATING = "generate_until"


def marks(task: Task, documents: int) -> list[Finding]:
    """Score the reference answers of the first documents, then empty answers, and aggregate both."""
    if not _tells_gold(task):
        return [Finding("gold", "skipped", "no reference answer", _NO_GOLD, _NO_GOLD)]
    (gold,) = tried([task], Baseline(no_media=True), documents)
    found = _hindered("gold", gold)
    if found:
        return found
    return [*_raised_on_a_sample(gold), *_compared(task, gold, documents)]


def _compared(task: Task, gold: TaskResult, documents: int) -> list[Finding]:
    """Compare the scores of the reference answers with their best values, and with those of empty answers."""
    if not task.output_type.startswith(_GENERATING):  # of choices one is always the likeliest
        return [_verdict("gold", list(_lacking_full_marks(gold, None)), gold)]
    (empty,) = tried([task], Baseline(strategy="constant", text=""), documents)
    full = _verdict("gold", list(_lacking_full_marks(gold, empty)), gold)
    return [full, *(_hindered("empty", empty) or [_verdict("empty", list(_above_the_floor(gold, empty)), empty)])]


def _tells_gold(task: Task) -> bool:
    config = getattr(task, "config", None)
    stated = [getattr(config, key, None) for key in ("doc_to_target", "doc_to_gold")]
    return any(value not in (None, "") for value in stated) or (config is None and hasattr(task, "gold_answer"))


def _hindered(step: str, result: TaskResult) -> list[Finding]:
    """Tell why there are no numbers to look at."""
    reason = first_reason(result)
    if result.outcome.failed:
        return [of_reason(step, reason)]
    if result.outcome.is_empty:
        return [Finding(step, "skipped", "cannot be scored here", reason, reason)]
    broken = [metric for metric in result.metrics if metric.broken and not (metric.n and _is_sample(result))]
    reasons = [metric.withheld_reason for metric in broken]
    return [Finding("metrics", "failed", "aggregation wrong", reason, reason) for reason in reasons]


def _is_sample(result: TaskResult) -> bool:
    return result.plan.requested < result.plan.original


def _raised_on_a_sample(result: TaskResult) -> list[Finding]:
    """Aggregations that raised over some documents: one that asks for pairs of them, say, may well take all."""
    told = [metric.withheld_reason for metric in result.metrics if metric.broken]
    kind = f"aggregation raises over {result.plan.requested} of {result.plan.original} documents"
    return [Finding("metrics", "doubtful", "aggregation raises on a sample", kind, reason) for reason in told]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A metric's definition and its two values."""

    definition: MetricDefinition
    name: str
    gold: float
    empty: float | None

    @property
    def is_better(self) -> bool:
        """The reference answers score better than empty ones."""
        if self.empty is None:
            return True
        return self.gold < self.empty if self.definition.higher_is_better is False else self.gold > self.empty


def _pairs(gold: TaskResult, empty: TaskResult | None) -> Iterator[_Pair]:
    definitions = {definition.name: definition for definition in gold.task.metrics}
    others = {} if empty is None else {(one.metric, one.filter): number_of(one) for one in empty.metrics}
    for metric in gold.metrics:
        value = number_of(metric)
        if value is not None:
            name = metric.metric if metric.filter == "none" else f"{metric.metric},{metric.filter}"
            yield _Pair(definitions[metric.metric], name, value, others.get((metric.metric, metric.filter)))


def _lacking_full_marks(gold: TaskResult, empty: TaskResult | None) -> Iterator[str]:
    """A metric without a known end may be a count, the same for all answers: one of all has to tell them apart."""
    pairs = list(_pairs(gold, empty))
    tells_apart = any(pair.is_better for pair in pairs)
    for pair in pairs:
        best, _ = ends(pair.definition)
        if best is not None and not math.isclose(pair.gold, best, abs_tol=1e-6):
            yield f"{pair.name} of reference answers is {pair.gold:g}, full marks are {best:g}"
        elif best is None and not tells_apart:
            yield f"{pair.name} of reference answers is {pair.gold:g}, of empty ones {pair.empty:g}"


def _above_the_floor(gold: TaskResult, empty: TaskResult) -> Iterator[str]:
    for pair in _pairs(gold, empty):
        _, worst = ends(pair.definition)
        if pair.empty is None:
            continue
        if worst is not None and not math.isclose(pair.empty, worst, abs_tol=1e-6):
            yield f"{pair.name} of empty answers is {pair.empty:g}, the floor is {worst:g}"


def _verdict(step: str, complaints: Sequence[str], result: TaskResult) -> Finding:
    if complaints:
        what = "no full marks" if step == "gold" else "above the floor"
        hint = "; a task whose target is no answer takes doc_to_gold" if step == "gold" else ""
        return Finding(step, "doubtful", what, what, "; ".join(complaints) + hint)
    if all(number_of(metric) is None for metric in result.metrics):
        return Finding(step, "skipped", "no score", "no metric is a number", "its metrics give no number")
    return Finding(step)
