from typing import Any

import pytest

from lmms_eval.tasks.megabench.metrics import dicts
from tests.cases import for_each


@for_each(
    ("response", "truth", "score"),
    [
        ("{'a': 1}", '{"a": 1.0}', 1),
        ({"a": "[1]"}, {"a": [1]}, 1),
        ({}, {}, 1),
        ("{}", "{}", 0),
        ({"a": (1,)}, {"a": [1]}, 0),
        ("no", {"a": 1}, 0),
    ],
)
def test_equality(response: Any, truth: Any, score: float) -> None:
    assert dicts.dict_equality(response, truth) == score


def test_precision_counts_the_responses_keys() -> None:
    assert dicts.dict_precision({"a": "B. x", "b": "1"}, {"a": "B", "c": "1"}) == 0.5
    assert dicts.dict_precision({}, {"a": 1}) == 0
    with pytest.raises(TypeError):
        dicts.dict_precision({"a": 1}, "no dictionary")


def test_recall_counts_the_truths_keys() -> None:
    assert dicts.dict_exact_str_match_agg_recall({"a": "1"}, {"a": "1", "b": "2"}) == 0.5
    assert dicts.dict_exact_str_match_agg_recall({"x": 1}, {"a": "None"}) == 1
    assert dicts.dict_exact_str_match_agg_recall('{"1": "B"}', "{1: 'B'}") == 0
    assert dicts.dict_exact_str_match_agg_recall("{1: 'B'}", "{1: 'B'}") == 1
    with pytest.raises(ValueError, match="no keys"):
        dicts.dict_exact_str_match_agg_recall({"a": 1}, {})


def test_means_over_the_keys_of_both_sides() -> None:
    assert dicts.dict_set_equality_agg_jaccard({"a": [1, 2]}, {"a": [2, 1], "b": [1]}) == 0.5
    assert dicts.dict_jaccard_agg_jaccard({"a": [[1], [2]]}, {"a": [[1]], "b": []}) == 0.75
    assert dicts.dict_jaccard_agg_jaccard({"a": None}, {"a": []}) == 0
    boxes = {"x": [(0, 0, 1, 1)], "y": [0, 0, 1, 1]}
    assert dicts.dict_nbbox_iou_tuple_agg_jaccard(boxes, {"x": "(0, 0, 1, 1)", "y": "(0, 0, 1, 1)"}) == 0.5
    with pytest.raises(ValueError, match="keys"):
        dicts.dict_jaccard_agg_jaccard({}, {})
