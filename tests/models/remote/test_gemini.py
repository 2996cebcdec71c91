"""The back end ``gemini``: the real package against a server that speaks the ``generateContent`` form."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Response
from lmms_eval.errors import ModelError
from lmms_eval.models.registry import ModelRegistry
from tests.media.draw import tone, write_video
from tests.models.openai.support import ask, make_request
from tests.servers.stub import StubServer

pytest.importorskip("google.genai", reason="the extra 'gemini' is not installed")
KEY = "gemini-secret-0123456789"


def build(server: StubServer | None = None, **arguments: Any) -> Any:
    base = f"http://127.0.0.1:{server.port if server else 1}"
    given = {"model": "gemini-x", "base_url": base, "api_key": KEY, "retry_backoff_s": 0.01, "max_retries": 2}
    return ModelRegistry().build("gemini_api", {**given, **arguments})[0]


def ask_one(server: StubServer, request: Any = None, **arguments: Any) -> Response:
    return ask(build(server, **arguments), [request or make_request("one")])["one"]


def test_many_requests() -> None:
    with StubServer(key=KEY, delay=0.02) as server:
        model = build(server, num_concurrent=8)
        found = ask(model, [make_request(number) for number in range(40)])
        stats, head, body = server.stats(), server.heads()[0], server.bodies()[0]
    assert {name: response.text for name, response in found.items()} == {str(n): str(n) for n in range(40)}
    assert stats["total"] == 40 and 4 <= stats["max_in_flight"] <= 8
    assert head.startswith("POST /v1") and "/models/gemini-x:generateContent " in head
    assert body["generationConfig"] == {"maxOutputTokens": 16, "temperature": 0}
    usage = found["0"].usage
    assert usage is not None and usage.input_tokens and usage.output_tokens and usage.reasoning_tokens == 0
    assert KEY not in repr(model.describe()) + repr(model.identity())


@pytest.mark.parametrize(
    ("settings", "kind", "attempts", "words"),
    [
        ({"fault": "500"}, "server_error", 3, "HTTP 500"),
        ({"fault": "503"}, "server_error", 3, "HTTP 503"),
        ({"fault": "429", "retry_after": "0.02"}, "rate_limit", 3, "HTTP 429"),
        ({"fault": "401"}, "auth", 1, "GEMINI_API_KEY"),
        ({"fault": "400"}, "bad_request", 1, "HTTP 400"),
        ({"fault": "context_length"}, "bad_request", 1, "context length"),
        ({"fault": "malformed"}, "malformed", 3, "no valid answer"),
        ({"fault": "no_choices"}, "malformed", 3, "no candidates"),
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
        ("content_filter", "", "content_filter", 0),
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


def test_system_prompt_and_options() -> None:
    turns = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "text", "text": "One?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "1"}]},
        {"role": "user", "content": [{"type": "text", "text": "Two? ANSWER=2 f 3"}]},
    ]
    options = {"max_new_tokens": 9, "temperature": 0.5, "until": [*"abcde", " f"], "top_k": 4, "min_p": 0.1}
    messages = ChatMessages.model_validate({"messages": turns})
    request = make_request("one", messages=messages, generation=options, seed=77)
    with StubServer() as server:
        model = build(server, reasoning_effort="low", thinking_budget=64)
        assert ask(model, [request])["one"].text == "2"
        body = server.bodies()[0]
    config = body["generationConfig"]
    assert config["stopSequences"] == list("abcde") and config["topK"] == 4 and config["seed"] == 77
    assert config["temperature"] == 0.5 and config["maxOutputTokens"] == 9
    assert sorted(map(str, config["thinkingConfig"].values())) == ["64", "LOW"]
    assert body["systemInstruction"]["parts"][0]["text"] == "Be brief."
    assert [turn["role"] for turn in body["contents"]] == ["user", "model", "user"]
    assert model.describe()["ignored_generation_options"] == ["min_p"]


def media_of(server: StubServer) -> list[tuple[str, bytes]]:
    parts = server.bodies()[0]["contents"][0]["parts"]
    inline = [part["inlineData"] for part in parts if "inlineData" in part]
    # The package sends inner names in either form; the service takes both.
    return [
        (item.get("mimeType") or item["mime_type"], base64.b64decode(item["data"], altchars=b"-_")) for item in inline
    ]


def test_pictures_sound_and_frames(tmp_path: Path) -> None:
    film = write_video(tmp_path / "film.mp4", 12)
    sound = {"array": tone(), "sampling_rate": 8000}
    request = make_request("one", visuals=[Image.new("RGB", (9, 9)), sound, str(film)])
    with StubServer() as server:
        assert ask_one(server, request, max_frames_num=3).text == "one"
        media = media_of(server)
    assert [mime for mime, _ in media] == ["image/png", "audio/wav", "image/png", "image/png", "image/png"]
    assert media[0][1].startswith(b"\x89PNG") and media[1][1].startswith(b"RIFF")


def test_a_video_as_it_is(tmp_path: Path) -> None:
    film = write_video(tmp_path / "film.mp4", 12)
    with StubServer() as server:
        assert ask_one(server, make_request("one", visuals=[str(film)]), pass_video=True).text == "one"
        assert media_of(server) == [("video/mp4", film.read_bytes())]
    part = {"type": "video", "url": str(film), "start_time": 0.0, "end_time": 0.2}
    turns = [{"role": "user", "content": [part, {"type": "text", "text": "ANSWER=x"}]}]
    messages = ChatMessages.model_validate({"messages": turns})
    with StubServer() as server:
        ask_one(server, make_request("one", messages=messages), pass_video=True, max_frames_num=2)
        assert [mime for mime, _ in media_of(server)] == ["image/png"] * 2


def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match="GEMINI_API_KEY"):
        build(api_key=None)
