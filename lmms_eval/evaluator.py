"""The Python API: ``run`` for a configuration, ``simple_evaluate`` and ``evaluate`` with the family's arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

from lmms_eval.api.model import Model, lmms
from lmms_eval.api.task import Task
from lmms_eval.config import RunConfig, build_config
from lmms_eval.config.keywords import EvaluateArguments
from lmms_eval.errors import ConfigError
from lmms_eval.evaluation.inputs import Start
from lmms_eval.evaluation.run import Run, RunReport, run
from lmms_eval.tasks import TaskManager

__all__ = ["RunReport", "evaluate", "run", "simple_evaluate"]

_SEEDS = ("random_seed", "numpy_random_seed", "torch_random_seed", "fewshot_random_seed")
_SEED_DEFAULTS = (0, 1234, 1234, 1234)
_IGNORED = frozenset(
    {
        "check_integrity", "cli_args", "datetime_str", "delete_requests_cache", "distributed_executor_backend",
        "evaluation_tracker", "rewrite_requests_cache",
    }
)  # fmt: skip
"""Arguments of the family's function that have no meaning here; they are accepted so that calls keep working."""


def simple_evaluate(
    model: str | Model | lmms, *, task_manager: TaskManager | None = None, **arguments: Unpack[EvaluateArguments]
) -> dict[str, Any]:
    """Evaluate and return the results document.

    ``model`` is a name or a model object (which stays usable afterwards). Further arguments are the options of
    ``lmms-eval eval`` by name, and the four seeds by the family's names (``EvaluateArguments``: type checkers see wrong
    ones). ``task_manager`` says where tasks are found, in place of ``include_path``. The API scores as the command line
    does: reasoning tags are stripped, media columns are not read for scoring.

    Raises:
        LmmsEvalError: as ``run``.
    """
    if task_manager is not None and arguments.get("include_path") is not None:
        raise ConfigError("simple_evaluate: give include_path to the TaskManager, or leave task_manager out")
    config = _config("simple_evaluate", model, arguments)
    catalogue = None if task_manager is None else task_manager.catalogue
    return run(config, None if isinstance(model, str) else model, catalogue=catalogue).results


def evaluate(
    lm: str | Model | lmms, task_dict: Mapping[Any, Any], **arguments: Unpack[EvaluateArguments]
) -> dict[str, Any]:
    """Evaluate a model on tasks that a program has, and return the results document.

    Args:
        lm: a model object (which stays usable afterwards), or a model's name.
        task_dict: tasks by name, as ``get_task_dict`` gives them; mappings within it (a group's tasks) are opened.
            Tasks of the index are built anew with the arguments of this call, as ``simple_evaluate`` would build them.
        arguments: as of ``simple_evaluate``, without ``tasks`` and ``include_path``.

    Raises:
        LmmsEvalError: as ``run``.
    """
    for name in ("tasks", "include_path"):
        if arguments.get(name) is not None:
            raise ConfigError(f"evaluate: the tasks are those of task_dict; leave {name} out, or use simple_evaluate")
    tasks: dict[str, Task] = {}
    for task in _tasks(task_dict):
        if tasks.setdefault(task.name, task) is not task:
            raise ConfigError(f"evaluate: task_dict has two tasks of the name {task.name!r}")
    if not tasks:
        raise ConfigError("evaluate: task_dict holds no task; lmms_eval.tasks.get_task_dict makes one")
    config = _config("evaluate", lm, {**arguments, "tasks": list(tasks)})
    return Run(config, None if isinstance(lm, str) else lm, Start(tasks=tuple(tasks.values()))).report().results


def _tasks(found: Mapping[Any, Any]) -> Iterator[Task]:
    for name, value in found.items():
        if isinstance(value, Task):
            yield value
        elif isinstance(value, Mapping):
            yield from _tasks(value)
        else:
            raise ConfigError(
                f"evaluate: task_dict[{name!r}] is a {type(value).__name__}, no lmms_eval.api.task.Task; "
                "lmms_eval.tasks.get_task_dict makes tasks of names and configurations"
            )


def _config(function: str, model: str | Model | lmms, arguments: Mapping[str, Any]) -> RunConfig:
    """The options of a call by the family's names as a configuration."""
    values = {name: value for name, value in arguments.items() if name not in _IGNORED and value is not None}
    if any(name in values for name in _SEEDS):
        values["seed"] = [values.pop(name, default) for name, default in zip(_SEEDS, _SEED_DEFAULTS, strict=True)]
    if not values.get("output_path"):
        for name in ("log_samples", "report"):  # both go to files; without a folder there is nowhere to put them
            values.pop(name, None)
    if "model" in values:
        raise ConfigError(f"{function}: give the model once, as the first argument")
    return build_config({**values, "model": model if isinstance(model, str) else type(model).__name__.lower()})
