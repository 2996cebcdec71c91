"""Differences of pictures (squared and absolute errors, PSNR, SSIM, MS-SSIM, ROC), of depth maps and of normals.

Those of pictures are computed here in strips: torchmetrics (1.9) takes 3 GB for the MS-SSIM of 9 million pixels
(pictures of up to 64 million are read) and mirrors pictures at their borders; scikit-image has no MS-SSIM.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

NEAREST, FARTHEST = 0.001, 80.0
"""Only reference depths strictly between these are valid."""
_NORMALS = 1 << 18
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
    for row in range(0, len(ours), _NORMALS):
        truth = theirs[row : row + _NORMALS].astype(np.float64)
        valid = np.isfinite(truth).all(axis=1) & (truth != 0).any(axis=1)
        angles = _angles(ours[row : row + _NORMALS][valid].astype(np.float64), truth[valid], oriented)
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


PEAK = 255.0
_ROWS = 128
"""Rows in one step, which bounds memory."""
_WINDOW, _SIGMA = 11, 1.5
_K1, _K2 = 0.01, 0.03
_SCALE_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
LEAST_SIDE = _WINDOW * 2 ** (len(_SCALE_WEIGHTS) - 1)
"""Least side in pixels: a smaller picture has no fifth scale."""


def mean_squared_error(first: Any, second: Any) -> float:
    """Mean squared error over all pixels and channels of two arrays of one shape.

    Raises:
        DataError: different shapes, or nothing in them.
    """
    sums = [float((apart * apart).sum()) for apart in _differences(first, second)]
    return math.fsum(sums) / int(first.size)


def absolute_difference(first: Any, second: Any) -> float:
    """Sum of absolute differences of two arrays of one shape.

    Raises:
        DataError: different shapes, or nothing in them.
    """
    return math.fsum(float(abs(apart).sum()) for apart in _differences(first, second))


def psnr(squared_error: float) -> float:
    """Return the peak signal-to-noise ratio in dB of a mean squared error of values from 0 to 255. It is infinite
    without error.
    """
    return 10 * math.log10(PEAK * PEAK / squared_error) if squared_error > 0 else math.inf


def ms_ssim(first: Any, second: Any, peak: float = PEAK) -> float:
    """Return the multi-scale structural similarity of two grey pictures (Wang, Simoncelli and Bovik, 2003), 0 to 1.

    Each of the five scales halves the one before by the mean of 2x2 pixels. A negative mean of a scale counts as 0.

    Raises:
        DataError: different shapes, or a side below 176 pixels.
    """
    if first.shape != second.shape or first.ndim != 2 or min(first.shape) < LEAST_SIDE:
        raise DataError(f"MS-SSIM needs grey pictures of one size, at least {LEAST_SIDE} pixels wide and high")
    product = 1.0
    last = len(_SCALE_WEIGHTS) - 1
    for scale, weight in enumerate(_SCALE_WEIGHTS):
        whole, contrast = similarity(first, second, peak)
        product *= max(0.0, whole if scale == last else contrast) ** weight
        if scale < last:
            first, second = _halved(first), _halved(second)
    return product


def roc_auc(positive: Sequence[int], negative: Sequence[int]) -> float:
    """Return the exact area under the ROC curve of scores in ascending classes. Ties count half.

    Args:
        positive: how many positives have the score of each class.
        negative: how many negatives.

    Raises:
        DataError: no positives or no negatives: there is no curve.
    """
    total = sum(positive) * sum(negative)
    if not total:
        raise DataError("a ROC curve needs both positive and negative pixels in the references")
    below = doubled = 0
    for hits, misses in zip(positive, negative, strict=True):
        doubled += hits * (2 * below + misses)
        below += misses
    return doubled / (2 * total)


def _differences(first: Any, second: Any) -> Iterator[Floats]:
    import numpy as np

    if first.shape != second.shape or first.size == 0:
        raise DataError(f"arrays of the shapes {first.shape} and {second.shape} cannot be compared")
    for row in range(0, len(first), _ROWS):
        yield first[row : row + _ROWS].astype(np.float64) - second[row : row + _ROWS]


def similarity(first: Any, second: Any, peak: float) -> tuple[float, float]:
    """Return the structural similarity of two grey pictures ``(height, width)`` (Wang, Bovik, Sheikh and Simoncelli,
    2004).

    Returns the means over the picture of SSIM and of its factors without luminance. Windows of 11x11 pixels are
    weighted by a normal distribution (1.5 pixels) and count only if they lie within the picture.

    Raises:
        DataError: different shapes, or a side below 11 pixels.
    """
    import numpy as np

    if first.shape != second.shape or first.ndim != 2 or min(first.shape) < _WINDOW:
        raise DataError(f"SSIM needs grey pictures of one size, at least {_WINDOW} pixels wide and high")
    stable1, stable2 = (_K1 * peak) ** 2, (_K2 * peak) ** 2
    wholes, contrasts, count = [], [], 0
    for row in range(0, len(first) - _WINDOW + 1, _ROWS):
        rows = slice(row, row + _ROWS + _WINDOW - 1)  # strips overlap, so that each window lies in exactly one
        strip1, strip2 = first[rows].astype(np.float64), second[rows].astype(np.float64)
        mean1, mean2 = _blurred(strip1), _blurred(strip2)
        variances = _blurred(strip1**2) + _blurred(strip2**2) - mean1**2 - mean2**2
        covariance = _blurred(strip1 * strip2) - mean1 * mean2
        contrast = (2 * covariance + stable2) / (variances + stable2)
        luminance = (2 * mean1 * mean2 + stable1) / (mean1**2 + mean2**2 + stable1)
        wholes.append(float((contrast * luminance).sum()))
        contrasts.append(float(contrast.sum()))
        count += contrast.size
    return math.fsum(wholes) / count, math.fsum(contrasts) / count


def _blurred(picture: Floats) -> Floats:
    """Return the weighted means of all windows within the picture."""
    import numpy as np

    weights = [math.exp(-((step - _WINDOW // 2) ** 2) / (2 * _SIGMA**2)) for step in range(_WINDOW)]
    scale = math.fsum(weights)
    height, width = picture.shape[0] - _WINDOW + 1, picture.shape[1] - _WINDOW + 1
    rows = np.zeros((height, picture.shape[1]))
    for step, weight in enumerate(weights):
        rows += weight / scale * picture[step : step + height]
    found: Floats = np.zeros((height, width))
    for step, weight in enumerate(weights):
        found += weight / scale * rows[:, step : step + width]
    return found


def _halved(picture: Any) -> npt.NDArray[np.float32]:
    import numpy as np

    height, width = picture.shape[0] // 2 * 2, picture.shape[1] // 2 * 2
    quarters = [picture[row:height:2, column:width:2].astype(np.float32) for row in (0, 1) for column in (0, 1)]
    mean: npt.NDArray[np.float32] = (quarters[0] + quarters[1] + quarters[2] + quarters[3]) / np.float32(4)
    return mean
