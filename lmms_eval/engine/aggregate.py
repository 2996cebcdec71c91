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
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, structs

from lmms_eval import stats
from lmms_eval.api.outcome import Estimate, SubScore, Withheld
from lmms_eval.api.task import MetricDefinition, Task
from lmms_eval.engine.clusters import NO_CLUSTERS, ClusterFinder, Clusters
from lmms_eval.engine.columns import (
    TruncationScores,
    ValueColumn,
    ValueColumns,
    document_scores,
    mean_and_error,
    missing_by_stratum,
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
    NOT_AVAILABLE,
    UNKNOWN,
    Certainty,
    Errors,
    FilledMean,
    MissingBounds,
    NoiseFloor,
    Variance,
    errors_of,
    filled_means,
    is_bounded,
)
from lmms_eval.errors import AggregationError
from lmms_eval.utils.numbers import SHARES, ScoreRange

if TYPE_CHECKING:
    from lmms_eval.stats.finite import DrawnScores


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
    noise: NoiseFloor | None = None
    """What documents that were asked again show (``--repeat_share``)."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Number of counted documents without a value of any metric, by stratum; the empty name without strata."""

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
    own_only = plan.task.num_fewshot > 0 or bool(plan.task.control_of)
    columns, finder = ValueColumns(), ClusterFinder(plan.task.cluster_key, own_only)
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
    if not clusters.names and (original := options.clusters.get(plan.task.control_of)) is not None:
        clusters = original  # its media, which this control does not show
    columns.place_clusters(clusters)
    plan.task.add_metrics([metric for metric, _ in columns.found])
    pipelines = () if plan.task.asks_again else plan.task.pipelines  # second answers are only compared with the first
    metrics = tuple(
        result
        for name in pipelines
        for definition in plan.task.metrics
        if (not definition.pipelines or name in definition.pipelines)
        and (result := _result(plan, definition, name, columns, outcome, options)) is not None
    )
    if order is not None:
        looks = partial(_with_looks, plan.task, columns=columns, order=order, stop=stop, anchors=options.anchors)
        metrics = tuple(map(looks, metrics))
    if plan.sample is not None:
        metrics = tuple(
            _weighted(plan.task, metric, columns, plan.sample)
            if plan.sample.runs
            else structs.replace(metric, over_list=_over_list(plan.task, metric, columns, plan.sample))
            for metric in metrics
        )
    lost = missing_by_stratum(plan.task, columns, doc_ids)
    return TaskResult(plan, metrics, outcome, digest.hexdigest(), tally, stop, clusters, missing=lost)


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
        missing_bounds=bounds_of_sequence(metric.missing_bounds, interval, reason),
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
    from lmms_eval.stats.finite import list_interval

    interval = list_interval(_drawn_scores(numbers, sample, within), within)
    if isinstance(interval, stats.NoInterval):
        return Certainty(no_interval=interval.reason)
    return Certainty(interval, score_range=within)


def _drawn_scores(numbers: Mapping[int, float], sample: Drawn, within: ScoreRange) -> list[DrawnScores]:
    """Return the scores of each stratum; a document without a score has the two ends of the range."""
    from lmms_eval.stats.finite import DrawnScores

    return [
        DrawnScores(
            [numbers.get(doc_id, within.low) for doc_id in each],
            [numbers.get(doc_id, within.high) for doc_id in each],
            sample.sizes[name],
        )
        for name, each in sample.order.items()
    ]


def _weighted(task: Task, metric: MetricResult, columns: ValueColumns, sample: Drawn) -> MetricResult:
    """Weight each stratum of a sample by its size, since its documents were drawn with unequal chances.

    The value is the estimate for the whole list, with its interval. Errors and parts of plain means are left out.
    """
    if metric.value is None:
        return metric
    from lmms_eval.stats.finite import weighted_interval

    declared = next(one for one in task.metrics if one.name == metric.metric)
    numbers, within = _numbers(task, metric, declared, columns), _finite_range(metric, declared)
    if numbers is None or any(number not in within for number in numbers.values()):
        reason = "drawn with unequal chances, and no mean of documents within a range with two ends"
        return MetricResult(metric.metric, metric.filter, None, metric.n, withheld_reason=reason)
    found = weighted_interval(_drawn_scores(numbers, sample, within), within)
    if isinstance(found, stats.NoInterval):
        return MetricResult(metric.metric, metric.filter, None, metric.n, withheld_reason=found.reason)
    value, interval = found
    certainty = Certainty(interval, score_range=within)
    missing = bounds_of_sequence(metric.missing_bounds, interval, "")
    return MetricResult(
        metric.metric, metric.filter, value, metric.n, certainty=certainty, details=metric.details,
        over_list=certainty, missing_bounds=missing,
    )  # fmt: skip


def bounds_of_sequence(
    missing: MissingBounds | None, interval: stats.Interval | None, reason: str
) -> MissingBounds | None:
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
        text = next((value for value in values if isinstance(value, str)), None)
        of_text = definition.aggregation_name is not None and text is not None
        found = f" (scoring gave the text {str(text)[:40]!r}; return a number)" if of_text else ""
        raised = failure(f"the aggregation of metric {definition.name!r}", error) + found
        raise AggregationError(
            f"task {task.name!r}: {raised}; all samples are "
            "kept: the same command only aggregates again, or mend the task and score the kept samples with "
            "--model replay --model_args path=SAMPLES_FILE"
        ) from error
