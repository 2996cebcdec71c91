"""Overlaps of boxes (``x, y, width, height`` unless said otherwise), of tracks and of tubes; all as fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUCCESS_THRESHOLDS = tuple(step / 20 for step in range(21))
"""Overlaps 0, 0.05, ..., 1 of the success curve."""
MATCH = 0.5
_CALMING = 0.0001
"""What the authors' scripts add to the number of videos."""


@dataclass(frozen=True, slots=True)
class TrackScore:
    """A track against its reference, as the authors' scripts score it."""

    jaccard: float
    """Mean IoU over frames."""
    f_score: float
    """F1 of boxes matched at IoU 0.5, whatever their frame."""

    @property
    def both(self) -> float:
        """J&F: the mean of the two."""
        return (self.jaccard + self.f_score) / 2


def paired_iou(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """IoU of boxes, shapes (..., 4) which broadcast; 0 where the union is empty."""
    import numpy as np

    left = np.maximum(one[..., :2], other[..., :2])
    right = np.minimum(one[..., :2] + one[..., 2:], other[..., :2] + other[..., 2:])
    first, second = one[..., 2] * one[..., 3], other[..., 2] * other[..., 3]
    shared = np.minimum(np.prod(np.maximum(right - left, 0.0), axis=-1), np.minimum(first, second))  # never by rounding
    union = first + second - shared
    return np.where(union > 0, shared / np.where(union > 0, union, 1.0), 0.0)


def iou(one: Sequence[float], other: Sequence[float]) -> float:
    """IoU of two boxes."""
    return float(paired_iou(as_boxes([one]), as_boxes([other]))[0])


def as_boxes(boxes: Sequence[Sequence[float]]) -> NDArray[Any]:
    """Boxes as an array of shape (boxes, 4)."""
    import numpy as np

    return np.array(boxes, dtype=np.float64).reshape(-1, 4)


def mean_iou(predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """J: mean IoU over frames.

    Raises:
        DataError: not the same number of frames, or none.
    """
    if len(predicted) != len(truth) or not len(truth):
        raise DataError(f"{len(predicted)} predicted boxes for {len(truth)} frames")
    return math.fsum(paired_iou(predicted, truth)) / len(truth)


def box_f1(predicted: NDArray[Any], truth: NDArray[Any], threshold: float = MATCH) -> float:
    """F of the authors' scripts: each prediction hits its best reference box (the first of equals) if IoU >= threshold.

    A reference box may be hit several times; those never hit are missed. Both empty: 1.
    """
    if not len(predicted) and not len(truth):
        return 1.0
    hits, reached = 0, set()
    if len(truth):
        for box in predicted:
            overlaps = paired_iou(box, truth)
            best = int(overlaps.argmax())
            if overlaps[best] >= threshold:
                hits += 1
                reached.add(best)
    false, missed = len(predicted) - hits, len(truth) - len(reached)
    precision = hits / (hits + false) if hits else 0.0
    recall = hits / (hits + missed) if hits else 0.0
    return 2 * precision * recall / (precision + recall) if hits else 0.0


def track_score(predicted: NDArray[Any], truth: NDArray[Any]) -> TrackScore:
    """J and F of one video.

    Raises:
        DataError: not the same number of frames.
    """
    return TrackScore(mean_iou(predicted, truth), box_f1(predicted, truth))


def tracking_j_and_f(scores: Sequence[TrackScore]) -> float:
    """J&F of a task as the authors' scripts report it (the workbook's metric is the area under the success curve).

    Their number of videos has 0.0001 added.
    """
    return math.fsum(score.both for score in scores) / (len(scores) + _CALMING)


def success_area(overlaps: NDArray[Any]) -> float:
    """Area under the success curve: mean over 21 thresholds of the share of frames whose IoU is above it.

    By that definition (of the OTB benchmark) perfect boxes reach 20/21, since no IoU is above 1.
    """
    return math.fsum(float((overlaps > level).mean()) for level in SUCCESS_THRESHOLDS) / len(SUCCESS_THRESHOLDS)


def tube_iou(overlaps: NDArray[Any], predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """vIoU of a video: IoU summed over frames with both boxes, by the number of frames with at least one; 0 if none.

    Args:
        overlaps: IoU of each frame.
        predicted: Whether a frame has a predicted box.
        truth: Whether it has a reference box.
    """
    either = int((predicted | truth).sum())
    return math.fsum(overlaps[predicted & truth]) / either if either else 0.0


def from_corners(corners: NDArray[Any]) -> NDArray[Any]:
    """``x1, y1, x2, y2`` as ``x, y, width, height``; shapes (..., 4)."""
    import numpy as np

    return np.concatenate([corners[..., :2], corners[..., 2:] - corners[..., :2]], axis=-1)
