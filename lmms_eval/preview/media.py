"""Sizes of media as headers tell them, and of what a back end will send of them; pixels are not decoded."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.api.media_form import MediaForm
from lmms_eval.api.messages import ChatAudioContent, ChatContent, ChatImageContent, ChatTextContent, ChatVideoContent
from lmms_eval.media import MediaRef, Sampling, audio_seconds, header, load_image, probe, resolve
from lmms_eval.media.encode import MIME, has_end, is_untouched
from lmms_eval.media.originals import original_of
from lmms_eval.media.video import select
from lmms_eval.models.remote.media import bounds_of

Size = tuple[int, int]
BYTES_PER_PIXEL = {"PNG": 1.5, "WEBP": 1.2, "JPEG": 0.25}
"""Estimates for photographs that have to be encoded: the pixels alone would tell."""
_TAIL_BYTES = 4096
_WAV_BYTES_PER_SECOND = 32_000
"""16-bit mono at 16 kHz."""


@dataclass(slots=True)
class MediaSizes:
    """Media of one request."""

    pictures: list[Size] = field(default_factory=list)
    """Width and height as they are in the data."""
    videos: int = 0
    frames: int = 0
    """Frames that will be taken of the videos."""
    unsampled: int = 0
    """Videos of which nobody knows how many frames will be taken."""
    sounds: int = 0
    seconds: float = 0.0
    """Of sound."""
    addresses: int = 0
    """Media that go as their address."""
    nbytes: int = 0
    """Encoded, before base64; 0 where nothing is sent."""
    estimated: int = 0
    """Media that will be encoded anew, whose bytes are an estimate."""

    def add(self, part: ChatContent, form: MediaForm) -> None:
        """Look at one part of a message.

        Raises:
            MediaError: it is missing, damaged or of another kind.
        """
        if isinstance(part, ChatTextContent):
            return
        if isinstance(part, ChatImageContent):
            self._add_picture(part.url, form)
        elif isinstance(part, ChatAudioContent):
            self._add_sound(part.url, form)
        else:
            self._add_video(part, form)

    def _add_picture(self, value: Any, form: MediaForm, is_frame: bool = False) -> None:
        ref = resolve(value)
        if ref.kind == "url":
            self.addresses += 1
            return
        size, nbytes = _in_memory(ref, form) if ref.kind == "image" else _encoded(ref, form)
        self.frames += is_frame
        if not is_frame:
            self.pictures.append(size)
        if form.wire is not None:
            self.estimated += nbytes is None
            self.nbytes += _guess(size, form) if nbytes is None else nbytes

    def _add_sound(self, value: Any, form: MediaForm) -> None:
        ref = resolve(value)
        if ref.kind == "url":
            self.addresses += 1
            return
        self.sounds += 1
        seconds = audio_seconds(ref)
        self.seconds += seconds
        if form.wire is None:
            return
        nbytes = _stored(ref)
        self.estimated += nbytes is None
        self.nbytes += int(seconds * _WAV_BYTES_PER_SECOND) if nbytes is None else nbytes

    def _add_video(self, part: ChatVideoContent, form: MediaForm) -> None:
        self.videos += 1
        if isinstance(part.url, Sequence) and not isinstance(part.url, str | bytes | bytearray):
            for frame in part.url:
                self._add_picture(frame, form, is_frame=True)
            return
        given = part.url.get("url", part.url) if isinstance(part.url, Mapping) else part.url
        ref = resolve(given)
        if ref.kind == "url" or form.passes_videos:
            self.addresses += 1
            return
        info = probe(ref)
        if form.frames is None:
            self.unsampled += 1
            return
        start, end = bounds_of(part)
        count = len(select(info, Sampling(count=form.frames, fps=form.fps, start=start, end=end)))
        self.frames += count
        if form.wire is not None:
            self.estimated += count
            self.nbytes += count * _guess((info.width, info.height), form)


def _in_memory(ref: MediaRef, form: MediaForm) -> tuple[Size, int | None]:
    """Size of a decoded picture, and the bytes that it was decoded from where these will be sent."""
    image = ref.image
    assert image is not None
    original = original_of(image) if form.wire is not None else None
    fits = original is not None and _fits(len(original.data), image.size, form)
    return image.size, len(original.data) if original is not None and fits else None


def _encoded(ref: MediaRef, form: MediaForm) -> tuple[Size, int | None]:
    found = header(ref)
    if found.format in MIME and not has_end(_tail(ref, found.nbytes), found.format):
        load_image(ref)  # the full decoder decides whether it is cut short
    untouched = form.wire is not None and is_untouched(found, form.wire)
    return found.upright_size, found.nbytes if untouched else None


def _tail(ref: MediaRef, nbytes: int) -> bytes:
    """The end of an encoded picture; of a WebP, whose length stands at its beginning, that and as many bytes."""
    if ref.kind != "path" or ref.path is None:
        return ref.read_bytes()
    with open(ref.path, "rb") as file:
        start = file.read(16)
        if start[:4] == b"RIFF":
            return start.ljust(nbytes, b"\0")
        file.seek(max(0, nbytes - _TAIL_BYTES), io.SEEK_SET)
        return file.read()


def _stored(ref: MediaRef) -> int | None:
    """Bytes of a sound as it is stored; ``None`` of one in memory."""
    if ref.kind == "path" and ref.path is not None:
        return ref.path.stat().st_size
    return None if ref.data is None else len(ref.data)


def _fits(nbytes: int, size: Size, form: MediaForm) -> bool:
    most: int | None = form.wire.max_bytes
    return (most is None or nbytes <= most) and form.wire.bounds.size(size) == size


def _guess(size: Size, form: MediaForm) -> int:
    width, height = form.wire.bounds.size(size)
    guess = int(width * height * BYTES_PER_PIXEL[form.wire.image_format])
    return min(guess, form.wire.max_bytes or guess)
