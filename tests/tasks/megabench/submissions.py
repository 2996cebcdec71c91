"""A small data set in MEGA-Bench's layout and submissions to it, for tests of the evaluator."""

from __future__ import annotations

import copy
from typing import Any

from lmms_eval.tasks.megabench.reference import ReferenceTask

INFO = {
    "field_score_function": {"answer": "exact_str_match"},
    "aggregation": {"function": "mean", "field_weights": {"answer": 1}},
    "response_parse_function": "answer_string",
}
JUDGED = {
    "field_score_function": {"answer": "gpt_4o_as_judge"},
    "aggregation": {"function": "mean", "field_weights": {"answer": 1}},
    "response_parse_function": "answer_string",
    "gpt4o_eval_configs": {
        "judge_model_type": "text",
        "eval_criteria_prompt": "Rate {reply} to {question}",
        "template_mapping": {"reply": "model_output", "question": "example_question"},
    },
}


def reference(name: str = "t", info: Any = INFO, queries: int = 2) -> ReferenceTask:
    return ReferenceTask(name, repr(info), ["{}"] * queries, {str(n + 1): n for n in range(queries)})


def query(number: int, response: Any = "Answer: x", **more: Any) -> dict[str, Any]:
    return {
        "response": response, "correct_answer": {"answer": "x"}, "global_idx": str(number), "images": [],
        "query_text": f"Question {number}?", **more,
    }  # fmt: skip


def entry(*queries: dict[str, Any], name: str = "t") -> dict[str, Any]:
    return {
        "task_name": name, "global_images": [], "global_description": "", "example_info": {},
        "query_response": copy.deepcopy(list(queries)),
    }  # fmt: skip
