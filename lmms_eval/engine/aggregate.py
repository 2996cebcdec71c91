"""The aggregate phase: from scored documents to one number per metric, with its uncertainty and its counts."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lmms_eval import stats
from lmms_eval.api.outcome import Estimate, SubScore, Withheld
from lmms_eval.api.task import MetricDefinition, Task
from lmms_eval.engine.early import NO_EARLY_INTERVAL, Counted, EarlyStop, Looked, looked_interval, strata_of
from lmms_eval.engine.failures import failure
from lmms_eval.engine.headline import Part
from lmms_eval.engine.outcomes import OutcomeCounter, TaskOutcome, Terms
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.records import is_cut
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.tally import TaskTally
from lmms_eval.engine.uncertainty import NOT_AVAILABLE, UNKNOWN, Certainty, errors_of
from lmms_eval.errors import AggregationError
from lmms_eval.utils.numbers import ScoreRange


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateOptions(Terms):
    """Settings of the aggregation, with the terms under which scores are given."""

    bootstrap_iters: int = 100_000
    arguments: Any = None
    """The resolved command line, for aggregations that take ``args``."""
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Truncation:
    """A number apart for documents whose answers were completed and for those whose answers the limit of tokens cut.

    What a model would have gone on to say is not known: the number lies between ``low`` and ``high``.
    """

    completed: SubScore | None
    """``None``: every document's answer was cut."""
    truncated: SubScore
    low: float | None
    """The number if every cut answer scored the least of the metric's range; ``None``: no finite range is stated."""
    high: float | None
    """The number if every cut answer scored the most."""


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One metric through one filter pipeline. Errors are numbers or ``"N/A"``."""

    metric: str
    filter: str
    value: Any
    """``None`` where the score is withheld; the partial value is then in ``partial``."""
    n: int
    partial: Any = None
    withheld_reason: str = ""
    broken: bool = False
    """The task's own aggregation raised; ``withheld_reason`` says what."""
    stderr: float | str = NOT_AVAILABLE
    stderr_clt: float | str = NOT_AVAILABLE
    stderr_clustered: float | str = NOT_AVAILABLE
    stability: stats.Stability | None = None
    certainty: Certainty = UNKNOWN
    """Around ``value``, or around ``partial`` where the score is withheld."""
    scale: float = 0.0
    """The number is so many times the mean of the documents' numbers (1, or 100 for percent); 0: it is no such mean."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Additions of the task's aggregation to the results file, by top-level key."""
    sub_scores: Mapping[str, Mapping[str, SubScore]] = field(default_factory=dict)
    """As the aggregation's ``Estimate`` has them."""
    notes: tuple[str, ...] = ()
    """Sentences of the aggregation about the number."""
    looked: Looked | None = None
    """The documents' numbers in random order, in a run of which a task has ended early."""
    undrawn: SubScore | None = None
    """The number over the documents whose scoring drew nothing at random; ``None`` if none drew or the number is no
    mean over documents."""
    truncation: Truncation | None = None
    """``None`` if no answer was truncated or the number is no mean over documents."""

    @property
    def interval(self) -> stats.Interval | None:
        """95 %."""
        return self.certainty.interval


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A task's results."""

    plan: TaskPlan
    metrics: tuple[MetricResult, ...]
    outcome: TaskOutcome
    task_hash: str
    tally: TaskTally
    early_stop: EarlyStop | None = None
    """Set where the numbers rest on the first documents alone."""

    @property
    def task(self) -> Task:
        return self.plan.task

    @property
    def doc_ids(self) -> Sequence[int]:
        """The documents that count, rising."""
        return self.plan.doc_ids if self.early_stop is None else sorted(self.early_stop.doc_ids)


@dataclass(slots=True)
class _Column:
    """The values of one metric through one pipeline, in document order."""

    values: list[Any] = field(default_factory=list)
    doc_ids: list[int] = field(default_factory=list)
    drew: list[bool] = field(default_factory=list)
    """Scoring drew at random, for each of the values."""
    truncated: list[bool] = field(default_factory=list)
    """The limit of tokens cut an answer of the document, for each of the values."""
    per_answer: list[list[Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Columns:
    """The columns of a task by metric and pipeline."""

    found: dict[tuple[str, str], _Column] = field(default_factory=dict)
    scored: set[str] = field(default_factory=set)
    """Pipelines through which a document was scored without anything missing."""

    def add(self, record: Mapping[str, Any]) -> None:
        is_truncated = any(is_cut(answer) for answer in record["answers"])
        for score in record["scores"]:
            if score.get("status", "scored") == "scored":
                self.scored.add(score["filter"])
            for metric, value in score["metrics"].items():
                column = self.found.setdefault((metric, score["filter"]), _Column())
                column.values.append(value)
                column.doc_ids.append(record["doc_id"])
                column.drew.append(score.get("drew", False))
                column.truncated.append(is_truncated)
                answers = [metrics[metric] for metrics in score.get("per_answer", ()) if metric in metrics]
                if answers:
                    column.per_answer.append(answers)

    def column(self, metric: str, pipeline: str) -> _Column:
        return self.found.get((metric, pipeline), _Column())

    def returned(self, pipeline: str) -> list[str]:
        """Names of the metrics that any document was given."""
        return sorted(metric for metric, name in self.found if name == pipeline)


def aggregate_task(
    plan: TaskPlan,
    store: RunStore,
    options: AggregateOptions,
    not_asked: str = "",
    counted: Counted | None = None,
) -> TaskResult:
    """Aggregate one task from its journal records.

    ``not_asked`` says why documents without a record were never asked (given up, interrupted). An aggregation that
    raises marks its own metric as broken; the others and all samples are kept. ``counted``: the documents that count,
    in a run of which a task has ended early.
    """
    counter = OutcomeCounter(plan.requested)
    stop = None if counted is None else counted.stop
    doc_ids = plan.doc_ids if stop is None else sorted(stop.doc_ids)
    if stop is not None:
        counter.left(f"{stop.rule} holds without them", plan.requested - len(doc_ids))
    columns = _Columns()
    tally = TaskTally()
    digest = hashlib.sha256()
    failures = store.failures(plan.task.name)
    finished = 0
    for record in store.scores(plan.task.name, doc_ids):
        finished += 1
        tally.add(record, plan.task.score_key)
        if "failed" in record:
            counter.failed(failures.get(record["doc_id"], record["failed"]))
            continue
        digest.update(f"sample_{record['doc_id']}{record['doc_hash']}".encode())
        columns.add(record)
        reasons = [score["reason"] for score in record["scores"] if score.get("status") == "unscored"]
        if reasons:
            counter.unscored(reasons[0])
    if not_asked:
        counter.not_asked(not_asked, len(doc_ids) - finished)
    else:
        counter.failed("never finished", len(doc_ids) - finished)
    outcome = counter.outcome(
        tally.answer_counts, options, tally.judge_unread, is_mute=tally.judge_unread > 0 == tally.judge_answered
    )
    options = _for_control(plan.task, options)
    metrics = tuple(
        _metric_result(plan.task, definition, name, columns.column(definition.name, name), outcome, options)
        or _nothing(plan, definition, name, columns)
        for name in plan.task.pipelines
        for definition in plan.task.metrics
    )
    if counted is not None:
        metrics = tuple(_looked(plan.task, metric, columns, counted) for metric in metrics)
    return TaskResult(plan, metrics, outcome, digest.hexdigest(), tally, stop)


def _for_control(task: Task, options: AggregateOptions) -> AggregateOptions:
    """Give a control a folder of its own, so that no file of it takes the place of the task's."""
    folder = getattr(options.arguments, "output_path", None)
    if not task.control_of or not folder:
        return options
    own = SimpleNamespace(**{**vars(options.arguments), "output_path": str(Path(folder) / "controls" / task.name)})
    return replace(options, arguments=own)


def _looked(task: Task, metric: MetricResult, columns: _Columns, counted: Counted) -> MetricResult:
    """Add what intervals that are valid at every look need; of a task that has ended early only these are."""
    column = columns.column(metric.metric, metric.filter)
    declared = next(one for one in task.metrics if one.name == metric.metric)
    is_macro, scale = bool(declared.macro_scale), declared.macro_scale or metric.scale
    within = (declared.score_range if is_macro else None) or metric.certainty.score_range
    looked, reason = None, NO_EARLY_INTERVAL
    if scale and math.isfinite(within.high - within.low):
        numbers = {
            doc_id: scale * number
            for doc_id, value in zip(column.doc_ids, column.values, strict=True)
            if (number := stats.item_number(value, task.score_key)) is not None
        }
        part = Part(
            task.name, metric.metric, metric.filter, within, task.score_key,
            strata=strata_of(task, counted.order), is_macro=is_macro,
        )  # fmt: skip
        looked = Looked(part, counted.order, counted.asked, numbers)
    if counted.stop is None:
        return replace(metric, looked=looked)
    if looked is not None and is_macro and not looked.gives(metric.value):
        looked, reason = None, "no mean over its strata"
    interval = None if looked is None else looked_interval([looked])
    return replace(
        metric,
        looked=looked,
        stderr=NOT_AVAILABLE,
        stderr_clt=NOT_AVAILABLE,
        stderr_clustered=NOT_AVAILABLE,
        certainty=Certainty(interval, "" if interval is not None else reason, score_range=within),
    )


def _nothing(plan: TaskPlan, definition: MetricDefinition, pipeline: str, columns: _Columns) -> MetricResult:
    """A declared metric that no document emitted: not available, and an error where none of the declared ones is.

    Tasks declare metrics of which an answer gets one or another, or that only some of their data have.
    """
    if pipeline not in columns.scored:
        return MetricResult(definition.name, pipeline, None, 0, withheld_reason="nothing was scored")
    returned = columns.returned(pipeline)
    names = ", ".join(map(repr, returned)) or "no metric at all"
    declared = {metric.name for metric in plan.task.metrics}
    if not declared.isdisjoint(returned):
        reason = f"no document asked has it, each gave {names} alone"
        notes = (f"{definition.name!r} is declared, but no document asked has it: scoring returned {names}",)
        return MetricResult(definition.name, pipeline, None, 0, withheld_reason=reason, notes=notes)
    reason = (
        f"task {plan.task.name!r}: metric_list declares {definition.name!r}, which no document emitted: scoring "
        f"returned {names}; give both the same name, and the same command only scores again"
    )
    return MetricResult(definition.name, pipeline, None, 0, withheld_reason=reason, broken=True)


def _metric_result(
    task: Task,
    definition: MetricDefinition,
    pipeline: str,
    column: _Column,
    outcome: TaskOutcome,
    options: AggregateOptions,
) -> MetricResult | None:
    """``None`` where there are no values."""
    values = column.values
    if not values:
        return None
    try:
        value = _call(definition, task, values, options.arguments)
    except AggregationError as error:
        return MetricResult(definition.name, pipeline, None, len(values), withheld_reason=str(error), broken=True)
    withheld = value if isinstance(value, Withheld) else None
    value = withheld.partial if withheld is not None else value
    estimate = value if isinstance(value, Estimate) else None
    value = _plain(value if estimate is None else estimate.value)
    errors = errors_of(
        task, definition, values, value if estimate is None else replace(estimate, value=value), options.bootstrap_iters
    )
    scores = _document_scores(column, estimate.scores if estimate is not None else (), errors.scale, task.score_key)
    shown = _headline(value, withheld.reason if withheld is not None else None, outcome, options.interrupted)
    return MetricResult(
        metric=definition.name,
        filter=pipeline,
        value=shown.value,
        n=len(values),
        partial=shown.partial,
        withheld_reason=shown.reason,
        stderr=errors.stderr,
        stderr_clt=errors.clt,
        stderr_clustered=errors.clustered,
        stability=_stability(column.per_answer, task.score_key),
        certainty=errors.certainty,
        scale=errors.scale,
        details=estimate.details if estimate is not None else {},
        sub_scores=estimate.sub_scores if estimate is not None else {},
        notes=estimate.notes if estimate is not None else (),
        undrawn=_undrawn(column, scores),
        truncation=_truncation(column, scores, errors.certainty.score_range),
    )


def _document_scores(column: _Column, stated: Sequence[float], scale: float, score_key: str) -> Sequence[float] | None:
    """Return the documents' numbers whose mean the value is; ``None`` if it is no mean over documents.

    Args:
        column: the values.
        stated: the numbers as the aggregation gives them, if it does.
        scale: as ``MetricResult`` has it.
        score_key: field of a value that holds its number.
    """
    if len(stated) == len(column.values):
        return stated
    if not scale:
        return None
    return [scale * (stats.item_number(value, score_key) or 0.0) for value in column.values]


def _undrawn(column: _Column, scores: Sequence[float] | None) -> SubScore | None:
    """Return the mean over the documents that chance had no part in."""
    if scores is None or not any(column.drew):
        return None
    return _mean_of([score for score, drew in zip(scores, column.drew, strict=True) if not drew])


def _truncation(column: _Column, scores: Sequence[float] | None, within: ScoreRange) -> Truncation | None:
    if scores is None or not any(column.truncated):
        return None
    completed = [score for score, is_cut in zip(scores, column.truncated, strict=True) if not is_cut]
    truncated = _mean_of([score for score, is_cut in zip(scores, column.truncated, strict=True) if is_cut])
    assert truncated is not None
    low = high = None
    if math.isfinite(within.high - within.low) and all(score in within for score in scores):
        low, high = ((math.fsum(completed) + end * truncated.n) / len(scores) for end in (within.low, within.high))
    return Truncation(_mean_of(completed), truncated, low, high)


def _mean_of(scores: Sequence[float]) -> SubScore | None:
    if not scores:
        return None
    return SubScore(
        math.fsum(scores) / len(scores), len(scores), stats.mean_stderr(scores) if len(scores) > 1 else None
    )


@dataclass(frozen=True, slots=True)
class _Headline:
    """Value that stands as the score, or beside it where the score is withheld."""

    value: Any
    partial: Any = None
    reason: str = ""


def _headline(value: Any, withheld: str | None, outcome: TaskOutcome, interrupted: bool) -> _Headline:
    if interrupted:
        return _Headline(None, value, "the run was interrupted")
    if outcome.withheld:
        return _Headline(None, value, outcome.withheld)
    return _Headline(value) if withheld is None else _Headline(None, value, withheld or "withheld by the task")


def _call(definition: MetricDefinition, task: Task, values: Sequence[Any], arguments: Any) -> Any:
    """Call the aggregation exactly once, with the command line and the task if it takes ``args`` and ``task``."""
    function = definition.aggregation
    try:
        taken = () if definition.aggregation_name is not None else tuple(inspect.signature(function).parameters)[1:]
    except (TypeError, ValueError):
        taken = ()
    offered = {"args": arguments, "task": task}
    try:
        return function(list(values), **{name: value for name, value in offered.items() if name in taken})
    except Exception as error:  # a task's own aggregation may raise anything
        raise AggregationError(
            f"task {task.name!r}: {failure(f'the aggregation of metric {definition.name!r}', error)}; all samples are "
            "kept: the same command only aggregates again, or mend the task and score the kept samples with "
            "--model replay --model_args path=SAMPLES_FILE"
        ) from error


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy and torch as Python's own: the results file would hold them as texts."""
    return value.tolist() if hasattr(value, "tolist") and hasattr(value, "dtype") else value


def _stability(per_answer: Sequence[Sequence[Any]], score_key: str) -> stats.Stability | None:
    rows = [
        [number for item in row if (number := stats.item_number(item, score_key)) is not None] for row in per_answer
    ]
    return stats.stability(rows) if any(len(row) > 1 for row in rows) else None
