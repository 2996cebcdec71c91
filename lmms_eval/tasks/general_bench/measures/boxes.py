"""Measures of boxes, key points and tubes: detection, grounding, tracking, action localisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import ConfigError, DataError
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.measures.box_math import box_f1, jaccard, paired_iou, success_area, tube_iou
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.measures.detection import (
    COCO_SIGMAS,
    key_point_similarity,
    match_classes,
    mean_average_precision,
)
from lmms_eval.tasks.general_bench.measures.mask_math import overlap_row
from lmms_eval.tasks.general_bench.readers.boxes import Tube, boxes, key_points, tube
from lmms_eval.tasks.general_bench.readers.instances import instances
from lmms_eval.tasks.general_bench.readers.labels import option
from lmms_eval.tasks.general_bench.readers.sides import finite, prediction_of, reference_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

BY_COCO = "pycocotools' COCOeval (without its limit of 100 detections a picture) on random"


def instance_state(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
    """Objects as sets of pixels or points, matched at IoU 0.5."""
    truth = instances(item.reference, reference_of(item))
    found = instances(prediction, prediction_of(item), truth)

    def overlaps(number: int, others: NDArray[Any]) -> NDArray[Any]:
        return overlap_row(found.regions[number], [truth.regions[other] for other in others])

    return match_classes(found.marked, len(truth.regions), truth.marked.labels, overlaps, 0.5)


def _key_point_state(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
    import numpy as np

    truth, side = key_points(item.reference, reference_of(item)), prediction_of(item)
    found = key_points(prediction, side)
    sigmas = _sigmas(item, truth.points.shape[1]) if len(truth.points) else []
    if len(found.points) and len(truth.points) and found.points.shape[1] != truth.points.shape[1]:
        raise side.refuse(f"has {found.points.shape[1]} points a body where the reference has {truth.points.shape[1]}")
    counted = np.asarray((truth.points[:, :, 2] > 0).any(axis=1))
    points, areas, labels = truth.points[counted], truth.areas[counted], truth.marked.labels
    kept = None if labels is None else [label for label, one in zip(labels, counted, strict=True) if one]

    def overlaps(number: int, others: NDArray[Any]) -> NDArray[Any]:
        return key_point_similarity(found.points[number], points[others], areas[others], sigmas)

    return match_classes(found.marked, len(points), kept, overlaps, 0.5)


def _sigmas(item: Item, count: int) -> list[float]:
    """Spreads of the points: ``sigmas`` of the item or the annotation's head, else COCO's for 17 points."""
    stated = option(item, "sigmas")
    if stated is None and count == len(COCO_SIGMAS):
        return list(COCO_SIGMAS)
    numbers = [finite(number) for number in stated] if isinstance(stated, list) else []
    known = [number for number in numbers if number is not None and number > 0]
    if len(known) != count:
        raise DataError(
            f"{item.where}: bodies of {count} key points need the spread of each as a list sigmas (of the item or in "
            f"the annotation's head); only the spreads of COCO's 17 are known"
        )
    return known


def all_missed(state: Callable[[Any, Item, Context], State]) -> Callable[[Item, Context], State]:
    """The state of an item all of whose objects are missed."""
    return lambda item, context: state([], item, context)


def _tubes(prediction: Any, item: Item) -> tuple[Tube, Tube]:
    """Prediction and reference."""
    truth, side = tube(item.reference, reference_of(item)), prediction_of(item)
    found = tube(prediction, side)
    if len(found.xywh) != len(truth.xywh):
        raise side.refuse(f"has {len(found.xywh)} boxes where the reference has {len(truth.xywh)} frames")
    return found, truth


def _track(prediction: Any, item: Item, context: Context) -> State:
    """Success area of a track, or, by the option ``tracking``, the mean of J and F."""
    found, truth = _tubes(prediction, item)
    if not truth.present.any():
        raise DataError(f"{item.where}: the reference has no box in any frame")
    match context.options.get("tracking", "auc"):
        case "auc":
            return 100 * success_area(paired_iou(found.xywh, truth.xywh)[truth.present])
        case "j_and_f":
            return 50 * (jaccard(found.xywh, truth.xywh) + box_f1(found.xywh, truth.xywh))
        case other:
            raise ConfigError(f"tracking: {other!r} is neither 'auc' nor 'j_and_f'")


def _tube_overlap(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
    found, truth = _tubes(prediction, item)
    return 100 * tube_iou(paired_iou(found.xywh, truth.xywh), found.present, truth.present)


def _detection(percent: int) -> Measure:
    def state(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - the contract's signature
        truth = boxes(item.reference, reference_of(item))
        found = boxes(prediction, prediction_of(item))

        def overlaps(number: int, others: NDArray[Any]) -> NDArray[Any]:
            return paired_iou(found.xywh[number], truth.xywh[others])

        return match_classes(found.marked, len(truth.xywh), truth.marked.labels, overlaps, percent / 100)

    return Measure(
        f"detection_ap@{percent}", "boxes", state, mean_average_precision, all_missed(state), checked=f"{BY_COCO} boxes"
    )


MEASURES: tuple[Measure, ...] = (
    *(_detection(percent) for percent in (10, 50, 75)),
    Measure(
        "detection_ap@50/instances", "instances", instance_state, mean_average_precision, all_missed(instance_state),
        checked=f"{BY_COCO} masks",
    ),
    Measure(
        "detection_ap@50/keypoints", "instances", _key_point_state, mean_average_precision,
        all_missed(_key_point_state), checked=f"{BY_COCO} key points",
    ),
    Measure(
        "auc", "tube", _track, mean, is_mean=True,
        checked="cases by hand; perfect boxes give 20/21; with the option `tracking=j_and_f` the authors' script "
        "(recorded)",
    ),
    Measure("m_viou", "tube", _tube_overlap, mean, is_mean=True, checked="the authors' script (recorded)"),
)  # fmt: skip
