"""``--sample N:neyman``: a random sample over strata of the documents' expected scores (``--anchors``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import orjson

from lmms_eval.engine.headline import HeadlinePart, RandomOrder
from lmms_eval.engine.looks import headline_metric
from lmms_eval.engine.plan import Drawn, TaskPlan, draw_place
from lmms_eval.errors import UsageError
from lmms_eval.evaluation.anchors import read_anchors
from lmms_eval.evaluation.sampling import weighted_parts
from lmms_eval.stats.finite import LEAST_DRAWN, strata_by_spread
from lmms_eval.stats.labelled import allocate
from lmms_eval.storage.atomic import write_atomically
from lmms_eval.storage.lines import read_sealed, sealed
from lmms_eval.utils.numbers import SHARES

DRAW = "draw.json"
"""File of the run's folder."""


def drawn_by_anchors(option: str, plans: Sequence[TaskPlan], size: int, seed: int) -> tuple[TaskPlan, ...]:
    """Draw documents of each task by strata of the scores that earlier runs predict, by Neyman's allocation.

    The predictions only decide which documents have which chance. Since these chances are known, the score over the
    list and its interval hold whatever the predictions are worth.

    Args:
        option: value of ``--anchors``.
        plans: the tasks; those with no more documents than ``size`` stay whole.
        size: number of documents to draw of each task.
        seed: seed of the draw.

    Raises:
        UsageError: a number of a task is no mean of documents, or the predictions make no strata.
        DataError: an earlier run cannot be read, or is no run of these tasks.
    """
    if not option:
        raise UsageError("--sample N:neyman: name the earlier runs with --anchors RUN[,RUN...]")
    asked = {plan.task.name: plan for plan in plans if plan.requested > size}
    parts = {name: _part(plan, size) for name, plan in asked.items()}
    if not parts:
        return tuple(plans)
    anchors = read_anchors(option, parts.values(), asked, RandomOrder(seed))
    return tuple(
        _drawn(plan, anchors[parts[plan.task.name].key].shares, anchors[parts[plan.task.name].key].runs, size, seed)
        if plan.task.name in parts
        else plan
        for plan in plans
    )


def _part(plan: TaskPlan, size: int) -> HeadlinePart:
    """Return the headline number of a task. Raises ``UsageError`` if one of its numbers cannot be weighted."""
    option, task = f"--sample {size}:neyman", plan.task
    if headline_metric(task).macro_scale:
        raise UsageError(
            f"{option}: {headline_metric(task).name} of task {task.name!r} is a mean over strata of its own, which "
            f"anchors cannot divide; give --sample {size}:stratified"
        )
    found = weighted_parts(plan)
    if isinstance(found, str):
        raise UsageError(
            f"{option}: documents are drawn with unequal chances, and {found}, so it cannot be weighted; give "
            f"--sample {size}"
        )
    return found[0]


def _drawn(plan: TaskPlan, shares: Mapping[int, float], runs: Sequence[str], size: int, seed: int) -> TaskPlan:
    order = sorted(plan.doc_ids, key=partial(draw_place, f"{seed}:{plan.task.name}"))
    numbers = strata_by_spread([shares[doc_id] for doc_id in order], size)
    members: list[list[int]] = [[] for _ in range(max(numbers) + 1)]
    for number, doc_id in zip(numbers, order, strict=True):
        members[number].append(doc_id)
    if len(members) < 2:
        alike = len({*shares.values()}) < 2
        why = "the earlier scores are the same for all documents" if alike else (
            f"the earlier scores divide them into no two parts with {LEAST_DRAWN} documents each"
        )  # fmt: skip
        raise UsageError(
            f"--sample {size}:neyman: {why} ({plan.task.name}: {plan.requested:,} documents), so there are no strata "
            f"to draw from; give --sample {size}, or other runs to --anchors"
        )
    of_strata = [[shares[doc_id] for doc_id in each] for each in members]
    counts = allocate(
        size, [len(each) for each in members], [sum(each) / len(each) for each in of_strata], SHARES, worth=1.0
    ).labels
    names = [f"{number}: g from {min(each):.3f} to {max(each):.3f}" for number, each in enumerate(of_strata, start=1)]
    drawn = Drawn(
        seed,
        {name: len(each) for name, each in zip(names, members, strict=True)},
        {name: each[:count] for name, each, count in zip(names, members, counts, strict=True)},
        tuple(runs),
    )
    return TaskPlan(plan.task, drawn.doc_ids, plan.original, drawn)


def keep_draw(folder: Path, plans: Sequence[TaskPlan]) -> None:
    """Write the draw into the run's folder, for ``lmms-eval score``. Raises ``JournalError`` if that is impossible."""
    draws = {
        plan.task.name: {
            "seed": one.seed,
            "runs": list(one.runs),
            "digest": one.digest,
            "strata": [[name, size, list(one.order[name])] for name, size in one.sizes.items()],
        }
        for plan in plans
        if (one := plan.sample) is not None and one.runs
    }
    write_atomically(folder / DRAW, sealed(orjson.dumps({"draws": draws})))


def drawn_earlier(folder: Path, plans: Sequence[TaskPlan]) -> tuple[TaskPlan, ...]:
    """Return the plans with the draw that a run's folder keeps.

    Raises:
        UsageError: the file is missing or damaged.
    """
    record = read_sealed(folder / DRAW)
    if record is None:
        raise UsageError(f"{folder / DRAW} is missing or damaged, so the strata of this run's sample are not known")
    found = []
    for plan in plans:
        kept = record["draws"].get(plan.task.name)
        if kept is not None:
            sizes = {name: size for name, size, _ in kept["strata"]}
            drawn = Drawn(kept["seed"], sizes, {name: ids for name, _, ids in kept["strata"]}, tuple(kept["runs"]))
            plan = TaskPlan(plan.task, drawn.doc_ids, plan.original, drawn)
        found.append(plan)
    return tuple(found)
