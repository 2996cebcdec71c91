"""Differences of pictures: squared and absolute errors, PSNR, SSIM, MS-SSIM, and the ROC of grey maps.

They are computed here in strips: torchmetrics (1.9) takes 3 GB for the MS-SSIM of 9 million pixels (pictures of up to
64 million are read) and mirrors pictures at their borders; scikit-image has no MS-SSIM.
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
