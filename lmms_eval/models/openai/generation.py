"""Generation options of the family as fields of a chat-completions request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval.api.task import LENGTHS

MAX_STOPS = 4
"""Stop strings that the protocol takes."""
SEED_MASK = 0x7FFF_FFFF
"""Servers differ in the width of a seed; 31 bits fit all of them."""
STANDARD = frozenset({"presence_penalty", "frequency_penalty", "logit_bias", "response_format", "reasoning_effort"})
"""Sent under their own names to every server."""
OPEN_SERVERS = frozenset({"top_k", "min_p", "repetition_penalty", "min_tokens", "skip_special_tokens"})
"""Known to vLLM, SGLang and the like; the public API refuses them."""
READ = frozenset({*LENGTHS, "temperature", "top_p", "do_sample", "until", "stop", "seed", "extra_body"})
"""Handled one by one in ``map_generation``."""
WITHOUT_MEANING = frozenset({"num_beams", "use_cache", "n", "num_return_sequences", "max_agentic_steps", "visual_cot"})
"""Not for this protocol, and of no effect on one answer: left out without a word."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """``fields`` of the request's body; ``ignored`` options that have no place in it."""

    fields: dict[str, Any]
    ignored: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dialect:
    """Options that the server and the model take."""

    max_new_tokens: int
    """Default where the task does not say."""
    is_reasoning: bool
    """OpenAI's reasoning models: another name of the length, no temperature, no stop strings."""
    is_public: bool
    is_responses: bool = False
    """The Responses form: no stop strings."""
    reasoning_effort: str | None = None
    """Default where the task does not say."""


def map_generation(options: Mapping[str, Any], seed: int, dialect: Dialect) -> Mapped:
    """Translate one request's options.

    Greedy unless the task samples: ``do_sample=false``, or neither ``do_sample`` nor a temperature, sends
    temperature 0. The seed goes out when sampling only.
    """
    length = next((options[name] for name in LENGTHS if options.get(name)), None)
    limit = int(length) if length is not None else dialect.max_new_tokens
    fields: dict[str, Any] = {"max_completion_tokens" if dialect.is_reasoning else "max_tokens": limit}
    if not dialect.is_reasoning:
        fields |= sampling_fields(options, seed)
        if stops := stop_strings(options):
            fields["stop"] = stops[:MAX_STOPS]
    if dialect.reasoning_effort:
        fields["reasoning_effort"] = dialect.reasoning_effort
    ignored = []
    for name, value in options.items():
        if name in READ or name in WITHOUT_MEANING or value is None:
            continue
        if name in STANDARD or (name in OPEN_SERVERS and not dialect.is_public):
            fields[name] = value
        else:
            ignored.append(name)
    extra = options.get("extra_body")
    return Mapped(fields | dict(extra) if isinstance(extra, Mapping) else fields, tuple(ignored))


def sampling_fields(options: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Temperature, top_p and seed, by the rule of ``map_generation``."""
    temperature, do_sample = options.get("temperature"), options.get("do_sample")
    if do_sample is False or (temperature is None and do_sample is None) or temperature == 0:
        return {"temperature": 0}
    fields: dict[str, Any] = {} if temperature is None else {"temperature": float(temperature)}
    if options.get("top_p") is not None:
        fields["top_p"] = float(options["top_p"])
    given = options.get("seed")
    fields["seed"] = (seed if given is None else int(given)) & SEED_MASK
    return fields


def stop_strings(options: Mapping[str, Any]) -> list[str]:
    """The texts at which an answer ends, in order, without empty ones and repetitions."""
    found: list[str] = []
    for name in ("until", "stop"):
        value = options.get(name)
        items: Iterable[Any] = [value] if isinstance(value, str) else value or []
        found.extend(item for item in items if isinstance(item, str) and item)
    return list(dict.fromkeys(found))


def local_stops(options: Mapping[str, Any], dialect: Dialect) -> list[str]:
    """The stop strings that the server is not told."""
    stops = stop_strings(options)
    return stops if dialect.is_reasoning or dialect.is_responses else stops[MAX_STOPS:]
