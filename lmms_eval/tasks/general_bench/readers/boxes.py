"""Boxes, tubes and key points from JSON values. Boxes are ``x, y, width, height`` in pixels throughout."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.tasks.general_bench.measures.mask_math import box_of
from lmms_eval.tasks.general_bench.readers.masks import mask
from lmms_eval.tasks.general_bench.readers.sides import Side, brief, finite

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


class Boxes(Struct, frozen=True):
    """The boxes of a picture."""

    xywh: NDArray[Any]
    """Shape (boxes, 4), float64, finite. Widths and heights are not negative."""
    marked: Marked


class Tube(Struct, frozen=True):
    """At most one box in each frame."""

    xywh: NDArray[Any]
    """Shape (frames, 4), float64, with zeros for frames without a box."""
    present: NDArray[Any]
    """Shape (frames,), bool."""


class KeyPoints(Struct, frozen=True):
    """The people (or other bodies) of a picture."""

    points: NDArray[Any]
    """Shape (bodies, points, 3): x, y, visibility (0 means not labelled)."""
    areas: NDArray[Any]
    """Shape (bodies,), in square pixels; 0 if a prediction has no area."""
    marked: Marked


def fold_label(label: str) -> str:
    """Fold case and full-width forms of a label, and replace ``_``, ``-`` and white space by single spaces."""
    return " ".join(re.split(r"[\s_-]+", unicodedata.normalize("NFKC", label).casefold())).strip()


def boxes(value: object, side: Side) -> Boxes:
    """Read the boxes of a picture.

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
    return Boxes(np.array(found, dtype=np.float64).reshape(-1, 4), marked(entries, side))


def tube(value: object, side: Side) -> Tube:
    """Read a box (``[x, y, w, h]``), a mask (its box counts) or ``null`` for each frame. Four zeros mean no box.

    Raises:
        DataError: anything else; ``UnreadableAnswer`` for a prediction.
    """
    import numpy as np

    if not isinstance(value, list):
        raise side.refuse(f"is no list with a box, a mask or null for each frame: {brief(value)}")
    if len(value) > MAX_FRAMES:
        raise side.refuse(f"has {len(value)} frames; at most {MAX_FRAMES} are read")
    xywh = np.zeros((len(value), 4), dtype=np.float64)
    for frame, box in enumerate(value):
        if isinstance(box, Mapping):
            xywh[frame] = box_of(mask(box, side))
        elif box is not None:
            xywh[frame] = four(box, f"box of frame {frame}", side)
    return Tube(xywh, np.asarray(xywh.any(axis=1)))


def key_points(value: object, side: Side) -> KeyPoints:
    """Read bodies ``{"keypoints": [[x, y], ...] or [[x, y, visibility], ...], "score", "area" or "box"}``.

    The points may also be one flat list, as in COCO's ``[x, y, visibility, x, ...]``.

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
    return KeyPoints(np.array(bodies, dtype=np.float64).reshape(shape), np.array(areas), marked(entries, side))


def objects(value: object, side: Side, most: int) -> list[Any]:
    """Check that a value is a list of bounded length, and return it.

    Raises:
        DataError: it is not a list, or too long.
    """
    if not isinstance(value, list):
        raise side.refuse(f"is no list: {brief(value)}")
    if len(value) > most:
        raise side.refuse(f"has {len(value)} entries; at most {most} are read")
    return value


def four(value: object, what: str, side: Side) -> list[float]:
    """Return a box's four numbers.

    Raises:
        DataError: it is not four finite numbers, or a side is negative.
    """
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

    Raises:
        DataError: some have a label and some do not, or a label or score is invalid.
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
