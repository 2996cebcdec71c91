"""The outline of a run for those who watch it: its tasks, their sizes, and the numbers that may have an interval.

It is written once, before anything is asked. Whoever watches gets the scores from the journals, and with the order of
the documents the same interval as the run itself, at no cost to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from lmms_eval.engine.early import Sampling
from lmms_eval.engine.headline import Part
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.storage.atomic import replacing
from lmms_eval.storage.lines import sealed, unsealed
from lmms_eval.utils.numbers import ScoreRange

OUTLINE = "outline.json"
OF_A_CONTROL = "the task is asked otherwise, as a control"
NOT_RANDOM = "documents are not asked in a random order (--order random)"

_FLAT = (
    *("task", "metric", "filter", "score_key", "weight"),
    *("in_percent", "is_binary", "is_clustered", "is_macro", "scale"),
)


@dataclass(frozen=True, slots=True)
class TaskOutline:
    """One task of a run."""

    requested: int
    order: Sequence[int] = ()
    """Its documents in random order; empty where there is no such order."""
    part: Part | None = None
    """The number that is looked at; ``None`` where it has no interval before the end."""
    reason: str = NOT_RANDOM
    """Reason for which it has none."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The tasks of a run, and the number of the whole."""

    tasks: Mapping[str, TaskOutline] = field(default_factory=dict)
    whole: tuple[Part, ...] = ()
    """Parts of the number that the run itself shows while it goes on; empty where it has no interval."""


def outline_of(plans: Sequence[TaskPlan], sampling: Sampling | None, parts: Mapping[str, Part | str]) -> Outline:
    """Make the outline of a run.

    Args:
        plans: the tasks.
        sampling: the random order; ``None`` without one.
        parts: by task the part that is looked at, or the reason for which it has no interval.
    """
    tasks = {}
    for plan in plans:
        part = NOT_RANDOM if sampling is None else parts.get(plan.task.name, OF_A_CONTROL)
        if sampling is None or isinstance(part, str):
            tasks[plan.task.name] = TaskOutline(plan.requested, reason=str(part))
        else:
            tasks[plan.task.name] = TaskOutline(plan.requested, sampling.order.of(plan), part, "")
    return Outline(tasks, () if sampling is None else sampling.shown)


def write_outline(folder: Path, outline: Outline) -> None:
    """Write the outline into a run's folder. Raises ``OSError``."""
    tasks = {name: _task_record(task) for name, task in outline.tasks.items()}
    content = {"tasks": tasks, "whole": [_part_record(part) for part in outline.whole]}
    with replacing(folder / OUTLINE, survives_power_loss=False) as file:
        file.write(sealed(orjson.dumps(content)))


def read_outline(folder: Path) -> Outline:
    """Read the outline of a run; without tasks if there is none, or none that can be relied on."""
    try:
        content = unsealed((folder / OUTLINE).read_bytes())
        told = orjson.loads(content) if content is not None else {"tasks": {}, "whole": []}
        orders = {name: task["order"] for name, task in told["tasks"].items()}
        strata = {name: task["strata"] for name, task in told["tasks"].items()}

        def part(record: Mapping[str, Any]) -> Part:
            return _part(record, _by_document(orders[record["task"]], strata[record["task"]]))

        tasks = {
            name: TaskOutline(task["requested"], task["order"], task["part"] and part(task["part"]), task["reason"])
            for name, task in told["tasks"].items()
        }
        return Outline(tasks, tuple(part(one) for one in told["whole"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return Outline()


def _task_record(task: TaskOutline) -> dict[str, Any]:
    strata = None if task.part is None or task.part.strata is None else [task.part.strata[doc] for doc in task.order]
    part = None if task.part is None else _part_record(task.part)
    return {
        "requested": task.requested, "order": list(task.order), "strata": strata, "part": part, "reason": task.reason
    }  # fmt: skip


def _part_record(part: Part) -> dict[str, Any]:
    return {name: getattr(part, name) for name in _FLAT} | {"within": [part.within.low, part.within.high]}


def _part(record: Mapping[str, Any], strata: Mapping[int, str] | None) -> Part:
    low, high = record["within"]
    return Part(**{name: record[name] for name in _FLAT}, within=ScoreRange(low, high), strata=strata)


def _by_document(order: Sequence[int], names: Sequence[str] | None) -> dict[int, str] | None:
    return None if names is None else dict(zip(order, names, strict=True))
