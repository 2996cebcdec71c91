"""Overlap of boxes, each (x1, y1, x2, y2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lmms_eval.tasks.megabench.conversions.geometry import (
    Box,
    best_ious,
    iou,
    is_number,
    parse_boxes_xml,
    str_to_bboxes,
)
from lmms_eval.tasks.megabench.conversions.literals import LiteralError, read_literal


def nbbox_iou_tuple(response: Any, truth: Any) -> float:
    """Mean over the predicted boxes of the best IoU with any true box; 0 without predicted boxes.

    A list is taken as it is, and gives 0 unless each of its elements is a box.
    """
    predicted, true = _boxes(response), _boxes(truth)
    if not all(_is_row(box) for box in (*predicted, *true)):
        return 0.0
    return _mean(best_ious(predicted, true))


def nbbox_iou_single(response: Any, truth: Any) -> float:
    """IoU of two boxes, both written as text; 0 where a side is anything but one box.

    Raises ``LiteralError`` for a truth that is no text of a literal, a list among them, which scores 0.
    """
    true = read_literal(truth)
    if not isinstance(response, str):
        raise TypeError("the response is no text")
    try:
        predicted = read_literal(response)
    except LiteralError:
        return 0.0
    return iou(predicted, true) if _is_row(predicted) and _is_row(true) else 0.0


def nbbox_iou_sequence(response: Any, truth: Any) -> float:
    """Mean IoU of boxes paired by position; 0 for different counts, NaN if both sides are empty."""
    predicted, true = (
        side if isinstance(side, list | tuple) else str_to_bboxes(str(side)) for side in (response, truth)
    )
    if len(predicted) != len(true):
        return 0.0
    if not predicted:
        return math.nan
    return _mean([iou(first, second) for first, second in zip(predicted, true, strict=True)])


def xml_nbbox_iou_single(response: Any, truth: Any) -> float:
    """Mean over the predicted ``<box>`` tags of the best IoU with any true one; 0 without predicted boxes.

    Either side may be a list of boxes, the response also the four numbers of one; such a truth scores 0.
    """
    true = truth if isinstance(truth, list | tuple) else parse_boxes_xml(truth)
    return _mean(best_ious(_tagged_boxes(response), true)) if all(_is_row(box) for box in true) else 0.0


def _boxes(value: Any) -> Sequence[Box]:
    return value if isinstance(value, list | tuple) else str_to_bboxes(value)


def _tagged_boxes(value: Any) -> Sequence[Box]:
    if not isinstance(value, list | tuple):
        return parse_boxes_xml(value)
    return [value] if _is_row(value) and len(value) == 4 else value


def _is_row(value: Any) -> bool:
    """At least four numbers; what follows the fourth is ignored."""
    return isinstance(value, list | tuple) and len(value) >= 4 and all(is_number(item) for item in value[:4])


def _mean(scores: list[float]) -> float:
    return math.fsum(scores) / len(scores) if scores else 0.0
