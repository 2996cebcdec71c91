"""Conversations as turns of text, pictures and sounds, for back ends with their own protocol."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.generation import RequestLimits
from lmms_eval.api.messages import ChatAudioContent, ChatImageContent, ChatMessages, ChatTextContent, ChatVideoContent
from lmms_eval.errors import MediaError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    from lmms_eval.media import Bounds
    from lmms_eval.media.audio import Audio
    from lmms_eval.media.encode import WireOptions
    from lmms_eval.media.video import VideoFrames


UNKNOWN_FPS = 24.0
"""The rate that the processors of transformers assume for a video of unknown rate."""


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
    with_sound: bool = False
    """Whether frames are followed by the sound of their video."""
    least: int = 1
    """Minimum number of frames, as far as the video has them."""
    merged: int = 1
    """The number of frames is rounded down to a multiple of it."""

    def pictures(self, found: VideoFrames) -> list[Image.Image]:
        """Return frames as pictures within ``total_pixels``."""
        from lmms_eval.media.image import Bounds, fit

        bounds = Bounds().of_frames(len(found), self.total_pixels)
        return [fit(image, bounds) for image in found.images()]

    def limited(self, limits: RequestLimits) -> Frames:
        """Return this form with the limits of a request in place of its own."""
        total = limits.total_pixels
        return replace(
            self,
            count=limits.max_frames or self.count,
            fps=limits.fps or self.fps,
            total_pixels=self.total_pixels if total is None else total * limits.merged_frames,
            least=limits.min_frames or self.least,
            merged=limits.merged_frames,
        )

    def number(self, seconds: float, total: int) -> int:
        """Return the number of frames to take of a part of a video of ``total`` frames in all."""
        wanted = self.count if self.fps is None else int(seconds * self.fps)
        wanted = min(max(wanted, self.least), self.count, total)
        return max(wanted - wanted % self.merged, 1)


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
        if frames.with_sound and (sound := read_sound(part)) is not None:
            yield Part("sound", sound.value)


def read_video(part: ChatVideoContent, frames: Frames) -> VideoFrames:
    """Read the frames of a video part within its time bounds. Raises ``MediaError`` if the video cannot be read."""
    from lmms_eval.media.video import Sampling, probe, read_frames

    start, end = bounds_of(part)
    sampling = Sampling(count=frames.count, fps=frames.fps, start=start, end=end)
    if frames.least > 1 or frames.merged > 1:
        info = probe(part.url)
        seconds = info.frames / info.fps if info.fps else 0.0
        seconds = max(0.0, min(seconds, math.inf if end is None else end) - (start or 0.0))
        sampling = replace(sampling, count=frames.number(seconds, info.frames), fps=None)
    return read_frames(part.url, sampling)


def read_sound(part: ChatVideoContent, sampling_rate: int | None = None) -> Audio | None:
    """Read the sound of a video part within its time bounds; ``None`` if the video has no sound.

    Raises ``MediaError`` if the video cannot be read.
    """
    from lmms_eval.media.audio import Audio, has_sound, load_audio

    if is_listed(part.url) or not has_sound(part.url):
        return None
    sound = load_audio(part.url, sampling_rate=sampling_rate)
    start, end = bounds_of(part)
    first = int((start or 0.0) * sound.sampling_rate)
    last = None if end is None else int(end * sound.sampling_rate)
    samples = sound.samples[first:last]
    return Audio(samples, sound.sampling_rate) if len(samples) else None


def read_pictures(part: ChatVideoContent, frames: Frames, bounds: Bounds) -> list[Image.Image]:
    """Read the frames of a video, or of a list, as pictures. Raises ``MediaError`` if one cannot be read."""
    from lmms_eval.media import fit, load_rgb

    if is_listed(part.url):
        chosen = chosen_frames(part.url, frames)
        each = bounds.of_frames(len(chosen), frames.total_pixels)
        return [load_rgb(part.url[index], bounds=each) for index in chosen]
    found = read_video(part, frames)
    each = bounds.of_frames(len(found), frames.total_pixels)
    return [fit(image, each) for image in found.images()]


def read_film(part: ChatVideoContent, frames: Frames, bounds: Bounds) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
    """Read the frames of a video. A list contains the frames themselves, as if recorded at ``frames.fps``.

    Returns:
        The frames as ``(frames, height, width, 3)``, RGB, in order of time, and the properties of the video by the
        names of transformers' ``VideoMetadata``.

    Raises:
        MediaError: the video or one of its pictures cannot be read.
    """
    import numpy as np

    if is_listed(part.url):
        images = read_pictures(part, frames, bounds)
        size = images[0].size
        array = np.stack([np.asarray(image if image.size == size else image.resize(size)) for image in images])
        return array, _film_metadata(chosen_frames(part.url, frames), frames.fps, len(part.url))
    from lmms_eval.media import fit
    from lmms_eval.media.video import probe

    found = read_video(part, frames)
    each = bounds.of_frames(len(found), frames.total_pixels)
    array, (height, width) = found.array, found.array.shape[1:3]
    if each.size((width, height)) != (width, height):
        array = np.stack([np.asarray(fit(image, each)) for image in found.images()])
    total = max(probe(part.url).frames, found.indices[-1] + 1)
    return array, _film_metadata(found.indices, found.fps, total)


def _film_metadata(indices: Sequence[int], fps: float | None, total: int) -> dict[str, Any]:
    """Return the properties of a video of ``total`` frames. The frames must not be sampled again."""
    rate = fps or UNKNOWN_FPS
    return {
        "total_num_frames": total,
        "fps": rate,
        "duration": total / rate,
        "video_backend": "pyav",
        "frames_indices": list(indices),
        "do_sample_frames": False,
    }


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
