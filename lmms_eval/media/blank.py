"""Blank media in place of others: grey pictures and videos of the same size, silence of the same length."""

from __future__ import annotations

import functools
import os
import tempfile
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import MediaError
from lmms_eval.media.audio import encode_wav, load_audio
from lmms_eval.media.image import header
from lmms_eval.media.video import probe

if TYPE_CHECKING:
    from PIL import Image

GREY = 127
"""The value of each channel, out of 255."""
_RATE = Fraction(25)
"""Frames per second of a video of unknown rate."""
_LOCK = threading.Lock()


def blank_image(value: Any) -> Image.Image:
    """Return a grey picture with the upright size of another.

    Raises ``MediaError`` if the other one is missing or is not a picture.
    """
    from PIL import Image

    return Image.new("RGB", header(value).upright_size, (GREY, GREY, GREY))


def blank_video(value: Any) -> str:
    """Return the path of a grey video without sound.

    It has the frame count, the frame rate and the size (sides rounded up to even numbers) of another video. Raises
    ``MediaError`` if the other video is missing or has no readable frame.
    """
    info = probe(value, counts=True)
    rate = Fraction(info.fps).limit_denominator(1001) if info.fps else _RATE
    size = info.width + info.width % 2, info.height + info.height % 2
    name = f"grey_{size[0]}x{size[1]}_{info.frames}_{rate.numerator}_{rate.denominator}.mp4"
    return _made(name, lambda path: _encode(path, size, info.frames, rate))


def blank_audio(value: Any) -> Any:
    """Return silence with the length of another sound: the path of a file if the other is a file, else samples.

    Raises ``MediaError`` if the other one is missing or is not a sound.
    """
    import numpy as np

    sound = load_audio(value)
    samples = np.zeros(len(sound.samples), np.float32)
    if not isinstance(value, str | os.PathLike):
        return {"array": samples, "sampling_rate": sound.sampling_rate}
    name = f"silence_{len(samples)}_{sound.sampling_rate}.wav"
    return _made(name, lambda path: path.write_bytes(encode_wav(samples, sound.sampling_rate)))


def _made(name: str, make: Callable[[Path], Any]) -> str:
    """Return the path of a file in this process's temporary folder. The file is made on the first call."""
    with _LOCK:
        path = Path(_folder().name) / name
        if not path.exists():
            begun = path.with_name(f"begun_{name}")
            try:
                make(begun)
                os.replace(begun, path)
            except OSError as error:
                raise MediaError(f"{path} cannot be written: {error.strerror or error}") from error
    return str(path)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="lmms_eval_blank_")


def _encode(path: Path, size: tuple[int, int], frames: int, rate: Fraction) -> None:
    """Encode two key frames and write their packets alternately, so that an hour of video takes at most a second."""
    import av
    import numpy as np

    width, height = size
    try:
        with av.open(str(path), "w", format="mp4") as out:
            stream = out.add_stream("libx264" if "libx264" in av.codecs_available else "mpeg4", rate=rate)
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
            stream.options = {"g": "1", "bf": "0", "threads": "1"}
            frame = av.VideoFrame.from_ndarray(np.full((height, width, 3), GREY, np.uint8), format="rgb24")
            made = []
            for number in range(2):
                frame.pts = number
                made += stream.encode(frame)
            made += stream.encode(None)
            data, base = [bytes(packet) for packet in made], made[0].time_base or 1 / rate
            for number in range(frames):
                packet = av.Packet(data[number % 2])
                packet.stream, packet.time_base, packet.is_keyframe = stream, base, True
                packet.pts = packet.dts = round(number / rate / base)
                packet.duration = round(1 / rate / base)
                out.mux(packet)
    except (av.FFmpegError, ValueError) as error:
        raise MediaError(f"a grey video of {width}x{height} cannot be made: {error}") from error
