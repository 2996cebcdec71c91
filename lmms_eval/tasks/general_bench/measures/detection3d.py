"""Oriented boxes in space: their overlap, and their mean average precision.

Matching is by overlap (IoU 0.25 and 0.50) or by distance of centres (nuScenes). Within an item, the boxes of a class
come in the order of falling scores, and each takes the best true box that is still free. The boxes of all items of a
class make one precision-recall curve. The result is the mean over classes and thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


class Corner(NamedTuple):
    """A point on the ground plane."""

    x: float
    y: float


class Box3D(Struct, frozen=True):
    """A box: centre, full sizes along its own axes, and rotation about the vertical axis in radians."""

    x: float
    y: float
    z: float
    dx: float
    dy: float
    dz: float
    yaw: float = 0.0
    label: str = ""
    score: float = 1.0

    @property
    def volume(self) -> float:
        return self.dx * self.dy * self.dz

    def corners(self) -> list[Corner]:
        """Return the corners of the base, anticlockwise."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        halves = ((1, 1), (-1, 1), (-1, -1), (1, -1))
        sides = [(across * self.dx / 2, along * self.dy / 2) for across, along in halves]
        return [Corner(self.x + a * cos - b * sin, self.y + a * sin + b * cos) for a, b in sides]


def ground_distance(one: Box3D, other: Box3D) -> float:
    """Return the distance of the centres on the ground plane."""
    return math.hypot(one.x - other.x, one.y - other.y)


def iou3d(one: Box3D, other: Box3D) -> float:
    """Return the volume of the intersection divided by that of the union. It is 0 if the union is empty."""
    height = min(one.z + one.dz / 2, other.z + other.dz / 2) - max(one.z - one.dz / 2, other.z - other.dz / 2)
    reach = (math.hypot(one.dx, one.dy) + math.hypot(other.dx, other.dy)) / 2
    if height <= 0 or ground_distance(one, other) >= reach:
        return 0.0
    shape = _clipped(one, other)
    area = abs(math.fsum(a.x * b.y - b.x * a.y for a, b in zip(shape, shape[1:] + shape[:1], strict=True))) / 2
    common = min(area * height, one.volume, other.volume)
    union = one.volume + other.volume - common
    return common / union if union > 0 else 0.0


def _clipped(one: Box3D, other: Box3D) -> list[Corner]:
    """Clip the base of ``one`` by that of ``other`` (Sutherland and Hodgman, 1974).

    Coordinates are relative to the centre of ``other``, because areas far from the origin would lose digits.
    """
    shape = [Corner(corner.x - other.x, corner.y - other.y) for corner in one.corners()]
    frame = [Corner(corner.x - other.x, corner.y - other.y) for corner in other.corners()]
    for start, end in zip(frame, frame[1:] + frame[:1], strict=True):
        if not shape:
            break
        sides = [(end.x - start.x) * (at.y - start.y) - (end.y - start.y) * (at.x - start.x) for at in shape]
        kept: list[Corner] = []
        for number, (corner, side) in enumerate(zip(shape, sides, strict=True)):
            before, before_side = shape[number - 1], sides[number - 1]
            if (side < 0) != (before_side < 0):
                share = before_side / (before_side - side)
                kept.append(Corner(before.x + share * (corner.x - before.x), before.y + share * (corner.y - before.y)))
            if side >= 0:
                kept.append(corner)
        shape = kept
    return shape


IOUS = (0.25, 0.5)
DISTANCES_M = (0.5, 1.0, 2.0, 4.0)
MAX_BOXES = 500
"""Most boxes of one item: those with the highest scores count (as in nuScenes)."""
_LEAST = 0.1
"""nuScenes ignores recalls and precisions up to this value."""
_POINTS = 101


class FoundBox(Struct, frozen=True):
    """A predicted box: for each threshold whether it hits a true one."""

    score: float
    hits: tuple[bool, ...]


class ClassBoxes(Struct, frozen=True):
    """One class of an item."""

    objects: int
    found: tuple[FoundBox, ...] = ()


class Matching(Struct, frozen=True):
    """Rules for matching boxes: their similarity, its thresholds, and the area under a curve."""

    similarity: Callable[[Box3D, Box3D], float]
    """Similarity of two boxes, larger for nearer ones."""
    thresholds: tuple[float, ...]
    area: Callable[[Floats, Floats], float]
    """Area under rising recalls and their precisions."""


def match_item(truth: Sequence[Box3D], found: Sequence[Box3D], matching: Matching) -> dict[str, ClassBoxes]:
    """Match an item's boxes by class."""
    best = sorted(found, key=lambda box: -box.score)[:MAX_BOXES]
    labels = sorted({box.label for box in (*truth, *best)})
    return {
        label: _match_class(
            [box for box in truth if box.label == label], [box for box in best if box.label == label], matching
        )
        for label in labels
    }


def mean_average_precision(items: Iterable[Mapping[str, ClassBoxes]], matching: Matching) -> float:
    """Return the mean average precision over all items, 0 to 1. Only classes with true boxes count; without true boxes
    it is 0.
    """
    import numpy as np

    classes: dict[str, list[ClassBoxes]] = {}
    for item in items:
        for label, boxes in item.items():
            classes.setdefault(label, []).append(boxes)
    values: list[float] = []
    for parts in classes.values():
        objects = sum(part.objects for part in parts)
        if not objects:
            continue
        found = sorted((one for part in parts for one in part.found), key=lambda one: -one.score)
        hits = np.array([one.hits for one in found], dtype=bool).reshape(len(found), len(matching.thresholds))
        for column in hits.T:
            true = np.cumsum(column)
            area = matching.area(true / objects, true / np.arange(1, len(column) + 1)) if column.any() else 0.0
            values.append(area)
    return math.fsum(values) / len(values) if values else 0.0


def interpolated_area(recalls: Floats, precisions: Floats) -> float:
    """Return the mean, over the recalls 0, 0.01, ... 1, of the best precision at that recall or above (COCO)."""
    import numpy as np

    best = np.maximum.accumulate(precisions[::-1])[::-1]
    places = np.searchsorted(recalls, np.linspace(0, 1, _POINTS), side="left")
    return float(np.where(places < len(best), best[np.minimum(places, len(best) - 1)], 0.0).mean())


def area_above_tenth(recalls: Floats, precisions: Floats) -> float:
    """Return the mean, over the recalls 0.11, 0.12, ... 1, of the precision above 0.1, divided by 0.9 (nuScenes).
    Precisions between recalls are interpolated. Beyond the last recall they are 0.
    """
    import numpy as np

    wanted = np.linspace(0, 1, _POINTS)[round(_LEAST * (_POINTS - 1)) + 1 :]
    values = np.interp(wanted, recalls, precisions, right=0.0)
    return float(np.maximum(values - _LEAST, 0).mean() / (1 - _LEAST))


def _match_class(truth: Sequence[Box3D], found: Sequence[Box3D], matching: Matching) -> ClassBoxes:
    free = [[True] * len(truth) for _ in matching.thresholds]
    matched: list[FoundBox] = []
    for box in found:
        likeness = [matching.similarity(box, true) for true in truth]
        hits: list[bool] = []
        for threshold, left in zip(matching.thresholds, free, strict=True):
            candidates = [number for number, value in enumerate(likeness) if left[number] and value >= threshold]
            best = max(candidates, key=likeness.__getitem__, default=None)
            hits.append(best is not None)
            if best is not None:
                left[best] = False
        matched.append(FoundBox(box.score, tuple(hits)))
    return ClassBoxes(len(truth), tuple(matched))


BY_OVERLAP = Matching(iou3d, IOUS, interpolated_area)
BY_CENTRE = Matching(
    lambda one, other: -ground_distance(one, other), tuple(-distance for distance in DISTANCES_M), area_above_tenth
)
