"""The Python API: ``run`` takes a configuration, ``simple_evaluate`` and ``evaluate`` the family's arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

from msgspec import structs

from lmms_eval.api.model import Model, lmms
from lmms_eval.api.task import Task
from lmms_eval.config import RunConfig, build_config, check_config, check_names, load_configs
from lmms_eval.config.keywords import EvaluateArguments
from lmms_eval.errors import ConfigError
from lmms_eval.evaluation.inputs import Start
from lmms_eval.evaluation.record import RunReport
from lmms_eval.evaluation.run import EvaluationRun, run
from lmms_eval.tasks import Catalogue, TaskManager, select_tasks
from lmms_eval.tasks.manager import task_of_mapping
from lmms_eval.utils.arguments import DEFAULT_SEEDS

__all__ = ["RunReport", "evaluate", "run", "simple_evaluate"]

SEEDS = ("random_seed", "numpy_random_seed", "torch_random_seed", "fewshot_random_seed")
IGNORED = {
    "cli_args": "Any",
    "datetime_str": "str | None",
    "delete_requests_cache": "bool | None",
    "distributed_executor_backend": "str | None",
    "evaluation_tracker": "Any",
    "rewrite_requests_cache": "bool | None",
}
"""Arguments of the family's functions that are not options, with their types. Existing calls with them keep working."""


def simple_evaluate(
    model: str | Model | lmms, *, task_manager: TaskManager | None = None, **arguments: Unpack[EvaluateArguments]
) -> dict[str, Any]:
    """Evaluate and return the results document.

    ``model`` is a name or a model object, which stays usable afterwards. The other arguments are the options of
    ``lmms-eval eval`` by name, and the four seeds by the family's names; ``EvaluateArguments`` lists them for type
    checkers. ``tasks`` may also hold configurations (mappings, which may contain functions) and ``Task`` objects.
    ``task_manager`` finds the tasks and replaces ``include_path``. The API scores as the command line does: it strips
    reasoning tags and does not read media columns for scoring. With ``log_samples`` or ``predict_only``, the document
    has the rows of the samples files under ``samples``, by task.

    Raises:
        LmmsEvalError: as ``run``.
    """
    if task_manager is not None and arguments.get("include_path") is not None:
        raise ConfigError("simple_evaluate: give include_path to the TaskManager, or leave task_manager out")
    tracker = arguments.get("evaluation_tracker")
    if tracker is not None:
        tracker.general_config_tracker.log_experiment_args(
            model_source=model if isinstance(model, str) else type(model).__name__.lower(),
            model_args=arguments.get("model_args") or "",
            system_instruction=arguments.get("system_instruction"),
            fewshot_as_multiturn=arguments.get("fewshot_as_multiturn"),
        )
    catalogue = None if task_manager is None else task_manager.catalogue
    made = _made(arguments.get("tasks"), task_manager or arguments.get("include_path"))
    named: dict[str, Any] = {"tasks": [task.name for task in made], "include_path": None} if made else {}
    results = _run("simple_evaluate", model, {**arguments, **named}, None if made else catalogue, made)
    if tracker is not None:
        tracker.general_config_tracker.log_end_time()
    return results


def _made(tasks: Any, place: TaskManager | Any) -> list[Task]:
    """Build the tasks if any of them is not a name. The run builds them again, so their data are not opened here.

    Args:
        tasks: names, configurations and tasks. A mapping without the key ``task`` selects names.
        place: finds the tasks: a manager, or ``include_path``.
    """
    if isinstance(tasks, Task) or (isinstance(tasks, Mapping) and isinstance(tasks.get("task"), str)):
        tasks = [tasks]
    if tasks is None or isinstance(tasks, str | Mapping) or all(isinstance(item, str) for item in tasks):
        return []
    manager = place if isinstance(place, TaskManager) else TaskManager(include_path=place)
    options = manager.options("chat")
    made: list[Task] = []
    for item in tasks:
        if isinstance(item, Task):
            made.append(item)
        elif isinstance(item, Mapping):
            made.append(task_of_mapping(item, manager.catalogue, options))
        elif isinstance(item, str):
            made += select_tasks([item], manager.catalogue, options).tasks
        else:
            raise ConfigError(f"simple_evaluate: tasks: {item!r} is neither a name, a configuration nor a Task")
    return made


def _run(
    function: str,
    model: str | Model | lmms,
    arguments: Mapping[str, Any],
    catalogue: Catalogue | None,
    tasks: Sequence[Task],
) -> dict[str, Any]:
    config = _config(function, model, arguments)
    known: dict[str, Task] = {}
    for task in tasks:
        if known.setdefault(task.name, task) is not task:
            raise ConfigError(f"{function}: there are two tasks of the name {task.name!r}")
    returns_samples = bool(arguments.get("log_samples") or config.predict_only)
    start = Start(catalogue=catalogue, tasks=tuple(tasks), returns_samples=returns_samples)
    return EvaluationRun(config, None if isinstance(model, str) else model, start).report().results


def evaluate(
    lm: str | Model | lmms, task_dict: Mapping[Any, Any], **arguments: Unpack[EvaluateArguments]
) -> dict[str, Any]:
    """Evaluate a model on task objects, and return the results document.

    Args:
        lm: a model object (which stays usable afterwards), or a model's name.
        task_dict: tasks by name, as ``get_task_dict`` returns them. It may contain mappings (the tasks of a group).
            Tasks of the index are built again with the arguments of this call, as ``simple_evaluate`` builds them.
        arguments: those of ``simple_evaluate``, without ``tasks`` and ``include_path``.

    Raises:
        LmmsEvalError: as ``run``.
    """
    for name in ("tasks", "include_path"):
        if arguments.get(name) is not None:
            raise ConfigError(f"evaluate: the tasks are those of task_dict; leave {name} out, or use simple_evaluate")
    tasks = list({id(task): task for task in _tasks(task_dict)}.values())
    if not tasks:
        raise ConfigError("evaluate: task_dict holds no task; lmms_eval.tasks.get_task_dict makes one")
    return _run("evaluate", lm, {**arguments, "tasks": [task.name for task in tasks]}, None, tasks)


def _tasks(found: Mapping[Any, Any]) -> Iterator[Task]:
    for name, value in found.items():
        if isinstance(value, Task):
            yield value
        elif isinstance(value, Mapping):
            yield from _tasks(value)
        else:
            raise ConfigError(
                f"evaluate: task_dict[{name!r}] is a {type(value).__name__}, not an lmms_eval.api.task.Task; "
                "lmms_eval.tasks.get_task_dict makes tasks of names and configurations"
            )


def _config(function: str, model: str | Model | lmms, arguments: Mapping[str, Any]) -> RunConfig:
    """Build a configuration from options that have the family's names."""
    values = {
        name: value
        for name, value in arguments.items()
        if not (name in IGNORED or name == "check_integrity" or value is None)
    }
    if any(name in values for name in SEEDS):
        values["seed"] = [values.pop(name, default) for name, default in zip(SEEDS, DEFAULT_SEEDS, strict=True)]
    if not values.get("output_path"):
        for name in ("log_samples", "report"):  # both write files, which need a folder
            values.pop(name, None)
    if "model" in values:
        raise ConfigError(f"{function}: give the model once, as the first argument")
    _set_request_cache(values, arguments)
    values["model"] = model if isinstance(model, str) else type(model).__name__.lower()
    if values.get("output_path") or not values.get("predict_only"):
        return build_config(values)
    check_names(values, "options")
    (config,) = load_configs(values).configs
    return check_config(structs.replace(config, log_samples=False))  # the caller gets the samples, no file is written


def _set_request_cache(values: dict[str, Any], arguments: Mapping[str, Any]) -> None:
    """Translate the family's three switches of the request cache to values of ``cache_requests``."""
    if isinstance(values.get("cache_requests"), bool):
        values["cache_requests"] = "true" if values["cache_requests"] else None
    for name, word in (("rewrite_requests_cache", "refresh"), ("delete_requests_cache", "delete")):
        if arguments.get(name):
            values["cache_requests"] = word
    if values.get("cache_requests", "") is None:
        del values["cache_requests"]
