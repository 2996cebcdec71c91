"""Comparisons of dictionaries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lmms_eval.tasks.megabench.conversions.containers import to_dict
from lmms_eval.tasks.megabench.metrics.boxes import nbbox_iou_tuple
from lmms_eval.tasks.megabench.metrics.sequences import jaccard_index, set_equality
from lmms_eval.tasks.megabench.metrics.strings import exact_str_match

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
    """Share of the truth's keys for which the response has a matching value."""
    predicted = to_dict(response)
    if not isinstance(predicted, dict):
        return 0.0
    true = _dictionary(to_dict(truth))
    if not true:
        raise ValueError("the truth has no keys")
    return math.fsum(exact_str_match(predicted.get(key), value) for key, value in true.items()) / len(true)


def dict_set_equality_agg_jaccard(response: Any, truth: Any) -> float:
    """Mean of ``set_equality`` over the keys of both sides."""
    return _mean_over_keys(response, truth, set_equality)


def dict_jaccard_agg_jaccard(response: Any, truth: Any) -> float:
    """Mean of ``jaccard_index`` over the keys of both sides."""
    return _mean_over_keys(response, truth, jaccard_index)


def dict_nbbox_iou_tuple_agg_jaccard(response: Any, truth: Any) -> float:
    """Mean of ``nbbox_iou_tuple`` over the keys of both sides."""
    return _mean_over_keys(response, truth, nbbox_iou_tuple)


def _mean_over_keys(response: Any, truth: Any, metric: Callable[[Any, Any], float]) -> float:
    """A key that one side lacks counts there as an empty list."""
    predicted = to_dict(response)
    if not isinstance(predicted, dict):
        return 0.0
    true = _dictionary(to_dict(truth))
    keys = dict.fromkeys([*true, *predicted])
    if not keys:
        raise ValueError("neither side has keys")
    scores = [metric(predicted.get(key, _NO_ITEMS), true.get(key, _NO_ITEMS)) for key in keys]
    return math.fsum(scores) / len(scores)


def _dictionary(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"the truth is a {type(value).__name__}, not a dictionary")
    return value
