"""The adapters of MEGA-Bench's lines see what a wrong product or a wrong vector would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cases import for_each
from tests.parity.replay import line_state

PARSERS = "megabench/parsers.jsonl"
TASKS = "megabench/end_to_end.jsonl"
JUDGED = "megabench/judge_metrics.jsonl"
NOTHING = {"macro_mean_score": 0.0, "micro_mean_score": 0.0, "num_tasks": 0, "num_queries": 0}
ONE = {"macro_mean_score": 1.0, "micro_mean_score": 1.0, "num_tasks": 1, "num_queries": 1}
RIGHT = {"samples": [{"field": {"a": 1}, "query": 1.0, "info": {}}], "task_score": 1.0, "mean_task_score": 1.0,
         "eval_type": "rule"}  # fmt: skip


@for_each(
    ("parser", "expected", "state"),
    [
        ("no_such_parser", {"error": "ValueError"}, "passed"),
        ("answer_string", {"error": "ValueError"}, "failed"),
        ("no_such_parser", {"a": "x"}, "failed"),
        ("Answer_String", {"a": "x"}, "passed"),
        ("answer_string", {"a": "y"}, "failed"),
    ],
)
def test_an_unknown_parser_is_refused_with_the_scoring_of_the_task(
    tmp_path: Path, parser: str, expected: Any, state: str
) -> None:
    line = {"parser": parser, "response": "Answer: x", "answer_key": "a", "expected": expected}
    assert line_state(tmp_path, PARSERS, line) == state


@for_each(("wanted", "state"), [({"a": ""}, "megabench_reply_none_is_empty"), ({"a": "x"}, "failed")])
def test_a_corrected_parse_counts_as_its_deviation(tmp_path: Path, wanted: Any, state: str) -> None:
    rule = {"wanted": wanted, "deviation": "megabench_reply_none_is_empty"}
    line = {"parser": "answer_string", "response": None, "answer_key": "a", "expected": {"error": "AttributeError"}}
    assert line_state(tmp_path, PARSERS, line | rule) == state


def metric_info(metric: str = "exact_str_match", parser: str | None = "answer_string") -> dict[str, Any]:
    return {
        "field_score_function": {"a": metric},
        "aggregation": {"function": "mean", "field_weights": {"a": 1}},
        "response_parse_function": parser,
    }


def entry(name: str, *queries: dict[str, Any]) -> dict[str, Any]:
    return {"task_name": name, "example_info": {"image_paths": [], "example_text": ""}, "query_response": list(queries)}


def query(answer: Any = "x", response: Any = "Answer: x") -> dict[str, Any]:
    return {"correct_answer": {"a": answer}, "global_idx": 1, "images": [], "query_text": "q", "response": response}


def task(*queries: dict[str, Any], **changes: Any) -> dict[str, Any]:
    whole = {"kind": "task", "label": "vector", "submission": entry("task_x", *queries), "metric_info": metric_info()}
    return {**whole, "eval_contexts": [{}] * len(queries), **changes}


def run(*entries: dict[str, Any], **changes: Any) -> dict[str, Any]:
    infos = {item["task_name"]: metric_info() for item in entries}
    return {"kind": "run", "label": "vector", "submission": list(entries), "metric_infos": infos, **changes}


@for_each(
    ("line", "state"),
    [
        (task(expected={"samples": []}, expected_summary=NOTHING), "passed"),
        (task(expected={"samples": [], "skipped": True}, expected_summary=NOTHING), "passed"),
        (task(expected={"samples": []}, expected_summary=ONE), "failed"),
        (task(expected={"samples": [], "task_score": 0.0}, expected_summary=NOTHING), "failed"),
        (task(expected={"samples": [], "eval_type": "rule"}, expected_summary=NOTHING), "failed"),
        (task(expected={"samples": []}, expected_summary=NOTHING, metric_info={}), "passed"),
        (task(expected={"error": "IndexError"}, error_class="config"), "failed"),
        (task(expected={"error": "IndexError"}, error_class="sample"), "failed"),
        (run(entry("t1"), expected=[{"samples": []}], expected_summary=NOTHING), "passed"),
        (run(entry("t1"), expected=[{"samples": [], "mean_task_score": 0.0}], expected_summary=NOTHING), "failed"),
        (run(entry("t1"), entry("t2", query()), expected=[{"samples": []}, RIGHT], expected_summary=ONE), "passed"),
        (run(entry("t1"), entry("t2", query()), expected=[RIGHT, {"samples": []}], expected_summary=ONE), "failed"),
        (run(entry("t1"), entry("t2", query()), expected=[{"samples": []}, RIGHT], expected_summary=NOTHING), "failed"),
    ],
)
def test_tasks_without_queries_are_skipped_and_in_no_count(tmp_path: Path, line: dict[str, Any], state: str) -> None:
    assert line_state(tmp_path, TASKS, line) == state


@for_each(
    ("line", "state"),
    [
        (task(query(), expected=RIGHT, expected_summary=ONE), "passed"),
        (task(query("y"), expected=RIGHT, expected_summary=ONE), "failed"),
        (task(query(), expected=RIGHT, expected_summary=NOTHING), "failed"),
        (task(query(), expected={**RIGHT, "eval_type": "llm"}, expected_summary=ONE), "failed"),
        (task(query(), expected={"error": "KeyError"}, error_class="config"), "failed"),
        (task(query(), expected={"error": "KeyError"}, error_class="config", metric_info=metric_info("n")), "passed"),
        (task(query(), expected={"error": "KeyError"}, error_class="sample"), "failed"),
        (
            task(query(), expected={"error": "AttributeError"}, error_class="sample",
                 metric_info=metric_info("dict_equality", None)),
            "megabench_sample_error_is_zero",
        ),
        (task(query(), expected=RIGHT, expected_summary=ONE, metric_info=metric_info("n")), "failed"),
        (task(query(), expected=RIGHT, metric_info=None, recommended="none", expected_upstream={}), "passed"),
        (task(query(), expected=RIGHT, recommended="none", expected_upstream={}), "failed"),
    ],
)  # fmt: skip
def test_tasks_go_through_the_evaluator(tmp_path: Path, line: dict[str, Any], state: str) -> None:
    assert line_state(tmp_path, TASKS, line) == state


RULE = "megabench_truth_that_is_no_text_is_single_line"


@for_each(
    ("changes", "state"),
    [({}, RULE), ({"wanted": {**RIGHT, "task_score": 0.5}}, "failed"), ({"wanted_summary": NOTHING}, "failed")],
)
def test_a_corrected_task_counts_as_its_deviation(tmp_path: Path, changes: dict[str, Any], state: str) -> None:
    """Also where the record calls the reference's crash that of a sample or of the configuration."""
    for kind in ("sample", "config"):
        line = task(query(), expected={"error": "TypeError"}, error_class=kind, deviation=RULE)
        line |= {"wanted": RIGHT, "wanted_summary": ONE, **changes}
        assert line_state(tmp_path, TASKS, line) == state


@for_each(("wanted", "state"), [(0, "megabench_judge_reply_without_choices_is_empty"), (1, "failed")])
def test_a_judge_reply_without_choices_is_empty(tmp_path: Path, wanted: int, state: str) -> None:
    line = {"metric": "ascii_art_gpt4o_judge", "response": "<><", "correct_answer": "/\\", "judge_output": None,
            "judge_calls": 1, "expected": {"error": "IndexError"}, "wanted": wanted,
            "deviation": "megabench_judge_reply_without_choices_is_empty"}  # fmt: skip
    assert line_state(tmp_path, JUDGED, line) == state
