"""Vectors of the reference's response cache: what is kept, and what its keys tell apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from lmms_eval.api.messages import ChatMessage, ChatMessages, ChatTextContent
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Task
from lmms_eval.engine.response_cache import CacheKeys, is_good, is_sampled
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter

PAIR = 2
EXACT = "cache_key_is_exact"
IN_REFERENCE = frozenset({
    "temperature", "top_p", "top_k", "max_new_tokens", "max_gen_toks", "do_sample", "num_beams", "until",
    "repetition_penalty", "n", "best_of", "num_return_sequences",
})  # fmt: skip
"""The options that are in the reference's key (harness specification §7.2)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the reference makes a key of, in the order of its arguments."""

    kind: Any = "generate_until"
    task: str = "task"
    document: Any = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    repeat: int = 0
    task_hash: str | None = None
    content_hash: str | None = None
    model_hash: str | None = None
    version: str | None = None

    def key(self) -> str:
        """Our key of the request that these make: its text is of task and document."""
        identity = {"model": self.model_hash, "version": self.version}
        text = repr((self.task, self.task_hash, self.document, self.content_hash))
        messages = ChatMessages(messages=[ChatMessage(role="user", content=[ChatTextContent(text=text)])])
        request = Request(
            id="vector",
            kind=self.kind,
            task=cast("Task", None),  # a model that is shown messages does not look at the task
            doc_id=0,
            build_messages=lambda: messages,
            generation=self.options,
            repeat=self.repeat,
        )
        return CacheKeys(identity, reads_documents=False).key(request, messages)

    def reference_key(self) -> str:
        given = {
            "v": 3, "rt": self.kind, "tn": self.task, "did": self.document, "idx": self.repeat,
            "gk": canonical(self.options),
        }  # fmt: skip
        optional = {"ch": self.content_hash, "tf": self.task_hash, "mfh": self.model_hash, "ev": self.version}
        given |= {name: value for name, value in optional.items() if value is not None}
        return hashlib.sha256(compact(given).encode()).hexdigest()

    def others(self) -> Iterator[tuple[str, Asked]]:
        """What differs in a single argument, with its name; also options that the reference's key leaves out."""
        kind = "loglikelihood" if self.kind == "generate_until" else "generate_until"
        yield "kind", replace(self, kind=kind)
        yield "document", replace(self, document=[self.document])
        yield "repeat", replace(self, repeat=self.repeat + 1)
        for name in ("task", "task_hash", "content_hash", "model_hash", "version"):
            yield name, replace(self, **{name: f"{getattr(self, name)}, another"})
        for name in {*IN_REFERENCE, *self.options, "seed", "an_unknown_option"}:
            yield name, replace(self, options={**self.options, name: [self.options.get(name)]})
        for name in self.options:
            left = {key: value for key, value in self.options.items() if key != name}
            yield f"no {name}", replace(self, options=left)


def compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def canonical(options: Mapping[str, Any]) -> str:
    """The options as the reference's key has them."""
    kept = {name: value for name, value in options.items() if name in IN_REFERENCE}
    return compact({n: int(v) if isinstance(v, float) and v.is_integer() else v for n, v in kept.items()})


def key_verdict(asked: Asked, recorded: str, reference: str) -> Verdict:
    """The record must be the reference's; ours must be the same twice, and another for each other request."""
    if recorded != reference:
        return failed(f"recorded {recorded!r} is not what the reference makes of these arguments: {reference!r}")
    if asked.key() != replace(asked, options=dict(asked.options)).key():
        return failed("the same arguments give two keys")
    same = [name for name, other in asked.others() if other.key() == asked.key()]
    return failed(f"other arguments give the same key: {', '.join(same)}") if same else deviates(EXACT)


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
    if name == "canonicalize_gen_kwargs":
        asked = Asked(options=arguments[0] or {})
        return key_verdict(asked, expected, canonical(asked.options))
    if name == "compute_cache_key":
        kind, task, document, options, *rest = arguments
        asked = Asked(kind, task, document, options or {}, *rest)
        return key_verdict(asked, expected, asked.reference_key())
    if name == "is_deterministic":
        kind, options = arguments[0], arguments[1] or {}
        found = kind == "loglikelihood" or not is_sampled(options)
        rule = "temperature_as_text_is_a_number" if isinstance(options.get("temperature"), str) else ""
    elif name == "is_valid_response":
        found = is_good(response_of(*arguments))
        rule = "blank_round_is_not_kept" if isinstance(arguments[0], list) and "" in arguments[0] else ""
    else:
        return failed(f"no function {name!r}")
    if found == expected:
        return PASSED
    return deviates(rule) if rule else failed(f"{name}{tuple(arguments)}: {found} instead of {expected}")
