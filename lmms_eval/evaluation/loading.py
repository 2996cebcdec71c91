"""Opening the data of the chosen tasks; what a group names without its data or files being here is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from loguru import logger

from lmms_eval.api.task import Selection, Task
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.errors import AbsentDataError, FunctionError, LmmsEvalError, TaskError

LOGGED_TASKS, LOGGED_FILES = 20, 3
"""Most tasks whose files are logged, and most files of each."""


def load_tasks(selection: Selection) -> Selection:
    """Open the data of all tasks. What a group names of a benchmark whose data are there in part only is left out.

    Raises:
        AbsentDataError: a task that was named itself has no data, or none has.
        DataError: data are damaged. TaskError: a task's own functions raised.
    """
    absent: dict[str, AbsentDataError] = {}
    for task in selection.tasks:
        try:
            task.load()
        except AbsentDataError as error:
            if task.name in selection.direct:
                raise
            absent[task.name] = error
        except FunctionError as error:
            raise TaskError(f"task {task.name!r}: preparing its data: {error}; --verbosity DEBUG shows more") from error
        except LmmsEvalError:
            raise
        except Exception as error:  # process_docs and the like are the task's own code
            raise TaskError(
                f"task {task.name!r}: preparing its data raised {type(error).__name__}: {error}; see the task's own "
                "functions (process_docs); --verbosity DEBUG shows where"
            ) from error
    return _present(selection, absent)


def log_files(tasks: Sequence[Task]) -> None:
    """Name the local files that are read; those of many tasks are in the results only."""
    read = [task for task in tasks if task.data_files]
    if len(read) > LOGGED_TASKS:
        logger.info("the data of {} tasks are local files; the results name them (data_files)", len(read))
        return
    for task in read:
        more = f" and {len(task.data_files) - LOGGED_FILES} more" if len(task.data_files) > LOGGED_FILES else ""
        logger.info("{}: documents from {}{}", task.name, ", ".join(task.data_files[:LOGGED_FILES]), more)


def with_files(selection: Selection, plans: Sequence[TaskPlan]) -> Selection:
    """Look up the files of all documents that are planned. Tasks that lack some are left out, as ``load_tasks`` does.

    Raises:
        AbsentDataError: tasks that were named themselves lack files, or all do.
    """
    absent: dict[str, AbsentDataError] = {}
    for plan in plans:
        try:
            plan.task.check_files(plan.doc_ids)
        except AbsentDataError as error:
            absent[plan.task.name] = error
    named = [str(error) for name, error in absent.items() if name in selection.direct]
    if named:
        raise AbsentDataError("\n".join(named))
    return _present(selection, absent)


def _present(selection: Selection, absent: Mapping[str, AbsentDataError]) -> Selection:
    """The selection without the absent tasks. Raises ``AbsentDataError`` where none is left."""
    if not absent:
        return selection
    if len(absent) == len(selection.tasks):
        first = next(iter(absent.values()))
        if all(error.kind == first.kind for error in absent.values()):
            raise first
        raise AbsentDataError(f"none of {len(absent)} tasks can be run: {_why(absent)}")
    logger.warning("{} of {} tasks are left out: {}", len(absent), len(selection.tasks), _why(absent))
    return without(selection, absent)


def _why(absent: Mapping[str, AbsentDataError]) -> str:
    """Count the absent ones for each kind of reason, each with an example; the rarest first, which tell most."""
    kinds: dict[str, list[str]] = {}
    for name, error in absent.items():
        kinds.setdefault(error.kind, []).append(f"{name}: {error}")
    parts = sorted(kinds.items(), key=lambda pair: len(pair[1]))
    return "; ".join(f"{len(found)} {kind} ({found[0]}{', ...' if len(found) > 1 else ''})" for kind, found in parts)


def without(selection: Selection, absent: Mapping[str, Any]) -> Selection:
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
