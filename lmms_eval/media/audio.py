"""Sounds: decoding to samples, and encoding for the ``input_audio`` parts of API requests."""

from __future__ import annotations

import base64
import contextlib
import io
import math
import wave
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.errors import MediaError
from lmms_eval.media.reference import MediaRef, resolve
from lmms_eval.media.sent import AsSent, is_recording, note_file
from lmms_eval.media.video_file import open_container
from lmms_eval.utils.media_types import media_type_in

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

WIRE_FORMATS = ("wav", "mp3", "flac")
_WAV_HEADER = 44
"""Bytes of the header that the module ``wave`` writes."""
_MIME = {"wav": "audio/wav", "mp3": "audio/mpeg", "flac": "audio/flac"}


class Audio(Struct, frozen=True, eq=False):
    """Mono sound."""

    samples: npt.NDArray[np.float32]
    """``(samples,)``, in -1 ... 1."""
    sampling_rate: int
    """Samples per second."""

    @property
    def duration(self) -> float:
        """Seconds."""
        return len(self.samples) / self.sampling_rate

    @property
    def value(self) -> dict[str, Any]:
        """The sound in a form that ``resolve`` takes."""
        return {"array": self.samples, "sampling_rate": self.sampling_rate}


class EncodedAudio(Struct, frozen=True):
    """A sound ready for a request body."""

    format: str
    """``wav``, ``mp3`` or ``flac``."""
    base64: str
    nbytes: int
    """Size of the encoded sound, before base64."""

    @property
    def data_url(self) -> str:
        return f"data:{_MIME[self.format]};base64,{self.base64}"

    def to_part(self) -> dict[str, Any]:
        """The ``input_audio`` part of a chat completion request."""
        return {"type": "input_audio", "input_audio": {"data": self.base64, "format": self.format}}


def load_audio(value: Any, sampling_rate: int | None = None, *, max_seconds: float | None = None) -> Audio:
    """Decode a sound, or the sound track of a video, to mono float samples, if wanted at another ``sampling_rate``.

    An encoded sound that is longer than ``max_seconds`` is rejected; decoding stops there. Raises ``MediaError`` if it
    is not found, unreadable, without samples, or too long.
    """
    ref = resolve(value)
    if ref.kind == "array":
        samples = _mono(ref)
        sound = Audio(samples, ref.sampling_rate)
        if sampling_rate is not None and sampling_rate != ref.sampling_rate:
            sound = _decode(MediaRef("bytes", data=encode_wav(samples, ref.sampling_rate)), sampling_rate)
    elif ref.kind == "image":
        raise MediaError(f"{ref.describe()} is not a sound")
    else:
        sound = _decode(ref, sampling_rate, max_seconds)
    sent = None
    if ref.kind == "array":
        sent = AsSent(lambda: encode_wav(ref.array, ref.sampling_rate))
    note_file(ref, "audio", seconds=round(sound.duration, 3), sent=sent)
    return sound


def audio_seconds(value: Any) -> float:
    """Return the length of a sound in seconds: from its header, or by decoding it if the header has no length.

    Raises ``MediaError`` as :func:`load_audio` does.
    """
    ref = resolve(value)
    if ref.kind == "array":
        return len(_mono(ref)) / ref.sampling_rate
    return _header_seconds(ref) or load_audio(ref).duration


def has_sound(value: Any) -> bool:
    """Return whether a video has a sound track. Raises ``MediaError`` if it cannot be read."""
    import av

    ref = resolve(value)
    try:
        with open_container(ref) as container:
            return bool(container.streams.audio)
    except (av.FFmpegError, OSError, ValueError, EOFError) as error:
        raise MediaError(f"{ref.describe()} is not a readable video: {error}") from error


def _header_seconds(ref: MediaRef) -> float | None:
    """Return the length of an encoded sound from its header, or ``None`` if that has none. Raises ``MediaError``."""
    import av

    try:
        with open_container(ref) as container:
            if not container.streams.audio:
                raise MediaError(f"{ref.describe()} has no sound")
            stream = container.streams.audio[0]
            seconds = float(stream.duration * stream.time_base) if stream.duration and stream.time_base else 0.0
            seconds = seconds or (container.duration or 0) / 1_000_000
    except (av.FFmpegError, OSError, ValueError, EOFError) as error:
        raise MediaError(f"{ref.describe()} is not a readable sound: {error}") from error
    return seconds if seconds > 0 else None


def wire_audio(value: Any, formats: Collection[str] = WIRE_FORMATS) -> EncodedAudio:
    """Encode a sound in base64 for an API: the original bytes of a file in one of ``formats``, else 16-bit wav.

    Raises ``MediaError`` if it is not found, unreadable, or without samples.
    """
    ref = resolve(value)
    seconds: float | None = None
    if ref.kind == "array":
        made = _encoded("wav", encode_wav(ref.array, ref.sampling_rate))
        seconds = (made.nbytes - _WAV_HEADER) / 2 / ref.sampling_rate
    else:
        data = ref.read_bytes()
        kind = sniff(data)
        if kind in formats:
            made = _encoded(kind, data)
            if is_recording():
                with contextlib.suppress(MediaError):  # the receiver decides about a damaged header
                    seconds = _header_seconds(MediaRef("bytes", data=data))
        else:
            sound = _decode(MediaRef("bytes", data=data, name=ref.describe()), None)
            made, seconds = _encoded("wav", encode_wav(sound.samples, sound.sampling_rate)), sound.duration
    sent = AsSent(lambda: base64.b64decode(made.base64), made.format)
    note_file(ref, "audio", made.nbytes, None if seconds is None else round(seconds, 3), sent)
    return made


def encode_wav(array: Any, sampling_rate: int) -> bytes:
    """Encode samples as a mono 16-bit PCM wav file.

    The shape is ``(samples,)``, ``(samples, channels)`` or ``(channels, samples)``. Samples are floats in -1 ... 1
    (clipped), or integers that use the full range of their type. Raises ``MediaError`` for any other shape, or without
    samples.
    """
    import numpy as np

    samples = _mono(MediaRef("array", array=array, sampling_rate=sampling_rate))
    pcm = np.round(np.clip(samples, -1.0, 1.0) * 32767).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as target:
        target.setnchannels(1)
        target.setsampwidth(2)
        target.setframerate(sampling_rate)
        target.writeframes(pcm.tobytes())
    return buffer.getvalue()


def sniff(data: bytes) -> str:
    """Detect ``wav``, ``mp3`` or ``flac`` by the first bytes; otherwise return an empty text."""
    found = media_type_in(data)
    return found.suffix if found is not None and found.suffix in WIRE_FORMATS else ""


def _mono(ref: MediaRef) -> npt.NDArray[np.float32]:
    import numpy as np

    samples = np.asarray(ref.array)
    if samples.size == 0 or samples.ndim not in (1, 2):
        raise MediaError(f"{ref.describe()} has the shape {samples.shape}: give samples with one or two axes")
    if samples.dtype.kind in "iu":
        limits = np.iinfo(samples.dtype)
        middle = 0.0 if samples.dtype.kind == "i" else (float(limits.max) + 1) / 2
        samples = (samples.astype(np.float64) - middle) / ((float(limits.max) + 1) - middle)
    if samples.ndim == 2:
        samples = samples.mean(axis=0 if samples.shape[0] <= samples.shape[1] else 1)
    mono: npt.NDArray[np.float32] = np.nan_to_num(samples.astype(np.float32))
    return mono


def _decode(ref: MediaRef, sampling_rate: int | None, max_seconds: float | None = None) -> Audio:
    import av
    import numpy as np

    pieces: list[npt.NDArray[np.float32]] = []
    try:
        with open_container(ref) as container:
            if not container.streams.audio:
                raise MediaError(f"{ref.describe()} has no sound")
            rate = sampling_rate or int(getattr(container.streams.audio[0], "rate", 0) or 0)
            if rate < 1:
                raise MediaError(f"{ref.describe()} has a sound track of an unknown codec or rate")
            resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
            left = math.inf if max_seconds is None else max_seconds
            for frame in container.decode(audio=0):
                left -= frame.samples / max(frame.sample_rate, 1)
                if left < 0:
                    raise MediaError(f"{ref.describe()} is longer than {max_seconds:g} s")
                pieces.extend(out.to_ndarray().reshape(-1) for out in resampler.resample(frame))
            pieces.extend(out.to_ndarray().reshape(-1) for out in resampler.resample(None))
    except (av.FFmpegError, OSError, ValueError, EOFError) as error:
        raise MediaError(f"{ref.describe()} is not a readable sound: {error}") from error
    if not pieces:
        raise MediaError(f"{ref.describe()} contains no samples")
    return Audio(np.concatenate(pieces).astype(np.float32), rate)


def _encoded(kind: str, data: bytes) -> EncodedAudio:
    return EncodedAudio(kind, base64.b64encode(data).decode("ascii"), len(data))
