"""Results of tools as text, pictures and sounds that a model may get."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval.api.request import GeneratedImage, SentPart
from lmms_eval.errors import MediaError
from lmms_eval.models.tools.connection import wire

if TYPE_CHECKING:
    from lmms_eval.media.encode import WireOptions

MOST_MEDIA = 8
"""Pictures and sounds of one result that are sent."""
MOST_SOUND_BYTES = 16 * 2**20
AUDIO_FORMATS = ("wav", "mp3")


@dataclass(frozen=True, slots=True)
class ToolMedium:
    """A picture or sound of a result: as a part of a request's message, and as it is recorded."""

    part: Mapping[str, Any]
    sent: SentPart


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Texts and media that a tool gave. A failure is a text too: the model may try otherwise."""

    text: str
    media: tuple[ToolMedium, ...] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """Bounds of what is sent of a result."""

    characters: int
    """Of its texts together; the model is told where one is cut."""
    images: WireOptions


def failed(reason: str) -> ToolResult:
    """Return the result of a call that gave none."""
    return ToolResult(f"error: {reason}", is_error=True)


def read_result(result: Any, limits: ResultLimits) -> ToolResult:
    """Read a result of the package mcp. Decodes pictures: not for an event loop."""
    told = wire(result)
    texts: list[str] = []
    media: list[ToolMedium] = []
    for part in told.get("content") or ():
        make = _MEDIA.get(part.get("type", ""))
        if make is None:
            texts.append(_text(part))
        elif len(media) == MOST_MEDIA:
            texts.append(f"[a further part {part['type']!r} is left out: {MOST_MEDIA} are sent at most]")
        else:
            try:
                media.append(make(part, limits))
            except (MediaError, ValueError) as error:
                texts.append(f"[a part {part['type']!r} cannot be sent: {error}]")
    if not texts and not media and told.get("structuredContent") is not None:
        texts.append(json.dumps(told["structuredContent"], ensure_ascii=False))
    text = cut("\n".join(texts), limits.characters)
    is_error = bool(told.get("isError"))
    return ToolResult(f"error: {text}" if is_error else text, tuple(media), is_error)


def cut(text: str, characters: int) -> str:
    """Shorten a text, and say so in it."""
    if len(text) <= characters:
        return text
    return f"{text[:characters]}\n[cut: the first {characters} of {len(text)} characters]"


def _text(part: Mapping[str, Any]) -> str:
    kind = part.get("type")
    if kind == "text":
        return str(part.get("text", ""))
    if kind == "resource_link":
        return f"{part.get('name', '')}: {part.get('uri', '')}"
    resource = part.get("resource")
    if isinstance(resource, Mapping) and isinstance(resource.get("text"), str):
        return str(resource["text"])
    return f"[a part {kind!r} is left out: only texts, pictures and sounds are sent]"


def _picture(part: Mapping[str, Any], limits: ResultLimits) -> ToolMedium:
    from lmms_eval.media.encode import wire_image

    image = wire_image(base64.b64decode(part["data"], validate=True), options=limits.images)
    sent = GeneratedImage.from_bytes(base64.b64decode(image.base64), image.mime)
    return ToolMedium({"type": "image_url", "image_url": {"url": image.data_url}}, SentPart(picture=sent))


def _sound(part: Mapping[str, Any], limits: ResultLimits) -> ToolMedium:  # noqa: ARG001 - as ``_picture``
    from lmms_eval.media.audio import wire_audio

    data = base64.b64decode(part["data"], validate=True)
    if len(data) > MOST_SOUND_BYTES:
        raise ValueError(f"{len(data)} bytes, more than {MOST_SOUND_BYTES}")
    return ToolMedium(wire_audio(data, AUDIO_FORMATS).to_part(), SentPart(kind="audio"))


_MEDIA: Mapping[str, Callable[[Mapping[str, Any], ResultLimits], ToolMedium]] = {"image": _picture, "audio": _sound}
