"""Opening the data of the chosen tasks; what a group names without its data being here is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loguru import logger

from lmms_eval.api.task import Selection, Task
from lmms_eval.errors import AbsentDataError, LmmsEvalError, TaskError


def load_tasks(selection: Selection) -> Selection:
    """Open the data of all tasks. What a group names of a benchmark whose data are there in part only is left out.

    Raises:
        AbsentDataError: a task that was named itself has no data, or none has.
        DataError: data are damaged. TaskError: a task's own functions raised.
    """
    absent: dict[str, AbsentDataError] = {}
    for task in selection.tasks:
        try:
            _load(task)
        except AbsentDataError as error:
            if task.name in selection.direct:
                raise
            absent[task.name] = error
    if not absent:
        return selection
    if len(absent) == len(selection.tasks):
        raise next(iter(absent.values()))
    logger.warning("{} of {} tasks are left out: no data here; {}", len(absent), len(selection.tasks), _why(absent))
    return _without(selection, absent)


def _why(absent: Mapping[str, AbsentDataError]) -> str:
    name, error = next(iter(absent.items()))
    return f"{name}: {error}" + (f" (and {len(absent) - 1} more)" if len(absent) > 1 else "")


def _without(selection: Selection, absent: Mapping[str, Any]) -> Selection:
    """The selection without some tasks, and without the groups that are empty then."""
    gone = set(absent)
    groups = list(selection.groups)
    while True:
        kept = [replace(one, children=tuple(child for child in one.children if child not in gone)) for one in groups]
        empty = {group.name for group in kept if not group.children}
        groups = [group for group in kept if group.children]
        if not empty:
            break
        gone |= empty
    return Selection(
        tuple(task for task in selection.tasks if task.name not in absent), tuple(groups), selection.direct
    )


def _load(task: Task) -> None:
    try:
        task.load()
    except LmmsEvalError:
        raise
    except Exception as error:  # process_docs and the like are the task's own code
        raise TaskError(
            f"task {task.name!r}: preparing its data raised {type(error).__name__}: {error}; see the task's own "
            "functions (process_docs); --verbosity DEBUG shows where"
        ) from error
