"""Generation options of the family, translated for remote back ends."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson
from msgspec import Struct

from lmms_eval.api.generation import LENGTHS, OF_HARNESS, SAMPLING, STOPS, WITHOUT_EFFECT, TakenOptions, answer_length

MAX_STOPS = 4
"""The maximum number of stop strings in the protocol."""
SEED_MASK = 0x7FFF_FFFF
"""Servers differ in the width of a seed. 31 bits fit all of them."""
STANDARD = frozenset({
    "presence_penalty", "frequency_penalty", "logit_bias", "response_format", "reasoning_effort", "logprobs",
    "top_logprobs", "verbosity", "service_tier",
})  # fmt: skip
"""Options that are sent under their own names to every server."""
OPEN_SERVERS = frozenset({"top_k", "min_p", "repetition_penalty", "min_tokens", "skip_special_tokens"})
"""Options of vLLM, SGLang and the like, which the public API rejects."""
READ = frozenset({*LENGTHS, *STOPS, *SAMPLING, "extra_body"})
"""Options that ``map_generation`` handles individually."""
WITHOUT_MEANING = OF_HARNESS | WITHOUT_EFFECT | {"num_beams", "n", "num_return_sequences", "best_of"}
"""Options that do not concern this protocol and have no effect on one answer. They are left out silently."""
ONLY_LOCAL = frozenset({
    "num_beams", "begin_suppress_tokens", "cache_implementation", "diversity_penalty", "early_stopping",
    "encoder_repetition_penalty", "encoder_no_repeat_ngram_size", "eos_token_id", "force_words_ids",
    "guidance_rescale", "image_aspect_ratio", "max_cache_len", "max_length", "max_time", "min_length",
    "no_repeat_ngram_size", "num_beam_groups", "pad_token_id", "penalty_alpha", "sequence_bias", "suppress_tokens",
})  # fmt: skip
"""Options of transformers' ``generate`` and of plugins that servers do not support."""
ONE_ANSWER = dict.fromkeys(
    ("n", "num_return_sequences", "best_of"), "a request asks for one answer; --repeats asks for several"
)
"""Options that are not taken, with the reason."""
COMMON = READ - {"extra_body"}
"""The options that ``read_generation`` reads for every back end."""


class Dialect(Struct, frozen=True):
    """The options that a server and a model support."""

    max_new_tokens: int
    """The default if the task does not set it."""
    is_reasoning: bool
    """OpenAI's reasoning models: another name of the length, no temperature, no stop strings."""
    is_public: bool
    is_responses: bool = False
    """The Responses API, without stop strings."""
    reasoning_effort: str | None = None
    """The default if the task does not set it."""
    is_plain: bool = False
    """Plain completions."""
    forwards: bool = False
    """Unknown options are sent unchanged, as the server is not a vendor's own service."""


@functools.cache
def taken_by(dialect: Dialect) -> TakenOptions:
    """Declare the supported generation options, for all forms of the API."""
    reasons = ONE_ANSWER | dict.fromkeys(ONLY_LOCAL, "servers have no such option")
    if dialect.is_reasoning:
        reasons |= dict.fromkeys(SAMPLING, "reasoning models of this service take no sampling options")
    names = READ | STANDARD | (frozenset() if dialect.is_public else OPEN_SERVERS)
    if dialect.is_responses:
        own = (READ - {"seed"}) | {"reasoning_effort", "response_format"}
        reasons |= dict.fromkeys(names - own - set(reasons), "the Responses API has no such option")
        names = own
    needs_length = "a completion without a length ends after a few tokens" if dialect.is_plain else ""
    return TakenOptions(names, dialect.forwards, reasons, needs_length=needs_length)


def map_generation(options: Mapping[str, Any], seed: int, dialect: Dialect) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Translate one request's options. Returns the fields of the body, and the ignored options.

    ``do_sample=false``, or neither ``do_sample`` nor a temperature, means temperature 0. The seed is only sent with
    sampling.
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
    return {**fields, **others, **extra_body(options)}, ignored


def extra_body(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields that a request adds to its body, overriding all others: a mapping, or its JSON text.

    Raises:
        ValueError: the value is neither.
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
    """Split the options other than ``READ`` into those that are sent under their own names and ignored ones."""
    others = {
        name: value
        for name, value in options.items()
        if name not in READ and name not in WITHOUT_MEANING and value is not None
    }
    ignored = tuple(name for name, value in others.items() if taken.objection(name, value))
    return {name: value for name, value in others.items() if name not in ignored}, ignored


def sampling_fields(options: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return temperature, top_p and seed, by the rule of ``map_generation``."""
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
    """Return the stop strings in order, without empty and repeated ones."""
    found: list[str] = []
    for name in STOPS:
        if value := options.get(name):
            items: Iterable[Any] = [value] if isinstance(value, str) else value
            found.extend(item for item in items if isinstance(item, str) and item)
    return list(dict.fromkeys(found))


def local_stops(options: Mapping[str, Any], dialect: Dialect) -> list[str]:
    """Return the stop strings that cannot be sent to the server."""
    stops = stop_strings(options)
    return stops if dialect.is_reasoning or dialect.is_responses else stops[MAX_STOPS:]


class Wanted(Struct, frozen=True):
    """The generation options of one request."""

    max_new_tokens: int | None
    """``None`` means no limit except the model's."""
    temperature: float | None
    """0 means greedy, and ``None`` means sampling at the model's own temperature."""
    top_p: float | None
    seed: int | None
    """31 bits, with sampling."""
    stops: tuple[str, ...]
    effort: str | None
    others: Mapping[str, Any]
    """All other options, by their family names."""

    def pick(self, names: Mapping[str, str], handled: Collection[str] = ()) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Split ``others`` into the options that a back end supports, under its own names, and the names of the rest.

        ``handled`` are options that the back end handles itself.
        """
        taken = {names[name]: value for name, value in self.others.items() if name in names}
        return taken, tuple(name for name in self.others if name not in names and name not in handled)


def read_generation(
    options: Mapping[str, Any], seed: int, max_new_tokens: int, effort: str | None = None, pin_seed: bool = False
) -> Wanted:
    """Read a request's options, with ``max_new_tokens`` and ``effort`` as defaults.

    Greedy decoding follows the rule of the back end ``openai``. With ``pin_seed``, greedy requests have a seed too.
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
    """Declare the options of a back end with its own protocol: the common ones and ``names``.

    Args:
        names: its own options.
        without: the common options that it does not support, with the reasons.
        needs_length: as in ``TakenOptions``.
    """
    reasons = ONE_ANSWER | dict.fromkeys(ONLY_LOCAL - set(names), "servers and engines have no such option")
    return TakenOptions(COMMON | set(names), reasons={**reasons, **(without or {})}, needs_length=needs_length)
