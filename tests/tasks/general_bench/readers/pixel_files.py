"""Files of flows, depths and videos that the tests of pixels write for themselves."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image


def flo_header(width: int, height: int) -> bytes:
    return struct.pack("<fii", 202021.25, width, height)


def write_flo(path: Path, flow: np.ndarray) -> Path:
    path.write_bytes(flo_header(flow.shape[1], flow.shape[0]) + flow.astype("<f4").tobytes())
    return path


def png_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png_bytes(width: int, height: int, rows: bytes, depth: int = 16, colour: int = 2) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def write_flow_png(path: Path, flow: np.ndarray, third: int = 1) -> Path:
    """u in red, v in green, ``third`` in blue."""
    channels = np.full((*flow.shape[:2], 3), third, np.uint16)
    channels[..., :2] = np.round(flow * 64 + 32768)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in channels)
    path.write_bytes(png_bytes(flow.shape[1], flow.shape[0], rows))
    return path


def write_picture(path: Path, array: np.ndarray) -> Path:
    Image.fromarray(array).save(path)
    return path


def write_frames(folder: Path, frames: np.ndarray) -> Path:
    folder.mkdir(parents=True)
    for number, frame in enumerate(frames):
        write_picture(folder / f"{number}.png", frame)
    return folder


def write_lossless(path: Path, frames: np.ndarray) -> Path:
    """A video whose frames come back as they are."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("png", rate=8)
        stream.width, stream.height, stream.pix_fmt = frames.shape[2], frames.shape[1], "rgb24"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return path


def noise(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
