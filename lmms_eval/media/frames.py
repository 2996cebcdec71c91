"""Decoded frames of a video by their numbers, in one pass or by seeking."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lmms_eval.media.video_file import PacketIndex, VideoFile, VideoInfo

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Found = dict[int, npt.NDArray[np.uint8]]
    """Decoded frames by number."""

_AHEAD = 4
"""Frames that a decoder holds back to put them in order, and has to be given again after each seek."""


def collect_frames(file: VideoFile, wanted: Sequence[int], info: VideoInfo) -> tuple[_Found, int]:
    """The wanted frames by number, and how many the video has: as ``info`` says, unless it was seen to end before.

    The video is decoded in one pass up to the last of them, or from the key frame before each, whichever means fewer
    frames to decode: the times of the packets tell, which are read without decoding where so many frames lie between
    two wanted ones that a seek can pay. Both ways give the same frames: where seeking does not find each of them,
    intact, the pass is made after all.
    """
    chosen = sorted(set(wanted))
    ahead = _AHEAD + file.threads
    if any(after - before - 1 > ahead for before, after in pairwise([-1, *chosen])):
        index = file.packet_index()
        if index is not None and len(index.times) == info.frames:
            groups = list(index.by_key(chosen))
            if sum(numbers[-1] - key + 1 + ahead for key, numbers in groups) < chosen[-1] + 1:
                sought = _by_seeking(file, groups, index)
                if sought is not None:
                    return sought, info.frames
    return _by_one_pass(file, chosen, info)


def _by_one_pass(file: VideoFile, wanted: Sequence[int], info: VideoInfo) -> tuple[_Found, int]:
    left = set(wanted)
    found: _Found = {}
    there = 0
    for number, frame in enumerate(file.from_start()):
        if frame is not None:
            there = number + 1  # a frame that is torn at the end of a cut file is not there
        if number in left:
            if frame is not None:
                found[number] = _pixels(frame)
            left.discard(number)
            if not left:
                return found, info.frames
    return found, there


def _by_seeking(file: VideoFile, groups: Sequence[tuple[int, list[int]]], index: PacketIndex) -> _Found | None:
    """The frames of each group, decoded from its key frame; ``None`` where one of them is not found or not intact."""
    number_of = {time: number for number, time in enumerate(index.times)}
    found: _Found = {}
    for key, numbers in groups:
        left = set(numbers)
        if not file.seek(index.times[key]):
            return None
        for frame in file.decode():
            number = None if frame is None else number_of.get(frame.pts)
            if frame is None or number is None:
                return None
            if number in left:
                if frame.is_corrupt:
                    return None
                found[number] = _pixels(frame)
                left.discard(number)
            if not left or number >= numbers[-1]:
                break
        if left:
            return None
    return found


def _pixels(frame: Any) -> npt.NDArray[np.uint8]:
    """RGB of a decoded frame, turned as the display matrix of the container asks."""
    import numpy as np

    array: npt.NDArray[np.uint8] = frame.to_ndarray(format="rgb24", **one_thread())
    turns = round(getattr(frame, "rotation", 0) / 90) % 4
    return np.ascontiguousarray(np.rot90(array, turns)) if turns else array


@functools.cache
def one_thread() -> dict[str, int]:
    """Argument of PyAV's conversions that keeps them in one thread: starting others takes ten times the conversion of a
    small frame. Before 17 there is no such argument, and each conversion is made in the thread that asks for it."""
    import av
    from packaging.version import Version

    return {"threads": 1} if Version(av.__version__) >= Version("17") else {}
