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
    value = part.url
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return _listed(value, frames, max_pixels)
    from lmms_eval.media.video import probe

    found = read_video(part, frames)
    total = max(probe(value).frames, found.indices[-1] + 1)
    return Film(found.array, found.indices, found.fps or UNKNOWN_FPS, total)


def _listed(pictures: Sequence[Any], frames: Frames, max_pixels: int | None) -> Film:
    import numpy as np

    from lmms_eval.media import load_rgb, uniform_indices

    if not pictures:
        raise MediaError("a video without frames: its list of pictures is empty")
    chosen = uniform_indices(len(pictures), min(frames.count, len(pictures)))
    loaded = [load_rgb(pictures[index], max_pixels=max_pixels) for index in chosen]
    size = loaded[0].size
    array = np.stack([np.asarray(image if image.size == size else image.resize(size)) for image in loaded])
    return Film(array, tuple(chosen), frames.fps or UNKNOWN_FPS, len(pictures))
