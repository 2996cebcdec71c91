"""The Responses API (``api=responses``): bodies and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from msgspec.structs import replace

from lmms_eval.api.generation import answer_length
from lmms_eval.api.request import ErrorKind, Part
from lmms_eval.errors import MediaError
from lmms_eval.models.remote.errors import AttemptError, error_in_body, shorten
from lmms_eval.models.remote.generation import Dialect, extra_body, other_options, sampling_fields, taken_by
from lmms_eval.models.remote.reply import Reply, decode_body, picture_of_base64, read_tokens, served_model, thought_text

_SAME = ("temperature", "top_p")
"""The sampling options of this API, which has no seed."""
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}
_FAILED: Mapping[str, ErrorKind] = {
    "server_error": "server_error",
    "rate_limit_exceeded": "rate_limit",
    "vector_store_timeout": "timeout",
}
"""Error codes of failed answers that may be retried. All others are bad requests."""


def map_responses_generation(
    options: Mapping[str, Any], seed: int, dialect: Dialect
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Translate one request's options. This API has no stop strings, so they are applied to the answers."""
    limit = answer_length(options, dialect.max_new_tokens)
    fields: dict[str, Any] = {} if limit is None else {"max_output_tokens": limit}
    if not dialect.is_reasoning:
        sampling = sampling_fields(options, seed)
        fields |= {name: sampling[name] for name in _SAME if name in sampling}
    effort = options.get("reasoning_effort") or dialect.reasoning_effort
    if effort:
        fields["reasoning"] = {"effort": effort}
    if options.get("response_format") is not None:
        fields["text"] = {"format": _text_format(options["response_format"])}
    others, ignored = other_options(options, taken_by(dialect))
    others = {name: value for name, value in others.items() if name not in ("reasoning_effort", "response_format")}
    if options.get("seed") is not None and "seed" in sampling_fields(options, seed):
        ignored = (*ignored, "seed")
    return {**fields, **others, **extra_body(options)}, ignored


def _text_format(value: Any) -> Any:
    """Convert ``response_format`` of chat completions to ``text.format``, where the schema is one level higher."""
    if isinstance(value, Mapping) and isinstance(value.get("json_schema"), Mapping):
        return {"type": value.get("type", "json_schema"), **value["json_schema"]}
    return value


def responses_body(model: str, messages: list[dict[str, Any]], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Build the body from messages in the form of chat completions. Nothing is stored on the server."""
    turns = [
        {"role": message["role"], "content": list(_parts(message["role"], message["content"]))} for message in messages
    ]
    return {"model": model, "input": turns, "store": False, **fields}


def _parts(role: str, content: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for part in content:
        if part["type"] == "text":
            yield {"type": "output_text" if role == "assistant" else "input_text", "text": part["text"]}
        elif part["type"] == "image_url":
            yield {"type": "input_image", "image_url": part["image_url"]["url"]}
        else:
            yield part


def parse_response(raw: bytes, url: str) -> Reply:
    """Read an answer of status 200. Raises ``AttemptError`` if it is malformed, or has failed."""
    try:
        body = decode_body(raw)
    except orjson.JSONDecodeError as error:
        shown = shorten(raw[:400].decode("utf-8", "replace"))
        raise _malformed(url, f"no JSON ({error}): {shown}") from error
    if not isinstance(body, dict):
        raise _malformed(url, "no JSON object")
    status = body.get("status")
    if body.get("error"):
        raise _failure(body, raw, url)
    output = body.get("output")
    if not isinstance(output, list) or status not in ("completed", "incomplete"):
        raise _malformed(url, f"status {status!r}" if isinstance(output, list) else "no output")
    parts, refused = _read_output(output, url)
    finish = "content_filter" if refused else "stop"
    if status == "incomplete":
        details = body.get("incomplete_details")
        cause = str(details.get("reason")) if isinstance(details, dict) else "incomplete"
        finish = _INCOMPLETE.get(cause, cause)
    usage = read_tokens(body.get("usage"), "input_tokens", "output_tokens")
    thoughts = [item for item in output if isinstance(item, dict) and item.get("type") == "reasoning"]
    reasoning = thought_text([item.get("content") or item.get("summary") for item in thoughts])
    return replace(Reply.of_parts(parts, finish, usage, served_model(body)), reasoning=reasoning)


def _read_output(output: list[Any], url: str) -> tuple[list[Part], bool]:
    """Return all texts and generated pictures in order, or else the refusal, and whether the model refused."""
    parts: list[Part] = []
    refusals: list[str] = []
    for item in output:
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "image_generation_call" and item.get("result") is not None:
            try:
                parts.append(picture_of_base64(item["result"]))
            except MediaError as error:
                raise _malformed(url, str(error)) from error
        elif kind == "message":
            content = item.get("content")
            if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
                raise _malformed(url, "a message without content")
            parts += [str(part.get("text") or "") for part in content if part.get("type") == "output_text"]
            refusals += [str(part.get("refusal") or "") for part in content if part.get("type") == "refusal"]
    return parts if any(parts) else list(refusals), bool(refusals)


def _failure(body: Mapping[str, Any], raw: bytes, url: str) -> AttemptError:
    error = body["error"]
    code = error.get("code") if isinstance(error, Mapping) else None
    if body.get("status") != "failed" or not isinstance(code, str):
        return error_in_body(body, raw, url)
    message = f"{url} failed with {code}: {shorten(str(error.get('message') or ''))}"
    return AttemptError(_FAILED.get(code, "bad_request"), message)


def _malformed(url: str, what: str) -> AttemptError:
    return AttemptError("malformed", f"{url} sent no response object: {what}")
