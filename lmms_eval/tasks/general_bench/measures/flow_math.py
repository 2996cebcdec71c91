"""End-point error of optical flow."""

from __future__ import annotations

import math
from typing import Any

from lmms_eval.errors import DataError

_ROWS = 256
"""Rows worked on at once."""


def endpoint_error(prediction: Any, reference: Any) -> float:
    """Mean distance of two flows ``(height, width, 2)``, in pixels, over every pixel.

    Raises:
        DataError: different shapes, no flow, or numbers that are not finite.
    """
    import numpy as np

    ours, theirs = np.asarray(prediction), np.asarray(reference)
    if ours.shape != theirs.shape or ours.ndim != 3 or ours.shape[2] != 2 or not ours.size:
        raise DataError(f"arrays {ours.shape} and {theirs.shape} are no two flows (height, width, 2)")
    sums = []
    for row in range(0, len(ours), _ROWS):
        with np.errstate(invalid="ignore"):
            apart = ours[row : row + _ROWS].astype(np.float64) - theirs[row : row + _ROWS]
        sums.append(float(np.hypot(apart[..., 0], apart[..., 1]).sum()))
    error = math.fsum(sums) / (ours.size // 2)
    if not math.isfinite(error):
        raise DataError("a flow holds numbers that are not finite")
    return error
