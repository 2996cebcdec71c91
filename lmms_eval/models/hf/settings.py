"""Generation options, translated from the family's names to those of ``generate``. Greedy decoding is the default."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from lmms_eval.api.generation import OF_HARNESS, TEMPLATE_OPTIONS, TakenOptions, answer_length

DEFAULT_MAX_NEW_TOKENS = 1024
"""The default if a task does not set it."""
MAX_TOKENS = 2**31
"""More than any model writes, which means the rest of the context."""
_ALIASES = {
    "max_gen_toks": "max_new_tokens",
    "max_tokens": "max_new_tokens",
    "stop_sequences": "until",
    "stop": "until",
    "stop_strings": "until",
    "max_completion_tokens": "max_new_tokens",
}
_NOT_OPTIONS = frozenset({"transformers_version"})
"""Fields of ``GenerationConfig`` that are not options."""
_ONE_ANSWER = ("n", "best_of", "num_return_sequences")
_OUTPUT = ("return_dict_in_generate", "output_scores", "output_logits", "output_attentions", "output_hidden_states")
_SAMPLING_ONLY = ("temperature", "top_p", "top_k", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_h")


class GenerationSettings(Struct, frozen=True, eq=False):
    """The generation settings of one request. Requests with the same ``key`` may share a batch."""

    key: str
    arguments: Mapping[str, Any]
    """Keyword arguments of ``generate``. For all others the model's own generation configuration applies."""
    until: tuple[str, ...]
    sampled: bool
    skip_special_tokens: bool
    ignored: tuple[str, ...] = ()
    """Unsupported options, which a run reports."""
    seed: int | None = None
    """A seed for all requests; ``None`` if each has its own."""

    def as_sent(self) -> dict[str, Any]:
        """Return the options that are set, in readable form."""
        sent = {name: value for name, value in self.arguments.items() if value is not None}
        stops = {"until": list(self.until)} if self.until else {}
        return {**sent, **stops, **({} if self.skip_special_tokens else {"skip_special_tokens": False})}


def option_names(without: Collection[str] = ()) -> frozenset[str]:
    """Return the generation options of the installed transformers."""
    from transformers import GenerationConfig

    named = {name for name in GenerationConfig().to_dict() if not name.startswith("_")}
    return frozenset(named - _NOT_OPTIONS - set(without))


def options_taken(names: Collection[str], variables: frozenset[str] | None = frozenset()) -> TakenOptions:
    """Declare the options of a local model: those of ``generate``, their synonyms, and the template's variables.

    ``variables`` is ``None`` if this package does not render the template.
    """
    reasons = dict.fromkeys(_ONE_ANSWER, "a request asks for one answer; --repeats asks for several")
    reasons |= dict.fromkeys(_OUTPUT, "it changes what generate returns, which is read here")
    own = {"until", "seed", "skip_special_tokens", *_ALIASES, *names}
    if variables:
        own |= {*variables, TEMPLATE_OPTIONS}
    return TakenOptions(frozenset(own - set(reasons)), reasons=reasons, variables=variables or frozenset())


def read_settings(generation: Mapping[str, Any], valid: Collection[str]) -> GenerationSettings:
    """Check and translate the generation options of a request.

    Sampling is on with ``do_sample``, or if that is not given, with a ``temperature`` above 0. A temperature of 0 is
    always greedy.

    Args:
        generation: options by their family names.
        valid: the names in ``GenerationConfig``.

    Raises:
        ValueError: a value is invalid.
    """
    given = {_ALIASES.get(name, name): value for name, value in generation.items() if name not in OF_HARNESS}
    for name in _ONE_ANSWER:
        if int(given.pop(name, None) or 1) != 1:
            raise ValueError(f"{name} is not 1: ask for several answers with --repeats")
    until = _stop_strings(given.pop("until", None))
    skip_special_tokens = bool(given.pop("skip_special_tokens", True))
    max_new_tokens = given.pop("max_new_tokens", None)
    limit = answer_length({"max_new_tokens": max_new_tokens}, DEFAULT_MAX_NEW_TOKENS) or MAX_TOKENS
    if limit < 1 or max_new_tokens == 0:
        raise ValueError(f"max_new_tokens must be at least 1, not {max_new_tokens}")
    temperature, wants_sampling = given.get("temperature"), given.pop("do_sample", None)
    is_hot = temperature is not None and float(temperature) > 0
    sampled = is_hot if wants_sampling is None else bool(wants_sampling) and (is_hot or temperature is None)
    seed = given.pop("seed", None)
    arguments = {name: value for name, value in given.items() if value is not None and name in valid}
    ignored = tuple(name for name, value in given.items() if value is not None and name not in valid)
    if not sampled:  # the model's own configuration may enable sampling
        arguments.update({name: None for name in _SAMPLING_ONLY if name in valid})
    arguments.update(do_sample=sampled, max_new_tokens=limit)
    key = json.dumps([arguments, until, skip_special_tokens, seed], sort_keys=True, default=str)
    stated = None if seed is None else int(seed)
    return GenerationSettings(key, arguments, until, sampled, skip_special_tokens, ignored, stated)


def _stop_strings(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    strings = [value] if isinstance(value, str) else value
    if not isinstance(strings, Collection) or not all(isinstance(item, str) for item in strings):
        raise ValueError(f"until must be a text or a list of texts, not {value!r}")
    return tuple(item for item in strings if item)
