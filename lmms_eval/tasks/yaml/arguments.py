"""Checks of named arguments from task files and command lines, before any request is sent."""

from __future__ import annotations

import difflib
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from lmms_eval.errors import TaskError

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


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, int) and value in (0, 1))


def _are_texts(value: Any) -> bool:
    return all(isinstance(item, str) for item in (value if isinstance(value, list | tuple) else [value]))


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
    _Kind("true or false", _is_switch, ("do_sample", "use_cache", "skip_special_tokens")),
    _Kind("a text or a list of texts", _are_texts, ("until", "stop", "stop_sequences", "stop_strings")),
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
    """Refuse misspelt generation options and values of a wrong kind.

    An option that resembles no known one passes: plugins take options of their own, and every other back end says
    what it makes of one that it does not know.

    Raises:
        TaskError: names the nearest option, or the kind of value that is wanted.
    """
    for name, value in given.items():
        kind = GENERATION_OPTIONS.get(name)
        if kind is not None:
            if value is not None and not kind.fits(value):
                raise TaskError(f"{where}: generation option {name!r} must be {kind.wanted}, not {value!r}")
        elif near := nearest(name, GENERATION_OPTIONS):
            raise TaskError(f"{where}: unknown generation option {name!r}; did you mean {near!r}?")


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
