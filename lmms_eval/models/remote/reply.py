"""Replies of models: texts, pictures, tool calls and likelihoods; and the parsing of chat completions."""

from __future__ import annotations

import base64
import codecs
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.request import GeneratedImage, Part, Usage
from lmms_eval.errors import MediaError
from lmms_eval.models.remote.errors import AttemptError, error_in_body, shorten

TRUNCATED = frozenset({"length", "max_tokens", "max_output_tokens", "max_length", "model_length"})
"""Finish reasons for answers that the token limit ended, in lower case."""
BROKEN_OFF = frozenset({"error", "abort", "aborted", "cancelled", "canceled", "failed"})
"""Finish reasons for incomplete answers, in lower case."""
PICTURE_TYPES = ("image_url", "output_image")
"""Types of message parts with a picture as data URL in ``image_url``."""
REASONING = ("reasoning_content", "reasoning", "thinking", "thinking_blocks", "reasoning_details")
"""Fields of a message where servers return thoughts. The first one that is not empty counts."""
THOUGHT_TYPES = ("thinking", "reasoning", "reasoning_text", "reasoning.text", "reasoning.summary", "summary_text")
"""Types of content parts that are thoughts."""
_WORDS = ("text", "thinking", "content", "summary", "reasoning", "reasoning_content")


class ToolCall(Struct, frozen=True):
    """A tool call in a reply."""

    id: str
    name: str
    arguments: str
    """The text by the model, which should be JSON."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The call as sent by the server. Some servers expect their additional fields back."""

    @property
    def function(self) -> Mapping[str, Any]:
        """The object ``function`` as sent by the server."""
        function = self.fields.get("function")
        return function if isinstance(function, Mapping) else {}


class Reply(Struct, frozen=True):
    """The answer of a server.

    ``parts`` are the texts and pictures in order; empty if there are no pictures.
    """

    text: str
    finish_reason: str | None
    usage: Usage | None
    reasoning: str = ""
    """Thoughts that the server returned separately from the text."""
    ended_by: str | None = None
    """The stop string that ended the answer; empty if none did, and ``None`` if the server does not report it."""
    parts: tuple[Part, ...] = ()
    model: str | None = None
    """The model name that the server reports."""
    likelihood: tuple[float, bool] | None = None
    """If requested instead of a text: the log probability of a continuation, and whether it is the greedy answer."""
    calls: tuple[ToolCall, ...] = ()
    message: Mapping[str, Any] = field(default_factory=dict)
    """The message as sent by the server, if it has calls. It is sent back with their results."""
    timing: tuple[float, float] | None = None
    """Of a stream: the seconds until its first piece, and from there to its last one; 0 if both arrived together."""

    @classmethod
    def of_parts(
        cls, parts: Sequence[Part], finish_reason: str | None, usage: Usage | None, model: str | None = None
    ) -> Reply:
        """Build a reply from texts and pictures in order."""
        text = "".join(part for part in parts if isinstance(part, str))
        has_picture = any(isinstance(part, GeneratedImage) for part in parts)
        pieces = tuple(part for part in parts if part) if has_picture else ()
        return cls(text, finish_reason, usage, parts=pieces, model=model)


def scored_reply(scores: Sequence[tuple[float, float]], input_tokens: int | None, model: str | None = None) -> Reply:
    """Return the likelihood of a continuation after its prompt, which have ``input_tokens`` together.

    A score is the log probability of a token of the continuation, and that of the most likely token at its position.
    """
    is_greedy = all(own >= highest for own, highest in scores)
    likelihood = (math.fsum(own for own, _ in scores), is_greedy)
    return Reply("", None, Usage(input_tokens, 0), model=model, likelihood=likelihood)


def parse_reply(raw: bytes, url: str) -> Reply:
    """Read a completion of status 200.

    An empty text with a normal finish is a valid reply. If the content is null, the text is the refusal, or empty.
    Reasoning is never the text: if there is nothing else, it is a thought without an answer. Raises ``AttemptError`` if
    the body is malformed, or contains an ``error`` object.
    """
    try:
        body = decode_body(raw)
    except orjson.JSONDecodeError as error:
        raise _malformed(url, f"no JSON ({error}): {shorten(raw[:400].decode('utf-8', 'replace'))}") from error
    return read_completion(body, raw, url)


def decode_body(raw: bytes) -> Any:
    """Decode a JSON body. A byte order mark is dropped, and half of a surrogate pair becomes U+FFFD.

    Some servers always send the former, and send the latter if a tokenizer splits an emoji. A retry would not help.

    Raises:
        orjson.JSONDecodeError: the body is not JSON.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        try:
            text = raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogatepass")
            return _without_surrogates(json.loads(text))
        except (ValueError, RecursionError):
            raise error from None


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def read_completion(body: Any, raw: bytes, url: str) -> Reply:
    """Read a decoded body as ``parse_reply`` does. ``raw`` is shown if it holds an error. Raises ``AttemptError``."""
    if not isinstance(body, dict):
        raise _malformed(url, "no JSON object")
    if body.get("error"):
        raise error_in_body(body, raw, url)
    listed = body.get("choices")
    choices = [choice for choice in listed if isinstance(choice, dict)] if isinstance(listed, list) else []
    if not choices:
        raise _malformed(url, "no choices")
    choice = next((choice for choice in choices if choice.get("index") == 0), choices[0])
    message = choice.get("message")
    finish = read_finish(choice, url)
    if not isinstance(message, dict):
        raise _malformed(url, "a choice without message")
    calls = _calls(message.get("tool_calls"))
    reply = _read_message(message, finish, url)
    return replace(
        reply,
        usage=read_tokens(body.get("usage"), "prompt_tokens", "completion_tokens"),
        reasoning=read_reasoning(message),
        ended_by=_ended_by(choice),
        model=served_model(body),
        calls=calls,
        message=message if calls else reply.message,
    )


def served_model(body: Mapping[str, Any]) -> str | None:
    """Return the name of the model that the server reports."""
    name = body.get("model")
    return name if isinstance(name, str) and name else None


def read_finish(choice: Mapping[str, Any], url: str) -> str | None:
    """Read the finish reason in the words of the protocol (``stop``, ``length``, ...); ``None`` if it is missing.

    Raises:
        AttemptError: the server aborted the answer, so its text is not an answer.
    """
    error, given = choice.get("error"), choice.get("finish_reason")
    finish = given if isinstance(given, str) else None
    word = (finish or "").lower()
    if isinstance(error, Mapping) and error.get("code", error.get("status")) is not None:
        raise error_in_body(choice, orjson.dumps({"error": error}), url)
    if error or word in BROKEN_OFF:
        message = error.get("message") if isinstance(error, Mapping) else error
        reason = shorten(str(message)) if message else f"finish_reason is {word or 'not given'}, and no reason is given"
        raise AttemptError("server_error", f"{url} ended its answer with an error: {reason}")
    if word in TRUNCATED:
        return "length"
    return word if word in ("stop", "content_filter") else finish


def _read_message(message: Mapping[str, Any], finish_reason: str | None, url: str) -> Reply:
    content, images = message.get("content"), message.get("images")
    if isinstance(content, str) and not images:  # nearly all replies
        return Reply(content, finish_reason, None)
    if content is not None and not isinstance(content, str) and not _are_objects(content):
        raise _malformed(url, f"a content of type {type(content).__name__}")
    pictures = images if isinstance(images, list) and _are_objects(images) else []
    if content is not None or pictures:
        pieces: list[Any] = [content] if isinstance(content, str) else content or []
        try:
            parts = [_piece(part) for part in (*pieces, *pictures) if not _is_thought(part)]
        except MediaError as error:
            raise _malformed(url, str(error)) from error
        return Reply.of_parts(parts, finish_reason, None)
    refusal = message.get("refusal")
    if isinstance(refusal, str):
        return Reply(refusal, "content_filter", None)
    return Reply("", finish_reason, None)


def read_reasoning(message: Mapping[str, Any]) -> str:
    """Read the thoughts that a message contains separately from its answer: texts, lists, or objects."""
    for name in REASONING:
        if (value := message.get(name)) and (found := thought_text(value)):
            return found
    content = message.get("content")
    return thought_text([part for part in content if _is_thought(part)]) if isinstance(content, list) else ""


def thought_text(value: Any, depth: int = 4) -> str:
    """Read the text of thoughts in any form: a text, a list of parts, or an object that contains either."""
    if isinstance(value, str):
        return value
    if not depth:
        return ""
    if isinstance(value, list | tuple):
        return "\n\n".join(text for part in value if (text := thought_text(part, depth - 1)))
    if isinstance(value, Mapping):
        return next((text for name in _WORDS if (text := thought_text(value.get(name), depth - 1))), "")
    return ""


def _is_thought(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in THOUGHT_TYPES


def _ended_by(choice: Mapping[str, Any]) -> str | None:
    """Read which stop string ended a choice. If none did, servers send null or the number of a token."""
    for name in ("stop_reason", "matched_stop"):
        if name in choice:
            value = choice[name]
            return value if isinstance(value, str) else ""
    return None


def _calls(listed: Any) -> tuple[ToolCall, ...]:
    """Read tool calls. A call without a name is kept, so that the model gets an error."""
    found = []
    for number, call in enumerate(listed if isinstance(listed, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            given = function.get("arguments")
            arguments = given if isinstance(given, str) else json.dumps({} if given is None else given)
            found.append(ToolCall(str(call.get("id") or f"call_{number}"), str(function.get("name")), arguments, call))
    return tuple(found)


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, dict) for part in value)


def _piece(part: str | Mapping[str, Any]) -> Part:
    """Read a part of the content: a picture by its type, or else its text. Raises ``MediaError`` for a bad picture."""
    if isinstance(part, str):
        return part
    if part.get("type", "image_url" if "image_url" in part else "text") in PICTURE_TYPES:
        address = part.get("image_url")
        return picture_of_url(address.get("url") if isinstance(address, Mapping) else address)
    return str(part.get("text") or "")


def picture_of_url(address: Any) -> GeneratedImage:
    """Read the picture of a data URL. Raises ``MediaError`` for other addresses and kinds of files."""
    if not isinstance(address, str) or not address.startswith("data:"):
        raise MediaError("a picture that is not included (no data URL)")
    from lmms_eval.media.reference import resolve

    return _picture(resolve(address).read_bytes())


def picture_of_base64(text: Any) -> GeneratedImage:
    """Read a picture. Raises ``MediaError`` if it is not base64, or not a PNG, JPEG, WebP or GIF file."""
    try:
        data = base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise MediaError(f"a picture that is not base64: {error}") from error
    return _picture(data)


def _picture(data: bytes) -> GeneratedImage:
    try:
        return generated_image(data)
    except MediaError as error:
        raise MediaError(f"a picture of {error}") from error


def read_tokens(value: Any, inputs: str, outputs: str) -> Usage | None:
    """Read the usage from fields of these names and ``<outputs>_details.reasoning_tokens``."""
    if not isinstance(value, dict):
        return None
    details = value.get(f"{outputs}_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return Usage(value.get(inputs), value.get(outputs), reasoning)


def _malformed(url: str, what: str) -> AttemptError:
    return AttemptError("malformed", f"{url} sent no chat completion: {what}")
