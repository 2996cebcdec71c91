"""Settings that depend on the model and on the command line: prompt settings, generation options, shots."""

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
    """The names under which settings may be kept: as typed first, then the canonical one."""
    return tuple(dict.fromkeys(name for name in (options.model_name, options.model_id) if name))


def specific_kwargs(config: TaskConfig, options: TaskOptions) -> Any:
    """Make ``lmms_eval_specific_kwargs`` for a model.

    The model's own mapping stands alone; else ``default``, else ``dataset`` is spread over the whole mapping. Settings
    of the command line (``--task_kwargs``) beat both. Options of the run that the task asks for (``run_options``) are
    added by their names; a task that asks for any, or has settings, gets the run's ``data_root`` too.

    Raises:
        TaskError: there is no such option of the run.
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
    # Where the run's local data lies: functions that open media beside it look there.
    return {**made, "data_root": options.data_root} if options.data_root else made


def spread(stated: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The items that hold for every model: of ``default``, else of ``dataset``."""
    for key in ("default", "dataset"):
        if isinstance(stated.get(key), Mapping):
            found: Mapping[str, Any] = stated[key]
            return found
    return None


def recorded_specific_kwargs(stated: Mapping[str, Any] | None, options: TaskOptions) -> dict[str, Any] | None:
    """Return what ``configs`` records: the mapping as written, with the default items spread where they are used."""
    if stated is None and not options.task_kwargs:
        return None
    recorded = dict(stated or {})
    if _of_model(recorded, options) is None:
        recorded.update(spread(recorded) or {})
    return recorded | dict(options.task_kwargs)


def target_kwargs(stated: Mapping[str, Any] | None, options: TaskOptions) -> Any:
    """The second argument of ``doc_to_target`` for a model: its own entry, else ``default``, else everything."""
    if stated is None:
        return None
    own = _of_model(stated, options)
    return own if own is not None else stated.get("default", stated)


def generation_options(config: TaskConfig, options: TaskOptions) -> dict[str, Any]:
    """The task's options, those for this model over them, those of the command line over all.

    The few-shot delimiter is none of them: it is a stop of plain completion alone (``implied_stop``).

    Raises:
        TaskError: a misspelt option, or a value of a wrong kind.
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

    A length, or stop strings, replace the task's whatever names the two use. A temperature above 0 that is stated alone
    asks for sampling. Plugins of the family get all options as they stand, as the reference hands them over.

    Raises:
        TaskError: sampling at a temperature of 0 is asked for.
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
    """Return whether a temperature asks for sampling."""
    return is_number(value) and float(value) > 0


def implied_stop(config: TaskConfig, generation: Mapping[str, Any]) -> str:
    """Return the few-shot delimiter if no ``until`` is among a task's generation options, else an empty text."""
    return "" if "until" in generation or config.output_type not in GENERATING else config.fewshot_delimiter


def recorded_generation(config: TaskConfig, generation: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options as the family records them: with the implied stop as ``until``, and none for likelihoods."""
    if config.output_type not in GENERATING:
        return None
    stop = implied_stop(config, generation)
    return {**generation, "until": [stop]} if stop else dict(generation)


def shots(config: TaskConfig, options: TaskOptions) -> int:
    """Number of examples: the command line's, unless the task says 0."""
    if config.num_fewshot == 0 or options.num_fewshot is None:
        return config.num_fewshot or 0
    return options.num_fewshot


def _of_model(stated: Mapping[str, Any], options: TaskOptions) -> Any:
    return next((stated[name] for name in model_names(options) if stated.get(name) is not None), None)
