"""Grey levels, masks and class numbers of pictures as stored, and the frames of folders in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.media.image import header
from lmms_eval.tasks.general_bench.readers.frames import PICTURE_SUFFIXES, files_of
from lmms_eval.tasks.general_bench.readers.images import MAX_PIXELS, open_picture
from lmms_eval.tasks.general_bench.readers.sides import Side, regular_file

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

LOSSY = frozenset({"JPEG", "WEBP"})


class Grey(Struct, frozen=True, eq=False):
    """A grey picture."""

    levels: NDArray[Any]
    """Shape (height, width), as stored: uint8, or uint16 for 16-bit pictures."""

    @property
    def full(self) -> int:
        """The white level for the picture's depth."""
        return 255 if self.levels.dtype.itemsize == 1 else 65535

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        height, width = self.levels.shape
        return int(height), int(width)


def grey(path: Path, side: Side, size: tuple[int, int] | None = None) -> Grey:
    """Read a picture's grey levels. Colours become luma (ITU-R 601-2), transparency is ignored.

    Args:
        path: The picture.
        side: Prediction or reference.
        size: Height and width that it must have.

    Raises:
        DataError: no readable picture, above 64 megapixels, or of another size; ``UnreadableAnswer`` for a prediction.
    """
    import numpy as np

    image = _decoded(path, side, size)
    if image.mode in ("I", "I;16", "I;16B", "I;16L"):
        levels = np.asarray(image)
        if levels.size and (int(levels.min()) < 0 or int(levels.max()) > 65535):
            raise side.refuse(f"names {path.name!r}, whose levels are not of 16 bits")
        return Grey(levels.astype(np.uint16))
    if image.mode == "F":
        raise side.refuse(f"names {path.name!r}, whose pixels are fractions; grey levels of 8 or 16 bits are read")
    return Grey(np.asarray(image.convert("L")))


def foreground(path: Path, side: Side, size: tuple[int, int] | None = None) -> NDArray[Any]:
    """Read a mask from a picture, shape (height, width), bool. All pixels except 0 (black, or the palette's first
    colour) are set.

    In lossy formats, pixels are set from half of white on.
    """
    import numpy as np

    image = _decoded(path, side, size)
    if image.mode in ("RGB", "RGBA", "YCbCr", "CMYK", "LAB", "HSV"):
        levels = np.asarray(image.convert("RGB")).max(axis=2)
    else:
        levels = np.asarray(image.convert("L") if image.mode in ("1", "LA", "La") else image)
        levels = levels[..., 0] if levels.ndim == 3 else levels
    return np.asarray(levels > (127 if image.format in LOSSY else 0))


def class_numbers(path: Path, side: Side, size: tuple[int, int] | None = None) -> NDArray[Any]:
    """Read numbers from a picture: grey levels, palette indices, or ``R + 256 G + 65536 B``.

    A colour picture with three equal channels is a grey one.

    Raises:
        DataError: as ``grey``, or the picture is of a lossy format.
    """
    import numpy as np

    image = _decoded(path, side, size)
    if image.format in LOSSY or image.mode in ("F", "CMYK", "YCbCr", "LAB", "HSV"):
        raise side.refuse(f"names {path.name!r}, a {image.format} picture ({image.mode}), which holds no exact numbers")
    if image.mode in ("RGB", "RGBA"):
        colours = np.asarray(image.convert("RGB"))
        first = colours[..., 0].astype(np.int32)
        if (colours == colours[..., :1]).all():
            return first
        return first + 256 * colours[..., 1].astype(np.int32) + 65536 * colours[..., 2].astype(np.int32)
    levels = np.asarray(image.convert("L") if image.mode in ("LA", "La") else image)
    return (levels[..., 0] if levels.ndim == 3 else levels).astype(np.int32)


def frame_files(path: Path, side: Side) -> list[Path]:
    """Return the pictures of a folder in natural order (``2.png`` before ``10.png``), or the one file itself.

    Raises:
        DataError: the folder has no picture, or too many; ``UnreadableAnswer`` for a prediction.
    """
    with side.reading():
        return files_of(path, PICTURE_SUFFIXES) if path.is_dir() else [regular_file(path)]


def paired_frames(predicted: Sequence[Path], truth: Sequence[Path], side: Side) -> list[Path]:
    """Return the predicted frame for each reference frame: the one with the same name (without suffix), else the one in
    the same position.

    Raises:
        DataError: a reference frame has no counterpart of its name, and the numbers of frames differ.
    """
    named = {path.stem: path for path in predicted}
    if all(path.stem in named for path in truth):
        return [named[path.stem] for path in truth]
    if len(predicted) != len(truth):
        raise side.refuse(f"has {len(predicted)} frames where the reference has {len(truth)}, under other names")
    return list(predicted)


def require_size(found: tuple[int, int], wanted: tuple[int, int], side: Side) -> None:
    """Check that a size is the required one.

    Raises:
        DataError: the sizes (height and width) differ; the message names both.
    """
    if found != wanted:
        raise side.refuse(f"is {found[1]} x {found[0]} pixels where {wanted[1]} x {wanted[0]} are wanted")


def require_bounded(size: tuple[int, int], side: Side) -> None:
    """Check that a size is within bounds.

    Raises:
        DataError: an empty size (height and width), or more than 64 megapixels.
    """
    if min(size) < 1 or size[0] * size[1] > MAX_PIXELS:
        raise side.refuse(f"is {size[1]} x {size[0]} pixels; 1 to {MAX_PIXELS // 10**6} million are read")


def _decoded(path: Path, side: Side, size: tuple[int, int] | None) -> Image:
    with side.reading():
        regular_file(path)
        head = header(path)
    if size is not None:
        turned = head.exif_rotation > 4
        require_size((head.width, head.height) if turned else (head.height, head.width), size, side)
    with side.reading():
        return open_picture(path)
