"""Record of the media that a request actually sent, written by the functions that read and encode them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from lmms_eval.api.request import SentMedia
from lmms_eval.media.originals import carried, source_original
from lmms_eval.media.reference import MediaRef, digest

if TYPE_CHECKING:
    from PIL import Image

    from lmms_eval.media.keeper import KeptMedium, MediaKeeper

Kind = Literal["image", "video", "audio"]
FRAME = "lmms_eval_frame"
"""Key of a ``Frame`` in the ``info`` of a picture. Pillow copies ``info`` when a picture is resized or converted, and
does not write unknown keys into files."""
MAX_HASHED_BYTES = 64 * 2**20
"""Larger video and sound files are recorded without a digest, as hashing them would cost more than reading frames."""


class Frame(Struct, frozen=True):
    """The place of a picture in the video that it comes from."""

    video: SentMedia
    index: int
    time: float
    """Seconds from the start of the video."""


class AsSent(Struct, frozen=True):
    """The bytes of a medium as it was sent."""

    read: Callable[[], bytes]
    form: Hashable = ()
    """Distinguishes them from other forms of the same source."""
    is_source: bool = False
    """Whether they are the bytes of the source."""


class recording:
    """A context whose value is a list. Media that this thread reads or encodes are appended to it in order.

    A ``keeper`` keeps those that have no file of their own. ``origin`` is that of all media (``SentMedia.origin``).
    """

    __slots__ = ("_encoders", "_frames", "_token", "keeper", "media", "origin", "videos")

    def __init__(self, keeper: MediaKeeper | None = None, origin: str = "") -> None:
        self.keeper, self.origin = keeper, origin

    def __enter__(self) -> list[SentMedia]:
        self.media: list[SentMedia] = []
        self.videos: set[SentMedia] = set()
        """Videos whose frames were recorded together when they were read."""
        self._frames: dict[str, dict[int, KeptMedium]] = {}
        """Kept frames by digest of the video and index."""
        self._encoders: dict[str, Callable[[int], bytes]] = {}
        """Functions that encode a frame, given its place among the frames, by digest of the video."""
        self._token = _NOTES.set(self)
        return self.media

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _NOTES.reset(self._token)
        if self.keeper is not None and kind is None:
            for place, medium in enumerate(self.media):
                if medium.type == "video" and medium.frames and not medium.path:
                    self.media[place] = self._with_frames(medium, self.keeper)
        if self.origin:
            self.media[:] = [replace(medium, origin=self.origin) for medium in self.media]

    def keep_frame(self, frame: Frame, size: tuple[int, int], sent: AsSent | None) -> None:
        """Keep a frame of a video that has no file."""
        if self.keeper is not None and sent is not None and not frame.video.path:
            found = self.keeper.keep((frame.video.sha256, frame.index, size, sent.form), sent.read)
            self._frames.setdefault(frame.video.sha256, {})[frame.index] = found

    def read_frames(self, video: SentMedia, encode: Callable[[int], bytes]) -> None:
        """Receive the function that encodes the frames of a video, if they are not sent as pictures."""
        if self.keeper is not None and not video.path:
            self._encoders[video.sha256] = encode

    def _with_frames(self, video: SentMedia, keeper: MediaKeeper) -> SentMedia:
        found = self._frames.get(video.sha256, {})
        encode = self._encoders.get(video.sha256)
        kept = []
        for place, index in enumerate(video.frames):
            one = found.get(index)
            if one is None and encode is not None:
                key = (video.sha256, index, (video.width, video.height), "pixels")
                one = keeper.keep(key, functools.partial(encode, place))
            if one is None or not one.file:
                return video if one is None else replace(video, not_stored=one.reason)
            kept.append(one.file)
        return replace(video, stored=tuple(kept))


_NOTES: ContextVar[recording | None] = ContextVar("sent_media", default=None)


class unrecorded:
    """A context for media that are only looked at, not sent."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _NOTES.set(None)

    def __exit__(self, *_: object) -> None:
        _NOTES.reset(self._token)


def is_recording() -> bool:
    """Return whether sent media are recorded, so that their digests will be needed."""
    return _NOTES.get() is not None


def source_of(ref: MediaRef, kind: Kind, sha256: str = "") -> SentMedia:
    """Describe the source of a medium, with ``sha256`` if it is known already."""
    if ref.kind == "path" and ref.path is not None:
        return SentMedia(kind, path=os.path.abspath(ref.path), sha256=sha256)
    if ref.kind == "url":
        return SentMedia(kind, url=ref.describe(), sha256=sha256)
    if ref.kind == "image" and ref.image is not None:
        original = carried(ref.image)
        file = str(getattr(ref.image, "filename", "") or "") or (original.path if original is not None else "")
        return SentMedia(kind, path=os.path.abspath(file) if file else "", sha256=sha256)
    return SentMedia(kind, name=ref.name, sha256=sha256)


def mark(images: Iterable[Image.Image], frames: Iterable[Frame]) -> None:
    """Attach to each picture the frame that it shows."""
    for image, frame in zip(images, frames, strict=True):
        image.info[FRAME] = frame


def note_picture(
    ref: MediaRef, size: tuple[int, int], nbytes: int | None = None, sha256: str = "", sent: AsSent | None = None
) -> None:
    """Record a picture sent at ``size`` (width, height) in ``nbytes``; ``sha256`` is that of its source, if known."""
    notes = _NOTES.get()
    if notes is None:
        return
    frame = None if ref.image is None else ref.image.info.get(FRAME)
    if isinstance(frame, Frame):  # read by the task itself: it joins the preceding frames of the same video
        notes.keep_frame(frame, size, sent)
        if frame.video in notes.videos:
            return
        hashed, last = _hashed(frame.video), notes.media[-1] if notes.media else None
        frames, times = (frame.index,), (round(frame.time, 3),)
        if last is not None and (last.type, last.path, last.sha256) == ("video", hashed.path, hashed.sha256):
            whole = last.times + times
            notes.media[-1] = replace(last, frames=last.frames + frames, times=whole, fps=rate_of(whole))
        else:
            notes.media.append(replace(hashed, width=size[0], height=size[1], frames=frames, times=times))
        return
    source = source_of(ref, "image", "" if ref.kind == "url" else sha256 or digest(ref))
    found = None
    if notes.keeper is not None and sent is not None and not _has_file(ref, source):
        key = (source.sha256 or source.url, size, nbytes, sent.form)
        found = notes.keeper.keep(key, sent.read, source.sha256 if sent.is_source else "")
    notes.media.append(_sized(source, size, nbytes, found))


def note_frames(frames: Sequence[Frame], size: tuple[int, int], encode: Callable[[int], bytes] | None = None) -> None:
    """Record frames of one video that were read at ``size``. They are not recorded again as single pictures.

    ``encode`` returns a frame as the bytes of a picture, given its place among ``frames``.
    """
    notes = _NOTES.get()
    if notes is None or not frames:
        return
    video = frames[0].video
    notes.videos.add(video)
    if encode is not None:
        notes.read_frames(video, encode)
    indices, times = tuple(one.index for one in frames), tuple(round(one.time, 3) for one in frames)
    seen = replace(_hashed(video), width=size[0], height=size[1], frames=indices, times=times, fps=rate_of(times))
    notes.media.append(seen)


def rate_of(times: Sequence[float]) -> float | None:
    """Return the frames per second of frames at these times; ``None`` for a single frame."""
    seconds = max(times, default=0.0) - min(times, default=0.0)
    return round((len(times) - 1) / seconds, 3) if seconds > 0 else None


def note_file(
    ref: MediaRef,
    kind: Kind,
    nbytes: int | None = None,
    seconds: float | None = None,
    sent: AsSent | None = None,
) -> None:
    """Record a video, sound or address that was sent as a whole; by default as the bytes of its source."""
    notes = _NOTES.get()
    if notes is None:
        return
    known = "" if ref.kind in ("path", "url") else digest(ref)
    medium = replace(_hashed(source_of(ref, kind, known)), nbytes=nbytes, seconds=seconds)
    if sent is None and ref.kind == "bytes":
        sent = AsSent(ref.read_bytes, is_source=True)
    if notes.keeper is not None and sent is not None and ref.kind not in ("path", "url"):
        found = notes.keeper.keep((known, kind, sent.form), sent.read, known if sent.is_source else "")
        medium = replace(medium, stored=(found.file,) if found.file else (), not_stored=found.reason)
    notes.media.append(medium)


def _sized(source: SentMedia, size: tuple[int, int], nbytes: int | None, found: KeptMedium | None) -> SentMedia:
    if found is None:
        return replace(source, width=size[0], height=size[1], nbytes=nbytes)
    stored = (found.file,) if found.file else ()
    return replace(
        source, width=size[0], height=size[1], nbytes=nbytes, stored=stored, not_stored=found.reason
    )  # fmt: skip


def _has_file(ref: MediaRef, medium: SentMedia) -> bool:
    """Return whether a picture was sent as a file on this machine shows it."""
    if ref.kind == "path":
        return True
    original = None if ref.image is None else source_original(ref.image)
    is_unchanged = original is not None and original.path and original.sha256 == medium.sha256
    return bool(is_unchanged) and os.path.isfile(medium.path)


def _hashed(source: SentMedia) -> SentMedia:
    if source.sha256 or not source.path or os.path.getsize(source.path) > MAX_HASHED_BYTES:
        return source
    from pathlib import Path

    return replace(source, sha256=digest(MediaRef("path", path=Path(source.path))))
