"""The Python API: ``run`` for a configuration, ``simple_evaluate`` with the family's arguments."""

from __future__ import annotations

from typing import Any, Unpack

from lmms_eval.api.model import Model, lmms
from lmms_eval.config import build_config
from lmms_eval.config.keywords import EvaluateArguments
from lmms_eval.errors import ConfigError
from lmms_eval.evaluation.run import RunReport, run
from lmms_eval.tasks import TaskManager

__all__ = ["RunReport", "run", "simple_evaluate"]

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
    values: dict[str, Any] = {
        name: value for name, value in arguments.items() if name not in _IGNORED and value is not None
    }
    if any(name in values for name in _SEEDS):
        values["seed"] = [values.pop(name, default) for name, default in zip(_SEEDS, _SEED_DEFAULTS, strict=True)]
    if not values.get("output_path"):
        values.pop("log_samples", None)  # samples go to files; without a folder there is nowhere to put them
    name = model if isinstance(model, str) else type(model).__name__.lower()
    if "model" in values:
        raise ConfigError("simple_evaluate: give the model once, as the first argument")
    if task_manager is not None and "include_path" in values:
        raise ConfigError("simple_evaluate: give include_path to the TaskManager, or leave task_manager out")
    config = build_config({**values, "model": name})
    catalogue = None if task_manager is None else task_manager.catalogue
    return run(config, None if isinstance(model, str) else model, catalogue=catalogue).results
