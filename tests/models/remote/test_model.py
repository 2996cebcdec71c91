"""What all back ends of services share: names, install hints, arguments."""

from __future__ import annotations

import importlib
import sys

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.models.remote.arguments import RemoteArguments, read_arguments
from lmms_eval.models.remote.errors import Failures
from lmms_eval.models.remote.generation import read_generation
from lmms_eval.models.remote.media import payload_size
from tests.cases import for_each

PACKAGES = {"anthropic": "anthropic", "gemini": "google.genai", "litellm": "litellm"}
ALIASES = {"claude": "anthropic", "gemini_api": "gemini", "litellm_chat": "litellm", "litellm_compatible": "litellm"}


@for_each("alias", [*ALIASES, *PACKAGES, "vllm", "sglang"])
def test_names(alias: str) -> None:
    found = ModelRegistry().resolve(alias)
    assert found.manifest.model_id == ALIASES.get(alias, alias) and found.kind == "chat"
    assert found.load() is getattr(importlib.import_module(found.class_path.rpartition(".")[0]), found.load().__name__)


@for_each("name", PACKAGES)
def test_without_the_package(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    with pytest.raises(ModelError, match=f"pip install 'lmms_eval.{name}.'"):
        ModelRegistry().build(name, {"model": "openai/m", "api_key": "k"})


def test_unknown_argument_names_the_nearest() -> None:
    with pytest.raises(ModelError, match="num_concurrent"):
        read_arguments(RemoteArguments, {"model": "m", "num_concurent": 3}, {})


def test_greedy_and_sampling() -> None:
    greedy = read_generation({"max_new_tokens": 4, "until": ["a"]}, 9, 100, "low")
    assert (greedy.max_new_tokens, greedy.temperature, greedy.seed, greedy.stops) == (4, 0, None, ("a",))
    assert greedy.effort == "low"
    assert read_generation({}, 9, 100, pin_seed=True).seed == 9
    warm = read_generation({"temperature": 0.5, "reasoning_effort": "high", "top_k": 3}, 9, 100, "low")
    assert (warm.max_new_tokens, warm.temperature, warm.seed, warm.effort) == (100, 0.5, 9, "high")
    assert warm.pick({"min_p": "min_p"}) == ({}, ("top_k",))


def test_errors_by_their_cause() -> None:
    failures = Failures("http://h", "KEY", 5.0, ("secret-value",))
    refused = failures.of_transport(ConnectionRefusedError("secret-value"))
    assert refused.kind == "connection" and refused.unreachable and "secret" not in str(refused)
    outer = OSError("outer")
    outer.__cause__ = TimeoutError()
    assert failures.of_transport(outer).kind == "timeout"
    assert failures.of_transport(OSError("broken")).kind == "connection"
    assert failures.of_status(429, "slow down", {"retry-after": "3"}).retry_after == 3


def test_payload_size() -> None:
    assert payload_size({"a": ["xy", b"abc", 7], "b": {"c": "z"}}) == 6
