"""Settings that depend on the model and the command line: prompt settings, generation options, shots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.generation import LENGTHS, STOPS
from lmms_eval.api.task import TaskOptions
from lmms_eval.config.options import options as run_options
from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.arguments import check_generation, is_number
from lmms_eval.tasks.yaml.config import GENERATING, TaskConfig


def model_names(options: TaskOptions) -> Sequence[str]:
    """Return the names that may hold a model's settings: as typed first, then the canonical one."""
    return tuple(dict.fromkeys(name for name in (options.model_name, options.model_id) if name))


def specific_kwargs(config: TaskConfig, options: TaskOptions) -> Any:
    """Make ``lmms_eval_specific_kwargs`` for a model.

    The model's own mapping is used alone. Without one, ``default``, else ``dataset``, is merged into the whole mapping.
    Settings of the command line (``--task_kwargs``) override both. Options of the run that the task requests
    (``run_options``) are added by name. A task that requests any, or has settings, also gets the run's ``data_root``.

    Raises:
        TaskError: the run has no such option.
    """
    stated, wanted = config.lmms_eval_specific_kwargs, config.run_options or []
    known = [option.name for option in run_options() if option.for_tasks]
    for name in wanted:
        if name not in known:
            raise TaskError(f"task {config.task}: run_options: there is no {name!r}; there is: {', '.join(known)}")
    asked = {name: options.run_options[name] for name in wanted if name in options.run_options}
    if stated is None and not (options.task_kwargs or asked or (wanted and options.data_root)):
        return None
    stated = stated or {}
    own = _of_model(stated, options)
    if own is not None and not isinstance(own, Mapping):
        return own
    made = dict(own) if own is not None else {**stated, **(spread(stated) or {})}
    made.update(options.task_kwargs)
    made.update(asked)
    # The folder of local data, where functions may look for media.
    return {**made, "data_root": options.data_root} if options.data_root else made


def spread(stated: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the mapping with the items for every model merged in: those of ``default``, else of ``dataset``."""
    for key in ("default", "dataset"):
        if isinstance(stated.get(key), Mapping):
            found: Mapping[str, Any] = stated[key]
            return found
    return None


def recorded_specific_kwargs(stated: Mapping[str, Any] | None, options: TaskOptions) -> dict[str, Any] | None:
    """Return the mapping that ``configs`` records: as written, with the default items merged in if they are used."""
    if stated is None and not options.task_kwargs:
        return None
    recorded = dict(stated or {})
    if _of_model(recorded, options) is None:
        recorded.update(spread(recorded) or {})
    return recorded | dict(options.task_kwargs)


def target_kwargs(stated: Mapping[str, Any] | None, options: TaskOptions) -> Any:
    """Return the second argument of ``doc_to_target``: the model's entry, else ``default``, else the whole mapping."""
    if stated is None:
        return None
    own = _of_model(stated, options)
    return own if own is not None else stated.get("default", stated)


def generation_options(config: TaskConfig, options: TaskOptions) -> dict[str, Any]:
    """Merge the task's options, those for this model, and those of the command line, each over the one before.

    The few-shot delimiter is not among them: only plain completion stops at it (``implied_stop``).

    Raises:
        TaskError: an option is misspelt, or a value has the wrong type.
    """
    if config.output_type not in GENERATING:
        return {}
    if config.generation_kwargs is None:
        made: dict[str, Any] = {"do_sample": False}
    else:
        made = dict(config.generation_kwargs)
    specific = config.model_specific_generation_kwargs or {}
    own = _of_model(specific, options)
    made.update(own if own is not None else specific.get("default") or {})
    made = _with_stated(made, options)
    check_generation(made, f"task {config.task}")
    if made.get("temperature") is not None:
        made["temperature"] = float(made["temperature"])
    return made


def _with_stated(made: Mapping[str, Any], options: TaskOptions) -> dict[str, Any]:
    """Put the options of the command line over those of a task.

    A length or stop strings replace the task's, even under another name. A temperature above 0 without ``do_sample``
    turns sampling on. Plugins of the family get all options unchanged, as in the reference.

    Raises:
        TaskError: sampling at a temperature of 0 is requested.
    """
    stated = dict(options.gen_kwargs)
    if options.legacy:
        return {**made, **stated}
    merged = dict(made)
    for names in (LENGTHS, STOPS):
        if given := [name for name in names if name in stated]:
            stated = {name: value for name, value in stated.items() if name not in names} | {names[0]: stated[given[0]]}
            merged = {name: value for name, value in merged.items() if name not in names}
    merged.update(stated)
    if is_above_zero(stated.get("temperature")) and "do_sample" not in stated and merged.get("do_sample") is False:
        merged["do_sample"] = True
    cold = merged.get("temperature") is not None and not is_above_zero(merged["temperature"])
    if stated.get("do_sample") is True and cold:
        raise TaskError("--gen_kwargs do_sample=true at a temperature of 0 samples nothing: state a temperature too")
    return merged


def is_above_zero(value: Any) -> bool:
    """Return whether a temperature turns sampling on."""
    return is_number(value) and float(value) > 0


def implied_stop(config: TaskConfig, generation: Mapping[str, Any]) -> str:
    """Return the few-shot delimiter if the generation options have no ``until``, else an empty text."""
    return "" if "until" in generation or config.output_type not in GENERATING else config.fewshot_delimiter


def recorded_generation(config: TaskConfig, generation: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options as the family records them: with the implied stop as ``until``, and empty for likelihoods."""
    if config.output_type not in GENERATING:
        return None
    stop = implied_stop(config, generation)
    return {**generation, "until": [stop]} if stop else dict(generation)


def shots(config: TaskConfig, options: TaskOptions) -> int:
    """Return the number of examples: the command line's, unless the task states 0."""
    if config.num_fewshot == 0 or options.num_fewshot is None:
        return config.num_fewshot or 0
    return options.num_fewshot


def _of_model(stated: Mapping[str, Any], options: TaskOptions) -> Any:
    return next((stated[name] for name in model_names(options) if stated.get(name) is not None), None)
