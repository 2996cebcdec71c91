"""Overlaps of boxes (``x, y, width, height`` unless said otherwise), of tracks and of tubes; all as fractions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUCCESS_THRESHOLDS = tuple(step / 20 for step in range(21))
"""Overlaps 0, 0.05, ..., 1 of the success curve."""


def paired_iou(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """IoU of boxes, shapes (..., 4) which broadcast; 0 where the union is empty."""
    import numpy as np

    left = np.maximum(one[..., :2], other[..., :2])
    right = np.minimum(one[..., :2] + one[..., 2:], other[..., :2] + other[..., 2:])
    first, second = one[..., 2] * one[..., 3], other[..., 2] * other[..., 3]
    shared = np.minimum(np.prod(np.maximum(right - left, 0.0), axis=-1), np.minimum(first, second))  # never by rounding
    union = first + second - shared
    return np.where(union > 0, shared / np.where(union > 0, union, 1.0), 0.0)


def success_area(overlaps: NDArray[Any]) -> float:
    """Area under the success curve: mean over 21 thresholds of the share of frames whose IoU is above it.

    By that definition (of the OTB benchmark) perfect boxes reach 20/21, since no IoU is above 1.
    """
    return math.fsum(float((overlaps > level).mean()) for level in SUCCESS_THRESHOLDS) / len(SUCCESS_THRESHOLDS)


def tube_iou(overlaps: NDArray[Any], predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """vIoU of a video: IoU summed over frames with both boxes, by the number of frames with at least one; 0 if none.

    Args:
        overlaps: IoU of each frame.
        predicted: True for frames with a predicted box.
        truth: True for frames with a reference box.
    """
    either = int((predicted | truth).sum())
    return math.fsum(overlaps[predicted & truth]) / either if either else 0.0
