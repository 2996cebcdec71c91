"""Measures of boxes, tubes, key points, masks, class maps, anomaly maps, saliency and relations."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.measures import detection, mask_math
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, by_class, mean
from lmms_eval.tasks.general_bench.readers import pictures, regions
from lmms_eval.tasks.general_bench.readers.sides import Side, brief, finite, prediction_of, reference_of

BEST = 50
MAX_TRIPLETS = 10_000


Words = tuple[str, str, str]
"""Folded subject, predicate and object."""
Triplet = tuple[Words, NDArray[Any] | None]
"""Words, and the boxes of subject and object, shape (2, 4), ``x, y, width, height``, or ``None``."""


def triplets(value: object, side: Side, most: int | None = None) -> list[Triplet]:
    """Read relations, best first.

    Args:
        value: list of ``[subject, predicate, object]``, each with the boxes of subject and object (``[x, y, w, h]``)
            behind if it has them.
        side: Prediction or reference.
        most: Largest number of them to read.

    Raises:
        DataError: anything else; ``UnreadableAnswer`` for a prediction.
    """
    found: list[Triplet] = []
    for place, entry in enumerate(regions.objects(value, side, MAX_TRIPLETS)[:most]):
        words = entry[:3] if isinstance(entry, list) and len(entry) in (3, 5) else []
        if not words or not all(isinstance(word, str) for word in words):
            raise side.refuse(f"has {brief(entry)} as relation {place}, not [subject, predicate, object]")
        if any(len(word) > regions.MAX_LABEL_LENGTH for word in words):
            raise side.refuse(f"has words of more than {regions.MAX_LABEL_LENGTH} characters in relation {place}")
        subject, predicate, thing = map(regions.fold_label, words)
        places = [regions.four(box, f"box of relation {place}", side) for box in entry[3:]]
        found.append(((subject, predicate, thing), np.array(places) if places else None))
    return found


def recall(predicted: Sequence[Triplet], truth: Sequence[Triplet]) -> float:
    """Return the share of the reference's relations, at least one, in a prediction: the same words and, if both have
    boxes, an IoU of at least 0.5 for both.
    """
    named: dict[Words, list[NDArray[Any] | None]] = {}
    for words, places in predicted:
        named.setdefault(words, []).append(places)
    hits = sum(
        any(
            places is None or wanted is None or bool((mask_math.paired_iou(places, wanted) >= MATCH).all())
            for places in named.get(words, ())
        )
        for words, wanted in truth
    )
    return hits / len(truth)


def _relation_state(prediction: Any, item: Item, _: Context) -> State:
    truth = triplets(item.reference, reference_of(item))
    if not truth:
        raise reference_of(item).refuse("has no relation, so that its recall is undefined")
    return 100 * recall(triplets(prediction, prediction_of(item), BEST), truth)


BY_COCO = "pycocotools' COCOeval (without its limit of 100 detections a picture) on random"


def instance_state(prediction: Any, item: Item, _: Context) -> State:
    """Match objects, as sets of pixels or points, at IoU 0.5."""
    truth = regions.instances(item.reference, reference_of(item))
    found = regions.instances(prediction, prediction_of(item), truth)

    def overlaps(number: int, others: NDArray[Any]) -> NDArray[Any]:
        return mask_math.overlap_row(found.regions[number], [truth.regions[other] for other in others])

    return detection.match_classes(found.marked, len(truth.regions), truth.marked.labels, overlaps, 0.5)


def _key_point_state(prediction: Any, item: Item, _context: Context) -> State:
    truth, areas, wanted = regions.key_points(item.reference, reference_of(item))
    side = prediction_of(item)
    found, _, given = regions.key_points(prediction, side)
    sigmas = _sigmas(item, truth.shape[1]) if len(truth) else []
    if len(found) and len(truth) and found.shape[1] != truth.shape[1]:
        raise side.refuse(f"has {found.shape[1]} points a body where the reference has {truth.shape[1]}")
    counted = np.asarray((truth[:, :, 2] > 0).any(axis=1))
    points, areas = truth[counted], areas[counted]
    labels = wanted.labels
    kept = None if labels is None else [label for label, one in zip(labels, counted, strict=True) if one]

    def overlaps(number: int, others: NDArray[Any]) -> NDArray[Any]:
        return detection.key_point_similarity(found[number], points[others], areas[others], sigmas)

    return detection.match_classes(given, len(points), kept, overlaps, 0.5)


def _sigmas(item: Item, count: int) -> list[float]:
    """Return the spreads of the points: ``sigmas`` of the item or of the annotation's head, else COCO's for 17."""
    stated = pictures.option(item, "sigmas")
    if stated is None and count == len(detection.COCO_SIGMAS):
        return list(detection.COCO_SIGMAS)
    numbers = [finite(number) for number in stated] if isinstance(stated, list) else []
    known = [number for number in numbers if number is not None and number > 0]
    if len(known) != count:
        raise DataError(
            f"{item.where}: bodies of {count} key points need the spread of each as a list sigmas (of the item or in "
            f"the annotation's head); only the spreads of COCO's 17 are known"
        )
    return known


def all_missed(state: Callable[[Any, Item, Context], State]) -> Callable[[Item, Context], State]:
    """Return a function for the state of an item with all objects missed."""
    return lambda item, context: state([], item, context)


def _tubes(prediction: Any, item: Item) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the tubes of the prediction and of the reference."""
    truth, side = regions.tube(item.reference, reference_of(item)), prediction_of(item)
    found = regions.tube(prediction, side)
    if len(found) != len(truth):
        raise side.refuse(f"has {len(found)} boxes where the reference has {len(truth)} frames")
    return found, truth


def _track(prediction: Any, item: Item, context: Context) -> State:
    """Return the success area of a track, or, with the option ``tracking=j_and_f``, the mean of J and F."""
    found, truth = _tubes(prediction, item)
    if not truth.any():
        raise DataError(f"{item.where}: the reference has no box in any frame")
    if context.choice("tracking", "auc", "j_and_f") == "auc":
        return 100 * mask_math.success_area(mask_math.paired_iou(found, truth)[truth.any(axis=1)])
    return 50 * (mask_math.jaccard(found, truth) + mask_math.box_f1(found, truth))


def _tube_overlap(prediction: Any, item: Item, _: Context) -> State:
    found, truth = _tubes(prediction, item)
    is_predicted, is_there = (np.asarray(side.any(axis=1)) for side in (found, truth))
    return 100 * mask_math.tube_iou(mask_math.paired_iou(found, truth), is_predicted, is_there)


def _detection(percent: int) -> Measure:
    def state(prediction: Any, item: Item, _: Context) -> State:
        truth, wanted = regions.boxes(item.reference, reference_of(item))
        found, given = regions.boxes(prediction, prediction_of(item))

        def overlaps(number: int, others: NDArray[Any]) -> NDArray[Any]:
            return mask_math.paired_iou(found[number], truth[others])

        return detection.match_classes(given, len(truth), wanted.labels, overlaps, percent / 100)

    return Measure(
        f"detection_ap@{percent}",
        "boxes",
        state,
        detection.mean_average_precision,
        all_missed(state),
        checked=f"{BY_COCO} boxes",
    )


MATCH = 0.5


def _segment_state(prediction: Any, item: Item, _: Context) -> State:
    """Return the state of an item: ``[sum of IoU, matched, false, missed]`` by class.

    Segments match if they have the same class (or the reference has no classes) and an IoU above 0.5. Each matches
    once, the largest overlap first. Void areas of the reference do not count in a union, and a segment that lies in one
    by more than half is not false.
    """
    truth = regions.instances(item.reference, reference_of(item))
    predicted = regions.instances(prediction, prediction_of(item), truth)
    is_classified = truth.marked.labels or not truth.regions
    given = (predicted.marked.labels if is_classified else None) or (detection.UNNAMED,) * len(predicted.marked.scores)
    wanted = truth.marked.labels or (detection.UNNAMED,) * len(truth.marked.scores)
    ignored = [
        int(mask_math.shared_areas(region, [truth.void])[0]) if truth.void else 0 for region in predicted.regions
    ]
    pairs = _pairs(predicted, truth, ignored, (given, wanted))
    overlap, matched, false, missed = range(4)
    counts = {label: [0.0, 0, 0, 0] for label in (*wanted, *given)}
    reached: set[int] = set()
    used: set[int] = set()
    for iou, number, other in sorted(pairs, key=lambda pair: -pair[0]):
        if number in used or other in reached:
            continue
        used.add(number)
        reached.add(other)
        counts[wanted[other]][matched] += 1
        counts[wanted[other]][overlap] += iou
    for number, label in enumerate(wanted):
        counts[label][missed] += number not in reached
    for number, label in enumerate(given):
        open_ground = number < len(ignored) and 2 * ignored[number] > predicted.regions[number].area
        counts[label][false] += number not in used and not open_ground
    return counts


def panoptic_quality(states: Sequence[State]) -> float:
    """Return the mean over the reference's classes of (sum of IoU) / (matched + false / 2 + missed / 2), in percent.

    Without segments in the reference it is 100 if nothing was predicted, else 0.
    """
    parts = by_class(states)
    values = []
    for label in sorted(parts):
        overlap, matched, false, missed = (math.fsum(column) for column in zip(*parts[label], strict=True))
        if matched or missed:
            values.append(overlap / (matched + false / 2 + missed / 2))
    if not values:
        return 0.0 if any(counts[2] for listed in parts.values() for counts in listed) else 100.0
    return 100 * mean(values)


def _pairs(
    predicted: regions.Instances,
    truth: regions.Instances,
    open_areas: Sequence[int],
    classes: tuple[Sequence[str], Sequence[str]],
) -> list[tuple[float, int, int]]:
    """Return ``(IoU, predicted, true)`` of the segments of one class with an IoU above one half.

    ``classes`` are those of the predicted and of the true segments. Pairs that their areas exclude are skipped.
    """
    found: list[tuple[float, int, int]] = []
    areas = [region.area for region in truth.regions]
    for number, region in enumerate(predicted.regions):
        base = region.area - open_areas[number]
        near = [
            other
            for other, area in enumerate(areas)
            if classes[1][other] == classes[0][number] and min(base, area) > MATCH * max(base, area)
        ]
        for other, shared in zip(
            near, mask_math.shared_areas(region, [truth.regions[other] for other in near]), strict=True
        ):
            iou = float(shared / (base + areas[other] - int(shared)))
            if iou > MATCH:
                found.append((iou, number, other))
    return found


_TINY = 2.220446049250313e-16
_OBJECT_WEIGHT = 0.5
_AUTHORS_TINY = 1e-8
_LEVEL_CONSTANT, _SPREAD_CONSTANT = 1e-4, 9e-4
"""Of the authors' structural similarity."""


def structure_measure(prediction: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return the S-measure with equal weights of object and region, from 0 to 1.

    The prediction is saliency from 0 to 1, the truth the object, bool, both ``(height, width)``. Quarters without a
    pixel (the centroid lies on the border) are left out.
    """
    return _weighted(prediction, truth, (_object_score, _similarity), lambda centre: math.floor(centre + 1.5))


def _weighted(
    prediction: NDArray[Any], truth: NDArray[Any], parts: tuple[Callable[..., float], ...], cut: Callable[[float], int]
) -> float:
    """Combine the scores of object and region with equal weights.

    Args:
        prediction: as ``structure_measure`` has it.
        truth: likewise.
        parts: the score of one side of the object's border, and the similarity of a quarter.
        cut: from the mean row or column of the object to the place where the quarters meet.
    """
    object_score, similarity = parts
    share = float(truth.mean())
    if share == 0:
        return 1 - float(prediction.mean())
    if share == 1:
        return float(prediction.mean())
    inside = share * object_score(prediction[truth]) + (1 - share) * object_score(1 - prediction[~truth])
    row, column = (cut(float(places.mean())) for places in truth.nonzero())  # of the object's centroid
    quarters = [
        (down, across)
        for down in (slice(None, row), slice(row, None))
        for across in (slice(None, column), slice(column, None))
    ]
    region = math.fsum(
        truth[quarter].size / truth.size * similarity(prediction[quarter], truth[quarter])
        for quarter in quarters
        if truth[quarter].size
    )
    return max(0.0, _OBJECT_WEIGHT * inside + (1 - _OBJECT_WEIGHT) * region)


def _object_score(values: NDArray[Any]) -> float:
    """Return the object-aware score: level and evenness of the values on one side of the object's border."""
    level = float(values.mean())
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return 2 * level / (level * level + 1 + spread + _TINY)


def _similarity(prediction: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return the structural similarity of a quarter, without constants."""
    x, y = prediction, truth.astype(prediction.dtype)
    mean_x, mean_y = float(x.mean()), float(y.mean())
    count = x.size - 1 + _TINY
    spread = (float(((x - mean_x) ** 2).sum()) + float(((y - mean_y) ** 2).sum())) / count
    shared = float(((x - mean_x) * (y - mean_y)).sum()) / count
    above = 4 * mean_x * mean_y * shared
    below = (mean_x**2 + mean_y**2) * spread
    if above != 0:
        return above / (below + _TINY)
    return 1.0 if below == 0 else 0.0


def authors_structure_measure(prediction: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return the authors' simplified S-measure, from 0 to 1, or NaN if a quarter has no pixel.

    The object part uses spreads of the population. The region part compares quarters around the rounded centroid by the
    structural similarity with constants. A centroid in the first row or column leaves a quarter without a pixel.
    """
    is_divided = 0 < float(truth.mean()) < 1
    if is_divided and any(not round(float(places.mean())) for places in truth.nonzero()):
        return math.nan
    return _weighted(prediction, truth, (_authors_object, _authors_similarity), round)


def _authors_object(values: NDArray[Any]) -> float:
    level, spread = float(values.mean()), float(values.std())
    return 2 * level / (level * level + 1 + spread + _AUTHORS_TINY)


def _authors_similarity(prediction: NDArray[Any], truth: NDArray[Any]) -> float:
    x, y = prediction, truth.astype(prediction.dtype)
    mean_x, mean_y = float(x.mean()), float(y.mean())
    shared = float(((x - mean_x) * (y - mean_y)).mean())
    above = (2 * mean_x * mean_y + _LEVEL_CONSTANT) * (2 * shared + _SPREAD_CONSTANT)
    levels = mean_x**2 + mean_y**2 + _LEVEL_CONSTANT
    return above / (levels * (float(x.var()) + float(y.var()) + _SPREAD_CONSTANT) + _AUTHORS_TINY)


_FULL = 65_535
"""Scores of anomaly maps are levels of 16 bits. -1 and 65,536 lie below and above all of them."""
_ANOMALOUS = frozenset({"1", "anomaly", "anomalous", "abnormal", "defect", "defective", "bad", "yes", "true"})
_NORMAL = frozenset({"0", "normal", "good", "no", "false", "none"})


def _mask_share(share: Callable[[int, int, int], float]) -> Callable[[Any, Item, Context], State]:
    """Return a state function for a share in percent. Two empty masks agree."""

    def state(prediction: Any, item: Item, _: Context) -> State:
        truth = regions.mask(item.reference, reference_of(item))
        shared, predicted, wanted = mask_math.overlap(regions.mask(prediction, prediction_of(item), truth.size), truth)
        return 100 * share(shared, predicted, wanted) if predicted or wanted else 100.0

    return state


def _class_state(prediction: Any, item: Item, _: Context) -> State:
    """Return ``[right, in the reference, in the prediction]`` by class."""
    counts = mask_math.class_counts(*pictures.label_pair(prediction, item))
    return {str(label): list(numbers) for label, numbers in counts.items() if label <= pictures.MAX_CLASS}


def _class_missed(item: Item, _: Context) -> State:
    truth = pictures.label_map(item.reference, reference_of(item))
    labelled = truth[(truth >= 0) & ~np.isin(truth, pictures.ignored_classes(item))]
    return {str(label): [0, numbers[1], 0] for label, numbers in mask_math.class_counts(labelled, labelled).items()}


def _class_iou(states: Sequence[State]) -> float:
    """Return the mean IoU over the classes of the reference, with counts summed over all items, in percent."""
    sums: dict[str, list[int]] = {}
    for state in states:
        for label, counts in state.items():
            sums[label] = [one + other for one, other in zip(sums.get(label, (0, 0, 0)), counts, strict=True)]
    values = [right / (truth + given - right) for _, (right, truth, given) in sorted(sums.items()) if truth]
    if not values:
        return 0.0 if sums else 100.0
    return 100 * mean(values)


def _shape_iou(prediction: Any, item: Item, _: Context) -> State:
    """Return the mean IoU over a shape's parts, in percent.

    The parts are ``parts`` of the item or of the annotation's head (one that neither side has counts 1), else all that
    occur.
    """
    counts = mask_math.class_counts(*pictures.label_pair(prediction, item))
    counts.pop(pictures.MAX_CLASS + 1, None)
    parts = pictures.option(item, "parts")
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


def _video_iou(prediction: Any, item: Item, _: Context) -> State:
    return 100 * mask_math.video_iou(
        *regions.video_masks(prediction, prediction_of(item), item.reference, reference_of(item))
    )


def _saliency(prediction: Any, item: Item, context: Context) -> State:
    """Return the mean score of a video's frames, or of one picture, in percent, by the formula ``s_measure``."""
    is_published = context.choice("s_measure", "published", "authors") == "published"
    score = structure_measure if is_published else authors_structure_measure
    side, other = prediction_of(item), reference_of(item)
    frames = regions.paired(regions.frames_of(prediction, side), side, regions.frames_of(item.reference, other))
    if not frames:
        raise other.refuse("has no frame")
    values = []
    for given, wanted in frames:
        truth = _saliency_of(wanted, other, None)
        predicted = _saliency_of(given, side, (truth.shape[0], truth.shape[1]))
        values.append(score(predicted, truth > 0.5))
    if any(map(math.isnan, values)):
        raise DataError(
            f"{item.where}: the authors' structure measure has no value where an object's centroid lies in the first "
            "row or column: take s_measure=published"
        )
    return 100 * mean(values)


def _saliency_of(frame: object, side: Side, size: tuple[int, int] | None) -> NDArray[Any]:
    """Return a frame's levels from 0 to 1. Pictures with only zeros and ones, and masks, give 0 and 1."""
    if not isinstance(frame, str | Path):
        return mask_math.as_pixels(regions.mask(frame, side, size)).astype(np.float64)
    levels = pictures.grey(side.file(frame) if isinstance(frame, str) else frame, side, size)
    divisor = np.iinfo(levels.dtype).max if levels.max() > 1 else 1
    return np.asarray(levels / np.float64(divisor))


def _anomaly_mask(item: Item) -> mask_math.Runs | None:
    """Return the reference's anomalous pixels, or ``None`` for a sound object of unknown size."""
    value = item.reference
    if isinstance(value, int | float | str) and _verdict(value) == 0:
        return None
    return regions.mask(value, reference_of(item))


def _anomaly_state(prediction: Any, item: Item, _: Context) -> State:
    """Count the anomalous and the sound pixels with each score."""
    truth = _anomaly_mask(item)
    side, size = prediction_of(item), None if truth is None else truth.size
    if isinstance(prediction, str):  # a grey picture, else a mask of what is anomalous
        stored = pictures.grey(side.file(prediction), side, size)
        levels = np.asarray(stored.astype(np.int32) * (_FULL // np.iinfo(stored.dtype).max))
    else:
        levels = np.asarray(mask_math.as_pixels(regions.mask(prediction, side, size)).astype(np.int32) * _FULL)
    positive = levels[mask_math.as_pixels(truth)] if truth is not None else levels[:0]
    all_of, right = (np.bincount(part.ravel(), minlength=_FULL + 1) for part in (levels, positive))
    known = np.flatnonzero(all_of)
    return _histogram(known, right[known], (all_of - right)[known])


def _anomaly_missed(item: Item, _: Context) -> State:
    """Return a state with the anomalous pixels below and the sound ones above all scores."""
    truth = _anomaly_mask(item)
    pixels = truth.height * truth.width if truth is not None else 0
    positive = truth.area if truth is not None else 0
    return _histogram(np.array([-1, _FULL + 1]), np.array([positive, 0]), np.array([0, pixels - positive]))


def _histogram(levels: NDArray[Any], positive: NDArray[Any], negative: NDArray[Any]) -> State:
    return {"levels": levels.tolist(), "positive": positive.tolist(), "negative": negative.tolist()}


def _pixel_precision(states: Sequence[State]) -> float:
    """Return the area under the precision-recall curve over the pixels of all pictures, in percent."""
    sums = np.zeros((2, _FULL + 3), dtype=np.int64)
    for state in states:
        for row, key in enumerate(("positive", "negative")):
            np.add.at(sums[row], np.array(state["levels"], dtype=np.int64) + 1, np.array(state[key], dtype=np.int64))
    known = np.flatnonzero(sums.sum(axis=0))
    return 100 * detection.average_precision(known, sums[0, known], sums[1, known])


def _verdict(value: object) -> int | None:
    """Return 1 for anomalous, 0 for normal, or ``None`` for anything else."""
    text = regions.fold_label(f"{value:g}" if isinstance(value, float) else str(value))
    return 1 if text in _ANOMALOUS else 0 if text in _NORMAL else None


def _image_truth(item: Item) -> int:
    verdict = _verdict(item.reference)
    if verdict is None:
        raise reference_of(item).refuse(f"says neither normal nor anomalous: {brief(item.reference)}")
    return verdict


def _image_state(prediction: Any, item: Item, _: Context) -> State:
    truth = _image_truth(item)
    score = finite(prediction)
    if score is None and isinstance(prediction, str) and len(prediction) < 100:
        score = _verdict(prediction)
        if score is None:
            with contextlib.suppress(ValueError):
                score = finite(float(prediction))
    if score is None:
        raise prediction_of(item).refuse(f"is no score of how anomalous the picture is: {brief(prediction)}")
    return {"score": float(score), "truth": truth}


def _image_precision(states: Sequence[State]) -> float:
    """Return the area under the precision-recall curve over pictures, in percent. Those without a score rank last."""
    worst = (-np.inf, np.inf)
    scores = np.array([worst[1 - state["truth"]] if state["score"] is None else state["score"] for state in states])
    known, place = np.unique(scores, return_inverse=True)
    truth = np.array([state["truth"] for state in states])
    positive, negative = (np.bincount(place, weights=part, minlength=len(known)) for part in (truth, 1 - truth))
    return 100 * detection.average_precision(known, positive, negative)


_POOLED = "counts by hand and by scikit-learn's confusion matrix, pooled over all items"
_BY_SKLEARN = "scikit-learn's average_precision_score"


MEASURES: tuple[Measure, ...] = (
    *(_detection(percent) for percent in (10, 50, 75)),
    Measure(
        "detection_ap@50/instances", "instances", instance_state, detection.mean_average_precision,
        all_missed(instance_state), checked=f"{BY_COCO} masks",
    ),
    Measure(
        "detection_ap@50/keypoints", "instances", _key_point_state, detection.mean_average_precision,
        all_missed(_key_point_state), checked=f"{BY_COCO} key points",
    ),
    Measure(
        "auc", "tube", _track, mean, is_mean=True,
        checked="cases by hand; perfect boxes give 20/21; with the option `tracking=j_and_f` the authors' script "
        "(recorded)",
    ),
    Measure("m_viou", "tube", _tube_overlap, mean, is_mean=True, checked="the authors' script (recorded)"),
    Measure("dice", "mask", _mask_share(mask_math.dice_of), mean, is_mean=True, checked="set arithmetic"),
    Measure(
        "miou/mask", "mask", _mask_share(mask_math.iou_of), mean, is_mean=True, checked="pycocotools' mask.iou"
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
        "map@50", "instances", instance_state, detection.mean_average_precision, all_missed(instance_state),
        checked=f"{BY_COCO} masks; sets of points by hand",
    ),
    Measure("recall@50", "triplets", _relation_state, mean, is_mean=True, checked="cases by hand; mean over pictures"),
)  # fmt: skip
