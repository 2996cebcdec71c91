"""Depth maps and surface normals from ``.npz``, ``.npy`` and ``.png`` files. Nothing is unpickled."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import MediaError
from lmms_eval.tasks.general_bench.readers.arrays import MAX_VALUES, parse_array, read_array
from lmms_eval.tasks.general_bench.readers.frames import files_of
from lmms_eval.tasks.general_bench.readers.images import open_picture, read_rgb
from lmms_eval.tasks.general_bench.readers.sides import regular_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

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
    import numpy as np

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
    import numpy as np

    if path.suffix.lower() == ".npy":
        array = read_array(path)
        if array.ndim not in (2, 3) or array.shape[-1] != 3 or array.size == 0:
            raise MediaError(f"{path}: normals are (height, width, 3) or (points, 3), not {array.shape}")
        return _single(array)
    if path.suffix.lower() != ".png":
        raise MediaError(f"{path}: normals are a .npy or .png file")
    return read_rgb(path).astype(np.float32) * np.float32(2 / 255) - np.float32(1)


def _read_one(path: Path) -> npt.NDArray[Any]:
    import numpy as np

    match path.suffix.lower():
        case ".npz":
            regular_file(path)
            try:
                with zipfile.ZipFile(path) as archive:
                    name = _array_name(archive.namelist(), path)
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


def _array_name(names: list[str], path: Path) -> str:
    arrays = [name for name in names if name.endswith(".npy")]
    for known in _ARRAY_NAMES:
        if f"{known}.npy" in arrays:
            return f"{known}.npy"
    if len(arrays) != 1:
        raise MediaError(f"{path} holds no array named {' or '.join(_ARRAY_NAMES)}, but {len(arrays)} others")
    return arrays[0]


def first_channel(array: npt.NDArray[Any], path: Path) -> npt.NDArray[Any]:
    """Return an array with or without channels and frames as ``(frames, height, width)``.

    Raises:
        MediaError: another shape, or nothing in it.
    """
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
    import numpy as np

    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)
