"""Answers that arrive in pieces (``stream=true``): server-sent events, and the whole answer that they add up to.

Each class collects the events of one answer, and returns the body that the service sends without a stream, so that
both are read by the same functions.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from lmms_eval.api.request import ErrorKind
from lmms_eval.models.remote.errors import STATUS_OF_TYPE, AttemptError, error_in_body, status_error
from lmms_eval.models.remote.reply import REASONING, THOUGHT_TYPES, decode_body

DONE = b"[DONE]"
_JOINED = frozenset({*REASONING, "content", "arguments", "refusal", "text", "thinking", "summary", "signature", "data"})
"""Texts that arrive in pieces. The last piece of all others counts."""
_STREAM_FIELD = b',"stream":true}'
_USAGE_FIELD = b',"stream_options":{"include_usage":true}'


def with_stream(body: bytes, asks_for_usage: bool) -> bytes:
    """Return a body that asks for a stream. ``asks_for_usage``: the token counts have to be asked for."""
    usage = _USAGE_FIELD if asks_for_usage and b'"stream_options"' not in body else b""
    return body.rstrip()[:-1] + usage + _STREAM_FIELD


class EventReader:
    """Divides a stream of bytes into the data of its events."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Add bytes, and yield the data of each event that they complete."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                yield self._take()

    def close(self) -> Iterator[bytes]:
        """Yield the data of a last event without a blank line after it."""
        yield from self.feed(b"\n")
        if self._data:
            yield self._take()

    def _take(self) -> bytes:
        data, self._data = b"\n".join(self._data), []
        return data


class StreamedAnswer(abc.ABC):
    """The events of one answer. ``shown`` is the address for messages."""

    def __init__(self, shown: str) -> None:
        self.shown = shown
        self.body: dict[str, Any] = {}
        """The body so far, with its texts in pieces."""
        self.is_complete = False

    def add(self, data: bytes) -> bool:
        """Add the data of an event, and return whether it has a piece of the answer.

        Raises:
            AttemptError: it is not JSON, or the service reports an error.
        """
        if data == DONE:
            self.is_complete = True
            return False
        try:
            event = decode_body(data)
        except orjson.JSONDecodeError as error:
            raise AttemptError("malformed", f"{self.shown} sent an event that is no JSON ({error})") from error
        if not isinstance(event, dict):
            raise AttemptError("malformed", f"{self.shown} sent an event that is no JSON object")
        if event.get("error"):
            raise self.failure(event, data)
        try:
            return self.take(event)
        except (AttributeError, TypeError, LookupError, ValueError) as error:
            raise AttemptError("malformed", f"{self.shown} sent an event of an unknown form ({error})") from error

    def whole(self) -> dict[str, Any]:
        """Return the body of the whole answer, after the last event."""
        body: dict[str, Any] = _joined(self.body)
        return body

    def failure(self, event: Mapping[str, Any], data: bytes) -> AttemptError:
        """Return the failure that an event reports."""
        return error_in_body(event, data, self.shown)

    @abc.abstractmethod
    def take(self, event: dict[str, Any]) -> bool:
        """Add an event, and return whether it has a piece of the answer."""


class ChatStream(StreamedAnswer):
    """Chunks of a chat completion, or of a plain completion."""

    def __init__(self, shown: str) -> None:
        super().__init__(shown)
        self._choice: dict[str, Any] = {}
        self._message: dict[str, Any] = {}

    def take(self, event: dict[str, Any]) -> bool:
        listed = event.pop("choices", None)
        self.body |= {name: value for name, value in event.items() if value is not None}
        choices = [choice for choice in listed if isinstance(choice, dict)] if isinstance(listed, list) else []
        is_piece = False
        for choice in choices:
            if choice.get("index", 0) == 0:
                is_piece |= self._take_choice(choice)
        return is_piece

    def whole(self) -> dict[str, Any]:
        """Return the body of the whole answer. Tool calls lose their numbers, which only pieces have."""
        for call in self._message.get("tool_calls") or ():
            if isinstance(call, dict):
                call.pop("index", None)
        return super().whole()

    def _take_choice(self, choice: dict[str, Any]) -> bool:
        delta, text = choice.pop("delta", None), choice.pop("text", None)
        if isinstance(text, str):  # of a plain completion
            merge(self._choice, {"text": text})
        if isinstance(delta, dict):
            merge(self._message, delta)
            self._choice["message"] = self._message
        self._choice |= {name: value for name, value in choice.items() if value is not None or name not in self._choice}
        self.body["choices"] = [self._choice]
        self.is_complete = self.is_complete or choice.get("finish_reason") is not None or bool(choice.get("error"))
        has_text = isinstance(text, str) and bool(text)
        return has_text or (isinstance(delta, dict) and any(delta[name] for name in delta if name != "role"))


class ResponsesStream(StreamedAnswer):
    """Events of the Responses API. The last one has the whole answer."""

    def take(self, event: dict[str, Any]) -> bool:
        kind = str(event.get("type"))
        if kind == "error":
            cause: ErrorKind = "rate_limit" if event.get("code") == "rate_limit_exceeded" else "server_error"
            raise AttemptError(cause, f"{self.shown} ended its stream with an error: {event.get('message')}")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self.body, self.is_complete = event.get("response") or {}, True
        return kind.endswith(".delta")


class MessagesStream(StreamedAnswer):
    """Events of Anthropic's Messages API."""

    def __init__(self, shown: str) -> None:
        super().__init__(shown)
        self._blocks: dict[Any, dict[str, Any]] = {}

    def failure(self, event: Mapping[str, Any], data: bytes) -> AttemptError:
        """Return the failure that an event reports, by the status of its type."""
        error = event["error"]
        kind = str(error.get("type")) if isinstance(error, Mapping) else ""
        return status_error(STATUS_OF_TYPE.get(kind, 500), data, {}, self.shown, "ANTHROPIC_API_KEY")

    def take(self, event: dict[str, Any]) -> bool:
        kind, place = event.get("type"), event.get("index")
        if kind == "message_start":
            self.body = dict(event.get("message") or {})
        elif kind == "content_block_start":
            self._blocks[place] = dict(event.get("content_block") or {})
        elif kind == "content_block_delta":
            delta = dict(event.get("delta") or {})
            delta.pop("type", None)
            merge(self._blocks.setdefault(place, {}), delta)
        elif kind == "message_delta":
            self.body |= event.get("delta") or {}
            counts = {name: value for name, value in (event.get("usage") or {}).items() if value is not None}
            self.body["usage"] = {**(self.body.get("usage") or {}), **counts}
        self.is_complete = self.is_complete or kind == "message_stop"
        self.body["content"] = list(self._blocks.values())
        return kind == "content_block_delta"


class GeminiStream(StreamedAnswer):
    """Chunks of Gemini's answers. Each chunk has the form of an answer."""

    def take(self, event: dict[str, Any]) -> bool:
        candidates = event.pop("candidates", None)
        self.body |= {name: value for name, value in event.items() if value is not None}
        if self.body.get("promptFeedback", {}).get("blockReason"):
            self.is_complete = True
        if not isinstance(candidates, list) or not candidates or not isinstance(candidates[0], dict):
            return False
        given = candidates[0]
        whole = self.body.setdefault("candidates", [{}])[0]
        content = given.pop("content", None)
        whole |= given
        self.is_complete = self.is_complete or given.get("finishReason") is not None
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts or ():
            _add_part(whole.setdefault("content", {"role": "model", "parts": []})["parts"], part)
        return bool(parts)


def _add_part(parts: list[dict[str, Any]], part: dict[str, Any]) -> None:
    """Add a part; a text that continues the last one is joined to it."""
    last = parts[-1] if parts else {}
    if "text" in part and "text" in last and bool(part.get("thought")) == bool(last.get("thought")):
        merge(last, {"text": part["text"]})
    else:
        parts.append(part)


class _Pieces(list[str]):
    """A text in pieces, which are joined at the end: adding each to the text so far would take quadratic time."""


def _joined(value: Any) -> Any:
    """Return a value with all texts joined."""
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {name: _joined(one) for name, one in value.items()}
    return [_joined(one) for one in value] if isinstance(value, list) else value


def merge(whole: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece of a message to the message so far."""
    for name, value in piece.items():
        known = whole.get(name)
        if value is None:
            whole.setdefault(name, None)
        elif isinstance(value, str) and isinstance(known, _Pieces):
            known.append(value)
        elif isinstance(value, str) and isinstance(known, str):
            whole[name] = _Pieces((known, value)) if name in _JOINED else value or known
        elif isinstance(value, Mapping) and isinstance(known, dict):
            merge(known, value)
        elif isinstance(value, list):
            whole[name] = known if isinstance(known, list) else []
            for item in value:
                _add_item(whole[name], item)
        else:
            whole[name] = value


def _add_item(items: list[Any], item: Any) -> None:
    """Add an item of a list: tool calls and details have their place, and pieces of a thought follow each other."""
    if not isinstance(item, dict):
        items.append(item)
        return
    if isinstance(item.get("index"), int):
        found = next((known for known in items if known.get("index") == item["index"]), None)
    else:
        last = items[-1] if items and isinstance(items[-1], dict) else {}
        found = last if item.get("type") in THOUGHT_TYPES and last.get("type") == item["type"] else None
    if found is None:
        found = {}
        items.append(found)
    merge(found, item)
