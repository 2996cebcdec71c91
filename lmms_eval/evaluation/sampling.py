"""``--order random`` and ``--until``: determines the live number and the stopping rules before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loguru import logger
from msgspec.structs import replace

from lmms_eval.api.task import Group, MetricDefinition, Selection, Task
from lmms_eval.config import RunConfig
from lmms_eval.config.convert import StoppingRule, stopping_rules
from lmms_eval.engine.groups import leaves_of
from lmms_eval.engine.headline import LEAST, HeadlinePart, RandomOrder, Statement, excludes, half_width
from lmms_eval.engine.looks import Sampling, Stop, headline_metric, strata_of
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.errors import DataError, UsageError
from lmms_eval.evaluation.anchors import read_anchors
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.results.baseline import BaselineRow, BaselineSamples, find_baseline
from lmms_eval.tasks.yaml.task import YamlTask
from lmms_eval.utils.numbers import SHARES


class _NoInterval(Exception):
    """No interval can be computed during the run; the text is the reason."""


def sampling_of(config: RunConfig, selection: Selection, plans: Sequence[TaskPlan], is_first: bool = True) -> Sampling:
    """Return the random order of the documents, the number that is shown, and the stopping rules.

    ``is_first``: this process decides. The others only send it the numbers of the documents that they finish.

    Raises:
        UsageError: a rule names a task or group that the run does not have, or its number has no interval before the
            end.
        ConfigError, DataError: a baseline or an anchor run cannot be found or read.
    """
    plans = [plan for plan in plans if plan.requested and not plan.task.control_of]
    try:
        if config.predict_only:
            raise _NoInterval("--predict_only makes no scores")
        if not plans:
            raise _NoInterval("no task has a document")
        shown = _shown(selection, plans)
    except _NoInterval as reason:
        shown = ()
        if is_first:
            logger.info("no live interval: {}", reason)
    sampling = Sampling(RandomOrder(config.seed[0] or 0), _stops(config, selection, plans), shown)
    if not config.anchors or not is_first:
        return sampling
    parts = (*shown, *(part for stop in sampling.stops for part in stop.parts))
    tasks = {plan.task.name: plan for plan in plans}
    return sampling.with_anchors(read_anchors(config.anchors, parts, tasks, sampling.order))


def looked_at(plan: TaskPlan, is_scored: bool) -> HeadlinePart | str:
    """Return the part of a task's number that is computed during the run, or the reason why it cannot be."""
    if not is_scored:
        return "--predict_only makes no scores"
    if not plan.requested:
        return "the task has no document"
    try:
        return _task_part(plan, is_shown=True)
    except _NoInterval as reason:
        return str(reason)


def weighted_parts(plan: TaskPlan) -> tuple[HeadlinePart, ...] | str:
    """Return the parts of all numbers of a task, the headline first, or why one of them is no mean within a range."""
    try:
        if not plan.task.metrics:
            raise _NoInterval(f"task {plan.task.name} has no metric")
        first = headline_metric(plan.task)
        metrics = [first, *(one for one in plan.task.metrics if one is not first)]
        return tuple(_part(plan, one, plan.task.pipelines[0], is_shown=True) for one in metrics)
    except _NoInterval as reason:
        return str(reason)


def _shown(selection: Selection, plans: Sequence[TaskPlan]) -> tuple[HeadlinePart, ...]:
    """Return the parts of the number shown: the first metric of the only task or group, else a mean over all tasks."""
    if len(plans) > 1:
        known = {group.name: group for group in selection.groups}
        children = {child for group in selection.groups for child in group.children}
        names = {plan.task.name for plan in plans}
        for group in selection.groups:
            if group.name not in children and group.metrics and names == set(leaves_of(group, known)):
                return _group_parts(group, selection, plans)
    parts = tuple(_task_part(plan, is_shown=True) for plan in plans)
    is_macro = all(part.is_macro for part in parts)
    sizes = [
        len({*(part.strata or {}).values()}) if is_macro else plan.requested
        for part, plan in zip(parts, plans, strict=True)
    ]
    parts = tuple(replace(part, weight=float(size)) for part, size in zip(parts, sizes, strict=True))
    if len({part.within for part in parts}) > 1:
        raise _NoInterval("the tasks' scores have different ranges, and no group has a number over them")
    return parts


def _task_part(plan: TaskPlan, is_shown: bool = False) -> HeadlinePart:
    task = plan.task
    if not task.metrics:
        raise _NoInterval(f"task {task.name} has no metric")
    return _part(plan, headline_metric(task), task.pipelines[0], is_shown)


def _part(plan: TaskPlan, metric: MetricDefinition, pipeline: str, is_shown: bool = False) -> HeadlinePart:
    """Describe a metric's part of the number. ``is_shown``: if no range is stated, assume that of right and wrong."""
    task, name = plan.task, metric.aggregation_name
    if not metric.macro_scale and (name not in AGGREGATIONS or not AGGREGATIONS[name].is_mean):
        how = "a function of the task's own" if name is None else repr(name)
        raise _NoInterval(
            f"{metric.name} of task {task.name} is aggregated by {how}: that it is a mean of its documents is not "
            "known before the end (strata: COLUMN in its metric_list states that it is a mean over strata)"
        )
    within = metric.score_range
    if within is None and is_shown:
        within = SHARES
    if within is None or not within.high - within.low < float("inf"):
        raise _NoInterval(
            f"{metric.name} of task {task.name} has no range with two ends (range: [LOW, HIGH] in its metric_list "
            "states one)"
        )
    return HeadlinePart(
        task.name, metric.name, pipeline, within, task.score_key,
        is_binary=metric.score_range is None, is_clustered=_may_share(task),
        strata=strata_of(task, plan.doc_ids), is_macro=bool(metric.macro_scale), scale=metric.macro_scale or 1.0,
    )  # fmt: skip


def _may_share(task: Task) -> bool:
    """Return whether documents may share a cluster, so that the interval over all of them is known at the end only."""
    has_media = isinstance(task, YamlTask) and (task.config.doc_to_visual or task.config.doc_to_messages) is not None
    return bool(task.cluster_key) or has_media


def _group_parts(group: Group, selection: Selection, plans: Sequence[TaskPlan]) -> tuple[HeadlinePart, ...]:
    """Return the parts of a group's first number, one for each task."""
    if not group.metrics:
        raise _NoInterval(f"group {group.name} has no number of its own")
    wanted = group.metrics[0]
    if wanted.aggregation != "mean":
        raise _NoInterval(f"{wanted.metric} of group {group.name} is not a mean over its tasks")
    leaves = set(leaves_of(group, {one.name: one for one in selection.groups}))
    parts = []
    for plan in plans:
        task = plan.task
        own = wanted.of.get(task.name, "") if wanted.of else f"{wanted.metric},{(wanted.filters or task.pipelines)[0]}"
        name, _, pipeline = own.rpartition(",")
        metric = next((one for one in task.metrics if one.name == name), None)
        if task.name in leaves and metric is not None and pipeline in task.pipelines:
            weight = float(plan.requested) if wanted.weight_by_size else 1.0
            parts.append(replace(_part(plan, metric, pipeline), weight=weight, in_percent=bool(wanted.of)))
    if not parts:
        raise _NoInterval(f"no task of group {group.name} has its {wanted.metric}")
    return tuple(parts)


def _stops(config: RunConfig, selection: Selection, plans: Sequence[TaskPlan]) -> tuple[Stop, ...]:
    groups = {group.name: group for group in selection.groups}
    tasks = {plan.task.name: plan for plan in plans}
    named: dict[str, tuple[StoppingRule, tuple[HeadlinePart, ...]]] = {}
    unnamed: StoppingRule | None = None
    try:
        for rule in stopping_rules(config.until or ""):
            if not rule.target:
                unnamed = rule
            elif rule.target in tasks:
                named[rule.target] = rule, (_task_part(tasks[rule.target]),)
            elif rule.target in groups:
                named[rule.target] = rule, _group_parts(groups[rule.target], selection, plans)
            else:
                known = ", ".join([*tasks, *(name for name, group in groups.items() if group.metrics)])
                raise UsageError(
                    f"--until {rule.target}: {rule.text}: no such task or group in this run; it has {known}"
                )
        if unnamed is not None:
            covered = {part.task for _, parts in named.values() for part in parts}
            named |= {name: (unnamed, (_task_part(plan),)) for name, plan in tasks.items() if name not in covered}
    except _NoInterval as reason:
        raise UsageError(f"--until cannot be decided before the end: {reason}") from reason
    return tuple(_stop(config, name, rule, parts, tasks) for name, (rule, parts) in named.items())


def _stop(
    config: RunConfig, name: str, rule: StoppingRule, parts: tuple[HeadlinePart, ...], plans: Mapping[str, TaskPlan]
) -> Stop:
    if rule.baseline:
        baseline = find_baseline(rule.baseline, config.baseline_presets)
        compared = tuple(_compared(part, plans[part.task], baseline) for part in parts)
        return Stop(name, compared, excludes(0.0), rule.text)
    return Stop(name, parts, _statement(name, rule, parts), rule.text)


def _statement(name: str, rule: StoppingRule, parts: Sequence[HeadlinePart]) -> Statement:
    assert rule.number is not None  # a rule has a number or a baseline
    whole = sum(part.weight for part in parts)
    low = sum(part.weight / whole * part.ends.low for part in parts)
    high = sum(part.weight / whole * part.ends.high for part in parts)
    number = rule.number * (high - low if rule.is_share else 1.0)
    if rule.kind == "halfwidth":
        return half_width(number)
    number += low if rule.is_share else 0.0
    if not low <= number <= high:
        raise UsageError(f"--until {rule.text}: the score of {name} lies from {low:g} to {high:g}")
    return excludes(number)


def _compared(part: HeadlinePart, plan: TaskPlan, baseline: BaselineSamples) -> HeadlinePart:
    """Turn a part into differences from the baseline.

    The differences concern all documents of the task: of those that the baseline lacks, or could not score, any number
    is possible.
    """
    from lmms_eval.compare.baseline import baseline_scores

    option = f"--until decided:{baseline.text}"
    file = baseline.file(part.task)
    if file is None:
        raise DataError(f"{option}: it has no samples of {part.task}")
    row = BaselineRow(part.metric, part.filter)
    asked = set(plan.doc_ids)
    found = baseline_scores(file, row, part.score_key)
    scores = {doc: part.scale * score for doc, score in found.items() if doc in asked}
    if len(scores) < LEAST:
        raise DataError(
            f"{option}: {file} has {row} of {len(scores)} of the {plan.requested} documents of {part.task}; a decision "
            f"needs {LEAST} at least"
        )
    outside = next((doc for doc, score in scores.items() if score not in part.within), None)
    if outside is not None:
        raise DataError(
            f"{option}: {file} has {scores[outside]:g} for document {outside} of {part.task}, whose {part.metric} lies "
            f"from {part.within}"
        )
    return replace(part, baseline=scores)
