"""The random order of documents, in which what is finished so far is a sample of each task and each group."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge

from lmms_eval.engine.conversations import Unit
from lmms_eval.engine.plan import TaskPlan, draw_place

RANDOM, STRATA = "random:", "strata:"
"""Beginnings of the names of orders: of all documents of a task, and of those of each stratum."""


@dataclass(frozen=True, slots=True)
class RandomOrder:
    """A random order of each task's documents, fixed by a seed, the task's name and the documents' numbers alone.

    Of a task with strata each of these is in random order, and they come at an even pace: their interval is then
    tightest, and which stratum is next does not depend on any answer.
    """

    seed: int = 0

    def of(self, plan: TaskPlan) -> list[int]:
        """The documents of a task in this order; without strata those of another selection are in the same one."""
        order = sorted(plan.doc_ids, key=partial(draw_place, f"{self.seed}:{plan.task.name}"))
        names = plan.task.strata(order)
        if names is None:
            return order
        strata: dict[str, list[int]] = {}
        for name, doc_id in zip(names, order, strict=True):
            strata.setdefault(name, []).append(doc_id)
        return [doc_id for _, doc_id in interleaved(strata)]

    def name(self, plan: TaskPlan) -> str:
        """Name of the order of a task's documents: where it is the same, so are the first documents."""
        names = plan.task.strata(plan.doc_ids)
        content = ",".join(map(str, plan.doc_ids)) + ("" if names is None else json.dumps([*names]))
        digest = hashlib.sha256(content.encode()).hexdigest()
        return f"{RANDOM if names is None else STRATA}{self.seed}:{digest[:8]}"

    def units(self, plans: Sequence[TaskPlan]) -> Iterator[Unit]:
        """All documents of a run."""
        tasks = {plan.task.name: plan.task for plan in plans}
        for name, doc_id in interleaved({plan.task.name: self.of(plan) for plan in plans}):
            yield Unit(tasks[name], doc_id, tasks[name].repeats)


def interleaved(orders: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, int]]:
    """Merge the documents of several tasks or strata, so that at any place about the same share of each has come.

    Of fewer of these tasks the order is the same with the others left out.
    """

    def places(name: str, doc_ids: Sequence[int]) -> Iterator[tuple[float, str, int]]:
        return (((number + 0.5) / len(doc_ids), name, doc_id) for number, doc_id in enumerate(doc_ids))

    for _, name, doc_id in merge(*(places(name, doc_ids) for name, doc_ids in orders.items())):
        yield name, doc_id


def place_in(order: str, task: str, doc_id: str) -> bytes:
    """The place of a document in an order of that name (``RandomOrder.name``); documents are asked by rising place.

    Raises:
        ValueError: the name, or the document, is none of a random order.
    """
    kind, seed, *_ = [*order.split(":"), ""]
    if f"{kind}:" != RANDOM:
        raise ValueError(f"no random order: {order}")
    return draw_place(f"{int(seed)}:{task}", int(doc_id))
