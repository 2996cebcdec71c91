"""Vectors of the reference's response cache: what is kept; its keys are not ours."""

from __future__ import annotations

from typing import Any

from lmms_eval.api.request import Response
from lmms_eval.engine.cache_key import is_sampled
from lmms_eval.engine.response_cache import is_good
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter

PAIR = 2
EXACT_KEY = frozenset({"compute_cache_key", "canonicalize_gen_kwargs"})


def response_of(value: Any, kind: str) -> Response:
    """A plugin's output as the response that our adapter makes of it; one that is no output of its kind has failed."""
    if kind == "loglikelihood":
        if isinstance(value, list) and len(value) == PAIR:
            return Response("vector", loglikelihood=value[0], is_greedy=value[1])
        return Response.failure("vector", "malformed", "no pair")
    if isinstance(value, list):
        return Response("vector", rounds=tuple(value))
    return Response("vector", text=value)


@line_adapter("harness/functions/cache.jsonl")
def cache_line(vector: Vector) -> Verdict:
    name, arguments, expected = (vector.record[key] for key in ("function", "args", "expected"))
    if name in EXACT_KEY:
        return deviates("cache_key_is_exact")
    if name == "is_deterministic":
        kind, options = arguments[0], arguments[1] or {}
        found = kind == "loglikelihood" or not is_sampled(options)
        rule = "temperature_as_text_is_a_number" if isinstance(options.get("temperature"), str) else ""
    else:
        found = is_good(response_of(*arguments))
        rule = "blank_round_is_not_kept" if isinstance(arguments[0], list) and "" in arguments[0] else ""
    if found == expected:
        return PASSED
    return deviates(rule) if rule else failed(f"{name}{tuple(arguments)}: {found} instead of {expected}")
