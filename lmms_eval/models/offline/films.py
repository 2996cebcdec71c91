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

    from lmms_eval.media import Bounds, VideoFrames

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


def read_film(part: ChatVideoContent, frames: Frames, bounds: Bounds) -> Film:
    """Read the frames of a video; a list is taken as the frames themselves, as if shot at ``frames.fps``.

    Raises:
        MediaError: the video or one of its pictures cannot be read.
    """
    if _is_listed(part.url):
        import numpy as np

        images = read_pictures(part, frames, bounds)
        size = images[0].size
        array = np.stack([np.asarray(image if image.size == size else image.resize(size)) for image in images])
        return Film(array, tuple(_chosen(part.url, frames)), frames.fps or UNKNOWN_FPS, len(part.url))
    from lmms_eval.media.video import probe

    found = read_video(part, frames)
    total = max(probe(part.url).frames, found.indices[-1] + 1)
    return Film(
        _resized(found, bounds.of_frames(len(found), frames.total_pixels)),
        found.indices,
        found.fps or UNKNOWN_FPS,
        total,
    )


def _resized(found: VideoFrames, bounds: Bounds) -> npt.NDArray[np.uint8]:
    """The frames at a size within the bounds."""
    import numpy as np

    from lmms_eval.media import fit

    height, width = found.array.shape[1:3]
    if bounds.size((width, height)) == (width, height):
        return found.array
    return np.stack([np.asarray(fit(image, bounds)) for image in found.images()])


def read_pictures(part: ChatVideoContent, frames: Frames, bounds: Bounds) -> list[Image.Image]:
    """Read the frames of a video, or of a list, as pictures.

    Raises:
        MediaError: the video or one of its pictures cannot be read.
    """
    from lmms_eval.media import fit, load_rgb

    if _is_listed(part.url):
        chosen = _chosen(part.url, frames)
        each = bounds.of_frames(len(chosen), frames.total_pixels)
        return [load_rgb(part.url[index], bounds=each) for index in chosen]
    found = read_video(part, frames)
    each = bounds.of_frames(len(found), frames.total_pixels)
    return [fit(image, each) for image in found.images()]


def _is_listed(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _chosen(pictures: Sequence[Any], frames: Frames) -> list[int]:
    from lmms_eval.media import uniform_indices

    if not pictures:
        raise MediaError("a video without frames: its list of pictures is empty")
    return list(uniform_indices(len(pictures), min(frames.count, len(pictures))))
