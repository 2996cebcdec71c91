"""Generation options: from the family's names to those of ``generate``; greedy unless sampling is asked for."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

DEFAULT_MAX_NEW_TOKENS = 1024
"""Default where a task says nothing."""
_ALIASES = {
    "max_gen_toks": "max_new_tokens",
    "max_tokens": "max_new_tokens",
    "stop_sequences": "until",
    "stop": "until",
}
_HARNESS_KEYS = frozenset({"visual_cot", "image_aspect_ratio", "max_agentic_steps"})
"""Keys of task files that speak to the harness or to particular plugins, not to generation."""
_ONE_ANSWER = ("n", "best_of", "num_return_sequences")
_SAMPLING_ONLY = ("temperature", "top_p", "top_k", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_h")


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """Settings by which one request is generated. Requests with the same ``key`` may share a batch."""

    key: str
    arguments: Mapping[str, Any]
    """Keyword arguments of ``generate``. What is not among them comes from the model's own generation configuration."""
    until: tuple[str, ...]
    sampled: bool
    skip_special_tokens: bool


def read_settings(generation: Mapping[str, Any], valid: Collection[str]) -> Settings:
    """Check and translate the generation options of a request.

    Sampling is on with ``do_sample`` or, where that is not given, with a ``temperature`` above 0; a temperature of 0
    is always greedy.

    Args:
        generation: options by their family names.
        valid: names that ``GenerationConfig`` knows.

    Raises:
        ValueError: an unknown option or an invalid value.
    """
    given = {_ALIASES.get(name, name): value for name, value in generation.items() if name not in _HARNESS_KEYS}
    for name in _ONE_ANSWER:
        if int(given.pop(name, None) or 1) != 1:
            raise ValueError(f"{name} is not 1: ask for several answers with --repeats")
    until = _stop_strings(given.pop("until", None))
    skip_special_tokens = bool(given.pop("skip_special_tokens", True))
    max_new_tokens = given.pop("max_new_tokens", None)
    limit = DEFAULT_MAX_NEW_TOKENS if max_new_tokens is None else int(max_new_tokens)
    if limit < 1:
        raise ValueError(f"max_new_tokens must be at least 1, not {limit}")
    sampled = _is_sampled(given)
    given.pop("do_sample", None)
    arguments = {name: value for name, value in given.items() if value is not None}
    for name in arguments:
        if name not in valid:
            close = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
            nearest = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"transformers has no generation option {name!r}{nearest}")
    if not sampled:  # the model's own configuration may ask for sampling
        arguments.update({name: None for name in _SAMPLING_ONLY if name in valid})
    arguments.update(do_sample=sampled, max_new_tokens=limit)
    key = json.dumps([arguments, until, skip_special_tokens], sort_keys=True, default=str)
    return Settings(key, arguments, until, sampled, skip_special_tokens)


def _is_sampled(given: Mapping[str, Any]) -> bool:
    temperature = given.get("temperature")
    hot = temperature is not None and float(temperature) > 0
    if given.get("do_sample") is None:
        return hot
    return bool(given["do_sample"]) and (hot or temperature is None)


def _stop_strings(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    strings = [value] if isinstance(value, str) else value
    if not isinstance(strings, Collection) or not all(isinstance(item, str) for item in strings):
        raise ValueError(f"until must be a text or a list of texts, not {value!r}")
    return tuple(item for item in strings if item)
