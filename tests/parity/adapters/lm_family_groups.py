"""Vectors of lm-eval's groups: members of each group, and its row from the rows of its tasks."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from lmms_eval.api.task import Group
from lmms_eval.engine.aggregate import MetricResult, TaskResult
from lmms_eval.engine.groups import aggregate_groups
from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.selection import choose
from tests.parity.compare import agree, decode
from tests.parity.packs import absent, pack_of
from tests.parity.vectors import PASSED, Vector, Verdict, failed, line_adapter, pending

FOLDER = "lm_family"


@functools.cache
def catalogue() -> Catalogue:
    return Catalogue()


class _Part:
    """The part of a task's result that its groups read."""

    def __init__(self, name: str, row: Mapping[str, Any]) -> None:
        self.task, self.plan = (
            type("T", (), {"name": name, "metrics": ()}),
            type("P", (), {"requested": row["sample_len"]}),
        )
        self.metrics = tuple(
            MetricResult(*key.split(","), value, row["sample_len"], stderr=row[key.replace(",", "_stderr,")])
            for key, value in row.items()
            if "," in key and "_stderr" not in key
        )


def differing(record: Mapping[str, Any], pack: str) -> Iterator[str]:
    chosen = choose([f"{pack}:{record['group']}"], catalogue())
    groups = {group.name.removeprefix(f"{pack}:"): group for group in chosen.groups}
    for name, members in record["group_subtasks"].items():
        own = [child.removeprefix(f"{pack}:") for child in groups[name].children] if name in groups else []
        if own != members:
            yield f"members of {name}: {members} != {own}"
    tasks = {source.name: _Part(source.name, row) for source in chosen.sources
             if (row := decode(record["tasks"].get(source.base or source.name))) is not None}  # fmt: skip
    if len(tasks) != len(record["tasks"]):
        yield f"tasks: {sorted(record['tasks'])} != {sorted(tasks)}"
    rows = {result.group.name.removeprefix(f"{pack}:"): result.metrics for result in _aggregated(chosen.groups, tasks)}
    for name, row in record["groups"].items():
        made = {f"{one.metric},{one.filter}": one.value for one in rows[name]}
        made |= {f"{one.metric}_stderr,{one.filter}": one.stderr for one in rows[name]}
        expected = {key: value for key, value in decode(row).items() if "," in key}
        if not agree(expected, made):
            yield f"{name}: {expected} != {made}"


def _aggregated(groups: tuple[Group, ...], tasks: Mapping[str, Any]) -> Any:
    typed: Mapping[str, TaskResult] = tasks
    return aggregate_groups(groups, typed)


@line_adapter(f"{FOLDER}/groups.jsonl")
def groups(vector: Vector) -> Verdict:
    with pack_of("lm_eval") as pack:
        if pack is None:
            return pending(absent("lm-eval"))
        try:
            for difference in differing(vector.record, pack.name):
                return failed(difference)
        except LmmsEvalError as error:
            return failed(f"{type(error).__name__}: {error}")
    return PASSED
