"""Optical flow from ``.flo`` and 16-bit PNG files: ``(height, width, 2)``, (u, v) in pixels."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.errors import MediaError
from lmms_eval.tasks.general_bench.readers.images import check_pixels, open_picture
from lmms_eval.tasks.general_bench.readers.sides import regular_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Flow = npt.NDArray[np.float32]

FLOW_SUFFIXES = (".flo", ".png")
_MAGIC = 202_021.25
_FLO_HEADER = struct.Struct("<fii")
_PNG_HEADER = struct.Struct(">8sI4sIIBB")
_PNG_START = b"\x89PNG\r\n\x1a\n"
_RGB = 2
_ZERO, _STEPS_PER_PIXEL = 32_768.0, 64.0


def read_flow(path: Path) -> Flow:
    """Read the flow of a file by its suffix.

    Raises:
        DataError: no file, or larger than 1 GiB.
        MediaError: neither ``.flo`` nor ``.png``, too large, cut short or damaged, or numbers that are not finite.
    """
    import numpy as np

    match path.suffix.lower():
        case ".flo":
            flow = _read_flo(path)
        case ".png":
            flow = _read_png(path)
        case other:
            raise MediaError(f"{path}: a flow is a .flo or a 16-bit .png file, not {other!r}")
    if not np.isfinite(flow).all():
        raise MediaError(f"{path} holds vectors that are not finite")
    return flow


def parse_flo(data: bytes, path: Path) -> Flow:
    """Parse the bytes of a ``.flo`` file: the number 202021.25, width and height, then (u, v) row by row.

    Raises:
        MediaError: the mark is missing, or the file is shorter or longer than the header states.
    """
    import numpy as np

    width, height = _flo_size(data[: _FLO_HEADER.size], len(data), path)
    return np.frombuffer(data, "<f4", offset=_FLO_HEADER.size).reshape(height, width, 2)


def _flo_size(header: bytes, size: int, path: Path) -> tuple[int, int]:
    if len(header) < _FLO_HEADER.size:
        raise MediaError(f"{path} is cut short: {size} bytes")
    magic, width, height = _FLO_HEADER.unpack(header)
    if magic != _MAGIC:
        raise MediaError(f"{path} is no .flo file: it starts with {magic!r} instead of {_MAGIC}")
    check_pixels(width, height, path)
    expected = _FLO_HEADER.size + 8 * width * height
    if size != expected:
        raise MediaError(f"{path} has {size} bytes instead of the {expected} of a flow of {width}x{height}")
    return width, height


def _read_flo(path: Path) -> Flow:
    """Read a ``.flo`` file, checking the header before the rest."""
    size = regular_file(path).stat().st_size
    try:
        with open(path, "rb") as file:
            header = file.read(_FLO_HEADER.size)
            _flo_size(header, size, path)
            return parse_flo(header + file.read(size - len(header)), path)
    except OSError as error:
        raise MediaError(f"{path} cannot be read: {error.strerror or error}") from error


def _read_png(path: Path) -> Flow:
    """Read u from the red and v from the green channel (32768 + 64 steps a pixel). The blue channel is ignored."""
    import numpy as np

    regular_file(path)
    try:
        with open(path, "rb") as file:
            header = file.read(_PNG_HEADER.size)
    except OSError as error:
        raise MediaError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(header) < _PNG_HEADER.size or not header.startswith(_PNG_START):
        raise MediaError(f"{path} is no PNG file")
    *_, width, height, depth, colour = _PNG_HEADER.unpack(header)
    check_pixels(width, height, path)
    if (depth, colour) != (16, _RGB):
        raise MediaError(f"{path}: a flow needs three channels of 16 bits; this picture has {depth} bits")
    open_picture(path).close()  # checks the picture's integrity: the decoder below passes over damage
    channels = _sixteen_bits(path).astype(np.float32)
    flow: Flow = (channels[..., :2] - np.float32(_ZERO)) / np.float32(_STEPS_PER_PIXEL)
    return flow


def _sixteen_bits(path: Path) -> npt.NDArray[np.uint16]:
    """Read all 16 bits of a colour picture, which Pillow would reduce to 8."""
    import av

    try:
        with av.open(str(path), format="png_pipe") as container:
            for frame in container.decode(video=0):
                channels: npt.NDArray[np.uint16] = frame.to_ndarray(format="rgb48le")
                return channels
    except (av.FFmpegError, OSError, ValueError, EOFError) as error:
        raise MediaError(f"{path} is no readable picture: {error}") from error
    raise MediaError(f"{path} has no readable picture")
