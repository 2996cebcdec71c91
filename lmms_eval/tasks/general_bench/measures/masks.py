"""Measures of masks, class maps, anomaly maps and saliency: segmentation of pictures, videos and point clouds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import ConfigError, DataError
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.measures.boxes import BY_COCO, all_missed, instance_state
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.measures.detection import average_precision, mean_average_precision
from lmms_eval.tasks.general_bench.measures.mask_math import (
    MaskOverlap,
    Runs,
    as_pixels,
    class_counts,
    overlap,
    video_iou,
)
from lmms_eval.tasks.general_bench.measures.panoptic import panoptic_quality, segment_counts
from lmms_eval.tasks.general_bench.measures.structure import authors_structure_measure, structure_measure
from lmms_eval.tasks.general_bench.readers.boxes import fold_label
from lmms_eval.tasks.general_bench.readers.instances import instances
from lmms_eval.tasks.general_bench.readers.labels import MAX_CLASS, ignored_classes, label_map, label_pair, option
from lmms_eval.tasks.general_bench.readers.masks import frames_of, mask, paired, video_masks
from lmms_eval.tasks.general_bench.readers.pictures import grey
from lmms_eval.tasks.general_bench.readers.sides import Side, brief, finite, prediction_of, reference_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FULL = 65_535
"""Scores of anomaly maps are kept as levels of 16 bits; -1 and 65,536 are below and above all of them."""
_ANOMALOUS = frozenset({"1", "anomaly", "anomalous", "abnormal", "defect", "defective", "bad", "yes", "true"})
_NORMAL = frozenset({"0", "normal", "good", "no", "false", "none"})


def _mask_share(share: Callable[[MaskOverlap], float]) -> Callable[[Any, Item, Context], State]:
    """State: a share in percent; two empty masks agree."""

    def state(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
        truth = mask(item.reference, reference_of(item))
        found = overlap(mask(prediction, prediction_of(item), truth.size), truth)
        return 100.0 if found.empty else 100 * share(found)

    return state


def _class_state(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
    """``[right, in the reference, in the prediction]`` by class."""
    pair = label_pair(prediction, item)
    counts = class_counts(pair.predicted, pair.truth)
    return {str(label): list(numbers) for label, numbers in counts.items() if label <= MAX_CLASS}


def _class_missed(item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
    import numpy as np

    truth = label_map(item.reference, reference_of(item))
    labelled = truth[(truth >= 0) & ~np.isin(truth, ignored_classes(item))]
    return {str(label): [0, numbers[1], 0] for label, numbers in class_counts(labelled, labelled).items()}


def _class_iou(states: Sequence[State]) -> float:
    """Mean over the classes that the reference has, of counts summed over all items, in percent."""
    sums: dict[str, list[int]] = {}
    for state in states:
        for label, counts in state.items():
            sums[label] = [one + other for one, other in zip(sums.get(label, (0, 0, 0)), counts, strict=True)]
    values = [right / (truth + given - right) for _, (right, truth, given) in sorted(sums.items()) if truth]
    if not values:
        return 0.0 if sums else 100.0
    return 100 * mean(values)


def _shape_iou(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
    """Mean IoU over a shape's parts, in percent.

    Parts: ``parts`` of the item or the annotation's head (one that neither side has counts 1), else those that occur.
    """
    pair = label_pair(prediction, item)
    counts = class_counts(pair.predicted, pair.truth)
    counts.pop(MAX_CLASS + 1, None)
    parts = option(item, "parts")
    if parts is None:
        parts = sorted(counts)
    elif not isinstance(parts, list) or not parts or not all(type(part) is int for part in parts):
        raise DataError(f"{item.where}: parts must be a list of class numbers, not {brief(parts)}")
    if not parts:
        raise DataError(f"{item.where}: the reference labels no point")
    values = []
    for part in parts:
        right, truth, given = counts.get(part, (0, 0, 0))
        values.append(right / (truth + given - right) if truth + given else 1.0)
    return 100 * mean(values)


def _video_iou(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
    found = video_masks(prediction, prediction_of(item), item.reference, reference_of(item))
    return 100 * video_iou(found.predicted, found.truth)


def _saliency(prediction: Any, item: Item, context: Context) -> State:
    """Mean over the frames of a video, or the one picture, in percent; by the formula that ``s_measure`` names."""
    score = _STRUCTURE.get(context.options.get("s_measure", "published"))
    if score is None:
        raise ConfigError(f"s_measure: {context.options['s_measure']!r} is neither 'published' nor 'authors'")
    side, other = prediction_of(item), reference_of(item)
    frames = paired(frames_of(prediction, side), side, frames_of(item.reference, other))
    if not frames:
        raise other.refuse("has no frame")
    values = []
    for frame in frames:
        truth = _saliency_of(frame.truth, other, None)
        predicted = _saliency_of(frame.predicted, side, (truth.shape[0], truth.shape[1]))
        values.append(score(predicted, truth > 0.5))
    if any(map(math.isnan, values)):
        raise DataError(
            f"{item.where}: the authors' structure measure has no value where an object's centroid lies in the first "
            "row or column: take s_measure=published"
        )
    return 100 * mean(values)


_STRUCTURE = {"published": structure_measure, "authors": authors_structure_measure}


def _saliency_of(frame: object, side: Side, size: tuple[int, int] | None) -> NDArray[Any]:
    """A frame's levels from 0 to 1; pictures of zeros and ones are taken as such, masks are 0 and 1."""
    import numpy as np

    if not isinstance(frame, str | Path):
        return as_pixels(mask(frame, side, size)).astype(np.float64)
    picture = grey(side.file(frame) if isinstance(frame, str) else frame, side, size)
    divisor = picture.full if picture.levels.max() > 1 else 1
    return np.asarray(picture.levels / np.float64(divisor))


def _anomaly_mask(item: Item) -> Runs | None:
    """The reference's anomalous pixels; ``None`` for a sound object of unknown size."""
    value = item.reference
    if isinstance(value, int | float | str) and _verdict(value) == 0:
        return None
    return mask(value, reference_of(item))


def _anomaly_state(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
    """Numbers of anomalous and of sound pixels with each score."""
    import numpy as np

    truth = _anomaly_mask(item)
    side, size = prediction_of(item), None if truth is None else truth.size
    if isinstance(prediction, str):  # a grey picture, else a mask of what is anomalous
        picture = grey(side.file(prediction), side, size)
        levels = np.asarray(picture.levels.astype(np.int32) * (_FULL // picture.full))
    else:
        levels = np.asarray(as_pixels(mask(prediction, side, size)).astype(np.int32) * _FULL)
    positive = levels[as_pixels(truth)] if truth is not None else levels[:0]
    all_of, right = (np.bincount(part.ravel(), minlength=_FULL + 1) for part in (levels, positive))
    known = np.flatnonzero(all_of)
    return _histogram(known, right[known], (all_of - right)[known])


def _anomaly_missed(item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
    """Anomalous pixels below, sound ones above all scores."""
    import numpy as np

    truth = _anomaly_mask(item)
    pixels = truth.height * truth.width if truth is not None else 0
    positive = truth.area if truth is not None else 0
    return _histogram(np.array([-1, _FULL + 1]), np.array([positive, 0]), np.array([0, pixels - positive]))


def _histogram(levels: NDArray[Any], positive: NDArray[Any], negative: NDArray[Any]) -> State:
    return {"levels": levels.tolist(), "positive": positive.tolist(), "negative": negative.tolist()}


def _pixel_precision(states: Sequence[State]) -> float:
    """Area under the precision-recall curve over the pixels of all pictures, in percent."""
    import numpy as np

    sums = np.zeros((2, _FULL + 3), dtype=np.int64)
    for state in states:
        for row, key in enumerate(("positive", "negative")):
            np.add.at(sums[row], np.array(state["levels"], dtype=np.int64) + 1, np.array(state[key], dtype=np.int64))
    known = np.flatnonzero(sums.sum(axis=0))
    return 100 * average_precision(known, sums[0, known], sums[1, known])


def _verdict(value: object) -> int | None:
    """1 for anomalous, 0 for normal, ``None`` if it says neither."""
    text = fold_label(f"{value:g}" if isinstance(value, float) else str(value))
    return 1 if text in _ANOMALOUS else 0 if text in _NORMAL else None


def _image_truth(item: Item) -> int:
    verdict = _verdict(item.reference)
    if verdict is None:
        raise reference_of(item).refuse(f"says neither normal nor anomalous: {brief(item.reference)}")
    return verdict


def _image_state(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
    truth = _image_truth(item)
    score = finite(prediction)
    if score is None and isinstance(prediction, str) and len(prediction) < 100:
        word = _verdict(prediction)
        score = _number(prediction) if word is None else float(word)
    if score is None:
        raise prediction_of(item).refuse(f"is no score of how anomalous the picture is: {brief(prediction)}")
    return {"score": score, "truth": truth}


def _number(text: str) -> float | None:
    try:
        return finite(float(text))
    except ValueError:
        return None


def _image_precision(states: Sequence[State]) -> float:
    """Area under the precision-recall curve over pictures, in percent; those without a score rank worst."""
    import numpy as np

    worst = (-np.inf, np.inf)
    scores = np.array([worst[1 - state["truth"]] if state["score"] is None else state["score"] for state in states])
    known, place = np.unique(scores, return_inverse=True)
    truth = np.array([state["truth"] for state in states])
    positive, negative = (np.bincount(place, weights=part, minlength=len(known)) for part in (truth, 1 - truth))
    return 100 * average_precision(known, positive, negative)


def _segment_state(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
    truth = instances(item.reference, reference_of(item))
    return segment_counts(instances(prediction, prediction_of(item), truth), truth)


_POOLED = "counts by hand and by scikit-learn's confusion matrix, pooled over all items"
_BY_SKLEARN = "scikit-learn's average_precision_score"
MEASURES: tuple[Measure, ...] = (
    Measure("dice", "mask", _mask_share(lambda one: one.dice), mean, is_mean=True, checked="set arithmetic"),
    Measure(
        "miou/mask", "mask", _mask_share(lambda one: one.iou), mean, is_mean=True, checked="pycocotools' mask.iou"
    ),
    Measure("miou/labels", "labels", _class_state, _class_iou, _class_missed, checked=_POOLED),
    Measure("miou/points", "labels", _class_state, _class_iou, _class_missed, checked=_POOLED),
    Measure("instance_miou", "labels", _shape_iou, mean, is_mean=True, checked="cases by hand"),
    Measure("miou/video", "masks", _video_iou, mean, is_mean=True, checked="the authors' script (recorded)"),
    Measure(
        "s_measure", "saliency", _saliency, mean, is_mean=True,
        checked="the published formula by hand; with the option `s_measure=authors` the authors' script (recorded)",
    ),
    Measure("average_precision", "map", _anomaly_state, _pixel_precision, _anomaly_missed, checked=_BY_SKLEARN),
    Measure(
        "average_precision/image", "number", _image_state, _image_precision,
        lambda item, _: {"score": None, "truth": _image_truth(item)}, checked=_BY_SKLEARN,
    ),
    Measure(
        "panoptic_quality", "instances", _segment_state, panoptic_quality, all_missed(_segment_state),
        checked="cases by hand",
    ),
    Measure(
        "map@50", "instances", instance_state, mean_average_precision, all_missed(instance_state),
        checked=f"{BY_COCO} masks; sets of points by hand",
    ),
)  # fmt: skip
