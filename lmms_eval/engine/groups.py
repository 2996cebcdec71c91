"""Groups: one number over their leaf tasks, with its pooled error."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmms_eval import stats
from lmms_eval.api.task import Group, GroupMetric, MetricDefinition
from lmms_eval.engine.aggregate import MetricResult, TaskResult
from lmms_eval.engine.early import NO_EARLY_INTERVAL, looked_interval
from lmms_eval.engine.failures import failure
from lmms_eval.engine.uncertainty import NO_ERROR, NOT_AVAILABLE, Certainty
from lmms_eval.errors import UnknownNameError
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.utils.numbers import ScoreRange


@dataclass(frozen=True, slots=True)
class GroupResult:
    """A group's row: values and errors by (metric, filter)."""

    group: Group
    leaves: tuple[str, ...]
    metrics: tuple[MetricResult, ...] = ()
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By ``metric,filter``: leaf tasks that have no such metric."""


def aggregate_groups(groups: Sequence[Group], tasks: Mapping[str, TaskResult]) -> list[GroupResult]:
    """Aggregate every group over all its leaves (nested groups included)."""
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
    """The exact metric and filter of each leaf that has them, with the leaf's number of documents."""
    found = {}
    for result in tasks:
        own = wanted.of.get(result.task.name) if wanted.of else f"{wanted.metric},{pipeline}"
        for metric in result.metrics:
            if f"{metric.metric},{metric.filter}" == own:
                made = _in_percent(metric, result.task.metrics) if wanted.of else metric
                found[result.task.name] = (made, result.plan.requested)
    return found


def _in_percent(metric: MetricResult, declared: Sequence[MetricDefinition]) -> MetricResult:
    """A metric on the scale from 0 to 100, with its errors; withheld where its range is not bounded."""
    within = next(definition.score_range for definition in declared if definition.name == metric.metric)
    if within is None or not math.isfinite(within.high - within.low):
        return replace(metric, value=None, withheld_reason=f"the range of {metric.metric!r} is not stated")
    if metric.value is None:
        return metric
    scale, spread = 100 / (within.high - within.low), metric.certainty.spread
    error = metric.stderr if isinstance(metric.stderr, str) else scale * metric.stderr
    certainty = Certainty(
        spread=replace(spread, error=scale * spread.error) if spread is not None else None,
        no_interval=metric.certainty.no_interval,
        score_range=ScoreRange(0.0, 100.0),
    )
    return replace(metric, value=scale * (metric.value - within.low), stderr=error, certainty=certainty)


def _combine(wanted: GroupMetric, pipeline: str, parts: Sequence[tuple[MetricResult, int]]) -> MetricResult:
    sizes = [size for _, size in parts]
    n = sum(metric.n for metric, _ in parts)
    withheld = [metric for metric, _ in parts if metric.value is None]
    if withheld:
        return MetricResult(wanted.metric, pipeline, None, n, withheld_reason=f"{len(withheld)} parts are withheld")
    values = [metric.value for metric, _ in parts]
    try:
        value = _value(wanted, values, sizes)
    except Exception as raised:  # noqa: BLE001 - a group's own function, or parts that are no numbers
        reason = failure(f"aggregating {wanted.metric!r} over the group", raised)
        return MetricResult(wanted.metric, pipeline, None, n, withheld_reason=reason, broken=True)
    error = _error(wanted, [metric.stderr for metric, _ in parts], sizes)
    looked = [metric.looked for metric, _ in parts]
    if any(one is not None and one.asked < len(one.order) for one in looked):
        certainty = _looked_certainty(wanted, parts)
    else:
        certainty = _certainty(wanted, value, parts)
    return MetricResult(wanted.metric, pipeline, value, n, stderr=error, certainty=certainty)


def _certainty(wanted: GroupMetric, value: Any, parts: Sequence[tuple[MetricResult, int]]) -> Certainty:
    """Of the mean over the parts: documents or clusters are drawn within each, and it lies between the mean ends."""
    known = [(part, metric.certainty.score_range) for metric, _ in parts if (part := metric.certainty.spread)]
    if wanted.aggregation != "mean" or len(known) < len(parts):
        return Certainty(no_interval=NO_ERROR)
    weights = [float(size) if wanted.weight_by_size else 1.0 for _, size in parts]
    low, high = (
        stats.aggregate_subtask_metrics(ends, weights)
        for ends in ([within.low for _, within in known], [within.high for _, within in known])
    )
    return Certainty.of(
        float(value), stats.Spread.stratified([spread for spread, _ in known], weights), ScoreRange(low, high)
    )


def _looked_certainty(wanted: GroupMetric, parts: Sequence[tuple[MetricResult, int]]) -> Certainty:
    """Of the mean over parts of which some have ended early: valid at every look."""
    looked = []
    for metric, size in parts:
        if metric.looked is not None:
            part = replace(
                metric.looked.part, weight=float(size) if wanted.weight_by_size else 1.0, in_percent=bool(wanted.of)
            )
            looked.append(replace(metric.looked, part=part))
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
