"""The aggregate phase: computes one number per metric from the scored documents, with its uncertainty and counts."""

from __future__ import annotations

import hashlib
import inspect
import math
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
from lmms_eval.engine.clusters import NO_CLUSTERS, ClusterFinder, Clusters
from lmms_eval.engine.columns import (
    TruncationScores,
    ValueColumn,
    ValueColumns,
    document_scores,
    mean_and_error,
    truncation_scores,
    variance_in,
)
from lmms_eval.engine.headline import Anchors, HeadlinePart
from lmms_eval.engine.looks import NO_EARLY_INTERVAL, Looked, LookStop, looked_interval, strata_of
from lmms_eval.engine.outcomes import AggregateOptions, OutcomeCounter, TaskOutcome, TaskTally
from lmms_eval.engine.plan import Drawn, TaskPlan
from lmms_eval.engine.records import failure
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
)
from lmms_eval.errors import AggregationError, UnknownNameError
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.utils.numbers import SHARES, ScoreRange


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
    over_list: Certainty | None = None
    """Interval of the value over the whole list, if the documents are a random sample of it (``--sample``)."""
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
    clusters: Clusters = NO_CLUSTERS

    @property
    def task(self) -> Task:
        return self.plan.task

    @property
    def doc_ids(self) -> Sequence[int]:
        """The counted documents in ascending order."""
        return self.plan.doc_ids if self.early_stop is None else sorted(self.early_stop.doc_ids)


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
    columns, finder = ValueColumns(), ClusterFinder(plan.task)
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
        finder.add(record)
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
    options, clusters = _for_control(plan.task, options), finder.clusters()
    columns.place_clusters(clusters)
    plan.task.add_metrics([metric for metric, _ in columns.found])
    metrics = tuple(
        result
        for name in plan.task.pipelines
        for definition in plan.task.metrics
        if (result := _result(plan, definition, name, columns, outcome, options)) is not None
    )
    if order is not None:
        looks = partial(_with_looks, plan.task, columns=columns, order=order, stop=stop, anchors=options.anchors)
        metrics = tuple(map(looks, metrics))
    if plan.sample is not None:
        metrics = tuple(
            structs.replace(metric, over_list=_over_list(plan.task, metric, columns, plan.sample)) for metric in metrics
        )
    return TaskResult(plan, metrics, outcome, digest.hexdigest(), tally, stop, clusters)


def _result(
    plan: TaskPlan,
    definition: MetricDefinition,
    pipeline: str,
    columns: ValueColumns,
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


def _reduced_notes(task: Task, definition: MetricDefinition, pipeline: str, columns: ValueColumns) -> Iterator[str]:
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
    columns: ValueColumns,
    order: Sequence[int],
    stop: LookStop | None,
    anchors: Mapping[str, Anchors],
) -> MetricResult:
    """Add the numbers for anytime-valid intervals; for a task that ended early replace its errors and interval."""
    declared = next(one for one in task.metrics if one.name == metric.metric)
    is_macro, within = bool(declared.macro_scale), _finite_range(metric, declared)
    looked, reason = None, NO_EARLY_INTERVAL
    numbers = _numbers(task, metric, declared, columns)
    if numbers is not None:
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


def _finite_range(metric: MetricResult, declared: MetricDefinition) -> ScoreRange:
    return (declared.score_range if declared.macro_scale else None) or metric.certainty.score_range


def _numbers(
    task: Task, metric: MetricResult, declared: MetricDefinition, columns: ValueColumns
) -> dict[int, float] | None:
    """Return the documents' numbers in the units of the value; ``None`` if it is no mean within two ends."""
    within, scale = _finite_range(metric, declared), declared.macro_scale or metric.scale
    if not scale or not math.isfinite(within.high - within.low):
        return None
    column = columns.column(metric.metric, metric.filter)
    return {
        doc_id: scale * number
        for doc_id, value in zip(column.doc_ids, column.values, strict=True)
        if (number := stats.item_number(value, task.score_key)) is not None
    }


def _over_list(task: Task, metric: MetricResult, columns: ValueColumns, sample: Drawn) -> Certainty:
    """Return the interval of a metric over the whole list that its documents were drawn from."""
    declared = next(one for one in task.metrics if one.name == metric.metric)
    is_macro, within = bool(declared.macro_scale), _finite_range(metric, declared)
    numbers = _numbers(task, metric, declared, columns)
    if numbers is None:
        return Certainty(no_interval="no mean of documents within a range with two ends")
    if is_macro and sample.design == "simple":
        return Certainty(no_interval="a mean over strata: --sample N:stratified gives it an interval")
    if not is_macro and sample.design == "stratified":
        return Certainty(no_interval="drawn by strata, and no mean over them")
    if any(number not in within for number in numbers.values()):
        return Certainty(no_interval=f"a score lies outside of the range, {within}")
    means = [
        math.fsum(found) / len(found)
        for each in sample.order.values()
        if (found := [numbers[doc_id] for doc_id in each if doc_id in numbers])
    ]
    value = metric.partial if metric.value is None else metric.value
    mean = math.fsum(means) / max(1, len(means))
    if not isinstance(value, int | float) or not math.isclose(mean, value, rel_tol=1e-9, abs_tol=1e-9):
        return Certainty(no_interval="no mean of the documents" if not is_macro else "no mean over its strata")
    from lmms_eval.stats.finite import DrawnScores, list_interval

    strata = [
        DrawnScores(
            [numbers.get(doc_id, within.low) for doc_id in each],
            [numbers.get(doc_id, within.high) for doc_id in each],
            sample.sizes[name],
        )
        for name, each in sample.order.items()
    ]
    interval = list_interval(strata, within)
    if isinstance(interval, stats.NoInterval):
        return Certainty(no_interval=interval.reason)
    return Certainty(interval, score_range=within)


def _of_sequence(missing: MissingBounds | None, interval: stats.Interval | None, reason: str) -> MissingBounds | None:
    """Return the bounds of a task that ended early, whose interval takes documents without a score into account."""
    if missing is None:
        return None
    if interval is None:
        return MissingBounds(missing.n, reason=reason)
    return MissingBounds(missing.n, interval.low, interval.high)


def _missing_metric(plan: TaskPlan, definition: MetricDefinition, pipeline: str, columns: ValueColumns) -> MetricResult:
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
    column: ValueColumn,
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
    whole = value if estimate is None else replace(estimate, value=value)
    errors = errors_of(task, definition, values, whole, options.bootstrap_iters, column.clusters)
    scores = document_scores(column, estimate.scores if estimate is not None else (), errors.scale, task.score_key)
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
        else mean_and_error([score for score, drew in zip(scores, column.drew, strict=True) if not drew]),
        variance=variance_in(column, errors, value, task.score_key),
        truncation=truncation_scores(column, scores, errors.certainty.score_range),
    )
    return made if reason else _with_missing(made, column.unscored + outcome.failed, scores, errors)


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
            for name in wanted.filters or _filters_of(wanted.metric, [tasks[leaf] for leaf in leaves if leaf in tasks]):
                found = _find(wanted, name, [tasks[leaf] for leaf in leaves if leaf in tasks])
                missing = tuple(leaf for leaf in leaves if leaf not in found)
                if missing:
                    left_out[f"{wanted.metric},{name}"] = missing
                if found:
                    metrics.append(_combine(wanted, name, list(found.values())))
        results.append(GroupResult(group, leaves, tuple(metrics), left_out))
    return results


def _filters_of(metric: str, tasks: Sequence[TaskResult]) -> list[str]:
    """Return the filters through which a task has a metric, sorted."""
    return sorted({result.filter for task in tasks for result in task.metrics if result.metric == metric})


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
