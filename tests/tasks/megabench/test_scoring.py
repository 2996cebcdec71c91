import math
from typing import Any

import pytest
from hypothesis import given

from lmms_eval.tasks.megabench.scoring import parse_reply, read_context, score_query
from lmms_eval.tasks.megabench.task_scoring import TaskScoring, parse_task_scoring
from tests.tasks.megabench.fuzzing import FUZZ, reply_text


def task(metrics: dict[str, str | None], parser: str | None = "json", **changes: Any) -> TaskScoring:
    info = {
        "field_score_function": metrics,
        "aggregation": {"function": "mean", "field_weights": dict.fromkeys([*metrics, "near"], 1)},
        "response_parse_function": parser,
    }
    return parse_task_scoring(info | changes, "task", [name for name in metrics if name])


def test_fields_of_a_json_reply() -> None:
    spec = task({"a": "exact_str_match", "b": "exact_str_match"})
    score = score_query("Answer: {'a': 'x', 'c': 1}", {"a": "'x'", "b": "y"}, spec, {})
    assert score.as_dict() == {"field": {"a": 1, "b": 0}, "info": {}, "query": 0.5}


def test_without_a_dictionary_the_reply_stands_for_every_field() -> None:
    spec = task({"a": "exact_str_match", "b": "exact_str_match"})
    assert parse_reply("B", {"a": "B", "b": "C"}, spec) == {"a": "B", "b": "B"}
    assert score_query("B", {"a": "B", "b": "C"}, spec, {}).query == 0.5


def test_a_missing_field_is_no_empty_prediction() -> None:
    spec = task({"a": "set_precision", "b": "exact_str_match"})
    assert score_query("{'b': 'x'}", {"a": "1, 2", "b": "x"}, spec, {}).fields == {"a": 0, "b": 1}
    assert score_query("{'a': '', 'b': 'x'}", {"a": "1, 2", "b": "x"}, spec, {}).fields == {"a": 1, "b": 1}


def test_phantom_and_unsupported_fields_have_no_entry() -> None:
    spec = task({"a": "exact_str_match", "": "exact_str_match", "b": None})
    score = score_query("{'a': 'x', 'b': 'z'}", {"a": "x", "b": "y", "c": "z"}, spec, {})
    assert (score.fields, score.query) == ({"a": 1}, 1)


def test_a_missing_reply_is_empty() -> None:
    assert score_query(None, {"a": ""}, task({"a": "exact_str_match"}, "answer_string"), {}).query == 1


def test_excluded_queries() -> None:
    score = score_query("0", {"a": "0"}, task({"a": "positive_int_match"}, "answer_string"), {})
    assert (score.fields, score.query) == ({"a": -1}, -1)


def test_nan_is_left_out() -> None:
    spec = task({"a": "nbbox_iou_sequence", "b": "exact_str_match"})
    score = score_query("{'a': '[]', 'b': '1'}", {"a": "[]", "b": "1"}, spec, {})
    assert math.isnan(score.fields["a"])
    assert score.query == 1


def test_an_error_of_a_metric_scores_zero_and_is_kept() -> None:
    score = score_query("3", {"a": "many"}, task({"a": "positive_int_match"}, "answer_string"), {})
    assert (score.fields, score.query, score.info) == ({"a": 0}, 0, {})
    assert "LiteralError" in score.scorer_errors["a"]


def test_an_error_of_a_metric_with_information_becomes_the_information() -> None:
    spec = task({"a": "xml_norm_point_in_bbox"}, "answer_string")
    score = score_query("<point>0,0</point>", {"a": ""}, spec, {})
    assert score.fields == {"a": 0}
    assert score.info["a"] == score.scorer_errors["a"] == "KeyError: 'bounding_boxes'"


def test_context_metrics_get_the_context() -> None:
    spec = task({"a": "xml_norm_point_in_bbox"}, "answer_string")
    score = score_query("<point>0,0</point>", {"a": ""}, spec, read_context("{'bounding_boxes': ['(0, 0, 1, 1)']}"))
    assert score.as_dict() == {"field": {"a": 1}, "info": {"a": {"(0, 0, 1, 1)": True}}, "query": 1}


@pytest.mark.parametrize("value", ["{'a': ", "[1]", "", None, 5])
def test_malformed_contexts_are_empty(value: Any) -> None:
    assert read_context(value) == {}


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("program_judge", "the code sandbox"),
        ("constrained_generation", "linguistic data"),
        ("ascii_art_gpt4o_judge", "a judge model"),
    ],
)
def test_what_cannot_be_evaluated_is_not_zero(metric: str, reason: str) -> None:
    score = score_query("x", {"a": "x", "b": "x"}, task({"a": metric, "b": "exact_str_match"}), {})
    assert score.query is None
    assert score.fields == {"b": 1}
    assert score.not_evaluated == {"a": f"{metric} needs {reason}"}
    assert score.as_dict()["info"] == {"a": f"not evaluated: {metric} needs {reason}"}


def test_auxiliary_metrics_join_the_fields() -> None:
    spec = task({"a": "exact_str_match"}, global_aux_metrics={"near": "dict_precision"})
    score = score_query("{'a': 'y', 'z': '1'}", {"a": "x", "z": "1"}, spec, {})
    assert (score.fields, score.query) == ({"a": 0, "near": 0.5}, 0.25)


def test_bare_texts_are_missing_fields_for_other_metrics() -> None:
    assert score_query("x", {"a": "x"}, task({"a": "exact_str_match"}, "dummy"), {}).query == 0
    assert score_query("[1]", {"a": "x"}, task({"a": "exact_str_match"}, None), {}).query == 0


def test_fields_that_weigh_nothing_leave_no_score() -> None:
    weights = {"function": "mean", "field_weights": {"a": 1, "b": 0}}
    spec = task({"a": "positive_int_match", "b": "exact_str_match"}, aggregation=weights)
    score = score_query("{'a': '0', 'b': 'x'}", {"a": "0", "b": "x"}, spec, {})
    assert score.query == -1
    assert "sum to zero" in score.scorer_errors[""]


def test_the_truth_decides_whether_prose_is_cut() -> None:
    spec = task({"a": "exact_str_match"}, "answer_string")
    assert score_query("cat\n\nbecause", {"a": "cat"}, spec, {}).query == 1
    assert score_query("cat\n\nbecause", {"a": "cat\n\nbecause"}, spec, {}).query == 1


@FUZZ
@given(reply_text)
def test_any_reply_gets_a_score(reply: str) -> None:
    spec = task({"a": "set_equality", "b": "dict_equality", "c": "nbbox_iou_tuple", "d": "positive_int_match"})
    score = score_query(reply, {"a": "1", "b": "{'x': 1}", "c": "(0, 0, 1, 1)", "d": "3"}, spec, {})
    assert score.query is not None
    assert 0 <= score.query <= 1
