"""The replay of the harness core's vectors takes what is right and refuses what was tampered with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request
from lmms_eval.engine.cache_key import CacheKeys
from tests.parity.adapters import harness_cache
from tests.parity.replay import verdicts, write_lines
from tests.parity.vectors import Verdict, deviates

CACHE = "harness/functions/cache.jsonl"
OPTIONS = {"temperature": 0.0, "until": ["\n"], "seed": 3}
KEY = {
    "function": "compute_cache_key",
    "args": ["generate_until", "t", "doc-7", OPTIONS, 3, "tf", "ch"],
    "expected": "",
}
CANONICAL = {"function": "canonicalize_gen_kwargs", "args": [OPTIONS], "expected": '{"temperature":0,"until":["\\n"]}'}


def verdict(root: Path, record: dict[str, Any]) -> Verdict:
    write_lines(root, CACHE, record)
    (found,) = verdicts(root)
    return found


def recorded_key() -> dict[str, Any]:
    asked = harness_cache.Asked("generate_until", "t", "doc-7", OPTIONS, 3, "tf", "ch")
    return {**KEY, "expected": asked.reference_key()}


def test_exact_keys_are_a_deviation(tmp_path: Path) -> None:
    assert verdict(tmp_path, CANONICAL) == deviates("cache_key_is_exact")
    assert verdict(tmp_path, recorded_key()) == deviates("cache_key_is_exact")


def test_a_key_that_is_not_the_references_fails(tmp_path: Path) -> None:
    seed_kept = {**CANONICAL, "expected": '{"seed":3,"temperature":0,"until":["\\n"]}'}
    assert verdict(tmp_path, seed_kept).state == "failed"
    assert verdict(tmp_path, {**recorded_key(), "args": ["generate_until", "t", 7, {}, 3]}).state == "failed"


def without(**changes: Any) -> Callable[[Request], Request]:
    return lambda request: replace(request, **changes)


def without_seed(request: Request) -> Request:
    return replace(request, generation={name: value for name, value in request.generation.items() if name != "seed"})


@pytest.mark.parametrize(
    ("blind", "named"),
    [
        (without_seed, "seed"),
        (without(generation={}), "temperature"),
        (without(repeat=0), "repeat"),
        (without(kind="generate_until"), "kind"),
    ],
)
def test_a_key_that_does_not_see_an_argument_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blind: Callable[[Request], Request], named: str
) -> None:
    class Blind(CacheKeys):
        def key(self, request: Request, messages: ChatMessages) -> str:
            return super().key(blind(request), messages)

    monkeypatch.setattr(harness_cache, "CacheKeys", Blind)
    found = verdict(tmp_path, recorded_key())
    assert found.state == "failed" and named in found.detail


def test_a_key_that_does_not_see_the_document_or_the_model_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Blind(CacheKeys):
        def __init__(self, identity: Any, reads_documents: bool) -> None:
            super().__init__({}, reads_documents)

        def key(self, request: Request, messages: ChatMessages) -> str:
            return super().key(request, ChatMessages(messages=[]))

    monkeypatch.setattr(harness_cache, "CacheKeys", Blind)
    found = verdict(tmp_path, recorded_key())
    assert all(name in found.detail for name in ("document", "task", "model_hash", "version", "content_hash"))


def test_a_key_that_changes_by_itself_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(10_000))
    monkeypatch.setattr(harness_cache.Asked, "key", lambda asked: f"key {next(numbers)}")
    assert "two keys" in verdict(tmp_path, CANONICAL).detail
