"""Video reading by the names that model plugins import; the work is done in ``lmms_eval.media``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from lmms_eval.media.video import Sampling, read_frames

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

BACKENDS = ("pyav", "torchcodec", "dali")
"""Decoders that a plugin can name; ``lmms_eval.media`` decodes for all of them and chooses the same frames."""


def read_video(
    video_path: Any,
    num_frm: int = 8,
    fps: float | None = None,
    format: str = "rgb24",
    force_include_last_frame: bool = False,
    backend: str | None = None,
) -> npt.NDArray[np.uint8]:
    """Read evenly spaced frames of a video.

    Args:
        video_path: anything that :func:`lmms_eval.media.resolve` takes.
        num_frm: number of frames, the upper bound if ``fps`` is given.
        fps: frames per second to take.
        format: only ``rgb24``.
        force_include_last_frame: end with the video's last frame.
        backend: one of ``BACKENDS``; else that of ``LMMS_VIDEO_DECODE_BACKEND``.

    Returns:
        ``(frames, height, width, 3)``, uint8, RGB; the caller owns it.

    Raises:
        MediaError: the video cannot be found or read.
        ValueError: another ``format`` or ``backend``, or a count or rate that is not positive.
    """
    if format != "rgb24":
        raise ValueError(f"frames come as rgb24, not as {format!r}: convert the array that this function gives")
    wanted = backend or os.environ.get("LMMS_VIDEO_DECODE_BACKEND") or BACKENDS[0]
    if wanted not in BACKENDS:
        raise ValueError(f"unknown video backend {wanted!r}: use one of {', '.join(BACKENDS)}")
    sampling = Sampling(count=num_frm, fps=fps, include_last=force_include_last_frame)
    return read_frames(video_path, sampling).array.copy()


read_video_pyav = read_video
"""The name that plugins use with keyword arguments."""


def load_video_decord(
    video_path: Any, max_frames_num: int, fps: float | None = None, force_include_last_frame: bool = False
) -> npt.NDArray[np.uint8]:
    """Read as :func:`read_video` does, by the name and argument order of its older form. Decord itself is not used.

    A list or tuple of paths means its first entry.
    """
    path = video_path[0] if isinstance(video_path, (list, tuple)) else video_path
    return read_video(path, max_frames_num, fps, force_include_last_frame=force_include_last_frame)
