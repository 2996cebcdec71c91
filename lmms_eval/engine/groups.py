"""Numbers of groups: combines the metrics of their tasks, with errors, intervals and bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field, structs

from lmms_eval import stats
from lmms_eval.api.task import Group, GroupMetric, MetricDefinition
from lmms_eval.engine.aggregate import MetricResult, TaskResult, bounds_of_sequence
from lmms_eval.engine.looks import NO_EARLY_INTERVAL, looked_interval
from lmms_eval.engine.records import failure
from lmms_eval.engine.uncertainty import (
    NO_ERROR,
    NOT_AVAILABLE,
    UNKNOWN,
    Certainty,
    FilledMean,
    MissingBounds,
    mean_over_lists,
)
from lmms_eval.errors import UnknownNameError
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.utils.numbers import ScoreRange


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
    over_list = metric.over_list
    if over_list is not None and (found := over_list.interval) is not None:
        low, high = scale * (found.low - within.low), scale * (found.high - within.low)
        over_list = Certainty(stats.Interval(low, high, found.method), score_range=ScoreRange(0.0, 100.0))
    value = scale * (metric.value - within.low)
    return structs.replace(metric, value=value, stderr=error, certainty=certainty, filled=filled, over_list=over_list)


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
    over_list = _group_over_list(wanted, [metric for metric, _ in parts])
    looked = [metric.looked for metric, _ in parts]
    if any(one is not None and one.asked < len(one.order) for one in looked):
        certainty = _looked_certainty(wanted, parts)
        missing = sum(metric.missing_bounds.n for metric, _ in parts if metric.missing_bounds is not None)
        bounds = bounds_of_sequence(MissingBounds(missing) if missing else None, certainty.interval, NO_EARLY_INTERVAL)
    else:
        certainty = _certainty(wanted, value, parts)
        bounds = _group_bounds(wanted, parts)
    if over_list is not None and any(metric.stderr == NOT_AVAILABLE for metric, _ in parts):
        certainty = over_list  # documents of a task were drawn with unequal chances
    return MetricResult(
        wanted.metric, pipeline, value, n, stderr=error, certainty=certainty, missing_bounds=bounds, over_list=over_list
    )


def _group_over_list(wanted: GroupMetric, metrics: Sequence[MetricResult]) -> Certainty | None:
    """Return the interval over all documents of the tasks' lists; ``None`` if no task is a random sample."""
    if all(metric.over_list is None for metric in metrics):
        return None
    if wanted.aggregation != "mean":
        return Certainty(no_interval="not a mean over tasks")
    if wanted.weight_by_size:
        return Certainty(no_interval="weighted by the documents asked, not by those of the lists")
    whole = [
        metric.over_list
        or (Certainty(stats.Interval(metric.value, metric.value, "")) if not metric.missing_bounds else UNKNOWN)
        for metric in metrics
    ]
    return mean_over_lists([(metric.value, one, metric.n) for metric, one in zip(metrics, whole, strict=True)])


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
