"""Videos: properties of the stream, and frames by index, count or rate, read in one decoding pass or by seeking."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.errors import MediaError
from lmms_eval.media.originals import ByteLRU
from lmms_eval.media.reference import MediaRef, identity, resolve
from lmms_eval.media.sent import Frame, mark, note_frames, source_of
from lmms_eval.media.video_file import PacketIndex, VideoFile, VideoInfo

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    from lmms_eval.api.request import SentMedia

    _Found = dict[int, npt.NDArray[np.uint8]]
    """Decoded frames by number."""

_AHEAD = 4
"""Frames that a decoder buffers for reordering, and needs again after each seek."""
_FRAMES_MAX_BYTES = 48 * 2**20
_TRUSTED_FRAMES = 2**14
"""If a header leads to more wanted frames than this, the frames are counted first."""


def collect_frames(file: VideoFile, wanted: Sequence[int], info: VideoInfo) -> tuple[_Found, int]:
    """Return the wanted frames by number, and the number of frames: that of ``info``, unless the video ends earlier.

    The video is decoded in one pass up to the last wanted frame, or from the key frame before each wanted frame,
    whichever decodes fewer frames. If a gap between wanted frames is large enough for a seek to pay off, the times of
    the packets, which are read without decoding, decide. Both ways give the same frames: if seeking does not find
    every frame intact, the pass is made after all.
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
            there = number + 1  # a torn frame at the end of a truncated file does not count
        if number in left:
            if frame is not None:
                found[number] = _pixels(frame)
            left.discard(number)
            if not left:
                return found, info.frames
    return found, there


def _by_seeking(file: VideoFile, groups: Sequence[tuple[int, list[int]]], index: PacketIndex) -> _Found | None:
    """Decode the frames of each group from its key frame; ``None`` if one of them is not found or not intact."""
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
    """Convert a decoded frame to RGB, turned by the display matrix of the container."""
    import numpy as np

    array: npt.NDArray[np.uint8] = frame.to_ndarray(format="rgb24", **one_thread())
    turns = round(getattr(frame, "rotation", 0) / 90) % 4
    return np.ascontiguousarray(np.rot90(array, turns)) if turns else array


@functools.cache
def one_thread() -> dict[str, int]:
    """Return the argument of PyAV's conversions that keeps them in the calling thread.

    Starting threads takes ten times as long as the conversion of a small frame. Before version 17 there is no such
    argument, and conversions always run in the calling thread.
    """
    import av
    from packaging.version import Version

    return {"threads": 1} if Version(av.__version__) >= Version("17") else {}


def sample_count(total: int, max_frames: int, fps: float | None = None, video_fps: float | None = None) -> int:
    """Return the number of frames to take from a video with ``total`` frames; 0 means unknown and sets no bound.

    With ``fps`` (wanted frames per second) it is ``int(duration * fps)``, at least 1. It is never more than
    ``max_frames`` or the frames of the video. Without the video's own rate, ``fps`` is ignored. Raises ``ValueError``
    if ``max_frames`` or ``fps`` is not positive.
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
    """Return ``count`` evenly spaced indices from 0 to ``total - 1``, truncated to integers.

    The same numbers as ``numpy.linspace(0, total - 1, count, dtype=int)``, repetitions included. With ``include_last``
    a single index is ``total - 1`` instead of 0. Raises ``ValueError`` if ``total`` is negative or ``count`` is not
    positive.
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


class Sampling(Struct, frozen=True):
    """The frames to take from a video.

    The first option that is set applies: ``indices``; every ``step``-th frame; ``count`` evenly spaced frames, or
    ``fps`` per second with at least ``least`` and at most ``count``; otherwise all. ``start`` and ``end`` (seconds)
    limit the part that ``count``, ``fps`` and ``step`` select.
    """

    indices: tuple[int, ...] | None = None
    step: int | None = None
    count: int | None = None
    fps: float | None = None
    include_last: bool = False
    start: float | None = None
    end: float | None = None
    least: int = 1


class VideoFrames(Struct, frozen=True, eq=False):
    """Decoded frames."""

    array: npt.NDArray[np.uint8]
    """``(frames, height, width, 3)``, RGB; read-only, as it may be shared."""
    indices: tuple[int, ...]
    """The number of each frame in the video, from 0. Frames that cannot be read are missing."""
    fps: float
    """The video's own rate; 0 if unknown."""
    source: SentMedia | None = None
    """The video that the frames come from."""

    def __len__(self) -> int:
        return len(self.indices)

    def images(self) -> list[Image.Image]:
        """Return the frames as PIL images (copies), marked with their place in the video."""
        from PIL import Image

        images = [Image.fromarray(frame) for frame in self.array]
        if self.source is not None:
            mark(images, self.places())
        return images

    def places(self) -> list[Frame]:
        """Return the place of each frame in the video; empty if the video is not known."""
        if self.source is None:
            return []
        return [Frame(self.source, index, time) for index, time in zip(self.indices, self.times(), strict=True)]

    def times(self) -> list[float]:
        """Return the time of each frame in seconds from the start of the video; zeros if the rate is unknown."""
        return [index / self.fps if self.fps else 0.0 for index in self.indices]


def probe(value: Any, *, counts: bool = False) -> VideoInfo:
    """Return the frame count, rate, length and size of a video. It is decoded only if the container has no count.

    With ``counts``, the frames are counted in the file, which reads it once, instead of trusting its header. Raises
    ``MediaError`` if the source is not found, not a video, or a video without frames.
    """
    ref = resolve(value)
    with VideoFile(ref) as file:
        info = file.info()
    if info.frames > 0 and not counts:
        return info
    return _counted(ref, info)


def _counted(ref: MediaRef, info: VideoInfo) -> VideoInfo:
    """Return ``info`` with the actual number of frames in the file."""
    with VideoFile(ref) as file:
        index = None if info.frames < 1 else file.packet_index()
    if index is not None:
        return info.of_length(len(index.times))
    with VideoFile(ref) as file:
        number = sum(1 for _ in file.decode())
    if number == 0:
        raise MediaError(f"video {ref.describe()} has no readable frame: check the file")
    return info.of_length(number)


def read_frames(value: Any, sampling: Sampling = Sampling(count=32)) -> VideoFrames:
    """Read frames of a video as RGB arrays, in order of time. Repeated indices give repeated frames.

    The video is decoded once up to the last wanted frame, or by seeking (see ``collect_frames``). If a video ends
    earlier than its header states, a warning is logged, and the frames are selected again among the existing ones.
    Damaged frames are left out. Results are kept in a cache of 48 MiB. Raises ``MediaError`` if the source is not found
    or not a video, if no frame can be read, or if ``sampling`` selects no frame or an index that the video does not
    have.
    """
    ref = resolve(value)
    key = identity(ref)
    source = source_of(ref, "video", key if isinstance(key, str) else "")
    frames = FRAMES.get_or_make((key, sampling), lambda: replace(_read(ref, sampling), source=source))
    height, width = frames.array.shape[1:3]
    note_frames(frames.places(), (width, height), functools.partial(_encoded_frame, frames))
    return frames


def _encoded_frame(frames: VideoFrames, place: int) -> bytes:
    """Return a frame as JPEG of quality 90."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(frames.array[place]).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def select(info: VideoInfo, sampling: Sampling) -> list[int]:
    """Return the frame numbers that ``sampling`` selects from a video.

    Raises ``MediaError`` if the part from ``start`` to ``end`` contains no frame or an index is out of range, and
    ``ValueError`` if a count or rate is not positive.
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
    """Return the number of wanted frames among ``total``."""
    if sampling.step is not None:
        return total // sampling.step
    limit = total if sampling.count is None else sampling.count
    return max(sample_count(total, limit, sampling.fps, info.fps), min(sampling.least, limit, total))


def _read(ref: MediaRef, sampling: Sampling) -> VideoFrames:
    with VideoFile(ref) as file:
        info = file.info()
        trusted = sampling.indices is not None or _count(max(1, info.frames), info, sampling) <= _TRUSTED_FRAMES
        if info.frames < 1 or not trusted:
            info = _counted(ref, info)
        wanted = select(info, sampling)
        found, there = collect_frames(file, wanted, info)
        if wanted[-1] >= there:
            header = f"the header of video {ref.describe()}"
            found_fewer = f"{header} states {info.frames} frames, but only {there} can be decoded"
            if sampling.indices is not None or there == 0:
                raise MediaError(f"{found_fewer}: check the file")
            _warn(f"{found_fewer}: frames are chosen among these")
            info = info.of_length(there)
            wanted = select(info, sampling)
            found, _ = collect_frames(file, wanted, info)
    kept = tuple(index for index in wanted if index in found)
    if not kept:
        raise MediaError(f"the {len(wanted)} wanted frames of video {ref.describe()} cannot be read: check the file")
    import numpy as np
    from PIL import Image

    shape = found[kept[0]].shape
    arrays = [found[index] for index in kept]
    for place, frame in enumerate(arrays):
        if frame.shape != shape:  # some streams change their size
            arrays[place] = np.asarray(Image.fromarray(frame).resize((shape[1], shape[0])))
    array = np.stack(arrays)
    array.setflags(write=False)
    return VideoFrames(array, kept, info.fps)


@functools.lru_cache(maxsize=1024)
def _warn(text: str) -> None:
    """Log a warning once per video, however many documents show it."""
    from loguru import logger

    logger.warning("{}", text)


FRAMES: ByteLRU[VideoFrames] = ByteLRU(_FRAMES_MAX_BYTES, lambda frames: int(frames.array.nbytes))
