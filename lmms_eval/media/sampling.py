"""Choice of the frames of a video. Integers only: nothing is decoded here."""

from __future__ import annotations


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
