"""The plan phase: which documents of which tasks, in which order, under which key."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from lmms_eval.api.task import Task
from lmms_eval.engine.conversations import Unit
from lmms_eval.errors import UsageError
from lmms_eval.utils import get_sample_size

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
COST_WINDOW = 4096
"""Costliest first within this many documents of a task: long ones start early, and nothing is rendered ahead."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """The documents of one task in this run."""

    task: Task
    doc_ids: range
    original: int
    """Documents of the whole split."""

    @property
    def requested(self) -> int:
        return len(self.doc_ids)


def plan_task(task: Task, limit: float | None, offset: int) -> TaskPlan:
    """``limit``: None or -1 all, 0 < x < 1 a share of this task rounded up, >= 1 a count; from ``offset`` on.

    Raises:
        UsageError: the offset lies beyond the task's documents.
    """
    total = len(task)
    if offset >= total > 0 and offset:
        raise UsageError(f"--offset {offset}: task {task.name!r} has only {total} documents")
    count = get_sample_size(total, limit)
    return TaskPlan(task, range(offset, total if count is None else min(total, offset + count)), total)


def ordered(plans: Sequence[TaskPlan]) -> Iterator[Unit]:
    """All documents, task after task, costliest first within a window: the same in every process of a launch."""
    for plan in plans:
        for start in range(0, len(plan.doc_ids), COST_WINDOW):
            window = plan.doc_ids[start : start + COST_WINDOW]
            costs = plan.task.costs(window)
            for number in sorted(range(len(window)), key=lambda number: (-costs[number], window[number])):
                yield Unit(plan.task, window[number], plan.task.repeats)


def units(plans: Sequence[TaskPlan], is_done: Mapping[str, Any]) -> Iterator[Unit]:
    """Documents still to do. ``is_done`` maps a task's name to the ids of documents whose scores the journal holds."""
    return (unit for unit in ordered(plans) if unit.doc_id not in is_done.get(unit.task.name, ()))


def shared_units(
    plans: Sequence[TaskPlan], is_done: Mapping[str, Any], next_block: Callable[[int], range]
) -> Iterator[Unit]:
    """Documents still to do out of the blocks that this process takes from the common order, as it gets to them."""
    order, position = ordered(plans), 0
    total = sum(plan.requested for plan in plans)
    while block := next_block(total):
        for unit in islice(order, block.start - position, block.stop - position):
            if unit.doc_id not in is_done.get(unit.task.name, ()):
                yield unit
        position = block.stop


def run_key(parts: Mapping[str, Any]) -> str:
    """16 hex digits over everything that can change an answer (engine rules §3)."""
    canonical = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=_canonical)
    return hashlib.sha256(canonical).hexdigest()[:16]


def _canonical(value: Any) -> Any:
    """The same in every process: sets have an order of their own in each, objects an address."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return _ADDRESS.sub("", str(value))
