"""Metrics over pixels: flow, depth, normals, restored pictures and videos, mattes, maps, flickering.

A prediction must have the size of its reference, because nothing is resized. If the benchmark leaves a scale or a
colour space open, the measure's ``checked`` names the one used here.

Differences of pictures are computed here in strips: torchmetrics (1.9) takes 3 GB for the MS-SSIM of 9 million pixels
(pictures of up to 64 million are read) and mirrors pictures at their borders; scikit-image has no MS-SSIM.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import kit_math
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.readers.maps import read_depth, read_flow, read_normals
from lmms_eval.tasks.general_bench.readers.pictures import read_alpha, read_frames, read_grey, read_rgb
from lmms_eval.tasks.general_bench.readers.sides import predicted_path, prediction_of, reference_path

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
    scale, shift = _fit(prediction, reference)
    sums, count = [], 0
    for ours, theirs in _valid_values(prediction, reference):
        aligned = np.clip(scale * ours + shift, NEAREST, FARTHEST)
        sums.append(float((np.abs(aligned - theirs) / theirs).sum()))
        count += theirs.size
    return math.fsum(sums) / count


def depth_rms(prediction: Any, reference: Any) -> float:
    """Return the root mean square error over pixels with a finite reference above 0, in the unit of the reference.

    Raises ``DataError`` if shapes differ, no pixel is valid, or the prediction is not finite at one.
    """
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
    _same_shape(prediction, reference)
    ours, theirs = np.reshape(prediction, (-1, 3)), np.reshape(reference, (-1, 3))
    sums, count = [], 0
    for row in range(0, len(ours), _NORMALS):
        truth = theirs[row : row + _NORMALS].astype(np.float64)
        valid = np.isfinite(truth).all(axis=1) & (truth != 0).any(axis=1)
        given, wanted = ours[row : row + _NORMALS][valid].astype(np.float64), truth[valid]
        if not np.isfinite(given).all():
            raise DataError("the prediction is not finite where the reference is valid")
        # the arc tangent is exact for small angles too
        across, along = np.linalg.norm(np.cross(given, wanted), axis=1), (given * wanted).sum(axis=1)
        angles = np.where((given == 0).all(axis=1), 90.0, np.degrees(np.arctan2(across, along)))
        angles = angles if oriented else np.minimum(angles, 180 - angles)
        sums.append(float(angles @ angles))
        count += angles.size
    if not count:
        raise DataError("the reference has no normals")
    return math.sqrt(_finite(math.fsum(sums)) / count)


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
_STRIP = 128
"""Rows in one step, which bounds memory."""
_WINDOW, _SIGMA = 11, 1.5
_K1, _K2 = 0.01, 0.03
_SCALE_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
LEAST_SIDE = _WINDOW * 2 ** (len(_SCALE_WEIGHTS) - 1)
"""Least side in pixels: a smaller picture has no fifth scale."""


def mean_squared_error(first: Any, second: Any) -> float:
    """Return the mean squared error of two arrays. Raises ``DataError`` if shapes differ, or they are empty."""
    sums = [float((apart * apart).sum()) for apart in _differences(first, second)]
    return math.fsum(sums) / int(first.size)


def absolute_difference(first: Any, second: Any) -> float:
    """Return the sum of absolute differences of two arrays. Raises ``DataError`` if shapes differ or are empty."""
    return math.fsum(float(abs(apart).sum()) for apart in _differences(first, second))


def psnr(squared_error: float) -> float:
    """Return the peak signal-to-noise ratio in dB of a squared error of values up to 255; infinite without error."""
    return 10 * math.log10(PEAK * PEAK / squared_error) if squared_error > 0 else math.inf


def ms_ssim(first: Any, second: Any, peak: float = PEAK) -> float:
    """Return the multi-scale structural similarity of two grey pictures (Wang, Simoncelli and Bovik, 2003), 0 to 1.

    Each of the five scales halves the one before by the mean of 2x2 pixels. A negative mean of a scale counts as 0.
    Raises ``DataError`` for different shapes, or a side below 176 pixels.
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
    """Return the exact area under the ROC curve, given the positives and negatives of each ascending score. Ties count
    half.

    Raises ``DataError`` for no positives or no negatives: there is no curve.
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
    if first.shape != second.shape or first.size == 0:
        raise DataError(f"arrays of the shapes {first.shape} and {second.shape} cannot be compared")
    for row in range(0, len(first), _STRIP):
        yield first[row : row + _STRIP].astype(np.float64) - second[row : row + _STRIP]


def similarity(first: Any, second: Any, peak: float) -> tuple[float, float]:
    """Return the structural similarity of two grey pictures ``(height, width)`` (Wang, Bovik, Sheikh and Simoncelli,
    2004).

    Returns the means over the picture of SSIM and of its factors without luminance. Windows of 11x11 pixels are
    weighted by a normal distribution (1.5 pixels) and count only if they lie within the picture. Raises ``DataError``
    for different shapes, or a side below 11 pixels.
    """
    if first.shape != second.shape or first.ndim != 2 or min(first.shape) < _WINDOW:
        raise DataError(f"SSIM needs grey pictures of one size, at least {_WINDOW} pixels wide and high")
    stable1, stable2 = (_K1 * peak) ** 2, (_K2 * peak) ** 2
    wholes, contrasts, count = [], [], 0
    for row in range(0, len(first) - _WINDOW + 1, _STRIP):
        rows = slice(row, row + _STRIP + _WINDOW - 1)  # strips overlap, so that each window lies in exactly one
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
    height, width = picture.shape[0] // 2 * 2, picture.shape[1] // 2 * 2
    quarters = [picture[row:height:2, column:width:2].astype(np.float32) for row in (0, 1) for column in (0, 1)]
    means: npt.NDArray[np.float32] = (quarters[0] + quarters[1] + quarters[2] + quarters[3]) / np.float32(4)
    return means


_ROWS = 256
"""Rows in one step."""


def endpoint_error(prediction: Any, reference: Any) -> float:
    """Return the mean distance of two flows ``(height, width, 2)``, in pixels, over every pixel.

    Raises ``DataError`` if shapes differ, there is no flow, or a number is not finite.
    """
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


_LEVELS = 256
_HALF = 128
"""Least grey value of a positive pixel of a reference map. In a map of zeros and ones it is 1."""
PERFECT = 100.0
"""Decibels of answers that equal their references. The published rule, 0, would rank the best answer as the worst."""
_THOUSAND = 1000.0


def both(read: Callable[[Path], Any], prediction: Any, item: Item) -> tuple[Any, Any]:
    """Read the arrays of a prediction and of its reference, which have one shape.

    Raises:
        UnreadableAnswer: the predicted file is missing, not readable, or not of the reference's size.
        DataError, MediaError: the reference cannot be read.
    """
    reference = read(reference_path(item.reference, item))
    with prediction_of(item).reading():
        found = read(predicted_path(prediction, item))
    _check_size(found, reference, item)
    return found, reference


def _check_size(prediction: Any, reference: Any, item: Item) -> None:
    if prediction.shape != reference.shape:
        ours, theirs = ("x".join(map(str, array.shape)) for array in (prediction, reference))
        raise UnreadableAnswer(
            f"{item.where}: the prediction's size is {ours}, the reference's {theirs} (height before width): "
            "give it the reference's size; nothing is resized here"
        )


def _frame_pairs(prediction: Any, item: Item) -> Iterator[tuple[Any, Any]]:
    """Yield the frames of both videos in pairs."""
    references = read_frames(reference_path(item.reference, item))
    predictions = _predicted_frames(prediction, item)
    for number in itertools.count():
        reference = next(references, None)
        with prediction_of(item).reading():
            found = next(predictions, None)
        if reference is None and found is None:
            return
        if found is None:
            raise UnreadableAnswer(f"{item.where}: the prediction has {number} frames, the reference has more")
        if reference is None:
            raise UnreadableAnswer(f"{item.where}: the reference has {number} frames, the prediction has more")
        _check_size(found, reference, item)
        yield found, reference


def _predicted_frames(prediction: Any, item: Item) -> Iterator[Any]:
    """Yield predicted frames lazily, so that errors of the reference come first."""
    yield from read_frames(predicted_path(prediction, item))


def _compared(read: Callable[[Path], Any], score: Callable[[Any, Any], float]) -> Callable[..., State]:
    """Return a state function for the score of two arrays."""
    return lambda prediction, item, _: score(*both(read, prediction, item))


def _valid(
    read: Callable[[Path], Any], is_valid: Callable[[Any], bool], what: str, score: Callable[[Any, Any], float]
) -> Callable[..., State]:
    """Return a state function for the score of two arrays, if the reference has valid values."""

    def state(prediction: Any, item: Item, _: Context) -> State:
        ours, theirs = both(read, prediction, item)
        if not is_valid(theirs):
            raise DataError(f"{item.where}: the reference has no {what}")
        with prediction_of(item).reading():
            return score(ours, theirs)

    return state


def _noise(pairs: Iterable[tuple[Any, Any]]) -> State:
    decibels = [psnr(mean_squared_error(ours, theirs)) for ours, theirs in pairs]
    finite = [value for value in decibels if math.isfinite(value)]
    return {"decibels": math.fsum(finite), "frames": len(finite)}


def psnr_value(states: Sequence[State]) -> float:
    """Return the mean over all pictures or frames that differ from the reference, or ``PERFECT`` if none does."""
    frames = sum(state["frames"] for state in states)
    return math.fsum(state["decibels"] for state in states) / frames if frames else PERFECT


def ms_ssim_state(prediction: Any, item: Item, _: Context) -> State:
    """Return the MS-SSIM of the grey pictures."""
    ours, theirs = both(read_grey, prediction, item)
    if min(theirs.shape) < LEAST_SIDE:
        raise DataError(f"{item.where}: MS-SSIM needs a reference of at least {LEAST_SIDE} pixels a side")
    return ms_ssim(ours, theirs)


def auc_state(prediction: Any, item: Item, _: Context) -> State:
    """Count the positive and the negative pixels with each grey value."""
    ours, theirs = both(read_grey, prediction, item)
    positive = theirs >= (1 if theirs.max() <= 1 else _HALF)
    return {
        name: np.bincount(ours[chosen], minlength=_LEVELS).tolist()
        for name, chosen in (("positive", positive), ("negative", ~positive))
    }


def auc_value(states: Sequence[State]) -> float:
    """Return the area under the ROC curve in percent, over the pixels of all items together.

    Raises ``DataError`` if no reference has a positive pixel, or none a negative one.
    """
    positive, negative = (
        [sum(counts) for counts in zip(*(state[name] for state in states), strict=True)]
        for name in ("positive", "negative")
    )
    return 100 * roc_auc(positive, negative)


def flickering_state(prediction: Any, item: Item, _: Context) -> State:
    """Return the steadiness of a generated video in percent. There is no reference."""
    with prediction_of(item).reading():
        return 100 * kit_math.steadiness(read_frames(predicted_path(prediction, item)))


MEASURES: tuple[Measure, ...] = (
    Measure(
        "epe", "flow", _compared(read_flow, endpoint_error), mean,
        checked="recorded vectors (epe, read_flo); mean over videos, without the 0.0001 that the authors add to their "
        "number; every pixel counts, the blue channel of a PNG is not looked at",
    ),
    Measure(
        "abs_rel", "depth",
        _valid(read_depth, has_valid_depth, "depth from 0.001 to 80", aligned_abs_rel), mean,
        checked="recorded vectors (video_depth_absrel)",
    ),
    Measure(
        "rms", "depth",
        _valid(read_depth, lambda depth: bool((depth > 0).any()), "depth above 0", depth_rms), mean,
        checked="by hand; mean over pictures, in the unit of the references, no alignment; the benchmark has no unit",
    ),
    Measure(
        "rmse/normals", "normals",
        _valid(
            read_normals, lambda normals: bool(normals.any()), "normals",
            # normals of points have no sign, those of maps have one
            lambda ours, theirs: angular_rms(ours, theirs, oriented=theirs.ndim == 3),
        ),
        mean,
        checked="by hand; degrees, mean over items; without sign for points, with sign for maps; the benchmark has no "
        "definition",
    ),
    Measure(
        "psnr", "image", lambda prediction, item, _: _noise([both(read_rgb, prediction, item)]), psnr_value,
        checked="recorded vectors (psnr); RGB; identical pictures are left out, as published; 100 dB if all are",
    ),
    Measure(
        "psnr/video", "video", lambda prediction, item, _: _noise(_frame_pairs(prediction, item)), psnr_value,
        checked="recorded vectors (video_restoration_psnr); mean over all frames; identical ones as for pictures",
    ),
    Measure(
        "ms_ssim", "image", ms_ssim_state, mean,
        checked="its definition window by window, and torchmetrics; luma, five scales, nothing resized",
    ),
    Measure(
        "rmse/image", "image",
        _compared(read_rgb, lambda ours, theirs: math.sqrt(mean_squared_error(ours, theirs))), mean,
        checked="NumPy; RGB from 0 to 255, mean over pictures; the benchmark states no colour space",
    ),
    Measure(
        "sad", "alpha",
        _compared(read_alpha, lambda ours, theirs: absolute_difference(ours, theirs) / _THOUSAND), mean,
        checked="by hand; alpha from 0 to 1, in thousands, mean over pictures",
    ),
    Measure(
        "mse", "alpha",
        _compared(read_alpha, lambda ours, theirs: mean_squared_error(ours, theirs) * _THOUSAND), mean,
        checked="by hand; alpha from 0 to 1, in thousandths as matting papers write it; the benchmark states no scale",
    ),
    Measure(
        "auc/map", "map", auc_state, auc_value,
        checked="scikit-learn; pixels of all pictures together; 16-bit maps are reduced to 256 grey values",
    ),
    Measure(
        "temporal_flickering", "video", flickering_state, mean, is_mean=True,
        checked="recorded vectors (temporal_flickering)",
    ),
)  # fmt: skip
"""Measures of this module. Those of errors have no state for an unanswered item."""
