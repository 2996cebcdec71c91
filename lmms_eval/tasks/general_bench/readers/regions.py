"""Boxes, tubes, key points, masks, and objects as sets of pixels or points. Boxes are ``x, y, width, height``.

Masks are pictures, COCO's run lengths (lists and texts) and polygons, read as runs of set pixels. Run lengths are read
here because pycocotools (2.0.11) returns uninitialised memory if they fall short of the mask, and returns only pixels,
which take ten times as long as the runs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import mask_math
from lmms_eval.tasks.general_bench.readers import pictures
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


def mask(value: object, side: Side, size: Size | None = None) -> mask_math.Runs:
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
) -> tuple[tuple[mask_math.Runs, ...], tuple[mask_math.Runs, ...]]:
    """Read the predicted and the true masks of a video's frames.

    They are folders of pictures, or lists with a mask (or ``null`` for an empty one) for each frame. Frames of folders
    are paired by name if the prediction has a file with the name of each reference frame, else by position. Raises
    ``DataError`` for a faulty reference; ``UnreadableAnswer`` for a faulty prediction or one of another length or size.
    """
    frames = paired(frames_of(predicted, predicted_side), predicted_side, frames_of(truth, truth_side))
    truths = _each([frame for _, frame in frames], truth_side, [None] * len(frames))
    return _each([frame for frame, _ in frames], predicted_side, [one.size for one in truths]), truths


def frames_of(value: object, side: Side) -> list[Any]:
    """Return the files of a folder in natural order, or the entries of a list. A single file or object (run lengths) is
    one frame.

    Raises ``DataError`` for anything else, an empty folder, or too many frames; ``UnreadableAnswer`` for a prediction.
    """
    if isinstance(value, str):
        return list(pictures.frame_files(side.path(value), side))
    if isinstance(value, Mapping):
        return [value]
    if not isinstance(value, list) or len(value) > MAX_VIDEO_FRAMES:
        raise side.refuse(f"is neither a folder nor a list of at most {MAX_VIDEO_FRAMES} masks: {brief(value)}")
    return value


def paired(predicted: Sequence[Any], side: Side, truth: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Pair the predicted and the true frames of ``frames_of``.

    Frames of two folders are paired by name if the prediction has a file with the name of each reference frame, else by
    position. Raises ``UnreadableAnswer`` if the numbers of frames differ.
    """
    given, remark = list(predicted), ""
    if given and truth and isinstance(given[0], Path) and isinstance(truth[0], Path):
        named = {path.stem: path for path in given}
        remark = ", under other names"
        if all(path.stem in named for path in truth):
            given = [named[path.stem] for path in truth]
    if len(given) != len(truth):
        raise side.refuse(f"has {len(given)} frames where the reference has {len(truth)}{remark}")
    return list(zip(given, truth, strict=True))


def counts_of_text(text: str) -> NDArray[Any]:
    """Decode COCO's run lengths from their text: 5 bits a character, lowest first, as differences from the third on.

    Raises ``DataError`` for characters that do not occur in such a text, or a text that ends amid a number.
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


def polygons(value: object, size: Size, side: Side) -> mask_math.Runs:
    """Fill polygons (``[x1, y1, x2, y2, ...]`` each), borders included.

    Raises ``DataError`` for anything else, fewer than three corners, or too many of them.
    """
    import numpy as np
    from PIL import Image, ImageDraw

    pictures.require_bounded(size, side)
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
    return mask_math.runs_of_part(np.asarray(picture), top, left, size)


def _stored(path: Path, side: Side, size: Size | None) -> mask_math.Runs:
    if path.suffix.casefold() != ".npy":
        return mask_math.runs_of(pictures.foreground(path, side, size))
    flags = pictures.integers(path, side) != 0
    if flags.ndim > 2:
        raise side.refuse(f"names {path.name!r}, an array of {flags.ndim} axes")
    found = mask_math.runs_of(flags.reshape(1, -1) if flags.ndim == 1 else flags)
    if size is not None:
        pictures.require_size(found.size, size, side)
    return found


def _sized_mask(value: Mapping[str, Any], side: Side, size: Size | None) -> mask_math.Runs:
    """Read run lengths or polygons with their size."""
    stated = value.get("size")
    if not isinstance(stated, list) or len(stated) != 2:
        raise side.refuse(f"has {brief(stated)} as the size of a mask, not [height, width]")
    if not all(isinstance(part, int) and not isinstance(part, bool) and 0 < part < 1 << 26 for part in stated):
        raise side.refuse(f"has {brief(stated)} as the size of a mask, not two numbers of pixels")
    found = stated[0], stated[1]
    pictures.require_bounded(found, side)
    if size is not None:
        pictures.require_size(found, size, side)
    if "polygons" in value:
        return polygons(value["polygons"], found, side)
    try:
        return mask_math.runs_of_counts(_counts(value.get("counts"), side), *found)
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


def _each(frames: Sequence[Any], side: Side, sizes: Sequence[Size | None]) -> tuple[mask_math.Runs, ...]:
    """Read the masks of frames. ``null`` is an empty mask of its own size or of that of the other frames."""
    import numpy as np

    found: list[mask_math.Runs | None] = []
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
    none = np.zeros(0, dtype=np.int64)
    masks: list[mask_math.Runs] = []
    for one, size in zip(found, sizes, strict=True):
        known = size or common
        if one is not None:
            masks.append(one)
        elif known is not None:
            masks.append(mask_math.Runs(*known, none, none))
        else:
            raise side.refuse("has no frame with a mask, so that its size is not known")
    return tuple(masks)


MAX_BOXES = 10_000
"""Most boxes of one answer."""
MAX_FRAMES = 200_000
"""Most frames of one video, almost two hours."""
MAX_KEY_POINTS = 1_000
MAX_LABEL_LENGTH = 300


class Marked(Struct, frozen=True):
    """Labels and scores of the objects of an answer."""

    labels: tuple[str, ...] | None
    """Folded labels, one for each object, or ``None`` if no object has one."""
    scores: NDArray[Any]
    """Scores, one for each object. The default is 1."""


def fold_label(label: str) -> str:
    """Fold case and full-width forms of a label, and replace ``_``, ``-`` and white space by single spaces."""
    return " ".join(re.split(r"[\s_-]+", unicodedata.normalize("NFKC", label).casefold())).strip()


def boxes(value: object, side: Side) -> tuple[NDArray[Any], Marked]:
    """Read the boxes of a picture, shape (boxes, 4), float64, with their labels and scores.

    All numbers are finite. Widths and heights are not negative.

    Args:
        value: list of ``[x, y, w, h]``, each with a label (text) and a score (number) behind if it has them, or of
            ``{"box": [x, y, w, h], "label": ..., "score": ...}``; a single one may stand alone. In a reference, a
            number behind a box is its label.
        side: Prediction or reference.

    Raises:
        DataError: anything else; ``UnreadableAnswer`` for a prediction.
    """
    import numpy as np

    alone = isinstance(value, Mapping) or (isinstance(value, list) and value and isinstance(value[0], int | float))
    listed = objects([value] if alone else value, side, MAX_BOXES)
    entries = [_entry(entry, place, side) for place, entry in enumerate(listed)]
    found = [four(entry.get("box", entry.get("bbox")), f"box {place}", side) for place, entry in enumerate(entries)]
    return np.array(found, dtype=np.float64).reshape(-1, 4), marked(entries, side)


def tube(value: object, side: Side) -> NDArray[Any]:
    """Read a box (``[x, y, w, h]``), a mask (its box counts) or ``null`` for each frame, shape (frames, 4), float64.

    Four zeros mean no box. Raises ``DataError`` for anything else; ``UnreadableAnswer`` for a prediction.
    """
    import numpy as np

    if not isinstance(value, list):
        raise side.refuse(f"is no list with a box, a mask or null for each frame: {brief(value)}")
    if len(value) > MAX_FRAMES:
        raise side.refuse(f"has {len(value)} frames; at most {MAX_FRAMES} are read")
    xywh = np.zeros((len(value), 4), dtype=np.float64)
    for frame, box in enumerate(value):
        if isinstance(box, Mapping):
            xywh[frame] = mask_math.box_of(mask(box, side))
        elif box is not None:
            xywh[frame] = four(box, f"box of frame {frame}", side)
    return xywh


def key_points(value: object, side: Side) -> tuple[NDArray[Any], NDArray[Any], Marked]:
    """Read bodies ``{"keypoints": [[x, y], ...] or [[x, y, visibility], ...], "score", "area" or "box"}``.

    The points may also be one flat list, as in COCO's ``[x, y, visibility, x, ...]``.

    Returns:
        The points, shape (bodies, points, 3): x, y, visibility (0 means not labelled); the areas, shape (bodies,), in
        square pixels (0 for a prediction); labels and scores.

    Raises:
        DataError: anything else, or bodies with different numbers of points, or a reference without area and box;
            ``UnreadableAnswer`` for a prediction.
    """
    import numpy as np

    entries = objects(value, side, MAX_KEY_POINTS)
    bodies: list[list[list[float]]] = []
    areas: list[float] = []
    for place, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise side.refuse(f"has {brief(entry)} as body {place}, not an object with keypoints")
        bodies.append(_points(entry.get("keypoints"), place, side))
        areas.append(_area(entry, place, side))
    if len({len(body) for body in bodies}) > 1:
        raise side.refuse("has bodies with different numbers of key points")
    shape = (len(bodies), len(bodies[0]) if bodies else 0, 3)
    return np.array(bodies, dtype=np.float64).reshape(shape), np.array(areas), marked(entries, side)


def objects(value: object, side: Side, most: int) -> list[Any]:
    """Check that a value is a list of bounded length, and return it. Raises ``DataError`` if it is not."""
    if not isinstance(value, list):
        raise side.refuse(f"is no list: {brief(value)}")
    if len(value) > most:
        raise side.refuse(f"has {len(value)} entries; at most {most} are read")
    return value


def four(value: object, what: str, side: Side) -> list[float]:
    """Return a box's four numbers. Raises ``DataError`` if it is not four finite numbers, or a side is negative."""
    if not isinstance(value, list) or len(value) != 4:
        raise side.refuse(f"has {brief(value)} as {what}, not [x, y, width, height]")
    numbers = [finite(number) for number in value]
    known = [number for number in numbers if number is not None and abs(number) <= 1e9]
    if len(known) != 4:
        raise side.refuse(f"has a {what} with an entry that is no number of pixels")
    if known[2] < 0 or known[3] < 0:
        raise side.refuse(f"has a {what} of negative size ({known[2]:g} x {known[3]:g})")
    return known


def marked(entries: list[Any], side: Side) -> Marked:
    """Read the labels and scores of objects given as dictionaries.

    Raises ``DataError`` if some have a label and some do not, or a label or score is invalid.
    """
    import numpy as np

    labels = [_label(entry.get("label"), side) for entry in entries]
    known = [label for label in labels if label is not None]
    if known and len(known) != len(labels):
        raise side.refuse("gives some of its objects a label and some none")
    scores: list[float] = []
    for score in (entry.get("score") for entry in entries):
        number = 1.0 if score is None else finite(score)
        if number is None:
            raise side.refuse(f"has a score that is no number: {brief(score)}")
        scores.append(number)
    return Marked(tuple(known) if known else None, np.array(scores))


def _label(label: object, side: Side) -> str | None:
    if label is None:
        return None
    if isinstance(label, bool) or not isinstance(label, str | int):
        raise side.refuse(f"has a label that is no text: {brief(label)}")
    text = fold_label(label) if isinstance(label, str) else brief(label)
    if len(text) > MAX_LABEL_LENGTH:
        raise side.refuse(f"has a label of {len(text)} characters; at most {MAX_LABEL_LENGTH} are read")
    return text


def _entry(entry: object, place: int, side: Side) -> Mapping[str, Any]:
    if isinstance(entry, Mapping):
        return entry
    if not isinstance(entry, list) or not 4 <= len(entry) <= 6:
        raise side.refuse(f"has {brief(entry)} as box {place}, not [x, y, width, height]")
    found: dict[str, Any] = {"box": entry[:4]}
    for behind, value in enumerate(entry[4:]):
        first_of_two = len(entry) == 6 and behind == 0 and not isinstance(entry[5], str)
        is_label = isinstance(value, str) or not side.predicted or first_of_two
        found["label" if is_label and "label" not in found else "score"] = value
    return found


def _points(value: object, place: int, side: Side) -> list[list[float]]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_KEY_POINTS:
        raise side.refuse(f"has {brief(value)} as key points of body {place}, not [[x, y], ...]")
    if not isinstance(value[0], list):
        step = 3 if len(value) % 3 == 0 else 2
        value = [value[start : start + step] for start in range(0, len(value), step)]
    found: list[list[float]] = []
    for point in value:
        numbers = [finite(number) for number in point] if isinstance(point, list) and 2 <= len(point) <= 3 else []
        known = [number for number in numbers if number is not None and abs(number) <= 1e9]
        if not known or len(known) != len(numbers):
            raise side.refuse(f"has {brief(point)} as a key point of body {place}, not [x, y]")
        found.append(known if len(known) == 3 else [*known, 1.0])
    return found


def _area(entry: Mapping[str, Any], place: int, side: Side) -> float:
    if side.predicted:
        return 0.0
    area = finite(entry.get("area"))
    if area is None and "box" in entry:
        box = four(entry["box"], f"box of body {place}", side)
        area = box[2] * box[3]
    if area is None or area <= 0:
        raise side.refuse(f"has neither the area nor the box of body {place}")
    return area


MAX_INSTANCES = 1_000
MAX_RUNS = 20_000_000
"""Most runs of all instances of an answer together."""
MAX_INDICES = 5_000_000
"""Most indices in the lists of an answer together."""
CLASS_STEP = 1_000
"""An id of a panoptic map is ``class * 1000 + number``. Below 1000 it is the class itself."""


class Instances(Struct, frozen=True):
    """The objects of a picture or point cloud."""

    regions: tuple[mask_math.Runs, ...]
    marked: Marked
    void: mask_math.Runs | None = None
    """The unlabelled part of a panoptic map (id 0)."""

    @property
    def size(self) -> Size | None:
        """Size of the picture, or ``None`` if no region has one (no regions, or sets of indices)."""
        return next((region.size for region in self.regions if region.width), None)


def instances(value: object, side: Side, truth: Instances | None = None) -> Instances:
    """Read the objects of an answer.

    Args:
        value: list of ``{"mask": ...}`` (as for ``mask``), ``{"box": [x, y, w, h]}`` (a filled one) or
            ``{"indices": [...] or .npy path}`` (points), each with ``label`` and ``score`` if it has them; or a
            panoptic map: path of a picture or ``.npy`` array of ids, or ``{"map": path, "segments": [{"id": ...,
            "label": ...}, ...]}``.
        side: Prediction or reference.
        truth: The reference, for a prediction. If that has no object, masks are not looked at (all are wrong).

    Raises:
        DataError: anything else; ``UnreadableAnswer`` for a prediction, also for another size than the reference's.
    """
    if isinstance(value, str):
        return _panoptic(value, None, side, truth)
    if isinstance(value, Mapping):
        listed = objects(value.get("segments"), side, MAX_INSTANCES)
        return _panoptic(value.get("map"), [_object(entry, side) for entry in listed], side, truth)
    entries = [_object(entry, side) for entry in objects(value, side, MAX_INSTANCES)]
    if truth is not None and not truth.regions:
        return Instances((), marked(entries, side))
    total = sum(len(entry["indices"]) for entry in entries if isinstance(entry.get("indices"), list))
    if total > MAX_INDICES:
        raise side.refuse(f"lists {total} indices; at most {MAX_INDICES} are read (.npy files may hold more)")
    size = truth.size if truth is not None else None
    regions: list[mask_math.Runs] = []
    for entry in entries:
        regions.append(_region(entry, side, size))
        if sum(len(region.starts) for region in regions) > MAX_RUNS:
            raise side.refuse(f"has instances of more than {MAX_RUNS} runs together")
    return Instances(tuple(regions), marked(entries, side))


def _object(entry: object, side: Side) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise side.refuse(f"has {brief(entry)} as an instance, not an object with a mask, box or indices")
    return entry


def _region(entry: Mapping[str, Any], side: Side, size: Size | None) -> mask_math.Runs:
    if "indices" in entry:
        return mask_math.runs_of_indices(_indices(entry["indices"], side))
    if "mask" in entry:
        return mask(entry["mask"], side, size)
    box = four(entry.get("box"), "box of an instance", side)
    if size is None:
        raise side.refuse("has a box as an instance without the size of the picture")
    return mask_math.runs_of_box(box, *size)


def _indices(value: object, side: Side) -> NDArray[Any]:
    import numpy as np

    if isinstance(value, str):
        found = pictures.integers(side.file(value), side)
    elif isinstance(value, list) and all(type(index) is int and -1 <= index < 1 << 41 for index in value):
        found = np.array(value, dtype=np.int64)
    else:
        raise side.refuse(f"has {brief(value)} as indices, neither a list of numbers nor a path")
    if found.size and (int(found.min()) < 0 or int(found.max()) >= 1 << 40):
        raise side.refuse("has indices that are no places of points")
    return found.ravel()


def _panoptic(
    value: object, segments: Sequence[Mapping[str, Any]] | None, side: Side, truth: Instances | None
) -> Instances:
    import numpy as np

    path = side.file(value)
    ids = pictures.integers(path, side) if path.suffix.casefold() == ".npy" else pictures.class_numbers(path, side)
    ids = ids.reshape(1, -1) if ids.ndim == 1 else ids  # of the points of a cloud
    if ids.ndim != 2 or not ids.size or int(ids.min()) < 0:
        raise side.refuse(f"names {path.name!r}, which is no map of ids from 0 on")
    if int(ids.max()) >= 1 << 40:
        raise side.refuse(f"names {path.name!r}, which holds ids beyond 40 bits")
    height, width = ids.shape
    if truth is not None and truth.size is not None:
        pictures.require_size((height, width), truth.size, side)
    line = ids.astype(np.int64).T.ravel()
    starts = np.concatenate([[0], np.flatnonzero(np.diff(line)) + 1]).astype(np.int64)
    ends = np.append(starts[1:], line.size)
    known, owner = np.unique(line[starts], return_inverse=True)
    labels = _labels(known, segments, side)
    order = np.argsort(owner, kind="stable")
    borders = np.searchsorted(owner[order], np.arange(len(known) + 1))
    found = {
        int(number): mask_math.Runs(height, width, starts[order[low:high]], ends[order[low:high]])
        for number, low, high in zip(known, borders[:-1], borders[1:], strict=True)
    }
    void = found.pop(0, None)
    entries = [{"label": labels[number]} for number in found]
    return Instances(tuple(found.values()), marked(entries, side), void)


def _labels(known: NDArray[Any], segments: Sequence[Mapping[str, Any]] | None, side: Side) -> dict[int, Any]:
    """Return the labels of all ids except 0."""
    ids = [int(number) for number in known if number]
    if len(ids) > MAX_INSTANCES:
        raise side.refuse(f"holds {len(ids)} segments; at most {MAX_INSTANCES} are read")
    if segments is None:
        return {number: number // CLASS_STEP if number >= CLASS_STEP else number for number in ids}
    named = {segment.get("id"): segment.get("label") for segment in segments if type(segment.get("id")) is int}
    unnamed = [number for number in ids if named.get(number) is None]
    if unnamed:
        raise side.refuse(f"lists no label for the segment {unnamed[0]} of its map")
    return {number: named[number] for number in ids}
