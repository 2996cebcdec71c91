"""Distances between points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.tasks.megabench.conversions.geometry import (
    Point,
    is_number,
    parse_point_xml,
    str_to_bboxes,
    str_to_coords,
)
from lmms_eval.tasks.megabench.metrics.values import DetailedScore

DECAY = 10.0
"""Of ``sequence_coords_similarity``: a point at the far corner of the unit square scores exp(-10)."""


def xml_norm_point_distance(response: Any, truth: Any) -> float:
    """One minus the Euclidean distance of two points, at least 0; 0 for coordinates outside [0, 1]."""
    predicted, true = _point(response), _point(truth)
    if predicted is None or true is None:
        return 0.0
    if not all(0 <= coordinate <= 1 for coordinate in (*predicted, *true)):
        return 0.0
    return max(0.0, 1 - math.hypot(predicted[0] - true[0], predicted[1] - true[1]))


def xml_norm_point_in_bbox(response: Any, context: Mapping[str, Any]) -> DetailedScore:
    """1 if the point lies in any of the context's ``bounding_boxes`` (texts), borders included.

    The information says for each box text whether it held the point; the search stops at the first hit, which is
    listed under Python's spelling of its numbers.
    """
    texts = context["bounding_boxes"]
    if not texts:
        raise ValueError("the evaluation context has no bounding boxes")
    boxes = [str_to_bboxes(text)[0] for text in texts]
    hits: dict[str, bool] = dict.fromkeys(texts, False)
    point = _point(response)
    if point is None:
        return DetailedScore(0.0, hits)
    for box in boxes:
        if box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]:
            hits[str(tuple(box))] = True
            return DetailedScore(1.0, hits)
    return DetailedScore(0.0, hits)


def sequence_coords_similarity(response: Any, truth: Any) -> float:
    """Mean over paired points of exp(-10 d / sqrt 2), d their Euclidean distance; 0 for different counts."""
    predicted, true = _points(response), _points(truth)
    if _widths(predicted) is None or _widths(predicted) != _widths(true):
        return 0.0
    if not true:
        raise ValueError("there are no points")
    distances = (math.dist(first, second) for first, second in zip(predicted, true, strict=True))
    return math.fsum(math.exp(-DECAY * distance / math.sqrt(2)) for distance in distances) / len(true)


def _point(value: Any) -> Point | None:
    if isinstance(value, list | tuple):
        if len(value) != 2:
            return None
        return value[0], value[1]
    return parse_point_xml(value)


def _points(value: Any) -> Sequence[Sequence[float]]:
    return value if isinstance(value, list | tuple) else str_to_coords(value)


def _widths(rows: Sequence[Any]) -> list[int] | None:
    """The dimension of each point; ``None`` for anything but points of one dimension."""
    if not all(isinstance(row, list | tuple) and all(is_number(item) for item in row) for row in rows):
        return None
    widths = [len(row) for row in rows]
    return widths if len(set(widths)) < 2 else None
