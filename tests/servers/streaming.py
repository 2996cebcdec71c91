"""Answers of the stub server as server-sent events, in the form of each service, as they are written piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

STREAMS = ":streamGenerateContent"
CAPABLE = ("/chat/completions", "/responses", "/messages", STREAMS)
"""Addresses that stream."""
ERRORS = {
    "/chat/completions": b'data: {"error": {"message": "the engine died", "code": 500}}\n\n',
    "/responses": b'data: {"type": "error", "code": "server_error", "message": "the engine died"}\n\n',
    "/messages": b'data: {"type": "error", "error": {"type": "overloaded_error", "message": "the engine died"}}\n\n',
    ":generateContent": b'data: {"error": {"code": 503, "message": "the engine died", "status": "UNAVAILABLE"}}\n\n',
}
"""Events that report an error."""


def wants(path: str, body: dict[str, Any]) -> bool:
    """Whether a request asks for a stream."""
    return path.endswith(STREAMS) or bool(body.get("stream"))


def events(path: str, reply: dict[str, Any], usage: bool = True) -> list[bytes]:
    """The events of an answer in the form of the address. ``usage``: token counts were asked for."""
    if path.endswith("/messages"):
        made = list(_messages(reply))
    elif path.endswith(":generateContent"):
        made = list(_gemini(reply))
    elif path.endswith("/responses"):
        made = list(_responses(reply))
    else:
        return [*map(_event, _chat(reply, usage)), b"data: [DONE]\n\n"]
    return [f"event: {one.get('type', 'message')}\r\n".encode() + _event(one, "\r\n") for one in made]


def _event(value: dict[str, Any], end: str = "\n") -> bytes:
    return f"data: {json.dumps(value)}{end}{end}".encode()


def _pieces(text: str) -> list[str]:
    """A text in pieces of three characters."""
    return [text[start : start + 3] for start in range(0, len(text), 3)]


def _chat(reply: dict[str, Any], usage: bool) -> Iterator[dict[str, Any]]:
    head = {name: value for name, value in reply.items() if name not in ("choices", "usage")}
    choice = reply["choices"][0]
    message = choice["message"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": "" if isinstance(message["content"], str) else None})
    for name in ("reasoning_content", "content", "refusal"):
        value = message.get(name)
        if isinstance(value, str):
            yield from (chunk({name: piece}) for piece in _pieces(value))
        elif isinstance(value, list):
            yield from (chunk({name: [part]}) for part in value)
    for place, call in enumerate(message.get("tool_calls") or ()):
        function = call.get("function", {})
        begin = {**call, "index": place, "function": {**function, "arguments": ""}}
        yield chunk({"tool_calls": [begin]})
        for piece in _pieces(function.get("arguments", "")):
            yield chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
    yield chunk({}, choice["finish_reason"])
    if usage:
        yield {**head, "choices": [], "usage": reply.get("usage")}


def _responses(reply: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": {**reply, "status": "in_progress", "output": []}}
    for item in reply["output"]:
        for part in (*item.get("summary", ()), *item.get("content", ())):
            kind = "output_text" if part["type"] == "output_text" else "reasoning_summary_text"
            for piece in _pieces(part.get("text", "")):
                yield {"type": f"response.{kind}.delta", "delta": piece}
    yield {"type": f"response.{reply['status']}", "response": reply}


def _messages(reply: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begin = {**reply, "content": [], "stop_reason": None, "usage": {**reply["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": begin}
    yield {"type": "ping"}
    for place, block in enumerate(reply["content"]):
        kind = {"text": "text", "thinking": "thinking"}[block["type"]]
        yield {"type": "content_block_start", "index": place, "content_block": {**block, kind: ""}}
        for piece in _pieces(block[kind]):
            yield {"type": "content_block_delta", "index": place, "delta": {"type": f"{kind}_delta", kind: piece}}
        yield {"type": "content_block_stop", "index": place}
    ending = {name: reply[name] for name in ("stop_reason", "stop_sequence")}
    counts = {name: reply["usage"][name] for name in ("output_tokens", "output_tokens_details")}
    yield {"type": "message_delta", "delta": ending, "usage": counts}
    yield {"type": "message_stop"}


def _gemini(reply: dict[str, Any]) -> Iterator[dict[str, Any]]:
    candidates = reply.get("candidates")
    if not candidates:
        yield reply
        return
    head = {"modelVersion": reply["modelVersion"], "usageMetadata": {"promptTokenCount": 1}}
    for part in candidates[0]["content"]["parts"]:
        pieces = [{**part, "text": piece} for piece in _pieces(part["text"])] if "text" in part else [part]
        for piece in pieces:
            yield {**head, "candidates": [{"index": 0, "content": {"role": "model", "parts": [piece]}}]}
    ending = {"index": 0, "finishReason": candidates[0]["finishReason"]}
    yield {**head, "candidates": [ending], "usageMetadata": reply["usageMetadata"]}
