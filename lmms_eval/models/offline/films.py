"""Videos as frames with the facts that engines ask about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval.api.messages import ChatVideoContent
from lmms_eval.errors import MediaError
from lmms_eval.models.remote.media import Frames, read_video

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

UNKNOWN_FPS = 24.0
"""Rate of a video that does not tell it, as the processors of transformers assume."""


@dataclass(frozen=True, slots=True, eq=False)
class Film:
    """Frames chosen from a video, in order of time."""

    frames: npt.NDArray[np.uint8]
    """``(frames, height, width, 3)``, RGB."""
    indices: tuple[int, ...]
    """Number of each frame in the video, from 0."""
    fps: float
    """Frames per second of the video itself."""
    total: int
    """Frames of the whole video."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The facts under the names of transformers' ``VideoMetadata``; the frames are not to be sampled again."""
        return {
            "total_num_frames": self.total,
            "fps": self.fps,
            "duration": self.total / self.fps,
            "video_backend": "pyav",
            "frames_indices": list(self.indices),
            "do_sample_frames": False,
        }


def read_film(part: ChatVideoContent, frames: Frames, max_pixels: int | None = None) -> Film:
    """Read the frames of a video; a list is taken as the frames themselves, as if shot at ``frames.fps``.

    Raises:
        MediaError: the video or one of its pictures cannot be read.
    """
    if _is_listed(part.url):
        import numpy as np

        images = read_pictures(part, frames, max_pixels)
        size = images[0].size
        array = np.stack([np.asarray(image if image.size == size else image.resize(size)) for image in images])
        return Film(array, tuple(_chosen(part.url, frames)), frames.fps or UNKNOWN_FPS, len(part.url))
    from lmms_eval.media.video import probe

    found = read_video(part, frames)
    total = max(probe(part.url).frames, found.indices[-1] + 1)
    return Film(found.array, found.indices, found.fps or UNKNOWN_FPS, total)


def read_pictures(part: ChatVideoContent, frames: Frames, max_pixels: int | None = None) -> list[Image.Image]:
    """Read the frames of a video, or of a list, as pictures.

    Raises:
        MediaError: the video or one of its pictures cannot be read.
    """
    from lmms_eval.media import load_rgb, shrink

    if _is_listed(part.url):
        return [load_rgb(part.url[index], max_pixels=max_pixels) for index in _chosen(part.url, frames)]
    return [shrink(image, max_pixels=max_pixels) for image in read_video(part, frames).images()]


def _is_listed(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _chosen(pictures: Sequence[Any], frames: Frames) -> list[int]:
    from lmms_eval.media import uniform_indices

    if not pictures:
        raise MediaError("a video without frames: its list of pictures is empty")
    return list(uniform_indices(len(pictures), min(frames.count, len(pictures))))
