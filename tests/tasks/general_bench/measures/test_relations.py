from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from tests.cases import for_each
from tests.tasks.general_bench.measures.region_items import ALL, CONTEXT, item, value

RECALL = ALL["recall@50"]
TRIPLET = st.tuples(*[st.sampled_from(["cat", "on", "mat", "dog"])] * 3).map(list)


def test_share_of_the_reference_over_pictures():
    truth = item([["Man", "riding", "Horse"], ["horse", "on", "grass"]])
    found = [["man", "RIDING", "horse"], ["sky", "above", "man"]]
    assert value(RECALL, (found, truth), ([["a", "b", "c"]], item([["A", "b", "C"]]))) == 75


def test_only_the_fifty_best_count():
    wrong = [["a", "b", "c"]] * 49
    truth = item([["x", "y", "z"]])
    assert value(RECALL, ([*wrong, ["x", "y", "z"]], truth)) == 100
    assert value(RECALL, ([*wrong, ["a", "b", "d"], ["x", "y", "z"]], truth)) == 0


def test_boxes_must_overlap_where_both_have_them():
    words = ["cup", "on", "table"]
    truth = item([[*words, [0, 0, 10, 10], [0, 10, 10, 10]]])
    assert value(RECALL, ([[*words, [0, 0, 10, 9], [0, 10, 10, 10]]], truth)) == 100
    assert value(RECALL, ([[*words, [0, 0, 10, 4], [0, 10, 10, 10]]], truth)) == 0
    assert value(RECALL, ([words], truth)) == 100


@given(st.lists(TRIPLET, max_size=30), st.lists(TRIPLET, min_size=1, max_size=30))
def test_is_bounded_and_perfect_for_the_reference(found: list[Any], truth: list[Any]):
    assert 0 <= value(RECALL, (found, item(truth))) <= 100
    assert value(RECALL, (truth, item(truth))) == 100
    assert value(RECALL, ([*truth, *found], item(truth))) == 100


@for_each(
    "answer",
    ["man riding horse", [["a", "b"]], [["a", "b", "c", "d"]], [["a", "b", 3]], [["a", "b", "c", [1], [2]]], [None],
     [["a" * 999, "b", "c"]], [["a", "b", "c"]] * 10_001, {"a": 1}],
    ids=lambda answer: f"{answer!s:.30}",
)  # fmt: skip
def test_what_are_no_triplets_is_refused(answer: Any):
    with pytest.raises(UnreadableAnswer):
        RECALL.state(answer, item([["a", "b", "c"]]), CONTEXT)


def test_a_reference_without_relations_is_faulty():
    with pytest.raises(DataError, match="no relation"):
        RECALL.state([], item([]), CONTEXT)


def test_any_of_several_predictions_may_be_in_the_right_place():
    words, place, elsewhere = ["cup", "on", "table"], [[0, 0, 10, 10], [0, 10, 10, 10]], [[50, 0, 1, 1], [0, 50, 1, 1]]
    assert value(RECALL, ([[*words, *elsewhere], [*words, *place]], item([[*words, *place]]))) == 100
