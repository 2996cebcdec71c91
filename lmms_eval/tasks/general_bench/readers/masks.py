"""Masks, one or one for each frame: pictures, COCO's run lengths (lists and texts) and polygons, as runs of set pixels.

Run lengths are read here because pycocotools (2.0.11) returns uninitialised memory if they fall short of the mask, and
returns only pixels, which take ten times as long as the runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.mask_math import Runs, runs_of, runs_of_counts, runs_of_part
from lmms_eval.tasks.general_bench.readers.labels import integers
from lmms_eval.tasks.general_bench.readers.pictures import (
    foreground,
    frame_files,
    paired_frames,
    require_bounded,
    require_size,
)
from lmms_eval.tasks.general_bench.readers.sides import Side, brief, finite

if TYPE_CHECKING:
    from numpy.typing import NDArray

Size = tuple[int, int]
"""Height and width."""
MAX_COUNTS = 8_000_000
"""Most numbers of a list, or characters of a text, of one run-length mask."""
MAX_VERTICES = 20_000
MAX_COORDINATE = 1e6
MAX_VIDEO_FRAMES = 100_000
MAX_VIDEO_RUNS = 50_000_000


def mask(value: object, side: Side, size: Size | None = None) -> Runs:
    """Read one mask.

    Args:
        value: Path of a picture or ``.npy`` array of integers (whatever is not 0 is set; an array of one axis are the
            points of a cloud); ``{"size": [h, w], "counts": [...] or text}``;
            ``{"size": [h, w], "polygons": [...]}``, or polygons alone (``[[x1, y1, x2, y2, ...], ...]``) if ``size``
            is known.
        side: Prediction or reference.
        size: Required height and width.

    Raises:
        DataError: anything else, or another size; ``UnreadableAnswer`` for a prediction.
    """
    if isinstance(value, str):
        return _stored(side.file(value), side, size)
    if isinstance(value, Mapping):
        return _sized_mask(value, side, size)
    if isinstance(value, list):
        if size is None:
            raise side.refuse("is a list of polygons without the size of the picture")
        return polygons(value, size, side)
    raise side.refuse(f"is no mask (path, run lengths or polygons): {brief(value)}")


def video_masks(
    predicted: object, predicted_side: Side, truth: object, truth_side: Side
) -> tuple[tuple[Runs, ...], tuple[Runs, ...]]:
    """Read the predicted and the true masks of a video's frames.

    They are folders of pictures, or lists with a mask (or ``null`` for an empty one) for each frame. Frames of folders
    are paired by name if the prediction has a file with the name of each reference frame, else by position.

    Raises:
        DataError: a faulty reference; ``UnreadableAnswer`` for a faulty prediction or one of another length or size.
    """
    frames = paired(frames_of(predicted, predicted_side), predicted_side, frames_of(truth, truth_side))
    truths = _each([frame for _, frame in frames], truth_side, [None] * len(frames))
    return _each([frame for frame, _ in frames], predicted_side, [one.size for one in truths]), truths


def frames_of(value: object, side: Side) -> list[Any]:
    """Return the files of a folder in natural order, or the entries of a list. A single file or object (run lengths) is
    one frame.

    Raises:
        DataError: anything else, an empty folder, or too many frames; ``UnreadableAnswer`` for a prediction.
    """
    if isinstance(value, str):
        return list(frame_files(side.path(value), side))
    if isinstance(value, Mapping):
        return [value]
    if not isinstance(value, list) or len(value) > MAX_VIDEO_FRAMES:
        raise side.refuse(f"is neither a folder nor a list of at most {MAX_VIDEO_FRAMES} masks: {brief(value)}")
    return value


def paired(predicted: Sequence[Any], side: Side, truth: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Pair the predicted and the true frames of ``frames_of``.

    Frames of two folders are paired by name if the prediction has a file with the name of each reference frame, else by
    position.

    Raises:
        UnreadableAnswer: the numbers of frames differ.
    """
    given = list(predicted)
    files, wanted = ([frame for frame in frames if isinstance(frame, Path)] for frames in (predicted, truth))
    if files and wanted:
        given = list(paired_frames(files, wanted, side))
    if len(given) != len(truth):
        raise side.refuse(f"has {len(given)} frames where the reference has {len(truth)}")
    return list(zip(given, truth, strict=True))


def counts_of_text(text: str) -> NDArray[Any]:
    """Decode COCO's run lengths from their text: 5 bits a character, lowest first, as differences from the third on.

    Raises:
        DataError: characters that do not occur in such a text, or a text that ends amid a number.
    """
    import numpy as np

    try:
        codes = np.frombuffer(text.encode("ascii"), dtype=np.uint8).astype(np.int64) - 48
    except UnicodeEncodeError as error:
        raise DataError("the text of run lengths holds characters beyond ASCII") from error
    if len(codes) and (int(codes.min()) < 0 or int(codes.max()) > 63):
        raise DataError("the text of run lengths holds characters that COCO's do not")
    last = np.flatnonzero(codes < 32)
    if len(codes) and (not len(last) or last[-1] != len(codes) - 1):
        raise DataError("the text of run lengths ends amid a number")
    first = np.concatenate([[0], last[:-1] + 1]).astype(np.int64) if len(last) else last
    lengths = last - first + 1
    if len(lengths) and int(lengths.max()) > 7:
        raise DataError("the text of run lengths holds a number of more than 34 bits")
    place = np.arange(len(codes)) - np.repeat(first, lengths)
    values = np.add.reduceat((codes & 31) << (5 * place), first) if len(first) else codes
    values -= np.where(codes[last] & 16, np.int64(1) << (5 * lengths), 0) if len(last) else 0
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    return values


def polygons(value: object, size: Size, side: Side) -> Runs:
    """Fill polygons (``[x1, y1, x2, y2, ...]`` each), borders included.

    Raises:
        DataError: anything else, fewer than three corners, or too many of them.
    """
    import numpy as np
    from PIL import Image, ImageDraw

    require_bounded(size, side)
    shapes = value if isinstance(value, list) else []
    shapes = [shapes] if shapes and not isinstance(shapes[0], list) else shapes
    total = sum(len(shape) if isinstance(shape, list) else 0 for shape in shapes)
    if not isinstance(value, list) or total > 2 * MAX_VERTICES or len(shapes) > MAX_VERTICES:
        raise side.refuse(f"is no list of polygons of at most {MAX_VERTICES} corners together: {brief(value)}")
    corners: list[list[tuple[int, int]]] = []
    for shape in shapes:
        numbers = [finite(number) for number in shape] if isinstance(shape, list) else []
        known = [number for number in numbers if number is not None and abs(number) <= MAX_COORDINATE]
        if len(known) < 6 or len(known) % 2 or len(known) != len(numbers):
            raise side.refuse(f"has {brief(shape)} as a polygon, not [x1, y1, x2, y2, x3, y3, ...]")
        corners.append(list(zip(map(int, known[::2]), map(int, known[1::2]), strict=True)))  # whole pixels, as drawn
    # no more is drawn than the part of the picture that the shapes lie in
    xs, ys = ([corner[axis] for shape in corners for corner in shape] or [0] for axis in (0, 1))
    left, right = (min(max(edge, 0), size[1] - 1) for edge in (min(xs), max(xs)))
    top, bottom = (min(max(edge, 0), size[0] - 1) for edge in (min(ys), max(ys)))
    picture = Image.new("1", (right - left + 1, bottom - top + 1))
    draw = ImageDraw.Draw(picture)
    for places in corners:
        draw.polygon([(x - left, y - top) for x, y in places], fill=1, outline=1)
    return runs_of_part(np.asarray(picture), top, left, size)


def _stored(path: Path, side: Side, size: Size | None) -> Runs:
    if path.suffix.casefold() != ".npy":
        return runs_of(foreground(path, side, size))
    flags = integers(path, side) != 0
    if flags.ndim > 2:
        raise side.refuse(f"names {path.name!r}, an array of {flags.ndim} axes")
    found = runs_of(flags.reshape(1, -1) if flags.ndim == 1 else flags)
    if size is not None:
        require_size(found.size, size, side)
    return found


def _sized_mask(value: Mapping[str, Any], side: Side, size: Size | None) -> Runs:
    """Read run lengths or polygons with their size."""
    stated = value.get("size")
    if not isinstance(stated, list) or len(stated) != 2:
        raise side.refuse(f"has {brief(stated)} as the size of a mask, not [height, width]")
    if not all(isinstance(part, int) and not isinstance(part, bool) and 0 < part < 1 << 26 for part in stated):
        raise side.refuse(f"has {brief(stated)} as the size of a mask, not two numbers of pixels")
    found = stated[0], stated[1]
    require_bounded(found, side)
    if size is not None:
        require_size(found, size, side)
    if "polygons" in value:
        return polygons(value["polygons"], found, side)
    try:
        return runs_of_counts(_counts(value.get("counts"), side), *found)
    except UnreadableAnswer:
        raise
    except DataError as error:
        raise side.refuse(f"has faulty run lengths: {error}") from error


def _counts(value: object, side: Side) -> NDArray[Any]:
    import numpy as np

    if not isinstance(value, str | list):
        raise side.refuse(f"has {brief(value)} as run lengths, neither a list nor a text")
    if len(value) > MAX_COUNTS:
        raise side.refuse(f"has run lengths of {len(value)} entries; at most {MAX_COUNTS} are read")
    if isinstance(value, str):
        return counts_of_text(value)
    if not all(type(count) is int and 0 <= count < 1 << 31 for count in value):
        raise side.refuse("has run lengths that are no numbers of pixels")
    return np.array(value, dtype=np.int64)


def _each(frames: Sequence[Any], side: Side, sizes: Sequence[Size | None]) -> tuple[Runs, ...]:
    """Read the masks of frames. ``null`` is an empty mask of its own size or of that of the other frames."""
    found: list[Runs | None] = []
    total = 0
    for frame, size in zip(frames, sizes, strict=True):
        if frame is None:
            found.append(None)
        else:
            found.append(_stored(frame, side, size) if isinstance(frame, Path) else mask(frame, side, size))
        total += len(found[-1].starts) if found[-1] is not None else 0
        if total > MAX_VIDEO_RUNS:
            raise side.refuse(f"has masks of more than {MAX_VIDEO_RUNS} runs together")
    common = next((one.size for one in found if one is not None), None)
    return tuple(
        one if one is not None else _empty(size or common, side) for one, size in zip(found, sizes, strict=True)
    )


def _empty(size: Size | None, side: Side) -> Runs:
    import numpy as np

    if size is None:
        raise side.refuse("has no frame with a mask, so that its size is not known")
    none = np.zeros(0, dtype=np.int64)
    return Runs(*size, none, none)
