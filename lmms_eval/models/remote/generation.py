"""Generation options of the family, read once for back ends with forms of their own."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from lmms_eval.api.generation import LENGTHS, OF_HARNESS, SAMPLING, STOPS, WITHOUT_EFFECT, TakenOptions, answer_length

MAX_STOPS = 4
"""Stop strings that the protocol takes."""
SEED_MASK = 0x7FFF_FFFF
"""Servers differ in the width of a seed; 31 bits fit all of them."""
STANDARD = frozenset({
    "presence_penalty", "frequency_penalty", "logit_bias", "response_format", "reasoning_effort", "logprobs",
    "top_logprobs", "verbosity", "service_tier",
})  # fmt: skip
"""Sent under their own names to every server."""
OPEN_SERVERS = frozenset({"top_k", "min_p", "repetition_penalty", "min_tokens", "skip_special_tokens"})
"""Known to vLLM, SGLang and the like; the public API refuses them."""
READ = frozenset({*LENGTHS, *STOPS, *SAMPLING, "extra_body"})
"""Handled one by one in ``map_generation``."""
WITHOUT_MEANING = OF_HARNESS | WITHOUT_EFFECT | {"num_beams", "n", "num_return_sequences", "best_of"}
"""Not for this protocol, and of no effect on one answer: left out without a word if a task states them."""
ONLY_LOCAL = frozenset({
    "num_beams", "begin_suppress_tokens", "cache_implementation", "diversity_penalty", "early_stopping",
    "encoder_repetition_penalty", "encoder_no_repeat_ngram_size", "eos_token_id", "force_words_ids",
    "guidance_rescale", "image_aspect_ratio", "max_cache_len", "max_length", "max_time", "min_length",
    "no_repeat_ngram_size", "num_beam_groups", "pad_token_id", "penalty_alpha", "sequence_bias", "suppress_tokens",
})  # fmt: skip
"""Options of ``generate`` of transformers, and of plugins, that servers do not have."""


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
    is_plain: bool = False
    """Plain completions."""
    forwards: bool = False
    """The server is no vendor's own service: options that nobody here knows go out as they are."""


@functools.cache
def taken_by(dialect: Dialect) -> TakenOptions:
    """Declare the generation options that have a place in a request, for all forms of the API."""
    one_answer = "a request asks for one answer; --repeats asks for several"
    reasons = dict.fromkeys(("n", "num_return_sequences", "best_of"), one_answer)
    reasons |= dict.fromkeys(ONLY_LOCAL, "servers have no such option")
    if dialect.is_reasoning:
        reasons |= dict.fromkeys(SAMPLING, "reasoning models of this service take no options of sampling")
    names = READ | STANDARD | (frozenset() if dialect.is_public else OPEN_SERVERS)
    if dialect.is_responses:
        own = (READ - {"seed"}) | {"reasoning_effort", "response_format"}
        reasons |= dict.fromkeys(names - own - set(reasons), "the Responses form has no such option")
        names = own
    needs_length = "a completion without a length ends after a few tokens" if dialect.is_plain else ""
    return TakenOptions(names, dialect.forwards, reasons, needs_length=needs_length)


def map_generation(options: Mapping[str, Any], seed: int, dialect: Dialect) -> Mapped:
    """Translate one request's options.

    Greedy unless the task samples: ``do_sample=false``, or neither ``do_sample`` nor a temperature, sends
    temperature 0. The seed goes out when sampling only.
    """
    limit = answer_length(options, dialect.max_new_tokens)
    name = "max_completion_tokens" if dialect.is_reasoning else "max_tokens"
    fields: dict[str, Any] = {} if limit is None else {name: limit}
    if not dialect.is_reasoning:
        fields |= sampling_fields(options, seed)
        if stops := stop_strings(options):
            fields["stop"] = stops[:MAX_STOPS]
    if dialect.reasoning_effort:
        fields["reasoning_effort"] = dialect.reasoning_effort
    others, ignored = other_options(options, taken_by(dialect))
    return Mapped({**fields, **others, **extra_body(options)}, ignored)


def extra_body(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields that a request states for its body, over all others: a mapping, or JSON text of one.

    Raises:
        ValueError: it is neither.
    """
    extra = options.get("extra_body") or {}
    if isinstance(extra, str):
        try:
            extra = orjson.loads(extra)
        except orjson.JSONDecodeError:
            extra = None
    if not isinstance(extra, Mapping):
        raise ValueError(f"extra_body: give a mapping, or JSON text of one, not {options['extra_body']!r:.100}")
    return extra


def other_options(options: Mapping[str, Any], taken: TakenOptions) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Divide the options beyond ``READ`` into those that go out under their own names and those without a place."""
    others = {
        name: value
        for name, value in options.items()
        if name not in READ and name not in WITHOUT_MEANING and value is not None
    }
    ignored = tuple(name for name, value in others.items() if taken.objection(name, value))
    return {name: value for name, value in others.items() if name not in ignored}, ignored


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
    for name in STOPS:
        value = options.get(name)
        items: Iterable[Any] = [value] if isinstance(value, str) else value or []
        found.extend(item for item in items if isinstance(item, str) and item)
    return list(dict.fromkeys(found))


def local_stops(options: Mapping[str, Any], dialect: Dialect) -> list[str]:
    """The stop strings that the server is not told."""
    stops = stop_strings(options)
    return stops if dialect.is_reasoning or dialect.is_responses else stops[MAX_STOPS:]


COMMON = READ - {"extra_body"}
"""Options that ``read_generation`` reads for every back end."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Generation options of one request."""

    max_new_tokens: int | None
    """``None``: as many as the model takes."""
    temperature: float | None
    """0 for greedy; ``None``: sampling at the model's own temperature."""
    top_p: float | None
    seed: int | None
    """31 bits, when sampling."""
    stops: tuple[str, ...]
    effort: str | None
    others: Mapping[str, Any]
    """Options beyond these, by their family names."""

    def pick(self, names: Mapping[str, str], handled: Collection[str] = ()) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Divide the other options: those that a back end knows, under its own names, and the names of the rest.

        ``handled``: options that the back end places itself.
        """
        taken = {names[name]: value for name, value in self.others.items() if name in names}
        return taken, tuple(name for name in self.others if name not in names and name not in handled)


def read_generation(
    options: Mapping[str, Any], seed: int, max_new_tokens: int, effort: str | None = None, pin_seed: bool = False
) -> Wanted:
    """Read a request's options; ``max_new_tokens`` and ``effort`` hold where it does not say.

    Greedy by the same rule as the back end ``openai``. ``pin_seed``: a seed for greedy requests too.
    """
    sampling = sampling_fields(options, seed)
    if pin_seed and "seed" not in sampling:
        sampling["seed"] = sampling_fields({**options, "do_sample": True, "temperature": 1.0}, seed)["seed"]
    known = COMMON | WITHOUT_MEANING | {"reasoning_effort"}
    others = {name: value for name, value in options.items() if name not in known and value is not None}
    return Wanted(
        max_new_tokens=answer_length(options, max_new_tokens),
        temperature=sampling.get("temperature"),
        top_p=sampling.get("top_p"),
        seed=sampling.get("seed"),
        stops=tuple(stop_strings(options)),
        effort=options.get("reasoning_effort") or effort,
        others=others,
    )


def taken_options(
    names: Iterable[str], without: Mapping[str, str] | None = None, needs_length: str = ""
) -> TakenOptions:
    """Declare the options of a back end with a form of its own: the common ones and ``names``.

    Args:
        names: its own options.
        without: the common ones that have no place in it, with the reason.
        needs_length: as ``TakenOptions`` has it.
    """
    one_answer = "a request asks for one answer; --repeats asks for several"
    reasons = dict.fromkeys(("n", "num_return_sequences", "best_of"), one_answer)
    reasons |= {name: "servers and engines have no such option" for name in ONLY_LOCAL - set(names)}
    return TakenOptions(COMMON | set(names), reasons={**reasons, **(without or {})}, needs_length=needs_length)
