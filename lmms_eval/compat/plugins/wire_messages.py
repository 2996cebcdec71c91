"""Messages in the form of OpenAI-compatible servers, read back into conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.messages import ChatMessages
from lmms_eval.errors import ModelError

KINDS = {
    "image_url": "image",
    "image_pil": "image",
    "image": "image",
    "video_url": "video",
    "video": "video",
    "audio_url": "audio",
    "audio": "audio",
}
"""Kind of medium, by the type of a part."""


def read_messages(messages: Sequence[Mapping[str, Any]]) -> ChatMessages:
    """Read the ``messages`` of a chat completion.

    Raises:
        ModelError: a part is of no known type.
    """
    turns = []
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else [_part(part) for part in content]
        turns.append({"role": message["role"], "content": parts})
    return ChatMessages(messages=turns)  # type: ignore[arg-type]  # pydantic reads them


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(part.get("type"))
    if kind == "text":
        return {"type": "text", "text": part["text"]}
    if kind == "input_audio":
        sound = part[kind]
        return {"type": "audio", "url": f"data:audio/{sound['format']};base64,{sound['data']}"}
    if kind not in KINDS or kind not in part:
        raise ModelError(
            f"make_one_request gave a part of type {kind!r}: known are text, input_audio, {', '.join(KINDS)}"
        )
    value = part[kind]
    return {"type": KINDS[kind], "url": value["url"] if isinstance(value, Mapping) and "url" in value else value}
