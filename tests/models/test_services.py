"""Names of services: the back end with its arguments mapped, each asked a question on loopback."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.openai.arguments import find_endpoint, parse_arguments
from lmms_eval.models.openai.model import OpenAI
from lmms_eval.models.registry import NAMED_SERVICES, ModelManifest, ModelRegistry
from tests.cases import for_each
from tests.models.openai.support import ask, make_request
from tests.servers.batches import BatchServer
from tests.servers.stub import StubServer

KEYS = {
    "claude": "ANTHROPIC_API_KEY", "gemini": "GOOGLE_API_KEY", "gemini_api": "GOOGLE_API_KEY",
    "openrouter": "OPENROUTER_API_KEY", "qwen_vl_api": "DASHSCOPE_API_KEY", "reka": "REKA_API_KEY",
    "xai": "XAI_API_KEY",
}  # fmt: skip
FAMILY_ARGUMENTS = {
    "modality": "video", "timeout": 120, "continual_mode": True, "response_persistent_folder": "logs",
    "max_frames_num": 4, "interleave": False,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_API_BASE", "_BASE_URL"))]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        yield server


@pytest.mark.parametrize("name", sorted(NAMED_SERVICES.keys() - {"batch_gpt4"}))
def test_each_name_asks_with_the_familys_arguments(
    name: str, stub: StubServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service = NAMED_SERVICES[name]
    pytest.importorskip({"anthropic": "anthropic", "gemini": "google.genai"}.get(service.backend, "aiohttp"))
    monkeypatch.setenv(KEYS.get(name, "OPENAI_API_KEY"), f"key-of-{name}")
    base_url = stub.url if service.backend == "openai" else stub.url.removesuffix("/v1")
    arguments: dict[str, Any] = {**FAMILY_ARGUMENTS, "base_url": base_url, "max_retries": 0}
    if not service.model:
        arguments["model_version"] = "vendor/some-model"
    with caplog.at_level(logging.WARNING, "lmms_eval"):
        model, resolved = ModelRegistry().build(name, arguments)
    warned = [message.split(" has no effect")[0].rpartition(" ")[2] for message in caplog.messages]
    assert sorted(warned) == ["continual_mode", "interleave", "modality", "response_persistent_folder"]
    assert resolved.manifest.model_id == service.backend
    found = ask(model, [make_request(name)], leaves_tasks=True)[name]
    assert found.text == name, found.error
    assert found.model == (service.model or "vendor/some-model")
    assert any(f"key-of-{name}" in head for head in stub.heads())
    assert model.identity()["max_frames_num"] == 4


def test_batch_gpt4_is_openai_by_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with BatchServer() as server:
        model, _ = ModelRegistry().build("batch_gpt4", f"model_version=gpt-x,base_url={server.url},batch_poll_s=0.05")
        model.attach_folder(tmp_path)
        assert ask(model, [make_request("one")])["one"].text == "one"
        assert server.lines("batch-0")[0]["body"]["model"] == "gpt-x"


@for_each("name", ["openrouter", "qwen_vl_api", "reka", "xai"])
def test_a_service_without_its_key_does_not_get_another_ones(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    with pytest.raises(ModelError, match=KEYS[name]):
        ModelRegistry().build(name, {"model": "m"})
    monkeypatch.setenv(KEYS[name], "own")
    model, _ = ModelRegistry().build(name, {"model": "m"})
    assert model.identity()["base_url"].startswith(NAMED_SERVICES[name].base_url)


def test_the_address_names_the_variable_of_the_key() -> None:
    arguments = parse_arguments({"model": "m", "base_url": "https://openrouter.ai/api/v1"}, {})
    both = {"OPENROUTER_API_KEY": "router", "OPENAI_API_KEY": "openai"}
    endpoint = find_endpoint(arguments, both)
    assert (endpoint.authorization, endpoint.key_name) == ("Bearer router", "OPENROUTER_API_KEY")
    assert find_endpoint(arguments, {"OPENAI_API_KEY": "openai"}).authorization == "Bearer openai"


def test_a_name_without_model_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    with pytest.raises(ModelError, match="model=NAME"):
        ModelRegistry().build("openrouter")


def test_a_plugin_of_the_same_name_gets_its_arguments_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = ModelRegistry()
    registry.list_models()
    registry._add_all([ModelManifest("reka", chat_class_path="tests.models.test_services.Own")])
    model, _ = registry.build("reka", {"modality": "image"})
    assert isinstance(model, Own) and model.modality == "image"


class Own(OpenAI):
    """A plugin's class."""

    def __init__(self, modality: str) -> None:
        self.modality = modality
