"""Frames of a video file, or of a folder of pictures in natural order, read one at a time."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import MediaError
from lmms_eval.media.reference import MediaRef
from lmms_eval.media.video import one_thread
from lmms_eval.media.video_file import open_container
from lmms_eval.tasks.general_bench.readers.images import check_pixels, read_rgb
from lmms_eval.tasks.general_bench.readers.sides import regular_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Frame = npt.NDArray[np.uint8]

MAX_FRAMES = 20_000
MAX_VIDEO_BYTES = 8 << 30
MAX_VIDEO_PIXELS = 20_000_000_000
"""Most pixels of all frames together, some ten thousand frames of 1920x1080."""
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def read_frames(path: Path, read: Callable[[Path], Frame] = read_rgb) -> Iterator[Frame]:
    """Yield frames in order, decoded lazily. At most two are in memory.

    Args:
        path: a video file, or a folder of pictures.
        read: what makes an array of a picture of a folder; frames of a video are RGB ``(height, width, 3)``.

    Raises:
        DataError: no file, or larger than 8 GiB.
        MediaError: no video, no frame, more than 20,000 frames or 20 thousand million pixels, or a frame that is too
            large or damaged; raised when that frame is reached.
    """
    if path.is_dir():
        return _bounded((read(file) for file in files_of(path, PICTURE_SUFFIXES)), path)
    return _bounded(_decoded(path), path)


def files_of(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """List the files of a folder with some suffixes (in any case) in natural order: ``2.png`` before ``10.png``. Hidden
    files are left out.

    Raises:
        MediaError: no such folder, no such file in it, or more than 20,000 entries.
    """
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, MAX_FRAMES + 1)]
    except OSError as error:
        raise MediaError(f"{folder} cannot be read: {error.strerror or error}") from error
    if len(names) > MAX_FRAMES:
        raise MediaError(f"{folder} holds more than {MAX_FRAMES} files")
    found = [name for name in names if name.lower().endswith(suffixes) and not name.startswith(".")]
    if not found:
        raise MediaError(f"{folder} holds no file of the kinds {', '.join(suffixes)}")
    return [folder / name for name in sorted(found, key=natural_key)]


def natural_key(name: str) -> tuple[tuple[tuple[int, str], ...], str]:
    """Return a sort key that compares runs of digits as numbers (without leading zeros, longer is larger)."""
    parts = re.split(r"([0-9]+)", name)
    return tuple(
        (len(part.lstrip("0")), part.lstrip("0")) if index % 2 else (0, part) for index, part in enumerate(parts)
    ), name


def _bounded(frames: Iterator[Frame], path: Path) -> Iterator[Frame]:
    pixels = 0
    for frame in frames:
        pixels += frame.shape[0] * frame.shape[1]
        if pixels > MAX_VIDEO_PIXELS:
            raise MediaError(f"the frames of {path} have more than {MAX_VIDEO_PIXELS} pixels")
        yield frame


def _decoded(path: Path) -> Iterator[Frame]:
    import av

    regular_file(path, MAX_VIDEO_BYTES)
    try:
        with open_container(MediaRef("path", path=path)) as container:
            yield from _frames(container, path)
    except (av.FFmpegError, OSError, ValueError, EOFError) as error:
        raise MediaError(f"{path} is no readable video: {error}") from error


def _frames(container: Any, path: Path) -> Iterator[Frame]:
    import numpy as np

    if not container.streams.video:
        raise MediaError(f"{path} has no video stream")
    stream = container.streams.video[0]
    if stream.codec_context is None:
        raise MediaError(f"{path} has a codec that the installed FFmpeg does not know")
    check_pixels(int(stream.codec_context.width), int(stream.codec_context.height), path)
    count = 0
    for frame in container.decode(stream):
        count += 1
        if count > MAX_FRAMES:
            raise MediaError(f"{path} has more than {MAX_FRAMES} frames")
        check_pixels(frame.width, frame.height, path)
        array: Frame = frame.to_ndarray(format="rgb24", **one_thread())
        turns = round(getattr(frame, "rotation", 0) / 90) % 4  # as the display matrix of the container asks
        yield np.ascontiguousarray(np.rot90(array, turns)) if turns else array
    if count == 0:
        raise MediaError(f"{path} has no readable frame")
