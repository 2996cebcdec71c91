"""Wire forms of other services, as translations from and to chat completions: the stub decides in one form.

The address tells the form: ``.../responses`` (OpenAI), ``.../messages`` (Anthropic), ``...:generateContent``
(Gemini), ``.../images/generations`` (pictures: one of the description's colour); ``.../chat/completions`` needs none
(Azure uses it at another address).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from tests.painting import png

KEY_HEADERS = ("authorization", "api-key", "x-api-key", "x-goog-api-key")
ENDS = (
    "/chat/completions", "/responses", "/messages", ":generateContent", ":streamGenerateContent", "/images/generations",
)  # fmt: skip
TEXT_TYPES = ("text", "input_text", "output_text")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAwUyiKAAAAABJRU5ErkJggg=="
"""A picture of one pixel (PNG)."""
PICTURES = [
    {"type": "text", "text": "before "},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    {"type": "text", "text": "after"},
]
"""Content of an answer with a picture between two texts."""
STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED"}


def is_known(path: str) -> bool:
    return path.endswith(ENDS)


def read(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """A request as chat completion; media become parts of type ``media``."""
    if path.endswith("/responses"):
        return {"model": body["model"], "messages": [_turn(turn) for turn in body["input"]]}
    if path.endswith("/messages"):
        return {"model": body["model"], "messages": [_turn(turn) for turn in body["messages"]]}
    if path.endswith(":generateContent"):
        model = path.rpartition("/")[2].partition(":")[0]
        messages = [
            {"role": "assistant" if turn["role"] == "model" else "user", "content": [_gemini(p) for p in turn["parts"]]}
            for turn in body["contents"]
        ]
        return {"model": model, "messages": messages}
    if path.endswith("/images/generations"):
        return {"model": body["model"], "messages": [{"role": "user", "content": body["prompt"]}]}
    return body


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    content = turn["content"]
    if isinstance(content, str):
        return {"role": turn["role"], "content": content}
    assert all(part.get("text", "x").strip() for part in content), "a text without a visible character"
    parts = [{"type": "text", "text": p["text"]} if p["type"] in TEXT_TYPES else {"type": "media"} for p in content]
    return {"role": turn["role"], "content": parts}


def _gemini(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": part["text"]} if "text" in part else {"type": "media"}


def write(path: str, reply: dict[str, Any]) -> dict[str, Any]:
    """A completion, or an error, in the form of the address."""
    if path.endswith("/chat/completions"):
        return reply
    choices = reply.get("choices")
    if not choices:
        return _error(path, reply)
    choice = choices[0]
    message, usage = choice["message"], reply.get("usage") or {}
    finish = choice.get("finish_reason", "stop")
    form = {"/responses": _responses, "/messages": _messages, "generateContent": _gemini_answer, "/generations": _drawn}
    make: Callable[..., dict[str, Any]] = next(value for end, value in form.items() if path.endswith(end))
    return make(message, finish, usage, reply.get("model", ""))


def _error(path: str, reply: dict[str, Any]) -> dict[str, Any]:
    error = reply.get("error")
    if error is None:
        return {}
    if path.endswith("/messages"):
        return {"type": "error", "error": {"type": error.get("code"), "message": error["message"]}}
    if path.endswith(":generateContent"):
        code = error.get("code")
        number = int(code) if str(code).isdigit() else 400
        return {"error": {"code": number, "message": error["message"], "status": STATUS.get(number, "INTERNAL")}}
    return reply


def _texts(message: Mapping[str, Any]) -> list[str]:
    content = message["content"]
    if isinstance(content, list):
        return [part["text"] for part in content if part["type"] == "text"]
    return [] if content is None else [content]


def _responses(message: Mapping[str, Any], finish: str, usage: Mapping[str, Any], model: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "output_text", "text": text} for text in _texts(message)]
    if message.get("refusal"):
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    output: list[dict[str, Any]] = [{"type": "message", "role": "assistant", "content": parts}]
    if message.get("reasoning_content"):
        output.insert(0, {"type": "reasoning", "summary": [{"type": "summary_text", "text": "a thought"}]})
    cause = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(finish)
    details = usage.get("completion_tokens_details", {})
    return {
        "object": "response",
        "model": model,
        "status": "incomplete" if cause else "completed",
        "incomplete_details": {"reason": cause} if cause else None,
        "error": None,
        "output": output,
        "usage": {
            "input_tokens": usage.get("prompt_tokens"),
            "output_tokens": usage.get("completion_tokens"),
            "output_tokens_details": {"reasoning_tokens": details.get("reasoning_tokens", 0)},
        },
    }


def _messages(message: Mapping[str, Any], finish: str, usage: Mapping[str, Any], model: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text} for text in _texts(message)]
    if message.get("reasoning_content"):
        content.insert(0, {"type": "thinking", "thinking": "a thought", "signature": "s"})
    reason = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}[finish]
    return {
        "id": "msg_stub",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "refusal" if message.get("refusal") else reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.get("prompt_tokens"),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 2,
            "output_tokens": usage.get("completion_tokens"),
            "output_tokens_details": {"thinking_tokens": 7 if message.get("reasoning_content") else 0},
        },
    }


def _drawn(message: Mapping[str, Any], finish: str, usage: Mapping[str, Any], model: str) -> dict[str, Any]:
    """A picture that tells its description: the answer's text gives the colour."""
    said = "".join(_texts(message)).encode()
    return {"data": [{"b64_json": base64.b64encode(png(hashlib.sha256(said).digest()[0])).decode()}]}


def _gemini_answer(message: Mapping[str, Any], finish: str, usage: Mapping[str, Any], model: str) -> dict[str, Any]:
    counts = {
        "promptTokenCount": usage.get("prompt_tokens"),
        "candidatesTokenCount": usage.get("completion_tokens"),
        "thoughtsTokenCount": 7 if message.get("reasoning_content") else 0,
    }
    if message.get("refusal"):
        return {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": counts, "modelVersion": model}
    parts: list[dict[str, Any]] = [{"text": text} for text in _texts(message)]
    if message["content"] is PICTURES:
        picture = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
        parts = [{**picture, "thought": True}, parts[0], picture, parts[1]]
    if message.get("reasoning_content"):
        parts.insert(0, {"text": "a thought", "thought": True})
    reason = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}[finish]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}
    return {"candidates": [candidate], "usageMetadata": counts, "modelVersion": model}
