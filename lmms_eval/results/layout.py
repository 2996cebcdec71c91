"""Order of the rows of results, and counts that a group sums over its leaf tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lmms_eval.api.task import Selection
from lmms_eval.engine.aggregate import GroupResult, TaskResult
from lmms_eval.engine.outcomes import AnswerCounts, TaskOutcome
from lmms_eval.results.facts import EarlyStop


class Row(Struct, frozen=True):
    """A row of the table: a group or a task, with its indented alias."""

    name: str
    alias: str
    group: GroupResult | None = None


def table_layout(selection: Selection, groups: Sequence[GroupResult], tasks: Mapping[str, TaskResult]) -> list[Row]:
    """Order the rows: groups, each followed by its children one level deeper, then tasks named directly, by name."""
    by_name = {group.group.name: group for group in groups}
    children = {child for group in groups for child in group.group.children}
    rows: dict[str, Row] = {}
    named = {name: result for name, result in tasks.items() if not result.task.control_of}
    for group in groups:
        if group.group.name not in children:
            _layout_group(group, 0, by_name, named, selection.direct, rows)
    for name in sorted(named):
        rows.setdefault(name, Row(name, tasks[name].task.alias))
    return _with_controls(rows, tasks) if len(named) < len(tasks) else list(rows.values())


def _with_controls(rows: Mapping[str, Row], tasks: Mapping[str, TaskResult]) -> list[Row]:
    """Insert the controls of each task below it, indented, in the order of asking."""
    below: dict[str, list[Row]] = {}
    for name, result in tasks.items():
        of = result.task.control_of
        if of and of in rows:
            depth = len(rows[of].alias) - len(rows[of].alias.lstrip(" -"))
            below.setdefault(of, []).append(Row(name, " " * depth + _indent(1) + result.task.alias))
    return [one for row in rows.values() for one in (row, *below.get(row.name, ()))]


def _layout_group(
    group: GroupResult,
    depth: int,
    groups: Mapping[str, GroupResult],
    tasks: Mapping[str, TaskResult],
    direct: frozenset[str],
    rows: dict[str, Row],
) -> None:
    rows[group.group.name] = Row(group.group.name, _indent(depth) + group.group.alias, group)
    for child in group.group.children:
        if child in groups:
            _layout_group(groups[child], depth + 1, groups, tasks, direct, rows)
        elif child in tasks:
            indent = "" if child in direct else _indent(depth + 1)
            rows.setdefault(child, Row(child, indent + tasks[child].task.alias))


def _indent(depth: int) -> str:
    return "" if depth == 0 else " " * depth + "- "


def directions(tasks: Mapping[str, TaskResult], groups: Sequence[GroupResult]) -> dict[str, dict[str, bool | None]]:
    """Return by task or group and metric whether a higher number is better; ``None`` if it is not stated."""
    found: dict[str, dict[str, bool | None]] = {
        name: {metric.name: metric.higher_is_better for metric in result.task.metrics} for name, result in tasks.items()
    }
    united: dict[str, dict[str, bool | None]] = {}
    for group in groups:
        union = united.setdefault(group.group.name, {})
        for leaf in group.leaves:
            for metric, higher in found.get(leaf, {}).items():
                # `None` if the leaves disagree.
                union[metric] = higher if union.get(metric, higher) == higher else None
    return {**united, **found}


def group_outcome(group: GroupResult, tasks: Mapping[str, TaskResult]) -> TaskOutcome:
    """Add up the counts of a group's leaves. The leaves keep their reasons."""
    parts = [tasks[leaf].outcome for leaf in group.leaves if leaf in tasks]
    return TaskOutcome(
        requested=sum(part.requested for part in parts),
        scored=sum(part.scored for part in parts),
        unscored=sum(part.unscored for part in parts),
        failed=sum(part.failed for part in parts),
        not_asked=sum(part.not_asked for part in parts),
        answers=sum((part.answers for part in parts), AnswerCounts()),
        judge_unread=sum(part.judge_unread for part in parts),
        over_truncation_budget=any(part.over_truncation_budget for part in parts),
        withheld=next((part.withheld for part in parts if part.withheld), ""),
    )


def group_early_stop(group: GroupResult, tasks: Mapping[str, TaskResult]) -> EarlyStop | None:
    """Add up the documents of a group's leaves; ``None`` if no leaf stopped early."""
    leaves = [tasks[leaf] for leaf in group.leaves if leaf in tasks]
    stops = [result.early_stop for result in leaves if result.early_stop is not None]
    if not stops:
        return None
    rules, orders = (
        list(dict.fromkeys(found)) for found in zip(*((one.rule, one.order) for one in stops), strict=True)
    )
    return EarlyStop(
        rule="; ".join(rules),
        order="; ".join(orders),
        asked=sum(len(result.doc_ids) for result in leaves),
        of=sum(result.plan.requested for result in leaves),
    )
