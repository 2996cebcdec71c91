"""Makes a model's input from a row: the prompt's text, its pictures and videos, and chat messages.

Three kinds of rows: pictures only (opened in order), videos only (paths, the model samples them), and both (sampled
frames among the pictures; each placeholder in the text is replaced by one ``<image>`` a frame).
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks._task_utils.pictures import image_part, open_image
from lmms_eval.tasks.megabench.data import PromptSegment, QueryRow, is_video

if TYPE_CHECKING:
    from lmms_eval.media import VideoFrames
    from lmms_eval.media.reference import Identity

MAX_FRAMES = 64
"""Frames of a video in a mixed row, unless the task says otherwise (``max_video_subsample_frame``)."""
IMAGE_TOKEN = "<image>"
VIDEO_START, VIDEO_END = "[video start]", "[video end]"
_PLACEHOLDER = re.compile(r"(<image>|<video>)")


class MediaAccess(Struct, frozen=True):
    """The folder of the media, and the most frames of a video."""

    root: Path
    """Folder that holds ``data/``."""
    max_frames: int = MAX_FRAMES

    def path(self, name: str) -> Path:
        """Absolute path of a file that the data set calls ``./data/...``.

        Raises:
            MediaError: it leads out of the folder.
        """
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise MediaError(f"a row names the file {name!r}, which is outside of the data set's folder {self.root}")
        return (self.root / path).absolute()


def prompt_text(row: QueryRow, media: MediaAccess | None) -> str:
    """Join the three texts by newlines, as the reference harness does.

    Texts keep their placeholders, except in a mixed row, which needs its media.
    An empty demonstration leaves an empty line.

    Raises:
        DataError: placeholders and media of a mixed row do not match.
        MediaError: a video of a mixed row cannot be read.
    """
    if row.kind == "mixed" and media is not None:
        return "\n".join(_rebuilt(row, segment, media) for segment in row.segments)
    return "\n".join((row.description.text, row.example.text, row.query.text))


def visuals(row: QueryRow, media: MediaAccess) -> list[Any]:
    """Open pictures (RGB), paths of videos, or for mixed rows pictures and frames, in the order of the prompt.

    Raises:
        MediaError: a file is missing or cannot be read.
    """
    if row.kind == "video":
        return [video_path(name, media) for name in row.media]
    found: list[Any] = []
    for name in row.media:
        found.extend(frames(name, media).images() if is_video(name) else [open_image(media.path(name))])
    return found


def messages(row: QueryRow, media: MediaAccess) -> list[dict[str, Any]]:
    """Make one user turn: all visuals, then the whole text as one part, with placeholders.

    A picture that needs no transform is given as a path, so that an API back end can send the file as it is.

    Raises:
        DataError, MediaError: as :func:`prompt_text` and :func:`visuals`.
    """
    parts: list[dict[str, Any]] = []
    for name in row.media:
        if row.kind == "image" or not is_video(name):
            parts.append(image_part(media.path(name)))
        elif row.kind == "mixed":
            parts.extend({"type": "image", "url": image} for image in frames(name, media).images())
        else:
            parts.append({"type": "video", "url": video_path(name, media)})
    parts.append({"type": "text", "text": prompt_text(row, media)})
    return [{"role": "user", "content": parts}]


def video_path(name: str, media: MediaAccess) -> str:
    """Absolute path of a video that exists.

    Raises:
        MediaError: there is no such file.
    """
    from lmms_eval.media import resolve

    return str(resolve(media.path(name)).path)


def frames(name: str, media: MediaAccess) -> VideoFrames:
    """All frames of a video up to ``max_frames``, else that many evenly spaced ones; unreadable ones left out.

    Raises:
        MediaError: the video is missing or has no frame that can be read.
    """
    from lmms_eval.media import Sampling, read_frames

    return read_frames(media.path(name), Sampling(count=media.max_frames))


def split_segment(row: QueryRow, segment: PromptSegment) -> list[tuple[str, str | None]]:
    """The text of a segment cut at its placeholders: ``(text, None)`` and ``(placeholder, path)`` in order.

    Raises:
        DataError: there are more or fewer placeholders than media.
    """
    pieces = _PLACEHOLDER.split(segment.text)
    tokens = len(pieces) // 2
    if tokens != len(segment.media):
        raise DataError(
            f"MEGA-Bench row {row.id} of task {row.task_name}: a text has {tokens} placeholders "
            f"for {len(segment.media)} media files"
        )
    paths = iter(segment.media)
    return [(piece, next(paths) if number % 2 else None) for number, piece in enumerate(pieces)]


def _rebuilt(row: QueryRow, segment: PromptSegment, media: MediaAccess) -> str:
    pieces: list[str] = []
    for text, path in split_segment(row, segment):
        if path is not None:
            count = frame_count(path, media) if is_video(path) else 1
            pieces.append(IMAGE_TOKEN if count == 1 else f"{VIDEO_START}{IMAGE_TOKEN * count}{VIDEO_END}")
        elif text.strip():
            pieces.append(text.strip())
    return " ".join(pieces)


def frame_count(name: str, media: MediaAccess) -> int:
    """Number of frames that :func:`frames` gives; the video is decoded for it once in a process."""
    from lmms_eval.media import resolve
    from lmms_eval.media.reference import identity

    key = (identity(resolve(media.path(name))), media.max_frames)
    if key not in _COUNTS:
        _COUNTS[key] = len(frames(name, media))
    return _COUNTS[key]


_COUNTS: dict[tuple[Identity, int], int] = {}
