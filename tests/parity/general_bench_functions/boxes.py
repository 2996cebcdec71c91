"""Boxes, tubes and masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lmms_eval.tasks.general_bench.measures.box_math import paired_iou, tube_iou
from lmms_eval.tasks.general_bench.measures.contract import mean
from lmms_eval.tasks.general_bench.measures.mask_math import runs_of, video_iou

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


FUNCTIONS = {
    "iou_xywh": lambda given: float(paired_iou(_boxes(given["a"]), _boxes(given["b"]))[0]),
    "vos_iou": _video_iou,
    "viou": _tube_iou,
}
