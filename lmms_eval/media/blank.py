"""Media that show nothing: grey pictures and videos of the size of others, silence of the length of others."""

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
"""Of 255, in each channel."""
_RATE = Fraction(25)
"""Frames per second of a video whose own rate is not known."""
_LOCK = threading.Lock()


def blank_image(value: Any) -> Image.Image:
    """Return a grey picture of the size of another, as it is seen upright.

    Raises:
        MediaError: the other one is missing, or is no picture.
    """
    from PIL import Image

    return Image.new("RGB", header(value).upright_size, (GREY, GREY, GREY))


def blank_video(value: Any) -> str:
    """Return the path of a video of grey frames, as many, as large (sides rounded up to even) and as fast as those of
    another one; without sound.

    Raises:
        MediaError: the other one is missing, or has no frame that can be read.
    """
    info = probe(value, counts=True)
    rate = Fraction(info.fps).limit_denominator(1001) if info.fps else _RATE
    size = info.width + info.width % 2, info.height + info.height % 2
    name = f"grey_{size[0]}x{size[1]}_{info.frames}_{rate.numerator}_{rate.denominator}.mp4"
    return _made(name, lambda path: _encode(path, size, info.frames, rate))


def blank_audio(value: Any) -> Any:
    """Return silence of the length of another sound: the path of a file where that is one, else samples.

    Raises:
        MediaError: the other one is missing, or is no sound.
    """
    import numpy as np

    sound = load_audio(value)
    samples = np.zeros(len(sound.samples), np.float32)
    if not isinstance(value, str | os.PathLike):
        return {"array": samples, "sampling_rate": sound.sampling_rate}
    name = f"silence_{len(samples)}_{sound.sampling_rate}.wav"
    return _made(name, lambda path: path.write_bytes(encode_wav(samples, sound.sampling_rate)))


def _made(name: str, make: Callable[[Path], Any]) -> str:
    """The path of a file in this process's own folder, which ends with it; made when it is first asked for."""
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
    """Encode two frames, each a key frame, and write them in turn: an hour takes no longer than a second."""
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
