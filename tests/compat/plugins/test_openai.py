"""Plugins over the family's classes for OpenAI-compatible servers."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval.api.instance import FailedGeneration, Instance
from lmms_eval.compat.plugins.openai import as_data
from lmms_eval.errors import ModelError
from lmms_eval.models.chat.openai import OpenAICompatible as ChatOpenAI
from lmms_eval.models.simple.openai import OpenAICompatible, _get_max_new_tokens
from tests.cases import for_each
from tests.compat.plugins.kit import DOCUMENTS, NAME, Plugins
from tests.servers.stub import StubServer

BASE = "http://127.0.0.1:9/v1"
"""Nobody listens there."""
SIMPLE = """\
from lmms_eval.models.simple.openai import OpenAICompatible


class Own(OpenAICompatible):
    def __init__(self, greeting="", **kwargs):
        super().__init__(**kwargs)
        self.model_version = f"{greeting}{self.model_version}"
"""
WRAPPING = """\
from lmms_eval.models.chat.openai import OpenAICompatible


class Own(OpenAICompatible):
    def generate_until(self, requests):
        return [f"{answer}"[:2] for answer in super().generate_until(requests)]
"""
WITH_CLIENT = """\
from types import SimpleNamespace

from lmms_eval.models.chat.openai import OpenAICompatible


class Completions:
    def create(self, **payload):
        text = payload["messages"][-1]["content"][-1]["text"]
        if "Question 1" in text:
            raise RuntimeError("no answer today")
        message = SimpleNamespace(content=text.partition("ANSWER=")[2], role="assistant")
        return SimpleNamespace(choices=[SimpleNamespace(index=0, message=message, finish_reason="stop")], usage=None)


class Own(OpenAICompatible):
    def __init__(self, **kwargs):
        super().__init__(api_key="placeholder", **kwargs)
        self.client = SimpleNamespace(chat=SimpleNamespace(completions=Completions()))
"""


class Client:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.payloads: list[dict[str, Any]] = []
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self.create))

    def create(self, **payload: Any) -> Any:
        self.payloads.append(payload)
        message = {"role": "assistant", "content": "yes"}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def ask(model: OpenAICompatible, generation: dict[str, Any] | None = None, count: int = 1) -> list[Any]:
    """Put questions without pictures, as the adapter does."""
    model.task_dict = {"t": {"test": [{}] * count}}
    if model.is_simple:
        fixed = ("why?", generation or {}, lambda doc: [])
    else:
        content = [{"type": "text", "text": "why?"}]
        fixed = ("why?", lambda doc: [{"role": "user", "content": content}], generation or {})
    place = [{"task": "t", "doc_id": number} for number in range(count)]
    return model.generate_until(
        [
            Instance("generate_until", (*fixed, number, "t", "test"), 0, metadata)
            for number, metadata in enumerate(place)
        ]
    )


def payload_of(model: OpenAICompatible, **generation: Any) -> dict[str, Any]:
    model.client = client = Client()
    assert ask(model, generation) == ["yes"]
    return client.payloads[0]


def test_a_simple_plugin_is_scored(plugins: Plugins) -> None:
    plugins.write(SIMPLE)
    with StubServer(model="my-stub") as server:
        done = plugins.run(f"model_version=stub,greeting=my-,base_url={server.url}/")
        assert server.stats()["total"] == DOCUMENTS
    assert (done.code, done.score) == (0, 1.0)
    assert all(sample["token_counts"][0]["output_tokens"] for sample in done.samples)


def test_a_plugin_that_wraps_the_answers_is_scored(plugins: Plugins) -> None:
    plugins.write(WRAPPING, chat=True)
    with StubServer() as server:
        done = plugins.run(f"model_version=stub,base_url={server.url}")
        assert server.stats()["total"] == DOCUMENTS
    assert (done.code, done.score) == (0, 1.0)


def test_failed_requests_fail_their_samples_and_nothing_is_asked_twice(plugins: Plugins) -> None:
    plugins.write(WRAPPING, chat=True)
    with StubServer(fault="400", share=0.3) as server:
        done = plugins.run(f"model_version=stub,base_url={server.url}")
        stats = server.stats()
    failed = stats["by_status"]["400"]
    assert 0 < failed < DOCUMENTS == stats["total"]
    assert done.code == 3 and done.score is None
    assert done.results["outcomes"][NAME]["failed"] == failed


def test_a_plugin_with_a_client_of_its_own_is_scored(plugins: Plugins) -> None:
    plugins.write(WITH_CLIENT, chat=True)
    done = plugins.run("model_version=any,max_retries=0", "--error_budget", "0.5")
    assert (done.code, done.score) == (0, 1.0)
    assert done.results["outcomes"][NAME]["failed"] == 1
    assert [sample["error"] for sample in done.samples if sample.get("error")] == [
        "internal: types.SimpleNamespace raised RuntimeError: no answer today"
    ]


def test_the_payload_of_a_simple_request() -> None:
    content = [{"type": "text", "text": "why?"}]
    fixed = {"model": "m", "messages": [{"role": "user", "content": content}], "temperature": 0}
    assert payload_of(OpenAICompatible(model="m", base_url=BASE)) == {**fixed, "max_tokens": 1024}
    given = payload_of(OpenAICompatible("old", "m", BASE), max_new_tokens=5, until=["\n"], top_k=3)
    assert given == {**fixed, "max_tokens": 5, "stop": ["\n"], "extra_body": {"top_k": 3}}


@for_each("name", ["o1", "openai/o3-mini", "xo4x", "my-gpt-5"])
def test_reasoning_models_by_their_names(name: str) -> None:
    payload = payload_of(OpenAICompatible(model_version=name, base_url=BASE), max_new_tokens=5, temperature=0.5)
    assert payload["max_completion_tokens"] == 5 and payload["response_format"] == {"type": "text"}
    assert not {"max_tokens", "temperature"} & set(payload)


def test_the_payload_of_the_chat_form() -> None:
    model = ChatOpenAI(model="m", base_url=BASE, pass_video_url=True, enable_thinking_kwarg=False, max_frames_num=7)
    assert payload_of(model)["extra_body"] == {
        "media_io_kwargs": {"video": {"num_frames": 7}},
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_attributes_are_those_that_plugins_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/a%20b//")
    model = OpenAICompatible(model="m", adaptive_concurrency=True, adaptive_max_concurrency=4, prefix_hash_chars=99)
    assert (model.model_version, model.base_url) == ("m", "http://127.0.0.1:9/a b")
    assert (model.max_retries, model.retry_backoff_s, model.num_concurrent, model.batch_size) == (5, 1.0, 32, 64)
    assert (model.max_frames_num, model.video_fps, model.max_size_in_mb) == (10, None, 20)
    assert model.adaptive_concurrency and model.adaptive_config.max_concurrency == 4
    assert model.prefix_aware_queue and model.prefix_hash_chars == 99
    assert model.rank == 0 and model.task_dict == {} and model.is_simple and not ChatOpenAI.is_simple
    assert _get_max_new_tokens({"max_new_tokens": 0}) == 1024


def test_its_own_client_is_of_the_package() -> None:
    model = OpenAICompatible(model="m", base_url=BASE, api_key="k", timeout=3)
    assert (model.client.api_key, str(model.client.base_url), model.client.timeout) == ("k", f"{BASE}/", 3)
    model.client.close()


def test_other_keywords_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "lmms_eval"):
        OpenAICompatible(model="m", base_url=BASE, continual_mode=True)
    assert "OpenAICompatible: arguments without effect: continual_mode" in caplog.text


def test_a_wrong_value_is_told_at_once() -> None:
    with pytest.raises(ModelError, match="num_concurrent"):
        OpenAICompatible(model="m", base_url=BASE, num_concurrent=0)


def test_a_failed_request_is_no_empty_answer() -> None:
    model = OpenAICompatible(model="m", base_url=BASE, max_retries=0)
    first, second = ask(model, count=2)
    assert isinstance(first, FailedGeneration) and isinstance(second, FailedGeneration)
    assert first.kind == "connection" and "cannot reach" in first.reason


def test_what_plugins_leave_out_is_said_so() -> None:
    model = OpenAICompatible(model="m", base_url=BASE)
    with pytest.raises(NotImplementedError, match="texts only"):
        model.loglikelihood([])
    with pytest.raises(NotImplementedError, match="one round"):
        model.generate_until_multi_round([])


def test_answers_with_attributes_are_read() -> None:
    answer = SimpleNamespace(choices=(SimpleNamespace(text="a"), {"n": 1}), usage=None)
    assert as_data(answer) == {"choices": [{"text": "a"}, {"n": 1}], "usage": None}
