"""From a chat completion to a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from lmms_eval.api.request import Usage
from lmms_eval.models.openai.errors import AttemptError, error_in_body, shorten


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered. ``from_reasoning``: the text was found in the reasoning, not in the content."""

    text: str
    finish_reason: str | None
    usage: Usage | None
    from_reasoning: bool = False


def parse_reply(raw: bytes, url: str) -> Reply:
    """Read a completion of status 200.

    An empty text with a normal finish is a reply like any other. Where the content is null, the text is the refusal,
    or the reasoning if the model ended normally within it (servers whose reasoning parser met no end mark put the
    whole answer there); a reasoning that was cut off gives an empty text.

    Raises:
        AttemptError: ``malformed``, or what an ``error`` object in the body stands for.
    """
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _malformed(url, f"no JSON ({error}): {shorten(raw[:400].decode('utf-8', 'replace'))}") from error
    return read_completion(body, raw, url)


def read_completion(body: Any, raw: bytes, url: str) -> Reply:
    """``parse_reply`` for a decoded body; ``raw`` is shown where it carries an error.

    Raises:
        AttemptError: as ``parse_reply``.
    """
    if not isinstance(body, dict):
        raise _malformed(url, "no JSON object")
    if body.get("error"):
        raise error_in_body(body, raw, url)
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _malformed(url, "no choices")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise _malformed(url, "a choice without message")
    finish = choices[0].get("finish_reason")
    finish = finish if isinstance(finish, str) else None
    return _read_message(message, finish, read_tokens(body.get("usage"), "prompt_tokens", "completion_tokens"), url)


def _read_message(message: Mapping[str, Any], finish: str | None, usage: Usage | None, url: str) -> Reply:
    content = message.get("content")
    if isinstance(content, str):
        return Reply(content, finish, usage)
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return Reply("".join(str(part.get("text") or "") for part in content), finish, usage)
    if content is not None:
        raise _malformed(url, f"a content of type {type(content).__name__}")
    refusal = message.get("refusal")
    if isinstance(refusal, str):
        return Reply(refusal, "content_filter", usage)
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str) and finish == "stop":
        return Reply(reasoning, finish, usage, from_reasoning=True)
    return Reply("", finish, usage)


def read_tokens(value: Any, inputs: str, outputs: str) -> Usage | None:
    """Usage from fields of these names and ``<outputs>_details.reasoning_tokens``."""
    if not isinstance(value, dict):
        return None
    details = value.get(f"{outputs}_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return Usage(_count(value.get(inputs)), _count(value.get(outputs)), _count(reasoning))


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _malformed(url: str, what: str) -> AttemptError:
    return AttemptError("malformed", f"{url} sent no chat completion: {what}")


def cut_at(reply: Reply, stops: Sequence[str]) -> Reply:
    """End the text before the first of ``stops`` (those that the server was not told)."""
    places = [place for stop in stops if (place := reply.text.find(stop)) >= 0]
    if not places:
        return reply
    return Reply(reply.text[: min(places)], "stop", reply.usage, reply.from_reasoning)
