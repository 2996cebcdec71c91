"""Conversations as turns of text, pictures and sounds, the same for every back end with a form of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval.api.messages import ChatAudioContent, ChatImageContent, ChatMessages, ChatTextContent, ChatVideoContent

if TYPE_CHECKING:
    from PIL import Image

    from lmms_eval.media.video import VideoFrames


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    value: Any
    """Anything that ``lmms_eval.media.resolve`` takes."""


@dataclass(frozen=True, slots=True)
class Sound:
    value: Any


@dataclass(frozen=True, slots=True)
class Film:
    """A video that is passed as it is."""

    value: Any


Part = Text | Picture | Sound | Film


@dataclass(frozen=True, slots=True)
class Turn:
    role: str
    """``user``, ``assistant`` or ``system``."""
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Frames:
    """Form in which videos are sent: as ``count`` frames at most, evenly spaced or ``fps`` a second, or whole.

    A part of a video (one with time bounds) always goes as frames.
    """

    count: int
    fps: float | None = None
    whole: bool = False
    total_pixels: int | None = None
    """Of all frames together."""

    def pictures(self, found: VideoFrames) -> list[Image.Image]:
        """Return the frames that were read as pictures, within ``total_pixels``."""
        from lmms_eval.media.image import Bounds, fit

        bounds = Bounds().of_frames(len(found), self.total_pixels)
        return [fit(image, bounds) for image in found.images()]


@dataclass(frozen=True, slots=True)
class Conversation:
    system: str
    turns: tuple[Turn, ...]
    """Turns without the system messages."""

    @property
    def pictures(self) -> int:
        """Number of pictures, frames included."""
        return sum(isinstance(part, Picture) for turn in self.turns for part in turn.parts)


def read_conversation(messages: ChatMessages, frames: Frames, system_prompt: str | None = None) -> Conversation:
    """Split off the system text (``system_prompt`` in its place where one is given) and expand videos to frames.

    Raises:
        MediaError: a video cannot be read.
    """
    system = [
        part.text
        for message in messages.messages
        if message.role == "system"
        for part in message.content
        if isinstance(part, ChatTextContent)
    ]
    turns = tuple(
        Turn(message.role, tuple(item for part in message.content for item in _parts(part, frames)))
        for message in messages.messages
        if message.role != "system"
    )
    return Conversation(clean(system_prompt or "\n".join(system)), turns)


def clean(text: str) -> str:
    """The text as UTF-8 can carry it: half of a surrogate pair becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _parts(
    part: ChatTextContent | ChatImageContent | ChatVideoContent | ChatAudioContent, frames: Frames
) -> Iterator[Part]:
    if isinstance(part, ChatTextContent):
        yield Text(clean(part.text))
    elif isinstance(part, ChatImageContent):
        yield Picture(part.url)
    elif isinstance(part, ChatAudioContent):
        yield Sound(part.url)
    elif frames.whole and bounds_of(part) == (None, None):
        yield Film(part.url)
    else:
        yield from (Picture(image) for image in frames.pictures(read_video(part, frames)))


def read_video(part: ChatVideoContent, frames: Frames) -> VideoFrames:
    """The frames of a video part, its time bounds heeded.

    Raises:
        MediaError: it cannot be read.
    """
    from lmms_eval.media.video import Sampling, read_frames

    start, end = bounds_of(part)
    return read_frames(part.url, Sampling(count=frames.count, fps=frames.fps, start=start, end=end))


def bounds_of(part: ChatVideoContent) -> tuple[float | None, float | None]:
    """The times in seconds between which a video is looked at."""
    bounds: Mapping[str, Any] = part.url if isinstance(part.url, Mapping) else {}
    return (
        part.start_time if part.start_time is not None else bounds.get("video_start"),
        part.end_time if part.end_time is not None else bounds.get("video_end"),
    )


def payload_size(value: Any) -> int:
    """Bytes of the texts and media in a payload: what it weighs in memory and, nearly, on the wire."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Mapping):
        return sum(payload_size(item) for item in value.values())
    if isinstance(value, list | tuple):
        return sum(payload_size(item) for item in value)
    return 0
