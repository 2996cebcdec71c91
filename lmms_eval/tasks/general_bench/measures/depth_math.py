"""Errors of depth maps and of surface normals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

NEAREST, FARTHEST = 0.001, 80.0
"""Only reference depths strictly between these are valid."""
_ROWS = 1 << 18
"""Number of normals in one step."""


def has_valid_depth(reference: Any) -> bool:
    """Return whether any value lies between 0.001 and 80."""
    return any(bool(((frame > NEAREST) & (frame < FARTHEST)).any()) for frame in reference)


def aligned_abs_rel(prediction: Any, reference: Any) -> float:
    """Return the mean absolute relative error of a video's depth after the best scale and shift.

    Only pixels with a reference between 0.001 and 80 count. The prediction is raised to at least 0.001, scaled and
    shifted by least squares over all valid pixels of the video, and clipped to the range from 0.001 to 80.

    Args:
        prediction: ``(frames, height, width)``, at any scale.
        reference: the same shape.

    Raises:
        DataError: different shapes, no valid pixel, or a prediction that is not finite at one.
    """
    import numpy as np

    scale, shift = _fit(prediction, reference)
    sums, count = [], 0
    for ours, theirs in _valid_values(prediction, reference):
        aligned = np.clip(scale * ours + shift, NEAREST, FARTHEST)
        sums.append(float((np.abs(aligned - theirs) / theirs).sum()))
        count += theirs.size
    return math.fsum(sums) / count


def depth_rms(prediction: Any, reference: Any) -> float:
    """Return the root mean square error over pixels with a finite reference above 0, in the unit of the reference.

    Raises:
        DataError: different shapes, no valid pixel, or a prediction that is not finite at one.
    """
    import numpy as np

    _same_shape(prediction, reference)
    sums, count = [], 0
    for ours, theirs in zip(prediction, reference, strict=True):
        valid = np.isfinite(theirs) & (theirs > 0)
        apart = ours[valid].astype(np.float64) - theirs[valid]
        sums.append(float(apart @ apart))
        count += apart.size
    if not count:
        raise DataError("the reference has no depth above 0")
    return math.sqrt(_finite(math.fsum(sums)) / count)


def angular_rms(prediction: Any, reference: Any, *, oriented: bool) -> float:
    """Return the root mean square angle between normals in degrees, over normals with a reference of some length.

    Args:
        prediction: ``(..., 3)``, of any lengths; one without length is 90 degrees off.
        reference: the same shape.
        oriented: whether opposite normals are 180 degrees apart, or the same.

    Raises:
        DataError: shapes differ, no reference has a length, or a prediction is not finite at a pixel with a reference.
    """
    import numpy as np

    _same_shape(prediction, reference)
    ours, theirs = np.reshape(prediction, (-1, 3)), np.reshape(reference, (-1, 3))
    sums, count = [], 0
    for row in range(0, len(ours), _ROWS):
        truth = theirs[row : row + _ROWS].astype(np.float64)
        valid = np.isfinite(truth).all(axis=1) & (truth != 0).any(axis=1)
        angles = _angles(ours[row : row + _ROWS][valid].astype(np.float64), truth[valid], oriented)
        sums.append(float(angles @ angles))
        count += angles.size
    if not count:
        raise DataError("the reference has no normals")
    return math.sqrt(_finite(math.fsum(sums)) / count)


def _angles(ours: Floats, theirs: Floats, oriented: bool) -> Floats:
    """Return angles in degrees, by the arc tangent, which is exact for small angles too."""
    import numpy as np

    if not np.isfinite(ours).all():
        raise DataError("the prediction is not finite where the reference is valid")
    angles: Floats = np.degrees(np.arctan2(np.linalg.norm(np.cross(ours, theirs), axis=1), (ours * theirs).sum(axis=1)))
    angles = np.where((ours == 0).all(axis=1), 90.0, angles)
    return angles if oriented else np.minimum(angles, 180 - angles)


def _fit(prediction: Any, reference: Any) -> tuple[float, float]:
    """Return the least-squares scale and shift of a prediction. A flat prediction is moved to the reference's mean.

    There are two passes, so that large means do not swamp the slope.
    """
    _same_shape(prediction, reference)
    sums, target_sums, count = [], [], 0
    for ours, theirs in _valid_values(prediction, reference):
        sums.append(float(ours.sum()))
        target_sums.append(float(theirs.sum()))
        count += theirs.size
    if not count:
        raise DataError(f"the reference has no depth between {NEAREST} and {FARTHEST}")
    mean, target = _finite(math.fsum(sums)) / count, math.fsum(target_sums) / count
    squares, products = [], []
    for ours, theirs in _valid_values(prediction, reference):
        offset = ours - mean
        squares.append(float(offset @ offset))
        products.append(float(offset @ (theirs - target)))
    spread = _finite(math.fsum(squares))
    scale = math.fsum(products) / spread if spread > 0 else 0.0
    return scale, target - scale * mean


def _valid_values(prediction: Any, reference: Any) -> Iterator[tuple[Floats, Floats]]:
    """Yield the valid values of each frame of both sides."""
    import numpy as np

    for ours, theirs in zip(prediction, reference, strict=True):
        valid = (theirs > NEAREST) & (theirs < FARTHEST)
        yield np.maximum(ours[valid].astype(np.float64), NEAREST), theirs[valid].astype(np.float64)


def _same_shape(prediction: Any, reference: Any) -> None:
    if prediction.shape != reference.shape:
        raise DataError(f"arrays of the shapes {prediction.shape} and {reference.shape} cannot be compared")


def _finite(total: float) -> float:
    if not math.isfinite(total):
        raise DataError("the prediction is not finite where the reference is valid")
    return total
