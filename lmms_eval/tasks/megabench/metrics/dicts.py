"""Comparisons of dictionaries."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from lmms_eval.tasks.megabench.conversions.containers import to_dict
from lmms_eval.tasks.megabench.conversions.geometry import (
    Box,
    best_ious,
    iou,
    is_number,
    parse_boxes_xml,
    str_to_bboxes,
)
from lmms_eval.tasks.megabench.conversions.literals import LiteralError, read_literal
from lmms_eval.tasks.megabench.metrics.sequences import jaccard_index, set_equality
from lmms_eval.tasks.megabench.metrics.strings import exact_str_match


def nbbox_iou_tuple(response: Any, truth: Any) -> float:
    """Mean over the predicted boxes of the best IoU with any true box; 0 without predicted boxes.

    A list is taken as it is, and gives 0 unless each of its elements is a box.
    """
    predicted, true = _boxes(response), _boxes(truth)
    if not all(_is_row(box) for box in (*predicted, *true)):
        return 0.0
    return _mean(best_ious(predicted, true))


def nbbox_iou_single(response: Any, truth: Any) -> float:
    """IoU of two boxes, both written as text; 0 if a side is anything but one box.

    Raises ``LiteralError`` for a truth that is not a text of a literal, a list among them, which scores 0.
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
    if not isinstance(response, list | tuple):
        response = parse_boxes_xml(response)
    elif _is_row(response) and len(response) == 4:
        response = [response]
    return _mean(best_ious(response, true)) if all(_is_row(box) for box in true) else 0.0


def _boxes(value: Any) -> Sequence[Box]:
    return value if isinstance(value, list | tuple) else str_to_bboxes(value)


def _is_row(value: Any) -> bool:
    """At least four numbers; what follows the fourth is ignored."""
    return isinstance(value, list | tuple) and len(value) >= 4 and all(is_number(item) for item in value[:4])


def _mean(scores: list[float]) -> float:
    return math.fsum(scores) / len(scores) if scores else 0.0


_NO_ITEMS: list[Any] = []


def dict_equality(response: Any, truth: Any) -> float:
    """Equality of two dictionaries."""
    predicted, true = to_dict(response), to_dict(truth)
    return float(isinstance(predicted, dict) and predicted == true)


def dict_precision(response: Any, truth: Any) -> float:
    """Share of the response's keys that the truth has with a matching value; 0 for an empty response."""
    predicted, true = to_dict(response), to_dict(truth)
    if not isinstance(predicted, dict) or not predicted:
        return 0.0
    true = _dictionary(true)
    correct = sum(key in true and exact_str_match(value, true[key]) == 1 for key, value in predicted.items())
    return correct / len(predicted)


def dict_exact_str_match_agg_recall(response: Any, truth: Any) -> float:
    """Share of the truth's keys that have a matching value in the response."""
    predicted = to_dict(response)
    if not isinstance(predicted, dict):
        return 0.0
    true = _dictionary(to_dict(truth))
    if not true:
        raise ValueError("the truth has no keys")
    return math.fsum(exact_str_match(predicted.get(key), value) for key, value in true.items()) / len(true)


def _mean_over_keys(response: Any, truth: Any, metric: Callable[[Any, Any], float]) -> float:
    """Return the mean of a metric over the keys of both sides. A key that one side lacks counts as an empty list."""
    predicted = to_dict(response)
    if not isinstance(predicted, dict):
        return 0.0
    true = _dictionary(to_dict(truth))
    keys = dict.fromkeys([*true, *predicted])
    if not keys:
        raise ValueError("neither side has keys")
    scores = [metric(predicted.get(key, _NO_ITEMS), true.get(key, _NO_ITEMS)) for key in keys]
    return math.fsum(scores) / len(scores)


dict_set_equality_agg_jaccard = functools.partial(_mean_over_keys, metric=set_equality)
dict_jaccard_agg_jaccard = functools.partial(_mean_over_keys, metric=jaccard_index)
dict_nbbox_iou_tuple_agg_jaccard = functools.partial(_mean_over_keys, metric=nbbox_iou_tuple)


def _dictionary(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"the truth is a {type(value).__name__}, not a dictionary")
    return value
