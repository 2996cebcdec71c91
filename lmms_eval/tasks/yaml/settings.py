"""Settings that depend on the model and the command line: prompt settings, generation options, shots.

Arguments and options are checked against the names that their functions, back ends and tasks know.
"""

from __future__ import annotations

import difflib
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from lmms_eval.api.generation import LENGTHS, STOPS
from lmms_eval.api.task import TaskOptions
from lmms_eval.config.options import options as run_options
from lmms_eval.errors import TaskError, UsageError
from lmms_eval.tasks.yaml.config import GENERATING, TaskConfig

NEAR = 0.8
"""Least likeness (``difflib``) of an unknown name that counts as a misspelling."""


def is_number(value: Any) -> bool:
    """Return whether a value is a number, or a text of one."""
    try:
        return not isinstance(value, bool) and float(value) is not None  # YAML reads 1e-3 as a text
    except (TypeError, ValueError):
        return False


def _is_whole(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and float(value).is_integer()


class _Kind(Struct, frozen=True):
    """Generation options with the same kind of value."""

    wanted: str
    fits: Callable[[Any], bool]
    names: tuple[str, ...]


_KINDS = (
    _Kind("a whole number from 1 on", lambda value: _is_whole(value) and value >= 1, (
        "max_new_tokens", "max_tokens", "max_completion_tokens", "max_gen_toks", "max_length", "num_beams",
        "num_beam_groups", "max_agentic_steps",
    )),
    _Kind("a whole number", _is_whole, (
        "min_new_tokens", "min_tokens", "min_length", "top_k", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
        "seed", "n", "best_of", "num_return_sequences",
    )),
    _Kind("a number", is_number, (
        "temperature", "top_p", "min_p", "typical_p", "top_a", "top_h", "epsilon_cutoff", "eta_cutoff", "penalty_alpha",
        "repetition_penalty", "length_penalty", "presence_penalty", "frequency_penalty", "diversity_penalty",
        "encoder_repetition_penalty", "guidance_scale", "guidance_rescale", "max_time",
    )),
    _Kind("true or false", lambda value: isinstance(value, int) and value in (0, 1), (
        "do_sample", "use_cache", "skip_special_tokens",
    )),
    _Kind(
        "a text or a list of texts",
        lambda value: all(isinstance(item, str) for item in (value if isinstance(value, list | tuple) else [value])),
        ("until", "stop", "stop_sequences", "stop_strings"),
    ),
    _Kind("a mapping, such as {\"enable_thinking\": true}", lambda value: isinstance(value, Mapping), (
        "chat_template_kwargs", "extra_body",
    )),
    _Kind("", lambda _value: True, (
        "bad_words", "bad_words_ids", "begin_suppress_tokens", "cache_implementation", "early_stopping", "eos_token_id",
        "force_words_ids", "ignore_eos", "image_aspect_ratio", "include_stop_str_in_output", "logit_bias",
        "logprobs", "max_cache_len", "pad_token_id", "prompt_logprobs", "reasoning_effort", "response_format",
        "sequence_bias", "stop_token_ids", "suppress_tokens", "top_logprobs", "top_n_sigma", "visual_cot",
    )),
)  # fmt: skip
GENERATION_OPTIONS: Mapping[str, _Kind] = {name: kind for kind in _KINDS for name in kind.names}
"""Options that at least one back end or task of the family knows."""


def check_generation(given: Mapping[str, Any], where: str) -> None:
    """Raise ``TaskError`` for the first mistake in the generation options of a task (``generation_mistake``)."""
    if mistake := generation_mistake(given):
        raise TaskError(f"{where}: {mistake}")


def generation_mistake(given: Mapping[str, Any]) -> str:
    """Find a misspelt generation option or a value of a wrong kind. Returns an empty text for options without mistake.

    The text names the nearest option, or the kind of value that is wanted. An option that resembles no known one
    passes: plugins take options of their own, and every other back end reports one that it does not know.
    """
    for name, value in given.items():
        kind = GENERATION_OPTIONS.get(name)
        if kind is not None:
            if value is not None and not kind.fits(value):
                return f"generation option {name!r} must be {kind.wanted}, not {value!r}"
        elif near := nearest(name, GENERATION_OPTIONS):
            return f"unknown generation option {name!r}; did you mean {near!r}?"
    return ""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that ``name`` misspells; empty if it is another word, or a known name with an affix."""
    close = difflib.get_close_matches(str(name), sorted(known), n=1, cutoff=NEAR)
    is_longer = bool(close) and (str(name).startswith(f"{close[0]}_") or str(name).endswith(f"_{close[0]}"))
    return "" if not close or is_longer else close[0]


def arguments_of(function: Callable[..., Any], without: Iterable[str]) -> list[str] | None:
    """Return the keywords that a function takes, except those in ``without``; ``None`` if it takes any keyword."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in parameters if p.kind in by_name and p.name not in set(without)]


def wrong_value(function: Callable[..., Any], given: Mapping[str, Any]) -> str:
    """Describe the first value that does not match its parameter's type; empty if all match."""
    from pydantic import TypeAdapter, ValidationError

    stated = typing.get_type_hints(function)
    for name, value in given.items():
        try:
            TypeAdapter(stated[name]).validate_python(value, strict=True)
        except ValidationError as error:
            return f"argument {name!r}: {error.errors(include_url=False)[0]['msg']}, not {value!r}"
    return ""


def specific_kwargs(config: TaskConfig, options: TaskOptions) -> Any:
    """Make ``lmms_eval_specific_kwargs`` for a model.

    The model's own mapping is used alone. Without one, ``default``, else ``dataset``, is merged into the whole mapping.
    Settings of the command line (``--task_kwargs``) override both. Options of the run that the task requests
    (``run_options``) are added by name. A task that requests any, or has settings, also gets the run's ``data_root``.
    Raises ``TaskError`` if the run has no such option.
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

    The few-shot delimiter is not among them: only plain completion stops at it (``implied_stop``). Raises ``TaskError``
    if an option is misspelt, or a value has the wrong type.
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
    made = with_stated(made, options)
    check_generation(made, f"task {config.task}")
    if made.get("temperature") is not None:
        made["temperature"] = float(made["temperature"])
    return made


def with_stated(made: Mapping[str, Any], options: TaskOptions) -> dict[str, Any]:
    """Put the options of the command line over those of a task.

    A length or stop strings replace the task's, even under another name. A temperature above 0 without ``do_sample``
    turns sampling on. Plugins of the family get all options unchanged, as in the reference. Raises ``UsageError`` if
    an option of the command line is misspelt or has a wrong value, and ``TaskError`` if sampling at a temperature of 0
    is requested.
    """
    stated = dict(options.gen_kwargs)
    if mistake := generation_mistake(stated):
        raise UsageError(f"--gen_kwargs: {mistake}")
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
    """Return the settings under the model's name: as typed first, then the canonical one."""
    names = [name for name in (options.model_name, options.model_id) if name]
    return next((stated[name] for name in names if stated.get(name) is not None), None)
