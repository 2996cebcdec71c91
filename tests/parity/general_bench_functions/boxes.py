"""Boxes, tracks, masks and structure measure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lmms_eval.tasks.general_bench.measures.box_math import (
    as_boxes,
    box_f1,
    from_corners,
    iou,
    mean_iou,
    paired_iou,
    track_score,
    tracking_j_and_f,
    tube_iou,
)
from lmms_eval.tasks.general_bench.measures.contract import mean
from lmms_eval.tasks.general_bench.measures.mask_math import box_of, runs_of, video_iou
from lmms_eval.tasks.general_bench.measures.structure import simplified_structure_measure

Given = Mapping[str, Any]


def _j_and_f(given: Given) -> dict[str, float]:
    score = track_score(as_boxes(given["pred"]), as_boxes(given["gt"]))
    return {"J_metric": score.jaccard, "F_metric": score.f_score}


def _tracking(given: Given) -> dict[str, float]:
    pairs = zip(given["pred"], given["gt"], strict=True)
    return {"J&F": tracking_j_and_f([track_score(as_boxes(one), as_boxes(other)) for one, other in pairs])}


def _boxes_of(masks: Sequence[Any] | None, length: int) -> list[Sequence[int]]:
    if masks is None:
        return [[0, 0, 0, 0]] * length
    return [box_of(np.array(mask)) or [0, 0, 0, 0] for mask in masks]


def _video_iou(given: Given) -> dict[str, float]:
    videos = [[[runs_of(np.array(f) > 0) for f in video[key]] for key in ("pred", "gt")] for video in given["videos"]]
    return {"IoU": 100 * mean([video_iou(predicted, truth) for predicted, truth in videos])}


def _tube_iou(given: Given) -> dict[str, float]:
    found = []
    for video in given["videos"]:
        predicted, truth = (np.array(video[key], dtype=float).reshape(-1, 4) for key in ("pred", "gt"))
        overlaps = paired_iou(from_corners(predicted), from_corners(truth))
        found.append(tube_iou(overlaps, predicted.any(axis=1), truth.any(axis=1)))
    return {"vIoU": 100 * mean(found)}


def _structure(given: Given) -> float:
    return simplified_structure_measure(np.array(given["pred"], dtype=float), np.array(given["gt"]) > 0)


def _video_structure(given: Given) -> dict[str, float]:
    found = [
        simplified_structure_measure(np.array(predicted) / 255, np.array(truth) > 128)
        for video in given["videos"]
        for predicted, truth in zip(video["pred"], video["gt"], strict=True)
    ]
    return {"S-measure": math.fsum(found) / len(found)}


FUNCTIONS = {
    "iou_xywh": lambda given: iou(given["a"], given["b"]),
    "box_f1": lambda given: box_f1(as_boxes(given["pred"]), as_boxes(given["gt"]), given["threshold"]),
    "jaccard_mean": lambda given: mean_iou(as_boxes(given["pred"]), as_boxes(given["gt"])),
    "j_and_f": _j_and_f,
    "tracking_task_jf": _tracking,
    "bbox_from_mask": lambda given: box_of(np.array(given["mask"])),
    "masks_to_bboxes": lambda given: _boxes_of(given["masks"], given["length"]),
    "vos_iou": _video_iou,
    "viou": _tube_iou,
    "structure_measure": _structure,
    "video_object_s_measure": _video_structure,
}
