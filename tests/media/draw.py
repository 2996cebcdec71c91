"""Pictures, videos and sounds that the tests draw for themselves."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

BITS = 10
BLOCK = 16
WIDTH, HEIGHT = BITS * BLOCK, 48


def numbered_frame(number: int) -> np.ndarray:
    """A frame that carries its number as white (1) and black (0) blocks, most significant bit first."""
    frame = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    for bit in range(BITS):
        if number >> (BITS - 1 - bit) & 1:
            frame[: HEIGHT // 2, bit * BLOCK : (bit + 1) * BLOCK] = 255
    frame[HEIGHT // 2 :] = (200, 40, 30)
    return frame


def number_of(frame: np.ndarray) -> int:
    row = frame[HEIGHT // 4, BLOCK // 2 :: BLOCK].mean(axis=-1)
    return int("".join("1" if value > 127 else "0" for value in row), 2)


def write_video(path: Path, frames: int, fps: int = 25, codec: str = "libx264", **options: Any) -> Path:
    """A video of numbered frames. ``options`` go to the encoder (``g``: distance of key frames)."""
    import av

    settings = {name: str(value) for name, value in options.items()}
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=fps, options=settings)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.gop_size = int(settings.get("g", 12))
        for number in range(frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(numbered_frame(number), format="rgb24")))
        container.mux(stream.encode())
    return path


def write_talkie(path: Path, seconds: int = 2, fps: int = 8, rate: int = 16000) -> Path:
    """A video with a sound that grows louder: at second N its level is N + 1 of ``seconds`` parts."""
    import av

    with av.open(str(path), "w") as container:
        film, sound = container.add_stream("mpeg4", rate=fps), container.add_stream("pcm_s16le", rate=rate)
        film.width, film.height, film.pix_fmt = 64, 48, "yuv420p"
        sound.layout = "mono"
        for number in range(seconds * fps):
            frame = np.full((48, 64, 3), 10 * number % 256, np.uint8)
            container.mux(film.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        levels = np.repeat(np.arange(1, seconds + 1) * 30000 // seconds, rate).astype(np.int16)
        heard = av.AudioFrame.from_ndarray(levels[None], format="s16", layout="mono")
        heard.sample_rate = rate
        for stream, packet in ((sound, heard), (sound, None), (film, None)):
            container.mux(stream.encode(packet))
    return path


def picture(mode: str = "RGB", size: tuple[int, int] = (40, 30)) -> Image.Image:
    """A colour gradient in the wanted mode; ``RGBA`` and ``LA`` are transparent on the left half."""
    width, height = size
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    rgb = np.stack([x * 255 // width, y * 255 // height, np.full_like(x, 90)], axis=-1).astype(np.uint8)
    image = Image.fromarray(rgb)
    if mode == "I;16":
        return Image.fromarray((x * 65535 // width).astype(np.uint16))
    if mode in ("RGBA", "LA"):
        alpha = Image.fromarray(np.where(x < width // 2, 0, 255).astype(np.uint8))
        image = image.convert(mode)
        image.putalpha(alpha)
        return image
    return image.convert(mode)


def encoded(image: Image.Image, image_format: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=image_format, **options)
    return buffer.getvalue()


def tone(rate: int = 8000, seconds: float = 0.5, hertz: float = 440.0) -> np.ndarray:
    times = np.arange(int(rate * seconds)) / rate
    return (0.5 * np.sin(2 * math.pi * hertz * times)).astype(np.float32)
