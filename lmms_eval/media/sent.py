"""Which media a request really sent: noted by the functions that read and encode them, while somebody records."""

from __future__ import annotations

import os
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from lmms_eval.api.request import SentMedia
from lmms_eval.media.originals import carried
from lmms_eval.media.reference import MediaRef, digest

if TYPE_CHECKING:
    from PIL import Image

    from lmms_eval.media.video import VideoFrames

Kind = Literal["image", "video", "audio"]
FRAME = "lmms_eval_frame"
"""Key of a ``Frame`` in the ``info`` of a picture. Pillow keeps ``info`` when a picture is resized or converted, and
writes only what it knows of it into files."""
MAX_HASHED_BYTES = 64 * 2**20
"""A video or sound file larger than this is named without a digest: hashing it would cost more than reading frames."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Where in a video a picture comes from."""

    video: SentMedia
    index: int
    time: float
    """Seconds from the video's start."""


@dataclass(slots=True)
class _Notes:
    media: list[SentMedia] = field(default_factory=list)
    videos: set[SentMedia] = field(default_factory=set)
    """Those whose frames were noted together when they were read."""


_NOTES: ContextVar[_Notes | None] = ContextVar("sent_media", default=None)


class recording:
    """Context with a list that fills with the media read or encoded meanwhile by this thread, in order."""

    __slots__ = ("_notes", "_token")

    def __enter__(self) -> list[SentMedia]:
        self._notes = _Notes()
        self._token = _NOTES.set(self._notes)
        return self._notes.media

    def __exit__(self, *_: object) -> None:
        _NOTES.reset(self._token)


class unrecorded:
    """Context in which what is read is looked at only, not sent."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _NOTES.set(None)

    def __exit__(self, *_: object) -> None:
        _NOTES.reset(self._token)


def source_of(ref: MediaRef, kind: Kind, sha256: str = "") -> SentMedia:
    """Where a medium comes from; ``sha256`` where it is known already."""
    if ref.kind == "path" and ref.path is not None:
        return SentMedia(kind, path=os.path.abspath(ref.path), sha256=sha256)
    if ref.kind == "url":
        return SentMedia(kind, url=ref.describe(), sha256=sha256)
    if ref.kind == "image" and ref.image is not None:
        original = carried(ref.image)
        file = str(getattr(ref.image, "filename", "") or "") or (original.path if original is not None else "")
        return SentMedia(kind, path=os.path.abspath(file) if file else "", sha256=sha256)
    return SentMedia(kind, name=ref.name, sha256=sha256)


def marked(images: list[Image.Image], frames: VideoFrames) -> list[Image.Image]:
    """The pictures of some frames, with the video that they come from, where it is known."""
    if frames.source is not None:
        for image, index, time in zip(images, frames.indices, frames.times(), strict=True):
            image.info[FRAME] = Frame(frames.source, index, time)
    return images


def note_picture(ref: MediaRef, size: tuple[int, int], nbytes: int | None = None, sha256: str = "") -> None:
    """A picture went out at ``size`` (width, height), encoded as ``nbytes``. ``sha256``: its source's, where known."""
    notes = _NOTES.get()
    if notes is None:
        return
    frame = None if ref.image is None else ref.image.info.get(FRAME)
    if isinstance(frame, Frame):
        _note_frame(notes, frame, size)
        return
    source = source_of(ref, "image", "" if ref.kind == "url" else sha256 or digest(ref))
    notes.media.append(replace(source, width=size[0], height=size[1], nbytes=nbytes))


def note_frames(frames: VideoFrames) -> None:
    """Frames of a video were read; as pictures of their own they are not noted again."""
    notes = _NOTES.get()
    if notes is None or frames.source is None:
        return
    notes.videos.add(frames.source)
    height, width = frames.array.shape[1:3]
    times = tuple(round(time, 3) for time in frames.times())
    noted = replace(_hashed(frames.source), width=width, height=height, frames=frames.indices, times=times)
    notes.media.append(noted)


def note_file(ref: MediaRef, kind: Kind, nbytes: int | None = None, seconds: float | None = None) -> None:
    """A video, sound or address went out as a whole."""
    notes = _NOTES.get()
    if notes is None:
        return
    known = "" if ref.kind in ("path", "url") else digest(ref)
    notes.media.append(replace(_hashed(source_of(ref, kind, known)), nbytes=nbytes, seconds=seconds))


def _note_frame(notes: _Notes, frame: Frame, size: tuple[int, int]) -> None:
    """A frame that the task itself has read: it joins those of the same video before it."""
    if frame.video in notes.videos:
        return
    hashed, last = _hashed(frame.video), notes.media[-1] if notes.media else None
    frames, times = (frame.index,), (round(frame.time, 3),)
    if last is not None and (last.type, last.path, last.sha256) == ("video", hashed.path, hashed.sha256):
        notes.media[-1] = replace(last, frames=last.frames + frames, times=last.times + times)
    else:
        notes.media.append(replace(hashed, width=size[0], height=size[1], frames=frames, times=times))


def _hashed(source: SentMedia) -> SentMedia:
    if source.sha256 or not source.path or os.path.getsize(source.path) > MAX_HASHED_BYTES:
        return source
    from pathlib import Path

    return replace(source, sha256=digest(MediaRef("path", path=Path(source.path))))
