"""The plan phase: which documents of which tasks, in which order, under which key."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from itertools import islice
from typing import Any

import orjson

from lmms_eval.api.task import Sample, Task
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
    doc_ids: Sequence[int]
    """Rising."""
    original: int
    """Documents of the whole split."""

    @property
    def requested(self) -> int:
        return len(self.doc_ids)


def plan_task(task: Task, limit: float | None, offset: int, chosen: Sequence[int] | None = None) -> TaskPlan:
    """``limit``: None or -1 all, 0 < x < 1 a share of this task rounded up, >= 1 a count; from ``offset`` on.

    Of a task that draws a sample, both count among the documents drawn; so they do among those that are ``chosen``
    (rising; ``None``: all).

    Raises:
        UsageError: the offset lies beyond the task's documents.
    """
    whole = len(task)
    asked: Sequence[int] = range(whole) if task.sample is None else drawn(task.sample, whole)
    if chosen is not None:
        among = set(asked)
        asked = [doc_id for doc_id in chosen if doc_id in among]
    total = len(asked)
    if offset >= total > 0 and offset:
        raise UsageError(f"--offset {offset}: task {task.name!r} has only {total} documents")
    count = get_sample_size(total, limit)
    return TaskPlan(task, asked[offset : total if count is None else offset + count], whole)


def drawn(sample: Sample, total: int) -> list[int]:
    """Draw documents without replacement, by the order of a digest over seed and number, so that the draw depends on
    no generator, and a larger sample holds a smaller one; all documents where there are no more than its size."""

    return sorted(nsmallest(sample.size, range(total), key=partial(draw_place, sample.seed)))


def draw_place(seed: int | str, doc_id: int) -> bytes:
    """The place of a document in a random order that every process, every start and every machine has alike."""
    return hashlib.sha256(f"{seed}:{doc_id}".encode()).digest()


@dataclass(frozen=True, slots=True)
class Window:
    """Documents of a task that are put in order together."""

    number: int
    """Among all windows of the run."""
    task: Task
    doc_ids: Sequence[int]


Order = Callable[[Window], Sequence[int]]
"""The documents of a window in the order in which they are asked."""


def windows(plans: Sequence[TaskPlan]) -> Iterator[Window]:
    """All documents, task after task."""
    number = 0
    for plan in plans:
        for start in range(0, len(plan.doc_ids), COST_WINDOW):
            yield Window(number, plan.task, plan.doc_ids[start : start + COST_WINDOW])
            number += 1


def costliest_first(window: Window) -> list[int]:
    """By the task's own estimate; equal ones by their number."""
    costs = window.task.costs(window.doc_ids)
    places = sorted(range(len(costs)), key=lambda place: (-costs[place], window.doc_ids[place]))
    return [window.doc_ids[place] for place in places]


def ordered(plans: Sequence[TaskPlan], order: Order = costliest_first) -> Iterator[Unit]:
    """All documents, window after window; a window is put in order when it is reached."""
    for window in windows(plans):
        for doc_id in order(window):
            yield Unit(window.task, doc_id, window.task.repeats)


def units(documents: Iterable[Unit], is_done: Mapping[str, Any]) -> Iterator[Unit]:
    """Documents still to do. ``is_done`` maps a task's name to the ids of documents whose scores the journal holds."""
    return (unit for unit in documents if unit.doc_id not in is_done.get(unit.task.name, ()))


def shared_units(
    documents: Iterator[Unit], total: int, is_done: Mapping[str, Any], next_block: Callable[[int], range]
) -> Iterator[Unit]:
    """Documents still to do out of the blocks that this process takes from the common order, as it gets to them.

    ``documents``: all, ``total`` of them, in an order that must be the same in every process.
    """
    position = 0
    while block := next_block(total):
        yield from units(islice(documents, block.start - position, block.stop - position), is_done)
        position = block.stop


def dealt_units(documents: Iterable[Unit], is_done: Mapping[str, Any], place: tuple[int, int]) -> Iterator[Unit]:
    """Documents still to do, dealt out in turn to processes that work in lockstep; ``place``: rank and size."""
    rank, size = place
    return islice(units(documents, is_done), rank, None, size)


def run_key(parts: Mapping[str, Any]) -> str:
    """16 hex digits over everything that can change an answer (engine rules §3)."""
    canonical = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=_canonical)
    return hashlib.sha256(canonical).hexdigest()[:16]


def _canonical(value: Any) -> Any:
    """The same in every process: sets have an order of their own in each, objects an address."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return _ADDRESS.sub("", str(value))
