"""Frames and sizes as model families and their tools choose them: rules that recipes name.

Nothing here opens a video: the rules need its number of frames, its rate and its size. The usual choice of
``lmms_eval`` is in ``media/video.py``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from lmms_eval.api.generation import RequestLimits

_PATCH = 32
"""Pixels of the side of a token of Qwen3-VL: two patches of 16."""
_FRAMES_PER_TOKEN = 2
"""Frames that Qwen's models read together, so that their number is even."""
_MARGIN = 1.05
_SHARE_OF_CONTEXT = 0.9


def smart_size(height: int, width: int, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """Return height and width of a picture as the processors of Qwen's models resize it.

    Both sides become multiples of ``factor``. A picture with too many or too few pixels keeps its proportions; its
    sides are then rounded down or up.

    Raises:
        ValueError: a side, the factor or a limit is not positive, or the limits are in the wrong order.
    """
    if min(height, width, factor, min_pixels) < 1 or max_pixels < min_pixels:
        raise ValueError(
            f"cannot fit {height} x {width} pixels into {min_pixels} to {max_pixels} with sides that {factor} divides"
        )
    rounded = tuple(max(factor, round(side / factor) * factor) for side in (height, width))
    pixels = math.prod(rounded)
    if pixels > max_pixels:
        share = math.sqrt(height * width / max_pixels)
        rounded = tuple(max(factor, math.floor(side / share / factor) * factor) for side in (height, width))
    elif pixels < min_pixels:
        share = math.sqrt(min_pixels / (height * width))
        rounded = tuple(math.ceil(side * share / factor) * factor for side in (height, width))
    return rounded[0], rounded[1]


class QwenVideo(Struct, frozen=True):
    """Limits of videos as the package qwen-vl-utils applies them to Qwen3-VL; the defaults are the package's."""

    fps: float = 2.0
    """Frames per second of the video."""
    min_frames: int = 4
    max_frames: int = 768
    min_pixels: int = 128 * _PATCH * _PATCH
    """Least pixels of a frame."""
    max_pixels: int | None = None
    """Most pixels of a frame."""
    total_pixels: int = int(128_000 * _PATCH * _PATCH * _SHARE_OF_CONTEXT)
    """Most pixels of all frames, counted once for each pair of frames that share their tokens."""

    def count(self, frames: int, rate: float) -> int:
        """Return the number of frames taken of a video with ``frames`` frames and ``rate`` frames per second.

        Raises:
            ValueError: the video has fewer than two frames, or its rate is not positive.
        """
        if frames < _FRAMES_PER_TOKEN or not rate > 0:
            raise ValueError(f"cannot take two frames or more of a video of {frames} frames at {rate} per second")
        least = math.ceil(self.min_frames / _FRAMES_PER_TOKEN) * _FRAMES_PER_TOKEN
        most = min(self.max_frames, frames) // _FRAMES_PER_TOKEN * _FRAMES_PER_TOKEN
        wanted = min(max(frames / rate * self.fps, least), most, frames)
        return max(_FRAMES_PER_TOKEN, int(wanted // _FRAMES_PER_TOKEN) * _FRAMES_PER_TOKEN)

    def indices(self, frames: int, rate: float) -> list[int]:
        """Return the numbers of the frames taken: evenly spaced, the first and the last one among them."""
        count = self.count(frames, rate)
        return [round(place * (frames - 1) / (count - 1)) for place in range(count)]

    def size(self, count: int, height: int, width: int) -> tuple[int, int]:
        """Return height and width of each of ``count`` frames that a model gets."""
        return smart_size(height, width, _PATCH, self.min_pixels, self.most_pixels(count))

    def most_pixels(self, count: int) -> int:
        """Return the most pixels of each of ``count`` frames."""
        most = min(768 * _PATCH * _PATCH, self.total_pixels / count * _FRAMES_PER_TOKEN)
        most = max(most, int(self.min_pixels * _MARGIN))
        return int(min(most, self.max_pixels or most))

    def tokens(self, count: int, height: int, width: int) -> int:
        """Return the number of tokens of ``count`` frames of this size, before they are resized."""
        high, wide = self.size(count, height, width)
        return count // _FRAMES_PER_TOKEN * (high // _PATCH) * (wide // _PATCH)


def inner_frames(frames: int, count: int) -> list[int]:
    """Return ``count`` evenly spaced frames without the ends of the video, as VLMEvalKit takes them (``_8frame``)."""
    step = frames / (count + 1)
    return [int(place * step) for place in range(1, count + 1)]


def frames_by_rate(frames: int, rate: float, fps: float) -> list[int]:
    """Return ``fps`` frames per second from the first one on, as VLMEvalKit takes them (``_1fps``).

    A video shorter than a step has none.
    """
    step = rate / fps
    return [int(place * step) for place in range(int(frames / rate * fps))]


def middle_frames(frames: int, count: int, rate: float = 0.0, part: tuple[float, float] | None = None) -> list[int]:
    """Return the frames in the middle of ``count`` equal parts, as InternVL's script for MVBench takes them.

    Args:
        frames: number of frames of the video.
        count: number of frames to take.
        rate: frames per second of the video, needed for ``part``.
        part: start and end in seconds of what is asked about. If the video is shorter than the start, the script's
            numbers lie outside of it, and so do these.
    """
    first, last = 0, frames - 1
    if part is not None:
        first, last = max(first, round(part[0] * rate)), min(round(part[1] * rate), last)
    length = (last - first) / count
    return [int(first + length / 2 + round(length * place)) for place in range(count)]


QWEN, INNER, BY_RATE, MIDDLE = "qwen-vl-utils", "inner", "by-rate", "middle"
RULES = (QWEN, INNER, BY_RATE, MIDDLE)
"""Names of the rules: ``QwenVideo``, ``inner_frames``, ``frames_by_rate``, ``middle_frames``."""


class FrameRule(Struct, frozen=True):
    """A rule with the limits of a request."""

    name: str
    limits: RequestLimits

    @property
    def _video(self) -> QwenVideo:
        names = ("fps", "min_frames", "max_frames", "min_pixels", "max_pixels", "total_pixels")
        stated: dict[str, Any] = {name: value for name, value in self.limits.stated.items() if name in names}
        return QwenVideo(**stated)

    def indices(self, frames: int, rate: float) -> list[int]:
        """Return the numbers of the frames to take of a video.

        Raises:
            ValueError: the rule has none for this video, or needs a number that the limits do not state.
        """
        if self.name == QWEN:
            return self._video.indices(frames, rate)
        if self.name == BY_RATE:
            if not self.limits.fps or not rate:
                raise ValueError("frames by rate need the rate of the video, and fps")
            return frames_by_rate(frames, rate, self.limits.fps)
        if not self.limits.max_frames:
            raise ValueError(f"the rule {self.name} needs a number of frames")
        if self.name == MIDDLE:
            return middle_frames(frames, self.limits.max_frames)
        return inner_frames(frames, self.limits.max_frames)

    def pixels(self, count: int) -> tuple[int, int] | None:
        """Return the least and the most pixels of each of ``count`` frames; ``None`` if the rule does not scale them.

        The sides that a token needs are left to the model's processor.
        """
        video = self._video
        return (video.min_pixels, video.most_pixels(count)) if self.name == QWEN else None
