"""Answers in pieces, from every service that has them, against the same answers as a whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from lmms_eval.api.request import Response
from lmms_eval.errors import ModelError
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.models.remote.reply import read_completion
from lmms_eval.models.remote.streams import ChatStream, EventReader, GeminiStream, MessagesStream, with_stream
from tests.cases import for_each
from tests.models.openai.support import ask, make_request
from tests.servers.cutting import CuttingProxy
from tests.servers.stub import StubServer

SERVICES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "chat": ("openai", "/v1", {}),
    "responses": ("openai", "/v1", {"api": "responses"}),
    "anthropic": ("anthropic", "", {}),
    "gemini": ("gemini", "", {}),
}
"""The back end of each service, the end of its address, and further arguments."""
MODULES = {"anthropic": "anthropic", "gemini": "google.genai"}
FAULTS = (
    "",
    "truncated",
    "empty",
    "refusal",
    "parts",
    "reasoning",
    "content_filter",
    "tool_call",
    "pictures",
    "filtered_text",
)


def response(service: str, port: int, **arguments: Any) -> Response:
    backend, path, own = SERVICES[service]
    if backend in MODULES:
        pytest.importorskip(MODULES[backend])
    given = {
        "model": "m", "base_url": f"http://127.0.0.1:{port}{path}", "api_key": "sk-secret-0123456789",
        "retry_backoff_s": 0.01, "max_retries": 1, **own, **arguments,
    }  # fmt: skip
    model, _ = ModelRegistry().build(backend, given)
    return ask(model, [make_request("one", "look at it ANSWER=a longer answer in several pieces")])["one"]


@for_each("service", tuple(SERVICES))
def test_a_stream_is_read_as_the_whole_answer(service: str) -> None:
    for fault in FAULTS:
        if service != "chat" and fault in ("tool_call", "pictures"):
            continue
        with StubServer(fault=fault) as server:
            whole, streamed = (response(service, server.port, stream=stream) for stream in (False, True))
        assert (whole.error is None and whole.ttft is None and streamed.ttft is not None) or fault in (
            "empty",
            "refusal",
            "content_filter",
        )
        bare = replace(streamed, latency=whole.latency, ttft=None, tokens_per_second=None)
        assert bare == whole, fault


@for_each("service", tuple(SERVICES))
def test_failures(service: str) -> None:
    for fault, kind, words in (
        ("500", "server_error", "HTTP 500"),
        ("400", "bad_request", "HTTP 400"),
        ("cut_stream", "connection", "in the middle of an answer"),
        ("error_in_stream", "", "the engine died"),
        ("echo_key", "bad_request", "REDACTED"),
        ("reset", "connection", "broke"),
        ("malformed", "malformed", ""),
    ):
        with StubServer(fault=fault) as server:
            found = response(service, server.port, stream=True)
        assert found.error is not None and words in found.error.message, (fault, found)
        assert found.error.kind == kind or not kind
        assert found.attempts == (1 if kind == "bad_request" else 2)


@for_each("service", tuple(SERVICES))
def test_a_stream_that_was_cut_is_asked_again(service: str) -> None:
    with StubServer(fault="cut_stream", times=1) as server:
        found = response(service, server.port, stream=True)
    assert found.text == "a longer answer in several pieces" and found.attempts == 2


@for_each("service", tuple(SERVICES))
def test_a_server_that_does_not_stream(service: str) -> None:
    with StubServer(fault="no_stream") as server:
        found = response(service, server.port, stream=True)
    assert found.text == "a longer answer in several pieces" and found.ttft is None


@for_each("service", tuple(SERVICES))
def test_a_proxy_that_cuts_silences(service: str) -> None:
    """The answer takes longer than the proxy is patient, but its pieces do not."""
    with StubServer(pieces=0.05) as server, CuttingProxy(server.port, 0.3) as proxy:
        cut = response(service, proxy.port, max_retries=0)
        whole = response(service, proxy.port, stream=True)
    assert cut.error is not None and cut.error.kind == "connection"
    assert whole.error is None and whole.text == "a longer answer in several pieces"
    assert whole.ttft is not None and whole.latency is not None and whole.ttft < whole.latency
    if service != "responses":
        assert whole.tokens_per_second is not None and 1 < whole.tokens_per_second < 1000


def test_the_idle_timeout_limits_silences_not_answers() -> None:
    with StubServer(pieces=0.1) as server:
        found = response("chat", server.port, stream=True, timeout=0.3, idle_timeout=0.5)
        assert found.error is None and (found.latency or 0) > 0.5
        silent = response("chat", server.port, stream=True, idle_timeout=0.02, max_retries=0)
    assert silent.error is not None and silent.error.kind == "timeout"
    assert "was silent for 0.02 s (idle_timeout=...)" in silent.error.message


def test_the_size_of_a_stream_is_limited() -> None:
    with StubServer(reply="x" * 40_000) as server:
        found = response("chat", server.port, stream=True, max_reply_mb=1)
    assert found.error is not None and "max_reply_mb" in found.error.message and found.attempts == 1


def test_bodies() -> None:
    with StubServer() as server:
        response("chat", server.port, stream=True)
        response("chat", server.port, stream=True, extra_body={"stream_options": {"include_usage": False}})
        bodies = server.bodies()
    assert [body["stream"] for body in bodies] == [True, True]
    assert [body["stream_options"]["include_usage"] for body in bodies] == [True, False]
    assert json.loads(with_stream(b'{"a":"\\"stream_options\\""}', True))["stream_options"] == {"include_usage": True}


def test_a_batch_is_no_stream() -> None:
    with pytest.raises(ModelError, match="leave out one of stream and batch"):
        ModelRegistry().build(
            "openai", {"model": "m", "base_url": "http://127.0.0.1:1/v1", "batch": True, "stream": True}
        )


@for_each("cut", range(1, 12))
def test_events_may_be_divided_anywhere(cut: int) -> None:
    data = b": a comment\r\n\r\nevent: x\r\ndata: one\r\n\r\ndata:two\ndata: three\n\n\n\ndata: four"
    reader = EventReader()
    found = [event for start in range(0, len(data), cut) for event in reader.feed(data[start : start + cut])]
    assert [*found, *reader.close()] == [b"one", b"two\nthree", b"four"]


def chunks(*deltas: dict[str, Any]) -> ChatStream:
    stream = ChatStream("http://x")
    for delta in deltas:
        stream.add(json.dumps({"model": "m", "choices": [{"index": 0, "delta": delta}]}).encode())
    return stream


def test_tool_calls_in_pieces() -> None:
    stream = chunks(
        {"role": "assistant", "content": None},
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "look", "arguments": '{"x"'}}]},
        {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "turn", "arguments": "{}"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
    )
    reply = read_completion(stream.whole(), b"", "http://x")
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
        ("a", "look", '{"x": 1}'),
        ("b", "turn", "{}"),
    ]
    assert all("index" not in call.fields for call in reply.calls), "they are sent back to the server"


def test_thoughts_in_pieces() -> None:
    parts = ({"type": "thinking", "thinking": "a"}, {"type": "thinking", "thinking": "b"})
    for stream in (
        chunks({"reasoning": "a"}, {"reasoning": "b"}),
        chunks(*({"thinking_blocks": [part]} for part in parts)),
        chunks(*({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": text}]} for text in "ab")),
        chunks(*({"content": [part]} for part in parts)),
    ):
        assert read_completion(stream.whole(), b"", "http://x").reasoning == "ab"


def test_garbage() -> None:
    for data in (b"{", b"[]", b"7", b"null"):
        with pytest.raises(AttemptError, match="http://x"):
            ChatStream("http://x").add(data)
    for event in ({"choices": 7}, {"choices": [7]}, {"choices": [{"delta": 7}]}, {"choices": [{"text": 7}]}, {}):
        stream = ChatStream("http://x")
        assert not stream.add(json.dumps(event).encode()) and not stream.is_complete
    for kind, event in (
        (GeminiStream, {"candidates": [{"content": {"parts": [7]}}]}), (GeminiStream, {"promptFeedback": 7}),
        (MessagesStream, {"type": "message_start", "message": 7}),
        (MessagesStream, {"type": "message_delta", "usage": 7}),
        (MessagesStream, {"type": "content_block_delta", "index": [], "delta": {}}),
    ):  # fmt: skip
        with pytest.raises(AttemptError, match="http://x sent an event of an unknown form"):
            kind("http://x").add(json.dumps(event).encode())
