"""Mean average precision of boxes in space, by overlap (IoU 0.25 and 0.50) or by distance of centres (nuScenes).

Within an item the boxes of a class are taken from the highest score down; each takes the best true box that is still
free. Boxes of all items of a class then make one precision-recall curve; classes and thresholds are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.tasks.general_bench.measures.boxes3d import Box3D, ground_distance, iou3d

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]

IOUS = (0.25, 0.5)
DISTANCES_M = (0.5, 1.0, 2.0, 4.0)
MAX_BOXES = 500
"""Boxes of one item that count: those with the highest scores (as nuScenes has it)."""
_LEAST = 0.1
"""nuScenes leaves out recalls and precisions up to this."""
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
    """Rules of matching: similarity of boxes, its thresholds, and the area under a curve."""

    similarity: Callable[[Box3D, Box3D], float]
    """Larger for nearer boxes."""
    thresholds: tuple[float, ...]
    area: Callable[[Floats, Floats], float]
    """Area of recalls (rising) and precisions."""


def match_item(truth: Sequence[Box3D], found: Sequence[Box3D], matching: Matching) -> dict[str, ClassBoxes]:
    """Matches of an item's boxes by class."""
    best = sorted(found, key=lambda box: -box.score)[:MAX_BOXES]
    labels = sorted({box.label for box in (*truth, *best)})
    return {
        label: _match_class(
            [box for box in truth if box.label == label], [box for box in best if box.label == label], matching
        )
        for label in labels
    }


def mean_average_precision(items: Iterable[Mapping[str, ClassBoxes]], matching: Matching) -> float:
    """Mean average precision over all items, 0 to 1; only classes that have true boxes count. Without true boxes 0."""
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
    """Mean over the recalls 0, 0.01, ... 1 of the best precision from there on (COCO)."""
    import numpy as np

    best = np.maximum.accumulate(precisions[::-1])[::-1]
    places = np.searchsorted(recalls, np.linspace(0, 1, _POINTS), side="left")
    return float(np.where(places < len(best), best[np.minimum(places, len(best) - 1)], 0.0).mean())


def area_above_tenth(recalls: Floats, precisions: Floats) -> float:
    """Mean over the recalls 0.11, 0.12, ... 1 of what the precision has above 0.1, by 0.9 (nuScenes); precisions
    between recalls are interpolated, beyond the last recall they are 0."""
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
