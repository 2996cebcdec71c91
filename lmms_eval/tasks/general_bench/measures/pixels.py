"""Metrics over pixels: flow, depth, normals, restored pictures and videos, mattes, maps, flickering.

A prediction must have the size of its reference, because nothing is resized. If the benchmark leaves a scale or a
colour space open, the measure's ``checked`` names the one used here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import kit_math, pixel_math
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.readers.maps import read_depth, read_flow, read_normals
from lmms_eval.tasks.general_bench.readers.pictures import read_alpha, read_frames, read_grey, read_rgb
from lmms_eval.tasks.general_bench.readers.sides import predicted_path, prediction_of, reference_path

_ROWS = 256
"""Rows in one step."""


def endpoint_error(prediction: Any, reference: Any) -> float:
    """Return the mean distance of two flows ``(height, width, 2)``, in pixels, over every pixel.

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
    decibels = [pixel_math.psnr(pixel_math.mean_squared_error(ours, theirs)) for ours, theirs in pairs]
    finite = [value for value in decibels if math.isfinite(value)]
    return {"decibels": math.fsum(finite), "frames": len(finite)}


def psnr_value(states: Sequence[State]) -> float:
    """Return the mean over all pictures or frames that differ from the reference, or ``PERFECT`` if none does."""
    frames = sum(state["frames"] for state in states)
    return math.fsum(state["decibels"] for state in states) / frames if frames else PERFECT


def ms_ssim_state(prediction: Any, item: Item, _: Context) -> State:
    """Return the MS-SSIM of the grey pictures."""
    ours, theirs = both(read_grey, prediction, item)
    if min(theirs.shape) < pixel_math.LEAST_SIDE:
        raise DataError(f"{item.where}: MS-SSIM needs a reference of at least {pixel_math.LEAST_SIDE} pixels a side")
    return pixel_math.ms_ssim(ours, theirs)


def auc_state(prediction: Any, item: Item, _: Context) -> State:
    """Count the positive and the negative pixels with each grey value."""
    import numpy as np

    ours, theirs = both(read_grey, prediction, item)
    positive = theirs >= (1 if theirs.max() <= 1 else _HALF)
    return {
        name: np.bincount(ours[chosen], minlength=_LEVELS).tolist()
        for name, chosen in (("positive", positive), ("negative", ~positive))
    }


def auc_value(states: Sequence[State]) -> float:
    """Return the area under the ROC curve in percent, over the pixels of all items together.

    Raises:
        DataError: no reference has a positive pixel, or none a negative one.
    """
    positive, negative = (
        [sum(counts) for counts in zip(*(state[name] for state in states), strict=True)]
        for name in ("positive", "negative")
    )
    return 100 * pixel_math.roc_auc(positive, negative)


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
        _valid(read_depth, pixel_math.has_valid_depth, "depth from 0.001 to 80", pixel_math.aligned_abs_rel), mean,
        checked="recorded vectors (video_depth_absrel)",
    ),
    Measure(
        "rms", "depth",
        _valid(read_depth, lambda depth: bool((depth > 0).any()), "depth above 0", pixel_math.depth_rms), mean,
        checked="by hand; mean over pictures, in the unit of the references, no alignment; the benchmark has no unit",
    ),
    Measure(
        "rmse/normals", "normals",
        _valid(
            read_normals, lambda normals: bool(normals.any()), "normals",
            # normals of points have no sign, those of maps have one
            lambda ours, theirs: pixel_math.angular_rms(ours, theirs, oriented=theirs.ndim == 3),
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
        _compared(read_rgb, lambda ours, theirs: math.sqrt(pixel_math.mean_squared_error(ours, theirs))), mean,
        checked="NumPy; RGB from 0 to 255, mean over pictures; the benchmark states no colour space",
    ),
    Measure(
        "sad", "alpha",
        _compared(read_alpha, lambda ours, theirs: pixel_math.absolute_difference(ours, theirs) / _THOUSAND), mean,
        checked="by hand; alpha from 0 to 1, in thousands, mean over pictures",
    ),
    Measure(
        "mse", "alpha",
        _compared(read_alpha, lambda ours, theirs: pixel_math.mean_squared_error(ours, theirs) * _THOUSAND), mean,
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
