"""Conversations as turns of text, pictures and sounds, for back ends with their own protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.generation import RequestLimits
from lmms_eval.api.messages import ChatAudioContent, ChatImageContent, ChatMessages, ChatTextContent, ChatVideoContent
from lmms_eval.errors import MediaError
from lmms_eval.media.reference import resolve

if TYPE_CHECKING:
    from PIL import Image

    from lmms_eval.media import Bounds
    from lmms_eval.media.encode import WireOptions
    from lmms_eval.media.frame_rules import FrameRule
    from lmms_eval.media.video import VideoFrames


class Part(Struct, frozen=True):
    """A part of a turn."""

    kind: Literal["text", "picture", "sound", "video"]
    """A ``video`` is sent unchanged. Of other videos, the frames are pictures."""
    value: Any
    """The text, or anything that ``lmms_eval.media.resolve`` takes."""


Turn = tuple[str, tuple[Part, ...]]
"""The role (``user``, ``assistant`` or ``system``) and the parts of a turn."""


class Frames(Struct, frozen=True):
    """The form of videos in requests: at most ``count`` frames, evenly spaced or ``fps`` per second, or whole.

    A part of a video (one with time bounds) is always sent as frames.
    """

    count: int
    fps: float | None = None
    whole: bool = False
    total_pixels: int | None = None
    """The limit for all frames together."""
    rule: FrameRule | None = None
    """Chooses and scales the frames of whole videos."""

    def pictures(self, found: VideoFrames) -> list[Image.Image]:
        """Return frames as pictures within ``total_pixels``."""
        from lmms_eval.media.image import Bounds, fit

        bounds = self.bounds_of(found, Bounds())
        return [fit(image, bounds) for image in found.images()]

    def bounds_of(self, found: VideoFrames, bounds: Bounds) -> Bounds:
        """Return the bounds of each frame of a video, given those of pictures."""
        pixels = None if self.rule is None else self.rule.pixels(len(found))
        if pixels is None:
            return bounds.of_frames(len(found), self.total_pixels)
        return replace(bounds, min_pixels=pixels[0], max_pixels=pixels[1])

    def limited(self, limits: RequestLimits) -> Frames:
        """Return this form with the limits of a request in place of its own."""
        from lmms_eval.media.frame_rules import FrameRule

        return replace(
            self,
            count=limits.max_frames or self.count,
            fps=limits.fps or self.fps,
            total_pixels=limits.total_pixels or self.total_pixels,
            rule=None if limits.frame_rule is None else FrameRule(limits.frame_rule, limits),
        )


class SentForm(Struct, frozen=True):
    """The form of videos and pictures that are sent over a network."""

    frames: Frames
    images: WireOptions

    def limited(self, limits: RequestLimits) -> SentForm:
        """Return this form with the limits of a request in place of its own."""
        images = replace(self.images, bounds=self.images.bounds.limited(limits))
        return SentForm(self.frames.limited(limits), images)


def read_conversation(
    messages: ChatMessages, frames: Frames, system_prompt: str | None = None
) -> tuple[str, tuple[Turn, ...]]:
    """Split off the system text, which ``system_prompt`` replaces if given, and expand videos to frames.

    Returns:
        The system text, and the turns without the system messages.

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
        (message.role, tuple(item for part in message.content for item in _parts(part, frames)))
        for message in messages.messages
        if message.role != "system"
    )
    return clean(system_prompt or "\n".join(system)), turns


def clean(text: str) -> str:
    """Make a text valid UTF-8: half of a surrogate pair becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _parts(
    part: ChatTextContent | ChatImageContent | ChatVideoContent | ChatAudioContent, frames: Frames
) -> Iterator[Part]:
    if isinstance(part, ChatTextContent):
        yield Part("text", clean(part.text))
    elif isinstance(part, ChatImageContent):
        yield Part("picture", part.url)
    elif isinstance(part, ChatAudioContent):
        yield Part("sound", part.url)
    elif frames.whole and bounds_of(part) == (None, None):
        yield Part("video", part.url)
    else:
        yield from (Part("picture", image) for image in frames.pictures(read_video(part, frames)))


def read_video(part: ChatVideoContent, frames: Frames) -> VideoFrames:
    """Read the frames of a video part within its time bounds. Raises ``MediaError`` if the video cannot be read."""
    from lmms_eval.media.video import Sampling, read_frames

    start, end = bounds_of(part)
    if frames.rule is not None and start is None and end is None:
        return read_frames(part.url, Sampling(indices=ruled_frames(part.url, frames.rule)))
    return read_frames(part.url, Sampling(count=frames.count, fps=frames.fps, start=start, end=end))


def ruled_frames(value: Any, rule: FrameRule) -> tuple[int, ...]:
    """Return the numbers of the frames of a video by a rule. Raises ``MediaError`` if it has none."""
    from lmms_eval.media.video import probe

    info = probe(value)
    try:
        found = rule.indices(info.frames, info.fps)
    except ValueError as error:
        raise MediaError(f"{resolve(value).describe()}: {error}") from error
    if not found:
        raise MediaError(f"{resolve(value).describe()}: too short for a frame by the rule {rule.name}")
    return tuple(found)


def read_pictures(part: ChatVideoContent, frames: Frames, bounds: Bounds) -> list[Image.Image]:
    """Read the frames of a video, or of a list, as pictures. Raises ``MediaError`` if one cannot be read."""
    from lmms_eval.media import fit, load_rgb

    if is_listed(part.url):
        chosen = chosen_frames(part.url, frames)
        each = bounds.of_frames(len(chosen), frames.total_pixels)
        return [load_rgb(part.url[index], bounds=each) for index in chosen]
    found = read_video(part, frames)
    each = frames.bounds_of(found, bounds)
    return [fit(image, each) for image in found.images()]


def is_listed(value: Any) -> bool:
    """Return whether a video is a list of its frames."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def chosen_frames(pictures: Sequence[Any], frames: Frames) -> list[int]:
    """Return the numbers of the frames to use from a list. Raises ``MediaError`` if the list is empty."""
    from lmms_eval.media import uniform_indices

    if not pictures:
        raise MediaError("a video without frames: its list of pictures is empty")
    return list(uniform_indices(len(pictures), min(frames.count, len(pictures))))


def bounds_of(part: ChatVideoContent) -> tuple[float | None, float | None]:
    """Return the time bounds of a video part in seconds."""
    bounds: Mapping[str, Any] = part.url if isinstance(part.url, Mapping) else {}
    return (
        part.start_time if part.start_time is not None else bounds.get("video_start"),
        part.end_time if part.end_time is not None else bounds.get("video_end"),
    )


def payload_size(value: Any) -> int:
    """Return the bytes of the texts and media in a payload, its approximate size in memory and on the wire."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Mapping):
        return sum(payload_size(item) for item in value.values())
    if isinstance(value, list | tuple):
        return sum(payload_size(item) for item in value)
    return 0
