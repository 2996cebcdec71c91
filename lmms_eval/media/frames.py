"""Decoded frames of a video by their numbers, in one pass or by seeking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.media.reference import MediaRef
from lmms_eval.media.video_file import PacketIndex, VideoFile, VideoInfo

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Found = dict[int, npt.NDArray[np.uint8]]
    """Decoded frames by number."""

_SEEK_FACTOR = 8
"""Key frames are looked for only if fewer than one frame in this many is wanted."""


def collect_frames(ref: MediaRef, wanted: Sequence[int], info: VideoInfo) -> tuple[_Found, int]:
    """The wanted frames by number, and how many the video has: as ``info`` says, unless it was seen to end before."""
    if len(set(wanted)) * _SEEK_FACTOR < info.frames:
        with VideoFile(ref) as file:
            index = file.packet_index()
        if index is not None and len(index.times) == info.frames and len(set(wanted)) < len(index.keys):
            sought = _collect_by_seeking(ref, wanted, index)
            if sought is not None:
                return sought, info.frames
    left = set(wanted)
    found: _Found = {}
    there = 0
    with VideoFile(ref) as file:
        for number, frame in enumerate(file.decode()):
            there = number + 1
            if number in left:
                if frame is not None:
                    found[number] = _pixels(frame)
                left.discard(number)
                if not left:
                    return found, info.frames
    return found, there


def _collect_by_seeking(ref: MediaRef, wanted: Sequence[int], index: PacketIndex) -> _Found | None:
    """The wanted frames, decoded from the key frame before each; ``None`` if the container cannot be sought in."""
    number_of = {time: number for number, time in enumerate(index.times)}
    found: _Found = {}
    with VideoFile(ref) as file:
        for key_time, numbers in index.by_key(sorted(set(wanted))):
            left = set(numbers)
            if not file.seek(key_time):
                return None
            for frame in file.decode():
                number = None if frame is None else number_of.get(frame.pts)
                if frame is None or number is None:
                    continue
                if number in left:
                    found[number] = _pixels(frame)
                    left.discard(number)
                if not left or number >= numbers[-1]:
                    break
    return found


def _pixels(frame: Any) -> npt.NDArray[np.uint8]:
    """RGB of a decoded frame, turned as the display matrix of the container asks."""
    import numpy as np

    array: npt.NDArray[np.uint8] = frame.to_ndarray(format="rgb24")
    turns = round(getattr(frame, "rotation", 0) / 90) % 4
    return np.ascontiguousarray(np.rot90(array, turns)) if turns else array
