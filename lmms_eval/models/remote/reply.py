"""From a chat completion to a text, or to texts and pictures."""

from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.request import GeneratedImage, Part, Usage
from lmms_eval.errors import MediaError
from lmms_eval.models.likelihood import Likelihood
from lmms_eval.models.remote.errors import AttemptError, error_in_body, shorten

TRUNCATED = frozenset({"length", "max_tokens", "max_output_tokens", "max_length", "model_length"})
"""Words of servers for an answer that the limit of tokens ended, in lower case."""
BROKEN_OFF = frozenset({"error", "abort", "aborted", "cancelled", "canceled", "failed"})
"""Words of servers for an answer that is not whole, in lower case."""
PICTURE_TYPES = ("image_url", "output_image")
"""Parts of a message that hold a picture as data URL in ``image_url``."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that a reply asks for."""

    id: str
    name: str
    arguments: str
    """As the model wrote them: JSON if it did well."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The call as the server sent it: some put in what they want to see again."""

    @property
    def function(self) -> Mapping[str, Any]:
        """The part ``function`` as the server sent it."""
        told = self.fields.get("function")
        return told if isinstance(told, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a server.

    ``parts`` are the texts and pictures in order where there are pictures, else empty.
    """

    text: str
    finish_reason: str | None
    usage: Usage | None
    reasoning: str = ""
    """Thoughts that the server returned apart from the text."""
    ended_by: str | None = None
    """The stop string that ended it, empty if none did; ``None``: the server does not say."""
    parts: tuple[Part, ...] = ()
    model: str | None = None
    """The model that the server says it served."""
    likelihood: Likelihood | None = None
    """Of a continuation, where that was asked in place of a text."""
    calls: tuple[ToolCall, ...] = ()
    message: Mapping[str, Any] = field(default_factory=dict)
    """As the server sent it, where it has calls: it goes back with their results."""

    @classmethod
    def of_parts(
        cls, parts: Sequence[Part], finish_reason: str | None, usage: Usage | None, model: str | None = None
    ) -> Reply:
        """Texts and pictures in order."""
        text = "".join(part for part in parts if isinstance(part, str))
        pieces = tuple(part for part in parts if part) if _has_picture(parts) else ()
        return cls(text, finish_reason, usage, parts=pieces, model=model)


def _has_picture(parts: Sequence[Part]) -> bool:
    return any(isinstance(part, GeneratedImage) for part in parts)


def parse_reply(raw: bytes, url: str) -> Reply:
    """Read a completion of status 200.

    An empty text with a normal finish is a reply like any other. Where the content is null, the text is the refusal,
    or empty. Reasoning is never the text: what stands there alone is a thought without an answer.

    Raises:
        AttemptError: ``malformed``, or what an ``error`` object in the body stands for.
    """
    try:
        body = decode_body(raw)
    except orjson.JSONDecodeError as error:
        raise _malformed(url, f"no JSON ({error}): {shorten(raw[:400].decode('utf-8', 'replace'))}") from error
    return read_completion(body, raw, url)


def decode_body(raw: bytes) -> Any:
    """JSON of a body. A byte order mark is dropped, and half of a surrogate pair becomes U+FFFD.

    Servers send the one always and the other where a tokenizer cut an emoji: asking again would bring the same.

    Raises:
        orjson.JSONDecodeError: no JSON.
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
    """``parse_reply`` for a decoded body; ``raw`` is shown where it carries an error.

    Raises:
        AttemptError: as ``parse_reply``.
    """
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
    ended = _Ended(
        finish, read_tokens(body.get("usage"), "prompt_tokens", "completion_tokens"), model=served_model(body)
    )
    reply = _read_message(message, ended, url)
    reasoning, ended_by = read_reasoning(message), _ended_by(choice)
    if reasoning or ended_by is not None:
        reply = replace(reply, reasoning=reasoning, ended_by=ended_by)
    calls = _calls(message.get("tool_calls"))
    return replace(reply, calls=calls, message=message) if calls else reply


def served_model(body: Mapping[str, Any]) -> str | None:
    """The name of the model that answered, as the server tells it."""
    name = body.get("model")
    return name if isinstance(name, str) and name else None


def read_finish(choice: Mapping[str, Any], url: str) -> str | None:
    """Read why a choice ended, in the protocol's words: ``stop``, ``length``, ... ``None`` if the server does not say.

    Raises:
        AttemptError: the server broke the answer off; whatever text came with it is no answer.
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


@dataclass(frozen=True, slots=True)
class _Ended:
    """Facts of a completion beside its message."""

    finish_reason: str | None
    usage: Usage | None
    model: str | None


def _read_message(message: Mapping[str, Any], ended: _Ended, url: str) -> Reply:
    content, images = message.get("content"), message.get("images")
    if isinstance(content, str) and not images:  # nearly all replies
        return Reply(content, ended.finish_reason, ended.usage, model=ended.model)
    if content is not None and not isinstance(content, str) and not _are_objects(content):
        raise _malformed(url, f"a content of type {type(content).__name__}")
    pictures = images if isinstance(images, list) and _are_objects(images) else []
    if content is not None or pictures:
        pieces: list[Any] = [content] if isinstance(content, str) else content or []
        try:
            parts = [_piece(part) for part in (*pieces, *pictures) if not _is_thought(part)]
        except MediaError as error:
            raise _malformed(url, str(error)) from error
        return Reply.of_parts(parts, ended.finish_reason, ended.usage, ended.model)
    refusal = message.get("refusal")
    if isinstance(refusal, str):
        return Reply(refusal, "content_filter", ended.usage, model=ended.model)
    return Reply("", ended.finish_reason, ended.usage, model=ended.model)


REASONING = ("reasoning_content", "reasoning", "thinking", "thinking_blocks", "reasoning_details")
"""Fields of a message in which servers return thoughts, the first one that says something counts."""
THOUGHT_TYPES = ("thinking", "reasoning", "reasoning_text", "reasoning.text", "reasoning.summary", "summary_text")
"""Parts of a content that are thoughts."""
_WORDS = ("text", "thinking", "content", "summary", "reasoning", "reasoning_content")


def read_reasoning(message: Mapping[str, Any]) -> str:
    """Read the thoughts that a message holds apart from its answer: texts, lists or objects of them."""
    for name in REASONING:
        if (value := message.get(name)) and (found := thought_text(value)):
            return found
    content = message.get("content")
    return thought_text([part for part in content if _is_thought(part)]) if isinstance(content, list) else ""


def thought_text(value: Any, depth: int = 4) -> str:
    """Read a text from what a server sends of thoughts: a text, a list of parts, or an object that holds either."""
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
    """Read which stop string ended a choice. Servers name it, or say null or a token's number where none did."""
    for name in ("stop_reason", "matched_stop"):
        if name in choice:
            value = choice[name]
            return value if isinstance(value, str) else ""
    return None


def _calls(listed: Any) -> tuple[ToolCall, ...]:
    """Read calls; one without a name is kept, so that the model is told."""
    found = []
    for number, call in enumerate(listed if isinstance(listed, list) else ()):
        told = call.get("function") if isinstance(call, dict) else None
        if isinstance(told, dict):
            given = told.get("arguments")
            arguments = given if isinstance(given, str) else json.dumps({} if given is None else given)
            found.append(ToolCall(str(call.get("id") or f"call_{number}"), str(told.get("name")), arguments, call))
    return tuple(found)


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, dict) for part in value)


def _piece(part: str | Mapping[str, Any]) -> Part:
    """A text, or a part of the content: a picture where its type says so, else its text.

    Raises:
        MediaError: the picture is no PNG, JPEG, WebP or GIF file, or not sent along.
    """
    if isinstance(part, str):
        return part
    if part.get("type", "image_url" if "image_url" in part else "text") in PICTURE_TYPES:
        address = part.get("image_url")
        return picture_of_url(address.get("url") if isinstance(address, Mapping) else address)
    return str(part.get("text") or "")


def picture_of_url(address: Any) -> GeneratedImage:
    """The picture of a data URL.

    Raises:
        MediaError: another address, no base64, or no PNG, JPEG, WebP or GIF file.
    """
    if not isinstance(address, str) or not address.startswith("data:"):
        raise MediaError("a picture that is not sent along (no data URL)")
    from lmms_eval.media.reference import resolve

    return _picture(resolve(address).read_bytes())


def picture_of_base64(text: Any) -> GeneratedImage:
    """Raises ``MediaError``: no base64, or no PNG, JPEG, WebP or GIF file."""
    try:
        data = base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise MediaError(f"a picture that is no base64: {error}") from error
    return _picture(data)


def _picture(data: bytes) -> GeneratedImage:
    try:
        return generated_image(data)
    except MediaError as error:
        raise MediaError(f"a picture of {error}") from error


def read_tokens(value: Any, inputs: str, outputs: str) -> Usage | None:
    """Usage from fields of these names and ``<outputs>_details.reasoning_tokens``."""
    if not isinstance(value, dict):
        return None
    details = value.get(f"{outputs}_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return Usage(value.get(inputs), value.get(outputs), reasoning)


def _malformed(url: str, what: str) -> AttemptError:
    return AttemptError("malformed", f"{url} sent no chat completion: {what}")
