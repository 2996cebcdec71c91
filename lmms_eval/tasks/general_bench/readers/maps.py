"""Depth maps, surface normals and optical flow from ``.npz``, ``.npy``, ``.png`` and ``.flo`` files.

Nothing is unpickled. A flow is ``(height, width, 2)``: (u, v) in pixels.
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lmms_eval.errors import MediaError
from lmms_eval.tasks.general_bench.readers.pictures import check_pixels, files_of, open_picture, read_rgb
from lmms_eval.tasks.general_bench.readers.sides import MAX_VALUES, parse_array, read_array, regular_file

Flow = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float32]
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


def _read_flo(path: Path) -> Flow:
    """Read a ``.flo`` file: the number 202021.25, width and height, then (u, v) row by row.

    The header is checked before the rest is read.
    """
    size = regular_file(path).stat().st_size
    try:
        with open(path, "rb") as file:
            header = file.read(_FLO_HEADER.size)
            if len(header) < _FLO_HEADER.size:
                raise MediaError(f"{path} is cut short: {size} bytes")
            magic, width, height = _FLO_HEADER.unpack(header)
            if magic != _MAGIC:
                raise MediaError(f"{path} is no .flo file: it starts with {magic!r} instead of {_MAGIC}")
            check_pixels(width, height, path)
            expected = _FLO_HEADER.size + 8 * width * height
            data = file.read(expected) if size == expected else b""
            if len(data) != expected - len(header):
                raise MediaError(f"{path} has {size} bytes instead of the {expected} of a flow of {width}x{height}")
    except OSError as error:
        raise MediaError(f"{path} cannot be read: {error.strerror or error}") from error
    return np.frombuffer(data, "<f4").reshape(height, width, 2)


def _read_png(path: Path) -> Flow:
    """Read u from the red and v from the green channel (32768 + 64 steps a pixel). The blue channel is ignored."""
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


DEPTH_SUFFIXES = (".npy", ".png")
"""Suffixes of the files in a folder that represents a video."""
_ARRAY_NAMES = ("disparity", "depth")
_ARCHIVE_ERRORS = (
    OSError, EOFError, KeyError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile,
    zipfile.LargeZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""Errors of archives that are damaged, encrypted or compressed in an unknown way."""


def read_depth(path: Path) -> Floats:
    """Read depth or disparity ``(frames, height, width)`` in the file's own unit. A picture has one frame.

    A ``.npz`` file holds the array ``disparity`` or ``depth`` (or only one array) of the shape ``(frames, channels,
    height, width)`` with the first channel alone, ``(frames, height, width)`` or ``(height, width)``. A ``.npy``
    file is one such array. A ``.png`` file holds unchanged grey values of 8 or 16 bits. A folder of ``.npy`` or
    ``.png`` files holds one frame in each, in natural order.

    Raises:
        DataError: no file, or larger than 1 GiB.
        MediaError: another format, too large, cut short or damaged.
    """
    if not path.is_dir():
        return _single(first_channel(_read_one(path), path))
    files = files_of(path, DEPTH_SUFFIXES)
    kinds = {file.suffix.lower() for file in files}
    if len(kinds) > 1:
        raise MediaError(f"{path} holds both {' and '.join(sorted(kinds))} files: which are the frames is not clear")
    frames: list[Floats] = []
    for file in files:
        frame = first_channel(_read_one(file), file)
        if frame.shape[0] != 1 or frame.shape != (frames or [frame])[0].shape:
            raise MediaError(f"{file} has the shape {frame.shape}; the frames of a folder are of one size, one a file")
        if (len(frames) + 1) * frame.size > MAX_VALUES:
            raise MediaError(f"{path} holds more than the {MAX_VALUES} values that are read at most")
        frames.append(_single(frame))
    return np.concatenate(frames)


def read_normals(path: Path) -> Floats:
    """Read the normals of a map ``(height, width, 3)`` or of points ``(points, 3)``, as in the file, without
    normalising them. The file is ``.npy``, or for maps ``.png`` with ``2 value / 255 - 1`` in red, green, blue for x,
    y, z.

    Raises:
        DataError: no file, or larger than 1 GiB.
        MediaError: another format, too large, cut short or damaged.
    """
    if path.suffix.lower() == ".npy":
        array = read_array(path)
        if array.ndim not in (2, 3) or array.shape[-1] != 3 or array.size == 0:
            raise MediaError(f"{path}: normals are (height, width, 3) or (points, 3), not {array.shape}")
        return _single(array)
    if path.suffix.lower() != ".png":
        raise MediaError(f"{path}: normals are a .npy or .png file")
    return read_rgb(path).astype(np.float32) * np.float32(2 / 255) - np.float32(1)


def _read_one(path: Path) -> npt.NDArray[Any]:
    match path.suffix.lower():
        case ".npz":
            regular_file(path)
            try:
                with zipfile.ZipFile(path) as archive:
                    arrays = [name for name in archive.namelist() if name.endswith(".npy")]
                    known = [f"{name}.npy" for name in _ARRAY_NAMES if f"{name}.npy" in arrays]
                    if not known and len(arrays) != 1:
                        names = " or ".join(_ARRAY_NAMES)
                        raise MediaError(f"{path} holds no array named {names}, but {len(arrays)} others")
                    name = (known or arrays)[0]
                    with archive.open(name) as file:
                        return parse_array(file, archive.getinfo(name).file_size, path)
            except _ARCHIVE_ERRORS as error:
                raise MediaError(f"{path} is no readable .npz file: {error}") from error
        case ".npy":
            return read_array(path)
        case ".png":
            image = open_picture(path)
            if image.mode not in ("L", "I", "I;16", "I;16B", "I;16L", "I;16N"):
                raise MediaError(f"{path}: depth is a grey picture of 8 or 16 bits, not {image.mode}")
            return np.asarray(image)
        case other:
            raise MediaError(f"{path}: depth is a .npz, .npy or .png file, not {other!r}")


def first_channel(array: npt.NDArray[Any], path: Path) -> npt.NDArray[Any]:
    """Return an array as ``(frames, height, width)``. Raises ``MediaError`` for another shape, or nothing in it."""
    if array.ndim == 4 and array.shape[1] >= 1:
        array = array[:, 0]
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.size == 0:
        raise MediaError(
            f"{path} has the shape {array.shape}, not (frames, channels, height, width), (frames, height, width) or "
            "(height, width)"
        )
    return array


def _single(array: npt.NDArray[Any]) -> Floats:
    """Convert values to single precision. Values that are too large become infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)
