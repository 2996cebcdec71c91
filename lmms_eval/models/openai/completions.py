"""The plain form of the API (``api=completions``): a prompt without roles, for base models. Bodies and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from lmms_eval.errors import MediaError
from lmms_eval.models.openai.errors import AttemptError, error_in_body, shorten
from lmms_eval.models.openai.reply import Reply, decode_body, read_finish, read_tokens, served_model


def completion_body(model: str, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Make the body, from messages in the form of chat completions.

    Raises:
        MediaError: there are media among them.
    """
    parts = [part for message in messages for part in message["content"]]
    if any(part["type"] != "text" for part in parts):
        raise MediaError("api=completions sends texts alone, and the request has a picture, video or sound")
    texts = ["\n".join(part["text"] for part in message["content"]) for message in messages]
    return {"model": model, "prompt": "\n\n".join(texts), **fields}


def parse_completion(raw: bytes, url: str) -> Reply:
    """Read a completion of status 200.

    Raises:
        AttemptError: ``malformed``, or what an ``error`` object in the body stands for.
    """
    body, choice = read_choice(raw, url)
    text = choice.get("text")
    if not isinstance(text, str):
        raise AttemptError("malformed", f"{url} sent no completion: a choice without text")
    finish = read_finish(choice, url)
    usage = read_tokens(body.get("usage"), "prompt_tokens", "completion_tokens")
    return Reply(text, finish, usage, model=served_model(body))


def read_choice(raw: bytes, url: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Read the body and its first choice.

    Raises:
        AttemptError: as ``parse_completion``.
    """
    try:
        body = decode_body(raw)
    except orjson.JSONDecodeError as error:
        shown = shorten(raw[:400].decode("utf-8", "replace"))
        raise AttemptError("malformed", f"{url} sent no JSON ({error}): {shown}") from error
    if isinstance(body, dict) and body.get("error"):
        raise error_in_body(body, raw, url)
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise AttemptError("malformed", f"{url} sent no completion: no choices")
    return body, choices[0]
