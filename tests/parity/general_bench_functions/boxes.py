"""Boxes, tubes and masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lmms_eval.tasks.general_bench.measures.contract import mean
from lmms_eval.tasks.general_bench.measures.mask_math import (
    box_f1,
    box_of,
    jaccard,
    paired_iou,
    runs_of,
    tube_iou,
    video_iou,
)

Given = Mapping[str, Any]


def _boxes(rows: Sequence[Any]) -> Any:
    return np.array(rows, dtype=float).reshape(-1, 4)


def _video_iou(given: Given) -> dict[str, float]:
    videos = [[[runs_of(np.array(f) > 0) for f in video[key]] for key in ("pred", "gt")] for video in given["videos"]]
    return {"IoU": 100 * mean([video_iou(predicted, truth) for predicted, truth in videos])}


def _tube_iou(given: Given) -> dict[str, float]:
    found = []
    for video in given["videos"]:
        predicted, truth = (_boxes(video[key]) for key in ("pred", "gt"))
        sized = (np.hstack([box[:, :2], box[:, 2:] - box[:, :2]]) for box in (predicted, truth))
        overlaps = paired_iou(*sized)
        found.append(tube_iou(overlaps, predicted.any(axis=1), truth.any(axis=1)))
    return {"vIoU": 100 * mean(found)}


def _j_and_f(predicted: Sequence[Any], truth: Sequence[Any]) -> dict[str, float]:
    found, wanted = _boxes(predicted), _boxes(truth)
    return {"J_metric": jaccard(found, wanted), "F_metric": box_f1(found, wanted)}


def _tracking(given: Given) -> dict[str, float]:
    videos = [_j_and_f(*pair) for pair in zip(given["pred"], given["gt"], strict=True)]
    return {"J&F": sum(sum(video.values()) / 2 for video in videos) / (len(videos) + 1e-4)}  # the authors' mean


def _box_of(rows: Any) -> list[int] | None:
    runs = runs_of(np.array(rows) > 0)
    return box_of(runs) if runs.area else None


FUNCTIONS = {
    "iou_xywh": lambda given: float(paired_iou(_boxes(given["a"]), _boxes(given["b"]))[0]),
    "jaccard_mean": lambda given: jaccard(_boxes(given["pred"]), _boxes(given["gt"])),
    "box_f1": lambda given: box_f1(_boxes(given["pred"]), _boxes(given["gt"]), given["threshold"]),
    "j_and_f": lambda given: _j_and_f(given["pred"], given["gt"]),
    "tracking_task_jf": _tracking,
    "bbox_from_mask": lambda given: _box_of(given["mask"]),
    "masks_to_bboxes": lambda given: [
        _box_of(mask) or [0, 0, 0, 0] for mask in given["masks"] or [[[0]]] * given["length"]
    ],
    "vos_iou": _video_iou,
    "viou": _tube_iou,
}
