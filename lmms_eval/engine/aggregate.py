"""The aggregate phase: computes one number per metric from the scored documents, with its uncertainty and counts."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec import Struct, field, structs

from lmms_eval import stats
from lmms_eval.api.outcome import Estimate, SubScore, Withheld
from lmms_eval.api.task import Group, GroupMetric, MetricDefinition, Task
from lmms_eval.engine.headline import Anchors, HeadlinePart
from lmms_eval.engine.looks import NO_EARLY_INTERVAL, Looked, LookStop, looked_interval, strata_of
from lmms_eval.engine.outcomes import AggregateOptions, OutcomeCounter, TaskOutcome, TaskTally
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.records import failure, is_cut
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.uncertainty import (
    NO_ERROR,
    NOT_AVAILABLE,
    UNKNOWN,
    Certainty,
    Errors,
    FilledMean,
    MissingBounds,
    Variance,
    errors_of,
    filled_means,
    is_bounded,
    variance_of,
)
from lmms_eval.errors import AggregationError, UnknownNameError
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.utils.numbers import SHARES, ScoreRange


class TruncationScores(Struct, frozen=True):
    """Separate scores of documents with completed answers and of those with an answer truncated by the token limit."""

    completed: SubScore | None
    """Documents with completed answers only, if there are any."""
    truncated: SubScore
    """Documents with an answer that reached the token limit."""
    low: float | None
    """The score if every truncated document had the lowest number of the metric's range, if that range is finite. How
    these answers would have ended is unknown, so the true score lies between ``low`` and ``high``."""
    high: float | None
    """The score if every truncated document had the highest number."""


class MetricResult(Struct, frozen=True):
    """The result of one metric and filter pipeline. Errors are numbers or ``"N/A"``."""

    metric: str
    filter: str
    value: Any
    """The score; ``None`` if it is withheld, with the value so far in ``partial``."""
    n: int
    partial: Any = None
    withheld_reason: str = ""
    broken: bool = False
    """The aggregation failed; ``withheld_reason`` holds the error."""
    stderr: float | str = NOT_AVAILABLE
    stderr_clt: float | str = NOT_AVAILABLE
    stderr_clustered: float | str = NOT_AVAILABLE
    stability: stats.Stability | None = None
    certainty: Certainty = UNKNOWN
    """Interval of ``value``, or of ``partial`` if the score is withheld."""
    scale: float = 0.0
    """The value divided by the mean of the documents' numbers (1, or 100 for percent); 0: it is not such a mean."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Additions to the results file by the task's aggregation, by top-level key."""
    sub_scores: Mapping[str, Mapping[str, SubScore]] = field(default_factory=dict)
    """``Estimate.sub_scores`` of the aggregation."""
    notes: tuple[str, ...] = ()
    """Sentences of the aggregation about the value."""
    looked: Looked | None = None
    """The documents' numbers in random order, if a task of the run ended early."""
    undrawn: SubScore | None = None
    """Score over the documents that were scored without a random choice; ``None`` if that is all of them, or the value
    is not a mean over documents."""
    variance: Variance | None = None
    """Sources of the variance of a mean, with repeats of the questions or of the judge."""
    truncation: TruncationScores | None = None
    """``None`` if no answer was truncated, or the value is not a mean over documents."""
    missing_bounds: MissingBounds | None = None
    """``None`` if every document has a score, or the score is withheld or not a number."""
    filled: tuple[FilledMean, FilledMean] | None = None
    """What ``missing_bounds`` are computed from."""

    @property
    def interval(self) -> stats.Interval | None:
        """The 95 % interval."""
        return self.certainty.interval


class TaskResult(Struct, frozen=True):
    """The results of a task."""

    plan: TaskPlan
    metrics: tuple[MetricResult, ...]
    outcome: TaskOutcome
    task_hash: str
    tally: TaskTally
    early_stop: LookStop | None = None
    """Set if the numbers are based only on the first documents."""

    @property
    def task(self) -> Task:
        return self.plan.task

    @property
    def doc_ids(self) -> Sequence[int]:
        """The counted documents in ascending order."""
        return self.plan.doc_ids if self.early_stop is None else sorted(self.early_stop.doc_ids)


class _Column(Struct):
    """The values of one metric and pipeline in document order; the lists are parallel except the last two."""

    values: list[Any] = field(default_factory=list)
    doc_ids: list[int] = field(default_factory=list)
    drew: list[bool] = field(default_factory=list)
    """Scoring used a random choice."""
    truncated: list[bool] = field(default_factory=list)
    """An answer of the document was truncated by the token limit."""
    per_answer: list[list[Any]] = field(default_factory=list)
    per_verdict: list[list[list[Any]]] = field(default_factory=list)
    """For each document and answer, the values by each asking of the judge."""
    unscored: int = 0
    """Documents that could not be scored in this pipeline, without a value of this metric."""


class _Columns:
    """The columns of a task by metric and pipeline."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], _Column] = {}
        self.scored: set[str] = set()
        """Pipelines with at least one scored document."""
        self._unscored: Counter[str] = Counter()
        """By pipeline, documents that could not be scored."""
        self._partly: Counter[tuple[str, str]] = Counter()
        """By metric and pipeline, documents among them with a value of the metric."""

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a document's journal record."""
        is_truncated = any(is_cut(answer) for answer in record["answers"])
        for score in record["scores"]:
            if score.get("status", "scored") == "scored":
                self.scored.add(score["filter"])
            else:
                self._unscored[score["filter"]] += 1
                self._partly.update((metric, score["filter"]) for metric in score["metrics"])
            for metric, value in score["metrics"].items():
                column = self.found.setdefault((metric, score["filter"]), _Column())
                column.values.append(value)
                column.doc_ids.append(record["doc_id"])
                column.drew.append(score.get("drew", False))
                column.truncated.append(is_truncated)
                answers = [metrics[metric] for metrics in score.get("per_answer", ()) if metric in metrics]
                if answers:
                    column.per_answer.append(answers)
                judged = [[one[metric] for one in answer if metric in one] for answer in score.get("per_verdict", ())]
                if judged:
                    column.per_verdict.append(judged)

    def column(self, metric: str, pipeline: str) -> _Column:
        unscored = self._unscored[pipeline] - self._partly[metric, pipeline]
        return structs.replace(self.found.get((metric, pipeline), _Column()), unscored=unscored)


def aggregate_task(
    plan: TaskPlan,
    store: RunStore,
    options: AggregateOptions,
    not_asked: str = "",
    order: Sequence[int] | None = None,
    stop: LookStop | None = None,
) -> TaskResult:
    """Aggregate one task from its journal records.

    An aggregation that raises marks only its own metric as broken; the other metrics and all samples are kept.

    Args:
        not_asked: reason why documents without a record were never asked (given up, interrupted).
        order: all documents in random order, if a task of the run ended early.
        stop: the task's early stop, if it has one.
    """
    counter = OutcomeCounter(plan.requested)
    doc_ids = plan.doc_ids if stop is None else sorted(stop.doc_ids)
    if stop is not None:
        counter.left(f"{stop.rule} holds without them", plan.requested - len(doc_ids))
    columns = _Columns()
    tally = TaskTally()
    digest = hashlib.sha256()
    failures = store.failures(plan.task.name)
    finished = 0
    records = store.scores(plan.task.name, doc_ids) if options.read is None else options.read(plan.task, doc_ids)
    for record in records:
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
        result
        for name in plan.task.pipelines
        for definition in plan.task.metrics
        if (result := _result(plan, definition, name, columns, outcome, options)) is not None
    )
    if order is not None:
        looks = partial(_with_looks, plan.task, columns=columns, order=order, stop=stop, anchors=options.anchors)
        metrics = tuple(map(looks, metrics))
    return TaskResult(plan, metrics, outcome, digest.hexdigest(), tally, stop)


def _result(
    plan: TaskPlan,
    definition: MetricDefinition,
    pipeline: str,
    columns: _Columns,
    outcome: TaskOutcome,
    options: AggregateOptions,
) -> MetricResult | None:
    """Return the result of a metric; ``None`` for a reduced one of a metric whose answers have no number each."""
    column = columns.column(definition.name, pipeline)
    if definition.reduces:
        of_answers = columns.column(definition.reduces, pipeline).per_answer
        if not column.values and not outcome.withheld:
            return None
        numbers = {stats.item_number(item, plan.task.score_key) for each in of_answers for item in each}
        if definition.score_range is None and numbers <= {0, 1}:
            definition = structs.replace(definition, score_range=SHARES)
    found = _metric_result(plan.task, definition, pipeline, column, outcome, options)
    if found is None:
        return _missing_metric(plan, definition, pipeline, columns)
    return structs.replace(found, notes=(*found.notes, *_reduced_notes(plan.task, definition, pipeline, columns)))


def _reduced_notes(task: Task, definition: MetricDefinition, pipeline: str, columns: _Columns) -> Iterator[str]:
    """Yield a sentence for each reduced metric that some documents with the metric lack."""
    n = len(columns.column(definition.name, pipeline).values)
    for reduced in task.metrics:
        of = len(columns.column(reduced.name, pipeline).values)
        if reduced.reduces == definition.name and of < n:
            shown = f"is based on {of} of {n} documents" if of else "is left out"
            yield (
                f"{reduced.name!r} {shown}: scoring gave the answers of {n - of} documents no number each, or "
                "extracted no answer"
            )


def _for_control(task: Task, options: AggregateOptions) -> AggregateOptions:
    """Give a control task its own output folder, so that its files do not replace those of the task."""
    folder = getattr(options.arguments, "output_path", None)
    if not task.control_of or not folder:
        return options
    own = SimpleNamespace(**{**vars(options.arguments), "output_path": str(Path(folder) / "controls" / task.name)})
    return structs.replace(options, arguments=own)


def _with_looks(
    task: Task,
    metric: MetricResult,
    columns: _Columns,
    order: Sequence[int],
    stop: LookStop | None,
    anchors: Mapping[str, Anchors],
) -> MetricResult:
    """Add the numbers for anytime-valid intervals; for a task that ended early replace its errors and interval."""
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
        part = HeadlinePart(
            task.name, metric.metric, metric.filter, within, task.score_key,
            strata=strata_of(task, order), is_macro=is_macro,
        )  # fmt: skip
        part = structs.replace(part, anchors=anchors.get(part.key))
        looked = Looked(part, order, len(order) if stop is None else stop.asked, numbers)
    if stop is None:
        return structs.replace(metric, looked=looked)
    if looked is not None and is_macro and not looked.gives(metric.value):
        looked, reason = None, "no mean over its strata"
    interval = None if looked is None else looked_interval([looked])
    return structs.replace(
        metric,
        looked=looked,
        stderr=NOT_AVAILABLE,
        stderr_clt=NOT_AVAILABLE,
        stderr_clustered=NOT_AVAILABLE,
        certainty=Certainty(interval, "" if interval is not None else reason, score_range=within),
        variance=None,
        missing_bounds=_of_sequence(metric.missing_bounds, interval, reason),
    )


def _of_sequence(missing: MissingBounds | None, interval: stats.Interval | None, reason: str) -> MissingBounds | None:
    """Return the bounds of a task that ended early, whose interval takes documents without a score into account."""
    if missing is None:
        return None
    if interval is None:
        return MissingBounds(missing.n, reason=reason)
    return MissingBounds(missing.n, interval.low, interval.high)


def _missing_metric(plan: TaskPlan, definition: MetricDefinition, pipeline: str, columns: _Columns) -> MetricResult:
    """Return the result of a declared metric that no document has.

    That is an error only if no declared metric has values: a task may declare metrics that only some documents have.
    """
    if pipeline not in columns.scored:
        return MetricResult(definition.name, pipeline, None, 0, withheld_reason="nothing was scored")
    returned = sorted(metric for metric, name in columns.found if name == pipeline)
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
    """Aggregate a column; ``None`` without values."""
    values = column.values
    if not values:
        return None
    try:
        value: Any = _call(definition, task, values, options.arguments)
    except AggregationError as error:
        return MetricResult(definition.name, pipeline, None, len(values), withheld_reason=str(error), broken=True)
    withheld = value if isinstance(value, Withheld) else None
    value = withheld.partial if withheld is not None else value
    estimate = value if isinstance(value, Estimate) else None
    value = value if estimate is None else estimate.value
    if hasattr(value, "tolist") and hasattr(value, "dtype"):  # of numpy or torch: JSON would hold it as a text
        value = value.tolist()
    errors = errors_of(
        task, definition, values, value if estimate is None else replace(estimate, value=value), options.bootstrap_iters
    )
    scores = _document_scores(column, estimate.scores if estimate is not None else (), errors.scale, task.score_key)
    reason = "the run was interrupted" if options.interrupted else outcome.withheld
    if not reason and withheld is not None:
        reason = withheld.reason or "withheld by the task"
    rows = [
        [number for item in row if (number := stats.item_number(item, task.score_key)) is not None]
        for row in column.per_answer
    ]
    made = MetricResult(
        metric=definition.name,
        filter=pipeline,
        value=None if reason else value,
        n=len(values),
        partial=value if reason else None,
        withheld_reason=reason,
        stderr=errors.stderr,
        stderr_clt=errors.clt,
        stderr_clustered=errors.clustered,
        stability=stats.stability(rows) if any(len(row) > 1 for row in rows) else None,
        certainty=errors.certainty,
        scale=errors.scale,
        details=estimate.details if estimate is not None else {},
        sub_scores=estimate.sub_scores if estimate is not None else {},
        notes=estimate.notes if estimate is not None else (),
        undrawn=None
        if scores is None or not any(column.drew)
        else _mean_of([score for score, drew in zip(scores, column.drew, strict=True) if not drew]),
        variance=_variance(column, errors, value, task.score_key),
        truncation=_truncation(column, scores, errors.certainty.score_range),
    )
    return made if reason else _with_missing(made, column.unscored + outcome.failed, scores, errors)


def _variance(column: _Column, errors: Errors, value: Any, score_key: str) -> Variance | None:
    """Return the sources of the variance of a mean over documents whose values are the means over their answers.

    ``None`` without repeats, or if the value is another one, such as that of a vote.
    """
    answers = _numbers(column.per_answer, errors.scale, score_key)
    verdicts = [_numbers(judged, errors.scale, score_key) for judged in column.per_verdict]
    if not answers:  # one answer each
        answers = [[one[0] for one in document if one] for document in verdicts]
    means = _numbers([[item] for item in column.values], errors.scale, score_key)
    if not errors.scale or len(answers) != len(means) or (verdicts and len(verdicts) != len(means)):
        return None
    for of_answers, mean in zip(answers, means, strict=True):
        if not of_answers or not mean or not math.isclose(math.fsum(of_answers) / len(of_answers), mean[0]):
            return None
    return variance_of(float(value), answers, verdicts, errors.certainty)


def _numbers(rows: Sequence[Sequence[Any]], scale: float, score_key: str) -> list[list[float]]:
    """Return the numbers of values, times the scale."""
    return [
        [scale * number for item in row if (number := stats.item_number(item, score_key)) is not None] for row in rows
    ]


def _document_scores(column: _Column, stated: Sequence[float], scale: float, score_key: str) -> Sequence[float] | None:
    """Return the documents' numbers whose mean is the score; ``None`` if it is not a mean over documents.

    ``stated``: the numbers that the aggregation returned, if any. ``scale``: ``MetricResult.scale``.
    """
    if len(stated) == len(column.values):
        return stated
    if not scale:
        return None
    return [scale * (stats.item_number(value, score_key) or 0.0) for value in column.values]


def _truncation(column: _Column, scores: Sequence[float] | None, within: ScoreRange) -> TruncationScores | None:
    if scores is None or not any(column.truncated):
        return None
    completed = [score for score, is_cut in zip(scores, column.truncated, strict=True) if not is_cut]
    truncated = _mean_of([score for score, is_cut in zip(scores, column.truncated, strict=True) if is_cut])
    assert truncated is not None
    low = high = None
    if is_bounded(scores, within):
        low, high = ((math.fsum(completed) + end * truncated.n) / len(scores) for end in (within.low, within.high))
    return TruncationScores(_mean_of(completed), truncated, low, high)


def _with_missing(made: MetricResult, missing: int, scores: Sequence[float] | None, errors: Errors) -> MetricResult:
    """Add the bounds of a score if documents are missing."""
    if not missing or isinstance(made.value, bool) or not isinstance(made.value, int | float):
        return made
    certainty = errors.certainty
    reason = "not a mean over documents" if scores is None else certainty.no_interval
    if scores is None or reason:
        return structs.replace(made, missing_bounds=MissingBounds(missing, reason=reason))
    if not is_bounded(scores, certainty.score_range):
        reason = "no range with two ends is stated"
        return structs.replace(made, missing_bounds=MissingBounds(missing, reason=reason))
    filled = filled_means(scores, missing, certainty.score_range, certainty.spread)
    bounds = MissingBounds.of(missing, filled, certainty.score_range)
    return structs.replace(made, missing_bounds=bounds, filled=filled)


def _mean_of(scores: Sequence[float]) -> SubScore | None:
    if not scores:
        return None
    return SubScore(
        math.fsum(scores) / len(scores), len(scores), stats.mean_stderr(scores) if len(scores) > 1 else None
    )


def _call(definition: MetricDefinition, task: Task, values: Sequence[Any], arguments: Any) -> Any:
    """Call the aggregation once, with the command line and the task if it has parameters ``args`` and ``task``."""
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


class GroupResult(Struct, frozen=True):
    """The results of a group."""

    group: Group
    leaves: tuple[str, ...]
    metrics: tuple[MetricResult, ...] = ()
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Leaf tasks without the metric, by ``metric,filter``."""


def aggregate_groups(groups: Sequence[Group], tasks: Mapping[str, TaskResult]) -> list[GroupResult]:
    """Aggregate every group over all its leaf tasks, including those of nested groups."""
    by_name = {group.name: group for group in groups}
    results = []
    for group in groups:
        leaves = tuple(dict.fromkeys(leaves_of(group, by_name)))
        left_out: dict[str, tuple[str, ...]] = {}
        metrics: list[MetricResult] = []
        for wanted in group.metrics:
            for name in wanted.filters:
                found = _find(wanted, name, [tasks[leaf] for leaf in leaves if leaf in tasks])
                missing = tuple(leaf for leaf in leaves if leaf not in found)
                if missing:
                    left_out[f"{wanted.metric},{name}"] = missing
                if found:
                    metrics.append(_combine(wanted, name, list(found.values())))
        results.append(GroupResult(group, leaves, tuple(metrics), left_out))
    return results


def leaves_of(group: Group, groups: Mapping[str, Group]) -> Iterator[str]:
    for child in group.children:
        if child in groups:
            yield from leaves_of(groups[child], groups)
        else:
            yield child


def _find(wanted: GroupMetric, pipeline: str, tasks: Sequence[TaskResult]) -> dict[str, tuple[MetricResult, int]]:
    """Return the wanted metric of each leaf that has it, with the leaf's number of documents."""
    found = {}
    for result in tasks:
        own = wanted.of.get(result.task.name) if wanted.of else f"{wanted.metric},{pipeline}"
        for metric in result.metrics:
            if f"{metric.metric},{metric.filter}" == own:
                made = _in_percent(metric, result.task.metrics) if wanted.of else metric
                found[result.task.name] = (made, result.plan.requested)
    return found


def _in_percent(metric: MetricResult, declared: Sequence[MetricDefinition]) -> MetricResult:
    """Rescale a metric and its errors from its range to 0 to 100; withhold it if the range is not bounded."""
    within = next(definition.score_range for definition in declared if definition.name == metric.metric)
    if within is None or not math.isfinite(within.high - within.low):
        return structs.replace(metric, value=None, withheld_reason=f"the range of {metric.metric!r} is not stated")
    if metric.value is None:
        return metric
    scale, spread = 100 / (within.high - within.low), metric.certainty.spread
    error = metric.stderr if isinstance(metric.stderr, str) else scale * metric.stderr

    def scaled(spread: stats.MeanSpread) -> stats.MeanSpread:
        graded = tuple(scale * (score - within.low) for score in spread.graded)
        return structs.replace(spread, error=scale * spread.error, graded=graded)

    certainty = Certainty(
        spread=scaled(spread) if spread is not None else None,
        no_interval=metric.certainty.no_interval,
        score_range=ScoreRange(0.0, 100.0),
    )
    filled = None
    if metric.filled is not None:
        least, greatest = (FilledMean(scale * (end.value - within.low), scaled(end.spread)) for end in metric.filled)
        filled = (least, greatest)
    value = scale * (metric.value - within.low)
    return structs.replace(metric, value=value, stderr=error, certainty=certainty, filled=filled)


def _combine(wanted: GroupMetric, pipeline: str, parts: Sequence[tuple[MetricResult, int]]) -> MetricResult:
    sizes = [size for _, size in parts]
    n = sum(metric.n for metric, _ in parts)
    withheld = [metric for metric, _ in parts if metric.value is None]
    if withheld:
        return MetricResult(wanted.metric, pipeline, None, n, withheld_reason=f"{len(withheld)} parts are withheld")
    values = [metric.value for metric, _ in parts]
    try:
        value = _value(wanted, values, sizes)
    except Exception as raised:  # noqa: BLE001 - a function of the group may raise anything, and parts may be any type
        reason = failure(f"aggregating {wanted.metric!r} over the group", raised)
        return MetricResult(wanted.metric, pipeline, None, n, withheld_reason=reason, broken=True)
    error = _error(wanted, [metric.stderr for metric, _ in parts], sizes)
    looked = [metric.looked for metric, _ in parts]
    if any(one is not None and one.asked < len(one.order) for one in looked):
        certainty = _looked_certainty(wanted, parts)
        missing = sum(metric.missing_bounds.n for metric, _ in parts if metric.missing_bounds is not None)
        bounds = _of_sequence(MissingBounds(missing) if missing else None, certainty.interval, NO_EARLY_INTERVAL)
    else:
        certainty = _certainty(wanted, value, parts)
        bounds = _group_bounds(wanted, parts)
    return MetricResult(wanted.metric, pipeline, value, n, stderr=error, certainty=certainty, missing_bounds=bounds)


def _certainty(wanted: GroupMetric, value: Any, parts: Sequence[tuple[MetricResult, int]]) -> Certainty:
    """Return the certainty of the mean over parts: documents or clusters are drawn independently within each part."""
    known = [(part, metric.certainty.score_range) for metric, _ in parts if (part := metric.certainty.spread)]
    if wanted.aggregation != "mean" or len(known) < len(parts):
        return Certainty(no_interval=NO_ERROR)
    weights = [float(size) if wanted.weight_by_size else 1.0 for _, size in parts]
    low, high = (
        stats.aggregate_subtask_metrics(ends, weights)
        for ends in ([within.low for _, within in known], [within.high for _, within in known])
    )
    return Certainty.of(
        float(value), stats.MeanSpread.stratified([spread for spread, _ in known], weights), ScoreRange(low, high)
    )


def _group_bounds(wanted: GroupMetric, parts: Sequence[tuple[MetricResult, int]]) -> MissingBounds | None:
    """Return the bounds of the mean over parts; ``None`` if no part has documents without a score."""
    missing = sum(metric.missing_bounds.n for metric, _ in parts if metric.missing_bounds is not None)
    if not missing:
        return None
    if wanted.aggregation != "mean":
        return MissingBounds(missing, reason="not a mean over tasks")
    if unknown := [one.reason for metric, _ in parts if (one := metric.missing_bounds) is not None and one.reason]:
        return MissingBounds(missing, reason=unknown[0])
    found = []
    for side in (0, 1):
        filled = [
            structs.replace(
                metric,
                value=metric.filled[side].value,
                certainty=structs.replace(metric.certainty, spread=metric.filled[side].spread),
            )
            if metric.filled is not None
            else metric
            for metric, _ in parts
        ]
        sized = list(zip(filled, [size for _, size in parts], strict=True))
        mean = _value(wanted, [metric.value for metric in filled], [size for _, size in parts])
        found.append(_certainty(wanted, mean, sized))
    least, greatest = (one.interval for one in found)
    if least is None or greatest is None:
        return MissingBounds(missing, reason=found[0].no_interval or found[1].no_interval)
    return MissingBounds(missing, least.low, greatest.high)


def _looked_certainty(wanted: GroupMetric, parts: Sequence[tuple[MetricResult, int]]) -> Certainty:
    """Return the anytime-valid certainty of the mean over parts if some ended early."""
    looked = []
    for metric, size in parts:
        if metric.looked is not None:
            part = structs.replace(
                metric.looked.part, weight=float(size) if wanted.weight_by_size else 1.0, in_percent=bool(wanted.of)
            )
            looked.append(structs.replace(metric.looked, part=part))
    if wanted.aggregation != "mean" or len(looked) < len(parts):
        return Certainty(no_interval=NO_EARLY_INTERVAL)
    interval = looked_interval(looked)
    return Certainty(interval, "" if interval is not None else NO_EARLY_INTERVAL)


def _value(wanted: GroupMetric, values: Sequence[Any], sizes: Sequence[int]) -> Any:
    if callable(wanted.aggregation):
        return wanted.aggregation(list(values))
    if wanted.aggregation == "mean":
        return stats.aggregate_subtask_metrics(values, sizes, wanted.weight_by_size)
    if wanted.aggregation not in AGGREGATIONS:
        raise UnknownNameError("aggregation", wanted.aggregation, AGGREGATIONS, "(aggregate_metric_list)")
    return AGGREGATIONS[wanted.aggregation].function()(list(values))


def _error(wanted: GroupMetric, errors: Sequence[float | str], sizes: Sequence[int]) -> float | str:
    numbers = [error for error in errors if not isinstance(error, str)]
    if wanted.aggregation != "mean" or len(numbers) < len(errors):
        return NOT_AVAILABLE
    if wanted.weight_by_size:
        return stats.pooled_sample_stderr(numbers, sizes) if sum(sizes) > len(sizes) else NOT_AVAILABLE
    return stats.unweighted_group_stderr(numbers)
