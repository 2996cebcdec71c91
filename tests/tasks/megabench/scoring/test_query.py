import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from lmms_eval.api.judging import Verdict
from lmms_eval.tasks.megabench.scoring.query import FixedScore, parse_reply, read_context, score_query
from lmms_eval.tasks.megabench.scoring.task_spec import TaskSpec, parse_task_spec
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, reply_text


def task(metrics: dict[str, str | None], parser: str | None = "json", **changes: Any) -> TaskSpec:
    info = {
        "field_score_function": metrics,
        "aggregation": {"function": "mean", "field_weights": dict.fromkeys([*metrics, "near"], 1)},
        "response_parse_function": parser,
    }
    return parse_task_spec(info | changes, "task", [name for name in metrics if name])


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


@for_each("value", ["{'a': ", "[1]", "", None, 5])
def test_malformed_contexts_are_empty(value: Any) -> None:
    assert read_context(value) == {}


@for_each(
    ("metric", "context", "reason"),
    [
        ("constrained_generation", {"contain": "[x]"}, "NLTK's data punkt_tab and wordnet not found"),
        ("ascii_art_gpt4o_judge", {}, "a judge model is needed"),
    ],
)
def test_what_cannot_be_evaluated_is_not_zero(
    metric: str, context: dict[str, str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    score = score_query("x", {"a": "x", "b": "x"}, task({"a": metric, "b": "exact_str_match"}), context)
    assert score.query is None
    assert score.fields == {"b": 1}
    assert list(score.not_evaluated) == ["a"] and reason in score.not_evaluated["a"]
    assert score.as_dict()["info"] == {"a": f"not evaluated: {score.not_evaluated['a']}"}


def test_auxiliary_metrics_join_the_fields() -> None:
    spec = task({"a": "exact_str_match"}, global_aux_metrics={"near": "dict_precision"})
    score = score_query("{'a': 'y', 'z': '1'}", {"a": "x", "z": "1"}, spec, {})
    assert (score.fields, score.query) == ({"a": 0, "near": 0.5}, 0.25)


def test_bare_texts_are_missing_fields_for_other_metrics() -> None:
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
    for truth in ("cat\x0b\nbecause", "cat\u2028because", "cat\n"):
        assert score_query("cat\n\nbecause", {"a": truth}, spec, {}).query == 0
    assert parse_reply("cat\n\nbecause", {"a": "cat\u2028because"}, spec) == {"a": "cat\n\nbecause"}
    assert parse_reply("cat\n\nbecause", {"a": "cat\u2003"}, spec) == {"a": "cat"}


def test_a_fixed_score_stands_beside_the_official_one() -> None:
    score = score_query("**Answer:** B", {"a": "B"}, task({"a": "exact_str_match"}, "answer_string"), {})
    assert score.as_dict() == {
        "field": {"a": 0},
        "info": {},
        "query": 0,
        "fixed": {"field": {"a": 1}, "query": 1},
    }


@for_each("reply", ["**Answer: B**", "Answer: B", "**Answer:** C", "Answer: C", "", None])
def test_without_a_difference_there_is_no_fixed_score(reply: str | None) -> None:
    score = score_query(reply, {"a": "B"}, task({"a": "exact_str_match"}, "answer_string"), {})
    assert score.fixed is None
    assert "fixed" not in score.as_dict()


def test_a_fixed_score_names_the_fields_that_differ_and_counts_all() -> None:
    spec = task({"a": "positive_int_match", "b": "exact_str_match"})
    score = score_query("{'a': 3, 'b': 'y'}", {"a": "3", "b": "x"}, spec, {})
    assert (score.fields, score.query) == ({"a": 0, "b": 0}, 0)
    assert score.fixed == FixedScore({"a": 1}, 0.5)


def test_a_json_reply_over_several_lines_is_read_for_the_fixed_score() -> None:
    spec = task({"a": "exact_str_match", "b": "set_precision"})
    answer = {"a": "x", "b": "1, 2"}
    reply = "Answer: {\n'a': 'x',\n'b': '1, 2'\n}"
    score = score_query(reply, answer, spec, {})
    assert score.query is not None
    assert score.query < 1
    assert score.fixed is not None
    assert score.fixed.query == 1


def test_auxiliary_metrics_are_fixed_with_the_reply() -> None:
    spec = task({"a": "exact_str_match"}, global_aux_metrics={"near": "dict_precision"})
    score = score_query("Answer: {\n'a': 'x'}", {"a": "x"}, spec, {})
    assert score.query == 0
    assert score.fixed == FixedScore({"a": 1, "near": 1}, 1)


def test_judged_fields_keep_their_verdict_in_the_fixed_score() -> None:
    spec = task(
        {"a": "ascii_art_gpt4o_judge", "b": "exact_str_match"},
    )
    said = {"a": Verdict("a", "yes", accepted=True, model="scripted")}
    score = score_query("Answer: {\n'a': 'o',\n'b': 'x'}", {"a": "o", "b": "x"}, spec, {}, said)
    assert score.fixed is not None
    assert set(score.fixed.fields) == {"b"}
    assert score.fixed.query == (score.fields["a"] + 1) / 2


def test_a_query_without_an_official_score_has_no_fixed_one() -> None:
    spec = task({"a": "ascii_art_gpt4o_judge", "b": "exact_str_match"})
    score = score_query("Answer: {\n'a': 'o',\n'b': 'x'}", {"a": "o", "b": "x"}, spec, {})
    assert (score.query, score.fixed) == (None, None)


def test_planning_and_numbers_are_fixed_through_their_metrics() -> None:
    context = {
        "domain_pddl": "(define (domain d) (:action go :parameters (?a) :precondition (at ?a) :effect (gone ?a)))",
        "task_pddl": "(define (problem p) (:init (at x)) (:goal (gone x)))",
    }
    score = score_query("Answer: (go x)", {"a": ""}, task({"a": "symbolic_planning_test"}, "answer_string"), context)
    assert (score.query, score.fixed) == (0, FixedScore({"a": 1}, 1))
    spec = task({"a": "general_single_numerical_match"}, "answer_string")
    score = score_query("Answer: 1.2e3", {"a": "1200"}, spec, {})
    assert (score.query, score.fixed) == (0, FixedScore({"a": 1}, 1))


def test_an_excluded_query_may_get_a_fixed_score_and_the_reverse() -> None:
    spec = task({"a": "positive_int_match"}, "answer_string")
    assert score_query("**Answer:** -1", {"a": "0"}, spec, {}).fixed == FixedScore({"a": -1}, -1)
    score = score_query("**Answer:** 3", {"a": "3"}, spec, {})
    assert (score.query, score.fixed) == (0, FixedScore({"a": 1}, 1))


@FUZZ
@given(reply_text, reply_text)
def test_the_fixed_score_is_a_score_that_differs(reply: str, truth: str) -> None:
    spec = task({"a": "set_equality", "b": "set_precision", "c": "jaccard_index", "d": "positive_int_match"})
    score = score_query(reply, dict.fromkeys("abcd", truth), spec, {})
    if score.fixed is not None:
        assert score.fixed.fields
        assert all(score.fields[field] != value for field, value in score.fixed.fields.items())
        assert score.fixed.query == -1 or 0 <= score.fixed.query <= 1


@FUZZ
@given(reply_text)
def test_any_reply_gets_a_score(reply: str) -> None:
    spec = task({"a": "set_equality", "b": "dict_equality", "c": "nbbox_iou_tuple", "d": "positive_int_match"})
    score = score_query(reply, {"a": "1", "b": "{'x': 1}", "c": "(0, 0, 1, 1)", "d": "3"}, spec, {})
    assert score.query is not None
    assert 0 <= score.query <= 1
