"""Pictures and frames as arrays: colour, grey, alpha, masks and class numbers, at most 64 megapixels each.

The frames of a video file, or of a folder of pictures in natural order, are read one at a time.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError, MediaError
from lmms_eval.media.image import has_alpha, header, open_image, read_errors, reason, to_eight_bits, to_rgb, upright
from lmms_eval.media.reference import MediaRef
from lmms_eval.media.video import one_thread
from lmms_eval.media.video_file import open_container
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.readers.sides import Side, prediction_of, read_array, reference_of, regular_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from numpy.typing import NDArray
    from PIL import Image

    Frame = npt.NDArray[np.uint8]


MAX_PIXELS = 64_000_000
_EIGHT_BITS, _SIXTEEN_BITS = 255.0, 65_535.0


def check_pixels(width: int, height: int, path: Path) -> None:
    """Refuse a size that would fill the memory. Raises ``MediaError`` for none, or more than ``MAX_PIXELS``."""
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

    Raises ``DataError`` or ``MediaError`` as ``open_picture``.
    """
    return _bytes_of(to_rgb(open_picture(path)))


def read_grey(path: Path) -> npt.NDArray[np.uint8]:
    """Read a picture as ``(height, width)``, with colour as luma (ITU-R 601), 16-bit grey reduced to 8 bits and
    transparency over white.

    Raises ``DataError`` or ``MediaError`` as ``open_picture``.
    """
    return _bytes_of(_grey(open_picture(path)))


def read_alpha(path: Path) -> npt.NDArray[np.float32]:
    """Read opacity ``(height, width)`` from 0 to 1: the alpha channel if any pixel uses it, else the grey values.

    Raises ``DataError`` or ``MediaError`` as ``open_picture``.
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


MAX_FRAMES = 20_000
MAX_VIDEO_BYTES = 8 << 30
MAX_VIDEO_PIXELS = 20_000_000_000
"""Most pixels of all frames together, some ten thousand frames of 1920x1080."""
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def read_frames(path: Path, read: Callable[[Path], Frame] = read_rgb) -> Iterator[Frame]:
    """Yield frames in order, decoded lazily. At most two are in memory.

    Args:
        path: a video file, or a folder of pictures.
        read: what makes an array of a picture of a folder; frames of a video are RGB ``(height, width, 3)``.

    Raises:
        DataError: no file, or larger than 8 GiB.
        MediaError: no video, no frame, more than 20,000 frames or 20 thousand million pixels, or a frame that is too
            large or damaged; raised when that frame is reached.
    """
    if path.is_dir():
        return _bounded((read(file) for file in files_of(path, PICTURE_SUFFIXES)), path)
    return _bounded(_decoded_frames(path), path)


def files_of(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """List the files of a folder with some suffixes (in any case) in natural order: ``2.png`` before ``10.png``. Hidden
    files are left out.

    Raises ``MediaError`` if there is no such folder, no such file in it, or more than 20,000 entries.
    """
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, MAX_FRAMES + 1)]
    except OSError as error:
        raise MediaError(f"{folder} cannot be read: {error.strerror or error}") from error
    if len(names) > MAX_FRAMES:
        raise MediaError(f"{folder} holds more than {MAX_FRAMES} files")
    found = [name for name in names if name.lower().endswith(suffixes) and not name.startswith(".")]
    if not found:
        raise MediaError(f"{folder} holds no file of the kinds {', '.join(suffixes)}")
    return [folder / name for name in sorted(found, key=natural_key)]


def natural_key(name: str) -> tuple[tuple[tuple[int, str], ...], str]:
    """Return a sort key that compares runs of digits as numbers (without leading zeros, longer is larger)."""
    parts = re.split(r"([0-9]+)", name)
    return tuple(
        (len(part.lstrip("0")), part.lstrip("0")) if index % 2 else (0, part) for index, part in enumerate(parts)
    ), name


def _bounded(frames: Iterator[Frame], path: Path) -> Iterator[Frame]:
    pixels = 0
    for frame in frames:
        pixels += frame.shape[0] * frame.shape[1]
        if pixels > MAX_VIDEO_PIXELS:
            raise MediaError(f"the frames of {path} have more than {MAX_VIDEO_PIXELS} pixels")
        yield frame


def _decoded_frames(path: Path) -> Iterator[Frame]:
    import av

    regular_file(path, MAX_VIDEO_BYTES)
    try:
        with open_container(MediaRef("path", path=path)) as container:
            yield from _frames(container, path)
    except (av.FFmpegError, OSError, ValueError, EOFError) as error:
        raise MediaError(f"{path} is no readable video: {error}") from error


def _frames(container: Any, path: Path) -> Iterator[Frame]:
    import numpy as np

    if not container.streams.video:
        raise MediaError(f"{path} has no video stream")
    stream = container.streams.video[0]
    if stream.codec_context is None:
        raise MediaError(f"{path} has a codec that the installed FFmpeg does not know")
    check_pixels(int(stream.codec_context.width), int(stream.codec_context.height), path)
    count = 0
    for frame in container.decode(stream):
        count += 1
        if count > MAX_FRAMES:
            raise MediaError(f"{path} has more than {MAX_FRAMES} frames")
        check_pixels(frame.width, frame.height, path)
        array: Frame = frame.to_ndarray(format="rgb24", **one_thread())
        turns = round(getattr(frame, "rotation", 0) / 90) % 4  # as the display matrix of the container asks
        yield np.ascontiguousarray(np.rot90(array, turns)) if turns else array
    if count == 0:
        raise MediaError(f"{path} has no readable frame")


LOSSY = frozenset({"JPEG", "WEBP"})


def grey(path: Path, side: Side, size: tuple[int, int] | None = None) -> NDArray[Any]:
    """Read a picture's grey levels, shape (height, width), as stored: uint8, or uint16 for 16-bit pictures.

    Colours become luma (ITU-R 601-2), transparency is ignored. Raises ``DataError`` for no readable picture, one above
    64 megapixels, or one of another ``size``; ``UnreadableAnswer`` for a prediction.
    """
    import numpy as np

    image = _decoded(path, side, size)
    if image.mode in ("I", "I;16", "I;16B", "I;16L"):
        levels = np.asarray(image)
        if levels.size and (int(levels.min()) < 0 or int(levels.max()) > 65535):
            raise side.refuse(f"names {path.name!r}, whose levels are not of 16 bits")
        return levels.astype(np.uint16)
    if image.mode == "F":
        raise side.refuse(f"names {path.name!r}, whose pixels are fractions; grey levels of 8 or 16 bits are read")
    return np.asarray(image.convert("L"))


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

    Raises ``DataError`` if the folder has no picture, or too many; ``UnreadableAnswer`` for a prediction.
    """
    with side.reading():
        return files_of(path, PICTURE_SUFFIXES) if path.is_dir() else [regular_file(path)]


def require_size(found: tuple[int, int], wanted: tuple[int, int], side: Side) -> None:
    """Check that a size (height, width) is the required one. Raises ``DataError``, which names both, if not."""
    if found != wanted:
        raise side.refuse(f"is {found[1]} x {found[0]} pixels where {wanted[1]} x {wanted[0]} are wanted")


def require_bounded(size: tuple[int, int], side: Side) -> None:
    """Check a size (height, width). Raises ``DataError`` if it is empty, or more than 64 megapixels."""
    if min(size) < 1 or size[0] * size[1] > MAX_PIXELS:
        raise side.refuse(f"is {size[1]} x {size[0]} pixels; 1 to {MAX_PIXELS // 10**6} million are read")


def _decoded(path: Path, side: Side, size: tuple[int, int] | None) -> Image.Image:
    with side.reading():
        regular_file(path)
        head = header(path)
    if size is not None:
        turned = head.exif_rotation > 4
        require_size((head.width, head.height) if turned else (head.height, head.width), size, side)
    with side.reading():
        return open_picture(path)


MAX_CLASS = 65_535
MAX_CLASSES = 4_096
"""Most different classes in one answer."""


def label_map(value: object, side: Side) -> NDArray[Any]:
    """Read class numbers, shape (height, width) or (points,), int32. Any negative one becomes -1.

    The value is the path of a picture (grey levels of 8 or 16 bits, or palette indices) or of an ``.npy`` array of
    integers. Raises ``DataError`` for no such file, or another kind; ``UnreadableAnswer`` for a prediction.
    """
    import numpy as np

    path = side.file(value)
    found = integers(path, side) if path.suffix.casefold() == ".npy" else class_numbers(path, side)
    if found.size and int(found.max()) > MAX_CLASS:
        raise side.refuse(f"names {path.name!r}, which holds class numbers above {MAX_CLASS}")
    return found.astype(np.int32) if found.dtype.kind == "u" else np.maximum(found, -1).astype(np.int32)


def integers(path: Path, side: Side) -> NDArray[Any]:
    """Read an ``.npy`` array of integers in its own type, without axes of length 1. Nothing is unpickled.

    Raises ``DataError`` for another file, another type, or more than 64 million elements.
    """
    import numpy as np

    with side.reading():
        stored = read_array(path, "iub", MAX_PIXELS)
    kept = np.array(stored, dtype=np.uint8 if stored.dtype.kind == "b" else stored.dtype.newbyteorder("="))
    return np.atleast_1d(kept.squeeze())


def label_pair(prediction: object, item: Item) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the predicted and the true class numbers of the pixels or points that the reference labels.

    Both have the shape (labelled pixels,). Pixels are unlabelled if the reference is negative, or is a number in
    ``ignore`` of the annotation's head (or of the item). Negative predictions become ``MAX_CLASS + 1``.

    Raises:
        DataError: a faulty reference.
        UnreadableAnswer: a faulty prediction, or one of another size.
    """
    import numpy as np

    side = prediction_of(item)
    truth = label_map(item.reference, reference_of(item))
    predicted = label_map(prediction, side)
    if predicted.shape != truth.shape:
        raise side.refuse(f"has the size {shape_text(predicted)} where the reference has {shape_text(truth)}")
    labelled = (truth >= 0) & ~np.isin(truth, ignored_classes(item))
    given = np.where(predicted < 0, MAX_CLASS + 1, predicted)[labelled]
    if np.count_nonzero(np.bincount(given.ravel())) > MAX_CLASSES:
        raise side.refuse(f"has more than {MAX_CLASSES} different classes")
    return given, truth[labelled]


def ignored_classes(item: Item) -> list[int]:
    """Return the class numbers that do not count, from ``ignore`` of the item or else of the annotation's head.

    Raises ``DataError`` if it is neither a number nor a list of numbers.
    """
    stated = option(item, "ignore")
    listed = stated if isinstance(stated, list) else [] if stated is None else [stated]
    if not all(type(number) is int for number in listed):
        raise DataError(f"{item.where}: ignore must be a class number or a list of them, not {stated!r:.80}")
    return [number for number in listed if isinstance(number, int)]


def option(item: Item, name: str) -> Any:
    """Return a further key of an item, or else of its annotation's head, or ``None``."""
    raw = item.raw if isinstance(item.raw, Mapping) else {}
    return raw.get(name, item.head.get(name))


def shape_text(array: NDArray[Any]) -> str:
    """Return a size for messages: width x height, or the number of points."""
    return " x ".join(str(length) for length in reversed(array.shape))
