"""The plan phase: chooses the documents of each task and their order, and computes the run key."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import nsmallest
from itertools import islice
from typing import Any, Literal

import orjson
from msgspec import Struct

from lmms_eval.api.task import Sample, Task
from lmms_eval.engine.conversations import Unit
from lmms_eval.errors import UsageError
from lmms_eval.utils import get_sample_size
from lmms_eval.utils.records import to_dict

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
COST_WINDOW = 4096
"""Number of documents of a task that are sorted by cost together, so that long ones start early."""


class Drawn(Struct, frozen=True):
    """A random sample of a list of documents."""

    seed: int
    sizes: Mapping[str, int]
    """Number of documents of the list, by stratum; of a plain sample, the only stratum is ``""``."""
    order: Mapping[str, Sequence[int]]
    """The drawn documents in the order of the draw, by stratum."""
    runs: Sequence[str] = ()
    """Earlier runs whose scores made the strata (Neyman's allocation). Each stratum then weighs as much as its size."""

    @property
    def of(self) -> int:
        """Number of documents of the list."""
        return sum(self.sizes.values())

    @property
    def design(self) -> Literal["simple", "stratified", "neyman"]:
        if self.runs:
            return "neyman"
        return "simple" if "" in self.sizes else "stratified"

    @property
    def digest(self) -> str:
        """SHA-256 of the draw."""
        return run_key({"sizes": self.sizes, "order": self.order}, digits=64)

    @property
    def doc_ids(self) -> list[int]:
        """The drawn documents in ascending order."""
        return sorted(doc_id for each in self.order.values() for doc_id in each)


def sample_mark(asked: int, of: int) -> str:
    """Return the text to show with numbers of a random sample."""
    return f"random sample: {asked:,} of {of:,}"


class TaskPlan(Struct, frozen=True):
    """The documents of one task in this run."""

    task: Task
    doc_ids: Sequence[int]
    """Document numbers in ascending order."""
    original: int
    """Number of documents of the whole split."""
    sample: Drawn | None = None
    """How the documents were drawn (``--sample``)."""

    @property
    def requested(self) -> int:
        return len(self.doc_ids)


def plan_task(task: Task, limit: float | None, offset: int, chosen: Sequence[int] | None = None) -> TaskPlan:
    """Choose the documents of a task.

    Args:
        task: the loaded task.
        limit: None or -1: all documents; 0 < x < 1: a share, rounded up; >= 1: a number of documents.
        offset: number of documents to skip.
        chosen: documents to choose from, in ascending order; ``None``: all. If the task has a sample, only its
            documents count. ``limit`` and ``offset`` apply to the remaining documents.

    Raises:
        UsageError: the offset is beyond the task's documents.
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


def sampled(plan: TaskPlan, size: int, is_stratified: bool, seed: int) -> TaskPlan:
    """Return the plan with a random sample of its documents; unchanged if it has no more than ``size``.

    The sample has the first documents of the random order of ``--order random``, so a larger one contains a smaller
    one. Of each stratum it has a number in proportion to its size, but at least two, or all.

    Raises ``UsageError`` if the task has no strata, or too many for the sample.
    """
    if plan.requested <= size:
        return plan
    order = sorted(plan.doc_ids, key=partial(draw_place, f"{seed}:{plan.task.name}"))
    if not is_stratified:
        made = Drawn(seed, {"": len(order)}, {"": order[:size]})
        return TaskPlan(plan.task, made.doc_ids, plan.original, made)
    names = plan.task.strata(order)
    if names is None:
        raise UsageError(
            f"--sample {size}:stratified: task {plan.task.name!r} has no strata (strata: COLUMN in its metric_list "
            f"states them); give --sample {size}"
        )
    members: dict[str, list[int]] = {}
    for name, doc_id in zip(names, order, strict=True):
        members.setdefault(name, []).append(doc_id)
    counts = _allocated({name: len(each) for name, each in members.items()}, size)
    if counts is None:
        raise UsageError(
            f"--sample {size}:stratified: task {plan.task.name!r} has {len(members)} strata, and each needs two "
            "documents for an interval; give a larger number, or leave out stratified"
        )
    sizes = {name: len(each) for name, each in members.items()}
    made = Drawn(seed, sizes, {name: each[: counts[name]] for name, each in members.items()})
    return TaskPlan(plan.task, made.doc_ids, plan.original, made)


def _allocated(sizes: Mapping[str, int], size: int) -> dict[str, int] | None:
    """Divide a sample among strata in proportion to their sizes, with two of each at least; ``None``: too few.

    The remaining documents go to the strata with the largest remainders.
    """
    counts = {name: min(2, whole) for name, whole in sizes.items()}
    left = size - sum(counts.values())
    if left < 0:
        return None
    total = sum(sizes.values())
    wanted = {name: size * whole / total for name, whole in sizes.items()}
    for _ in range(left):
        open_ones = [name for name in sizes if counts[name] < sizes[name]]
        counts[max(open_ones, key=lambda name: (wanted[name] - counts[name], name))] += 1
    return counts


def drawn(sample: Sample, total: int) -> list[int]:
    """Draw documents without replacement; all documents if there are no more than the sample's size.

    Documents are ordered by a hash of seed and number. So the draw does not depend on a random number generator, and a
    larger sample contains a smaller one.
    """
    return sorted(nsmallest(sample.size, range(total), key=partial(draw_place, sample.seed)))


def draw_place(seed: int | str, doc_id: int) -> bytes:
    """Return the sort key of a document in a random order that is the same in all processes and on all machines."""
    return hashlib.sha256(f"{seed}:{doc_id}".encode()).digest()


Order = Callable[[int], Sequence[int]]
"""Function that returns the documents of the window with this number in the order of asking."""


def windows(plans: Sequence[TaskPlan]) -> Iterator[TaskPlan]:
    """Yield all documents, task after task, in windows that are sorted one by one."""
    for plan in plans:
        for start in range(0, len(plan.doc_ids), COST_WINDOW):
            yield TaskPlan(plan.task, plan.doc_ids[start : start + COST_WINDOW], plan.original)


def costliest_first(window: TaskPlan) -> list[int]:
    """Sort the documents of a window by the task's estimate of their cost, then by number."""
    costs = window.task.costs(window.doc_ids)
    places = sorted(range(len(costs)), key=lambda place: (-costs[place], window.doc_ids[place]))
    return [window.doc_ids[place] for place in places]


def ordered(plans: Sequence[TaskPlan], order: Order | None = None) -> Iterator[Unit]:
    """Yield all documents, window after window, by default the costliest first; a window is sorted when reached."""
    for number, window in enumerate(windows(plans)):
        for doc_id in costliest_first(window) if order is None else order(number):
            yield Unit(window.task, doc_id, window.task.repeats)


def units(documents: Iterable[Unit], is_done: Mapping[str, Any]) -> Iterator[Unit]:
    """Yield the unfinished documents; ``is_done`` maps a task's name to the numbers of its finished documents."""
    return (unit for unit in documents if unit.doc_id not in is_done.get(unit.task.name, ()))


def shared_units(
    documents: Iterator[Unit], total: int, is_done: Mapping[str, Any], next_block: Callable[[int], range]
) -> Iterator[Unit]:
    """Yield the unfinished documents of the blocks that this process takes, one at a time.

    ``documents`` are all documents, in the same order in every process; ``next_block`` takes the next block.
    """
    position = 0
    while block := next_block(total):
        yield from units(islice(documents, block.start - position, block.stop - position), is_done)
        position = block.stop


def dealt_units(documents: Iterable[Unit], is_done: Mapping[str, Any], place: tuple[int, int]) -> Iterator[Unit]:
    """Yield the unfinished documents that are dealt in turn to this process of a lockstep launch (rank and size)."""
    rank, size = place
    return islice(units(documents, is_done), rank, None, size)


def run_key(parts: Mapping[str, Any], digits: int = 16) -> str:
    """Return the run key: hexadecimal digits over everything that can change an answer (engine rules §3)."""
    canonical = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=_canonical)
    return hashlib.sha256(canonical).hexdigest()[:digits]


def _canonical(value: Any) -> Any:
    """Convert a value to a form that is equal in all processes: sorts sets, and removes addresses of objects."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, Struct):
        return to_dict(value)
    return _ADDRESS.sub("", str(value))
