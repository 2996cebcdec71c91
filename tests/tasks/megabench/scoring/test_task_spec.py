import math
from typing import Any

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks.megabench.scoring.task_spec import TaskSpec, parse_task_spec
from tests.cases import for_each

JUDGE = {
    "judge_model_type": "with image",
    "eval_criteria_prompt": "Rate {{strictly}}. {question} {reference} {reply}",
    "template_mapping": {"question": "example_question", "reference": "answers.a", "reply": "model_output"},
}


def metric_info(**changes: Any) -> dict[str, Any]:
    return {
        "field_score_function": {"a": "exact_str_match"},
        "aggregation": {"function": "mean", "field_weights": {"a": 1}},
        "response_parse_function": "answer_string",
    } | changes


def parse(info: Any, fields: tuple[str, ...] = ("a",)) -> TaskSpec:
    return parse_task_spec(info, "my_task", fields)


def test_reads_the_python_literal() -> None:
    scoring = parse(str(metric_info()))
    assert scoring.metrics["a"].name == "exact_str_match"
    assert (scoring.parser, scoring.aggregation, scoring.answer_field) == ("answer_string", "mean", "a")
    assert scoring.eval_type == "rule"


def test_names_are_case_insensitive_and_null_is_unsupported() -> None:
    scoring = parse(
        metric_info(
            field_score_function={"a": None, "b": "Exact_Str_Match"},
            aggregation={"function": None, "field_weights": {}},
            response_parse_function=None,
        )
    )
    assert list(scoring.metrics) == ["b"]
    assert (scoring.parser, scoring.aggregation) == ("unsupported", "unsupported")


def test_without_a_parser_the_reply_is_taken_whole() -> None:
    info = metric_info(field_score_function={"a": "constrained_generation"})
    del info["response_parse_function"]
    assert parse(info).parser == "dummy"


@pytest.mark.parametrize("parser", [{"response_parse_function": "Dummy"}, {}])
def test_a_bare_reply_serves_no_metric_that_needs_a_field(parser: dict[str, str]) -> None:
    for metric in ("exact_str_match", "ascii_art_gpt4o_judge"):
        info = metric_info(field_score_function={"a": metric, "b": "exact_str_match"})
        del info["response_parse_function"]
        with pytest.raises(TaskError, match=f"my_task.*parser dummy.*'a'.*{metric}"):
            parse(info | parser)
    phantom = {"a": "gpt_4o_as_judge", "": "exact_str_match"}
    assert parse(metric_info(field_score_function=phantom, gpt4o_eval_configs=JUDGE) | parser).judge is not None


def test_without_a_table_of_metrics_nothing_is_scored() -> None:
    info = metric_info()
    del info["field_score_function"]
    assert parse(info).metrics == {}


@for_each("weights", [None, "equal", {"a": "many"}, {"a": math.inf}, {"a": 0}, {}])
@for_each("function", ["min", "MIN", None])
def test_only_a_mean_reads_weights(function: str | None, weights: Any) -> None:
    found = parse(metric_info(aggregation={"function": function, "field_weights": weights}))
    assert found == parse(metric_info(aggregation={"function": function}))
    assert found.weights == {}


def test_weights_of_fields_that_are_not_scored_are_not_read() -> None:
    weights = {"a": 2, "reason": "none", "b": None}
    assert parse(metric_info(aggregation={"function": "mean", "field_weights": weights})).weights == {"a": 2}


def test_notes_are_no_answer_fields() -> None:
    assert parse(metric_info(), ("##note", "a")).answer_field == "a"


def test_phantom_fields_need_no_weight() -> None:
    found = parse(metric_info(field_score_function={"a": "exact_str_match", "": "exact_str_match"}))
    assert found.weights == parse(metric_info()).weights == {"a": 1}


@for_each("metric", ["gpt_4o_as_judge", "ascii_art_gpt4o_judge"])
def test_judged_tasks_are_llm_tasks(metric: str) -> None:
    assert parse(metric_info(field_score_function={"a": metric}, gpt4o_eval_configs=JUDGE)).eval_type == "llm"


def test_the_judges_prompt_is_read() -> None:
    judge = parse(metric_info(field_score_function={"a": "gpt_4o_as_judge"}, gpt4o_eval_configs=JUDGE)).judge
    assert judge is not None
    assert judge.with_image
    assert judge.sources["reply"] == "model_output"


@for_each(
    ("changes", "message"),
    [
        ({"field_score_function": {"a": "fuzzy"}}, "fuzzy"),
        ({"field_score_function": None}, "field_score_function"),
        ({"aggregation": {"function": "mean", "field_weights": "equal"}}, "field_weights"),
        ({"aggregation": {"function": "mean", "field_weights": {"a": math.nan}}}, "must be a number"),
        ({"aggregation": {"function": "median", "field_weights": {"a": 1}}}, "median"),
        ({"aggregation": None}, "aggregation"),
        ({"response_parse_function": "yaml"}, "yaml"),
        ({"aggregation": {"function": "mean", "field_weights": {"b": 1}}}, "no weight for 'a'"),
        ({"aggregation": {"function": "mean", "field_weights": None}}, "no weight for 'a'"),
        ({"aggregation": {"function": "mean", "field_weights": {"a": 0}}}, "sum to zero"),
        ({"aggregation": {"function": "mean", "field_weights": {"a": "1"}}}, "must be a number"),
        ({"global_aux_metrics": {"near": "exact_str_match"}}, "no weight for 'near'"),
        ({"field_score_function": {"a": "gpt_4o_as_judge"}}, "gpt4o_eval_configs"),
        (
            {
                "field_score_function": {"a": "gpt_4o_as_judge"},
                "gpt4o_eval_configs": {"eval_criteria_prompt": "{q}", "template_mapping": {"q": "answers.nope"}},
            },
            "'q'",
        ),
        (
            {
                "field_score_function": {"a": "gpt_4o_as_judge"},
                "gpt4o_eval_configs": {"eval_criteria_prompt": "{", "template_mapping": {}},
            },
            "format string",
        ),
    ],
)
def test_malformed_configurations_name_the_task(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match="my_task") as refused:
        parse(metric_info(**changes))
    assert message in str(refused.value)


def test_string_parsers_need_one_field() -> None:
    for fields in ((), ("a", "b")):
        with pytest.raises(TaskError, match="exactly one answer field"):
            parse(metric_info(field_score_function={}), fields)


@for_each("info", ["{'a': ", "[1]", None])
def test_unreadable_configurations(info: Any) -> None:
    with pytest.raises(TaskError, match="metric_info"):
        parse(info)
