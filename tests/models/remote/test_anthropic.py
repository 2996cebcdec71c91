"""The back end ``anthropic``: the real package against a server that speaks the Messages form."""

from __future__ import annotations

import base64
import io
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Response
from lmms_eval.errors import MediaError, ModelError
from lmms_eval.models.registry import ModelRegistry
from tests.media.draw import write_video
from tests.models.openai.support import ask, make_request
from tests.servers.stub import StubServer

pytest.importorskip("anthropic", reason="the extra 'anthropic' is not installed")
KEY = "sk-ant-secret-0123456789"


def build(server: StubServer | None = None, **arguments: Any) -> Any:
    base = f"http://127.0.0.1:{server.port if server else 1}"
    given = {"model": "claude-x", "base_url": base, "api_key": KEY, "retry_backoff_s": 0.01, "max_retries": 2}
    return ModelRegistry().build("claude", {**given, **arguments})[0]


def ask_one(server: StubServer, request: Any = None, **arguments: Any) -> Response:
    return ask(build(server, **arguments), [request or make_request("one")])["one"]


def payload(request: Any, **arguments: Any) -> dict[str, Any]:
    call: dict[str, Any] = build(**arguments).prepare(request).payload
    return call


def test_many_requests() -> None:
    with StubServer(key=KEY, delay=0.02) as server:
        model = build(server, num_concurrent=8)
        found = ask(model, [make_request(number) for number in range(40)])
        stats, head, body = server.stats(), server.heads()[0], server.bodies()[0]
    assert {name: response.text for name, response in found.items()} == {str(n): str(n) for n in range(40)}
    assert stats["total"] == 40 and 4 <= stats["max_in_flight"] <= 8
    assert head.startswith("POST /v1/messages ") and "anthropic-version" in head.lower()
    assert body["max_tokens"] == 16 and body["temperature"] == 0
    usage = found["0"].usage
    assert usage is not None and usage.input_tokens == 2 + 5 and usage.output_tokens and usage.reasoning_tokens == 0
    record = model.describe()
    assert record["requests"] == record["attempts"] == 40 and record["bytes_sent"] > 0
    assert KEY not in repr(record) + repr(model.identity())


@pytest.mark.parametrize(
    ("settings", "kind", "attempts", "words"),
    [
        ({"fault": "500"}, "server_error", 3, "HTTP 500"),
        ({"fault": "529"}, "server_error", 3, "HTTP 529"),
        ({"fault": "429", "retry_after": "0.02"}, "rate_limit", 3, "HTTP 429"),
        ({"fault": "401"}, "auth", 1, "ANTHROPIC_API_KEY"),
        ({"fault": "400"}, "bad_request", 1, "HTTP 400"),
        ({"fault": "context_length"}, "bad_request", 1, "context length"),
        ({"fault": "413"}, "bad_request", 1, "max_image_bytes"),
        ({"fault": "malformed"}, "malformed", 3, "no valid answer"),
        ({"fault": "reset"}, "connection", 3, "broke"),
        ({"fault": "half_closed"}, "connection", 3, "broke"),
        ({"fault": "slow", "slow": 5}, "timeout", 3, "within 0.2 s"),
        ({"fault": "echo_key"}, "bad_request", 1, "REDACTED"),
    ],
)
def test_failures(settings: dict[str, Any], kind: str, attempts: int, words: str) -> None:
    with StubServer(**settings) as server:
        started = time.perf_counter()
        response = ask_one(server, timeout=0.2 if settings["fault"] == "slow" else 20)
        assert time.perf_counter() - started < 6
        assert server.stats()["total"] == attempts
    assert response.error is not None and response.error.kind == kind
    assert words in response.error.message and KEY not in response.error.message


def test_a_server_that_is_not_there() -> None:
    response = ask(build(None, max_retries=5), [make_request("one")])["one"]
    assert response.error is not None and response.error.kind == "connection" and response.attempts == 3
    assert "is the server running" in response.error.message


@pytest.mark.parametrize(
    ("fault", "text", "finish", "thought"),
    [
        ("truncated", "cut o", "length", 0),
        ("refusal", "", "content_filter", 0),
        ("empty", "", "stop", 0),
        ("parts", "parts", "stop", 0),
        ("reasoning", "", "stop", 7),
    ],
)
def test_endings(fault: str, text: str, finish: str, thought: int) -> None:
    with StubServer(fault=fault) as server:
        response = ask_one(server)
    assert (response.text, response.finish_reason) == (text, finish)
    assert response.usage is not None and response.usage.reasoning_tokens == thought


def test_system_prompt_options_and_thinking() -> None:
    turns = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "text", "text": " "}, {"type": "text", "text": "What? ANSWER=a b"}]},
    ]
    messages = ChatMessages.model_validate({"messages": turns})
    options = {"max_new_tokens": 9, "temperature": 1.5, "until": ["END", "\n\n"], "top_k": 4, "min_p": 0.1}
    request = make_request("one", messages=messages, generation=options)
    with StubServer() as server:
        model = build(server, reasoning_effort="low")
        assert ask(model, [request])["one"].text == "a b"
        body = server.bodies()[0]
        assert ask_one(server, request, thinking_budget=2048).text == "a b"
        thinking = server.bodies()[1]
    assert body["system"] == "Be brief." and body["stop_sequences"] == ["END"] and body["max_tokens"] == 9
    assert body["temperature"] == 1.0 and body["top_k"] == 4 and body["output_config"] == {"effort": "low"}
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "What? ANSWER=a b"}]}]
    assert model.describe()["ignored_generation_options"] == ["min_p", "seed"]
    assert thinking["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert thinking["max_tokens"] == 9 + 2048 and "temperature" not in thinking
    assert "temperature" not in payload(request, sampling_options=False).get("extra_body", {})


def test_a_stop_string_of_white_space_ends_the_answer_here() -> None:
    request = make_request("one", "ANSWER=first\n\nsecond", generation={"until": ["\n\n"]})
    with StubServer() as server:
        response = ask_one(server, request)
        assert "stop_sequences" not in server.bodies()[0]
    assert (response.text, response.finish_reason) == ("first", "stop")


def decoded(block: dict[str, Any]) -> Image.Image:
    assert block["type"] == "image" and block["source"]["type"] == "base64"
    return Image.open(io.BytesIO(base64.b64decode(block["source"]["data"])))


def test_pictures_fit_the_limits_of_the_service() -> None:
    one = payload(make_request("one", visuals=[Image.new("RGB", (8100, 20))]))["messages"][0]["content"]
    assert max(decoded(one[0]).size) == 8000
    many = payload(make_request("one", visuals=[Image.new("RGB", (2500, 10))] * 21))["messages"][0]["content"]
    assert [max(decoded(block).size) for block in many[:-1]] == [2000] * 21
    noise = Image.effect_noise((1200, 1200), 90)
    call = payload(make_request("one", visuals=[noise]), max_image_bytes=100_000)
    assert len(call["messages"][0]["content"][0]["source"]["data"]) <= 100_000 * 4 / 3 + 4


def test_pictures_arrive(tmp_path: Path) -> None:
    path = write_video(tmp_path / "film.mp4", 12)
    with StubServer() as server:
        response = ask_one(server, make_request("one", visuals=[str(path)]), max_frames_num=3)
        content = server.bodies()[0]["messages"][0]["content"]
    assert response.text == "one" and [block["type"] for block in content] == ["image"] * 3 + ["text"]


def test_sound_is_refused() -> None:
    sound = {"array": [0.0] * 800, "sampling_rate": 8000}
    with pytest.raises(MediaError, match="takes no sound"):
        payload(make_request("one", visuals=[sound]))


def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ModelError, match="ANTHROPIC_API_KEY"):
        build(api_key=None)


def test_long_answers_need_no_streaming() -> None:
    with StubServer() as server:
        response = ask_one(server, make_request("one", generation={"max_new_tokens": 64_000}))
    assert response.text == "one"
