"""Videos: facts about the stream, and frames by index, count or rate, in one decoding pass or by seeking."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import MediaError
from lmms_eval.media.originals import ByteLRU
from lmms_eval.media.reference import MediaRef, Root, identity, resolve
from lmms_eval.media.sent import Frame, mark, note_frames, source_of
from lmms_eval.media.video_file import PacketIndex, VideoFile, VideoInfo

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    from lmms_eval.api.request import SentMedia


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


def sample_count(total: int, max_frames: int, fps: float | None = None, video_fps: float | None = None) -> int:
    """Number of frames to take from a video.

    With ``fps`` (frames per second wanted) it is ``int(duration * fps)``, at least 1; never more than
    ``max_frames`` or than the video has.

    Args:
        total: frames in the video; 0 if unknown, which bounds nothing.
        max_frames: upper bound.
        fps: wanted rate in frames per second, or ``None`` for ``max_frames`` frames.
        video_fps: the video's own rate in frames per second; without it ``fps`` cannot be honoured.

    Raises:
        ValueError: ``max_frames`` or ``fps`` is not positive.
    """
    if max_frames < 1:
        raise ValueError(f"the number of frames to sample must be at least 1, not {max_frames}")
    if fps is not None and fps <= 0:
        raise ValueError(f"the sampling rate must be positive, not {fps}")
    count = max_frames
    if fps is not None and video_fps and total > 0:
        count = min(count, max(1, int(total / video_fps * fps)))
    return min(count, total) if total > 0 else count


def uniform_indices(total: int, count: int, include_last: bool = False) -> list[int]:
    """``count`` indices evenly spaced from 0 to ``total - 1``, truncated to integers.

    The same numbers as ``numpy.linspace(0, total - 1, count, dtype=int)``, repetitions included.

    Args:
        total: frames in the video.
        count: indices wanted.
        include_last: make the last index ``total - 1`` (it is for every ``count`` above 1 in any case).

    Raises:
        ValueError: ``total`` is negative or ``count`` is not positive.
    """
    if total < 0 or count < 1:
        raise ValueError(f"cannot take {count} frames of {total}")
    if total == 0:
        return []
    last = total - 1
    if count == 1:
        return [last if include_last else 0]
    step = last / (count - 1)
    return [int(i * step) for i in range(count - 1)] + [last]


_FRAMES_MAX_BYTES = 48 * 2**20
_TRUSTED_FRAMES = 2**14
"""A header that makes us want more frames than this is not believed: they are counted first."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Frames to take of a video: the given ``indices``, else each ``step``-th, else ``count`` evenly spaced ones, else
    ``fps`` a second with at most ``count``, else all. ``start`` and ``end`` (seconds) narrow the part that ``count``,
    ``fps`` and ``step`` look at.
    """

    indices: tuple[int, ...] | None = None
    step: int | None = None
    count: int | None = None
    fps: float | None = None
    include_last: bool = False
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class VideoFrames:
    """Decoded frames."""

    array: npt.NDArray[np.uint8]
    """``(frames, height, width, 3)``, RGB; read-only, as it may be shared."""
    indices: tuple[int, ...]
    """Number of each frame in the video, from 0; a wanted frame that cannot be read is missing."""
    fps: float
    """The video's own rate; 0 if unknown."""
    source: SentMedia | None = None
    """The video that they are of."""

    def __len__(self) -> int:
        return len(self.indices)

    def images(self) -> list[Image.Image]:
        """The frames as PIL images (copies), marked with their place in the video."""
        from PIL import Image

        images = [Image.fromarray(frame) for frame in self.array]
        if self.source is not None:
            mark(images, self.places())
        return images

    def places(self) -> list[Frame]:
        """Return where in the video each frame comes from; empty where the video is not known."""
        if self.source is None:
            return []
        return [Frame(self.source, index, time) for index, time in zip(self.indices, self.times(), strict=True)]

    def times(self) -> list[float]:
        """Seconds from the start of the video of each frame; zeros if the rate is unknown."""
        return [index / self.fps if self.fps else 0.0 for index in self.indices]


def probe(value: Any, root: Root = None, *, counts: bool = False) -> VideoInfo:
    """Frame count, rate, length and size of a video. Decodes only where the container does not count its frames.

    Args:
        value: anything that :func:`lmms_eval.media.resolve` takes.
        root: folders for relative paths.
        counts: count the frames in the file (which reads it once) rather than believe the number in its header.

    Raises:
        MediaError: not found, no video, or a video without frames.
    """
    ref = resolve(value, root)
    with VideoFile(ref) as file:
        info = file.info()
    if info.frames > 0 and not counts:
        return info
    return _counted(ref, info)


def _counted(ref: MediaRef, info: VideoInfo) -> VideoInfo:
    """``info`` with as many frames as the file holds, whatever its header says."""
    with VideoFile(ref) as file:
        index = None if info.frames < 1 else file.packet_index()
    if index is not None:
        return info.of_length(len(index.times))
    with VideoFile(ref) as file:
        number = sum(1 for _ in file.decode())
    if number == 0:
        raise MediaError(f"video {ref.describe()} has no readable frame: check the file")
    return info.of_length(number)


def read_frames(value: Any, sampling: Sampling = Sampling(count=32), root: Root = None) -> VideoFrames:
    """Frames of a video as RGB arrays, in order of time; an index asked for twice is there twice.

    The video is decoded once from its start to the last frame wanted, unless fewer frames are wanted than it has key
    frames: then the decoder seeks to the key frame before each. A video that ends before its header says so is told
    in the log, and its frames are chosen again among those that are there. A damaged frame is left out. Results are
    kept in a table of 48 MiB.

    Raises:
        MediaError: not found, no video, no frame at all could be read, ``sampling`` selects none, or names one of
            its ``indices`` that the video does not have.
    """
    ref = resolve(value, root)
    key = identity(ref)
    source = source_of(ref, "video", "" if ref.kind == "path" else key)
    frames = FRAMES.get_or_make((key, sampling), lambda: replace(_read(ref, sampling), source=source))
    height, width = frames.array.shape[1:3]
    note_frames(frames.places(), (width, height))
    return frames


def select(info: VideoInfo, sampling: Sampling) -> list[int]:
    """The frame numbers that ``sampling`` means for a video.

    Raises:
        MediaError: the part from ``start`` to ``end`` holds no frame, or an index is out of range.
        ValueError: a count or rate is not positive.
    """
    if sampling.indices is not None:
        outside = [index for index in sampling.indices if not 0 <= index < info.frames]
        if outside:
            raise MediaError(f"frames {outside[:5]} are outside the video's {info.frames} frames")
        return sorted(sampling.indices)
    first, stop = 0, info.frames
    if info.fps and sampling.start is not None:
        first = max(0, round(sampling.start * info.fps))
    if info.fps and sampling.end is not None:
        stop = min(stop, round(sampling.end * info.fps) + 1)
    total = stop - first
    if total < 1:
        raise MediaError(f"no frame between {sampling.start} s and {sampling.end} s of {info.duration:.2f} s")
    if sampling.step is not None:
        return list(range(first, stop, sampling.step))
    if sampling.count is None and sampling.fps is None:
        return list(range(first, stop))
    count = _count(total, info, sampling)
    return [first + index for index in uniform_indices(total, count, sampling.include_last)]


def _count(total: int, info: VideoInfo, sampling: Sampling) -> int:
    """Count the wanted frames among ``total``."""
    if sampling.step is not None:
        return total // sampling.step
    limit = total if sampling.count is None else sampling.count
    return sample_count(total, limit, sampling.fps, info.fps)


def _read(ref: MediaRef, sampling: Sampling) -> VideoFrames:
    with VideoFile(ref) as file:
        info = file.info()
        trusted = sampling.indices is not None or _count(max(1, info.frames), info, sampling) <= _TRUSTED_FRAMES
        if info.frames < 1 or not trusted:
            info = _counted(ref, info)
        wanted = select(info, sampling)
        found, there = collect_frames(file, wanted, info)
        if wanted[-1] >= there:
            of = f"the header of video {ref.describe()}"
            told = f"{of} tells {info.frames} frames, of which only {there} can be decoded"
            if sampling.indices is not None or there == 0:
                raise MediaError(f"{told}: check the file")
            _warn(f"{told}: frames are chosen among these")
            info = info.of_length(there)
            wanted = select(info, sampling)
            found, _ = collect_frames(file, wanted, info)
    kept = tuple(index for index in wanted if index in found)
    if not kept:
        raise MediaError(f"none of the {len(wanted)} frames wanted of video {ref.describe()} can be read")
    import numpy as np

    array = np.stack([_sized(found[index], found[kept[0]]) for index in kept])
    array.setflags(write=False)
    return VideoFrames(array, kept, info.fps)


@functools.lru_cache(maxsize=1024)
def _warn(text: str) -> None:
    """Once for each video, however many documents show it."""
    from loguru import logger

    logger.warning("{}", text)


def _sized(frame: npt.NDArray[np.uint8], like: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """A frame at the size of another: some streams change it on the way."""
    if frame.shape == like.shape:
        return frame
    import numpy as np
    from PIL import Image

    return np.asarray(Image.fromarray(frame).resize((like.shape[1], like.shape[0])))


FRAMES: ByteLRU[VideoFrames] = ByteLRU(_FRAMES_MAX_BYTES, lambda frames: int(frames.array.nbytes))
