"""Chat messages with text, image, video and audio parts, which tasks pass to chat models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

IMAGE_SUFFIXES = frozenset({"jpg", "jpeg", "png", "bmp", "gif", "tiff", "tif", "webp"})
AUDIO_SUFFIXES = frozenset({"wav", "mp3", "m4a", "aac", "flac", "ogg", "opus"})


VIDEO_SUFFIXES = frozenset({"mp4", "avi", "mov", "mkv", "webm", "m4v", "mpg", "mpeg", "flv", "wmv", "3gp", "ts"})
_MEDIA_SUFFIXES = IMAGE_SUFFIXES | AUDIO_SUFFIXES | VIDEO_SUFFIXES


class _Part(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)


class ChatTextContent(_Part):
    type: Literal["text"] = "text"
    text: str


class ChatImageContent(_Part):
    """``url`` is a PIL image, path, URL, data URL, bytes or a ``{bytes, path}`` mapping."""

    type: Literal["image"] = "image"
    url: Any


class ChatVideoContent(_Part):
    """A video; ``start_time`` and ``end_time`` are seconds from its start."""

    type: Literal["video"] = "video"
    url: Any
    start_time: float | None = None
    end_time: float | None = None


class ChatAudioContent(_Part):
    type: Literal["audio"] = "audio"
    url: Any


ChatContent = Annotated[
    ChatTextContent | ChatImageContent | ChatVideoContent | ChatAudioContent, Field(discriminator="type")
]


class ChatMessage(BaseModel):
    role: Literal["user", "system", "assistant"]
    content: list[ChatContent]

    @field_validator("content", mode="before")
    @classmethod
    def _text_needs_no_type(cls, value: Any) -> Any:
        """Read a part with ``text`` and without ``type`` as a text."""
        if not isinstance(value, list):
            return value
        return [
            {"type": "text", **part} if isinstance(part, dict) and "text" in part and "type" not in part else part
            for part in value
        ]


class ChatMessages(BaseModel):
    """A conversation. Raises pydantic's ``ValidationError`` for an unknown role or part, or content that is no list."""

    messages: list[ChatMessage]
    is_plain: bool = False
    """The text is to be completed as it is: a local model applies no chat template to it."""

    def extract_media(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the images, videos and audios of all messages in order of appearance."""
        found: dict[str, list[Any]] = {"image": [], "video": [], "audio": []}
        for message in self.messages:
            for part in message.content:
                if not isinstance(part, ChatTextContent):
                    found[part.type].append(part.url)
        return found["image"], found["video"], found["audio"]

    def to_hf_messages(
        self, video_kwargs: Mapping[str, Any] | None = None, image_kwargs: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Return the messages in the form for ``apply_chat_template`` of Hugging Face processors."""
        return [
            {
                "role": message.role,
                "content": [_hf_part(part, video_kwargs or {}, image_kwargs or {}) for part in message.content],
            }
            for message in self.messages
        ]

    def text(self) -> str:
        """Return all text parts joined by newlines (for logs, prefixes and fingerprints)."""
        return "\n".join(p.text for m in self.messages for p in m.content if isinstance(p, ChatTextContent))


def _hf_part(
    part: ChatTextContent | ChatImageContent | ChatVideoContent | ChatAudioContent,
    video_kwargs: Mapping[str, Any],
    image_kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    if isinstance(part, ChatTextContent):
        return {"type": "text", "text": part.text}
    if isinstance(part, ChatImageContent):
        return {"type": "image", "image": part.url, **image_kwargs}
    if isinstance(part, ChatAudioContent):
        return {"type": "audio", "audio": part.url}
    entry = {"type": "video", "video": part.url, **video_kwargs}
    if part.start_time is not None:
        entry["video_start"] = part.start_time
    if part.end_time is not None:
        entry["video_end"] = part.end_time
    return entry


def visual_to_content(visual: Any) -> dict[str, Any]:
    """Convert one item of ``doc_to_visual`` to a message part.

    Raises:
        TypeError: the item is not a picture, a mapping or a text.
    """
    if isinstance(visual, Mapping):
        return _mapping_to_content(visual)
    if isinstance(visual, str):
        return {"type": _kind_of(visual), "url": visual}
    if isinstance(visual, bytes | bytearray):
        return {"type": _kind_of_bytes(visual), "url": visual}
    if hasattr(visual, "convert") and hasattr(visual, "size"):  # a PIL image, without importing PIL here
        return {"type": "image", "url": visual}
    if hasattr(visual, "get_all_samples"):  # the audio decoder of ``datasets``
        return {"type": "audio", "url": visual}
    given = type(visual).__name__
    raise TypeError(f"doc_to_visual gave a {given}: give a PIL image, a path, a URL, bytes or a mapping")


def is_relative_file(place: str) -> bool:
    """Return whether a text is the relative path of a picture, sound or video, by its suffix."""
    return "://" not in place and place[:1] != "/" and place.rpartition(".")[2].lower() in _MEDIA_SUFFIXES


def _kind_of(place: str) -> str:
    """Return the kind of medium at a path or URL by its suffix: a video unless it is a known picture or sound."""
    suffix = place.split("?")[0].rsplit(".", 1)[-1].lower()
    if suffix in IMAGE_SUFFIXES or place.startswith("data:image"):
        return "image"
    return "audio" if suffix in AUDIO_SUFFIXES or place.startswith("data:audio") else "video"


def _kind_of_bytes(data: bytes | bytearray, name: str = "") -> str:
    """Return the kind of a medium in memory: by its name, if that is of a picture or sound, else by its first bytes."""
    from lmms_eval.utils.media_types import media_type_in

    kind = _kind_of(name)
    if kind != "video":
        return kind
    found = media_type_in(data)
    return kind if found is None else found.kind


def _mapping_to_content(visual: Mapping[str, Any]) -> dict[str, Any]:
    if "array" in visual and "sampling_rate" in visual:
        return {"type": "audio", "url": visual}
    if "bytes" in visual:  # a picture, sound or video from a column of a data set
        data, name = visual["bytes"], str(visual.get("path") or "")
        kind = visual.get("type") or (_kind_of(name) if data is None else _kind_of_bytes(data, name))
        is_elsewhere = data is None and "path" in visual
        return {"type": kind, "url": visual["path"] if is_elsewhere else visual}
    kind = visual.get("type", "video")
    if "video_start" in visual or "video_end" in visual:
        return {"type": kind, "url": visual}
    for key in ("url", "path"):
        if key in visual:
            return {"type": kind, "url": visual[key]}
    return {"type": kind, "url": visual}


def build_user_turn(visuals: Sequence[Any] | None, text: str) -> list[dict[str, Any]]:
    """Return one user message: all media first, then the text."""
    content = [visual_to_content(visual) for visual in visuals or []]
    content.append({"type": "text", "text": text})
    return [{"role": "user", "content": content}]
