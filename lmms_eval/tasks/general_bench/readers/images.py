"""Pictures as arrays: colour, grey and alpha, at most 64 megapixels each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.errors import MediaError
from lmms_eval.media.image import has_alpha, open_image, read_errors, reason, to_eight_bits, to_rgb, upright
from lmms_eval.tasks.general_bench.readers.sides import regular_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

MAX_PIXELS = 64_000_000
_EIGHT_BITS, _SIXTEEN_BITS = 255.0, 65_535.0


def check_pixels(width: int, height: int, path: Path) -> None:
    """Refuse a size that would fill the memory.

    Raises:
        MediaError: more than ``MAX_PIXELS``, or none.
    """
    if width < 1 or height < 1 or width * height > MAX_PIXELS:
        raise MediaError(f"{path} has {width}x{height} pixels; 1 to {MAX_PIXELS // 10**6} million are read")


def open_picture(path: Path) -> Image.Image:
    """Decode a picture in its own mode, upright. Its size is checked before it is decoded.

    Raises:
        DataError: no file, or larger than 1 GiB.
        MediaError: no picture, too large, cut short or damaged.
    """
    regular_file(path)
    try:
        with open_image(path) as image:
            check_pixels(*image.size, path)
            image.load()
            return upright(image)
    except read_errors() as error:
        raise MediaError(f"{path} is no readable picture: {reason(error)}") from error


def read_rgb(path: Path) -> npt.NDArray[np.uint8]:
    """Read a picture as ``(height, width, 3)``, with transparency over white and 16-bit grey reduced to 8 bits.

    Raises:
        DataError, MediaError: as ``open_picture``.
    """
    return _bytes_of(to_rgb(open_picture(path)))


def read_grey(path: Path) -> npt.NDArray[np.uint8]:
    """Read a picture as ``(height, width)``, with colour as luma (ITU-R 601), 16-bit grey reduced to 8 bits and
    transparency over white.

    Raises:
        DataError, MediaError: as ``open_picture``.
    """
    return _bytes_of(_grey(open_picture(path)))


def read_alpha(path: Path) -> npt.NDArray[np.float32]:
    """Read opacity ``(height, width)`` from 0 to 1: the alpha channel if any pixel uses it, else the grey values.

    Raises:
        DataError, MediaError: as ``open_picture``.
    """
    import numpy as np

    image = open_picture(path)
    if has_alpha(image):
        channel = _bytes_of(image.convert("RGBA").getchannel("A"))
        if channel.min() < _EIGHT_BITS:
            return channel.astype(np.float32) / np.float32(_EIGHT_BITS)
    if image.mode.startswith("I;16"):
        return np.asarray(image).astype(np.float32) / np.float32(_SIXTEEN_BITS)
    return _bytes_of(_grey(image)).astype(np.float32) / np.float32(_EIGHT_BITS)


def _grey(image: Image.Image) -> Image.Image:
    eight = to_eight_bits(image)
    return (to_rgb(eight) if has_alpha(eight) or eight.mode != "L" else eight).convert("L")


def _bytes_of(image: Image.Image) -> npt.NDArray[np.uint8]:
    import numpy as np

    return np.asarray(image, dtype=np.uint8)
