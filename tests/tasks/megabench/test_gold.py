from __future__ import annotations

import json
from typing import Any

from lmms_eval.tasks.megabench.data import parse_row
from lmms_eval.tasks.megabench.scoring.task_spec import parse_task_spec
from lmms_eval.tasks.megabench.utils import right_reply
from tests.cases import for_each
from tests.tasks.megabench.rows_for_tests import document


def reply(answer: dict[str, Any], metric: str, parser: str) -> str:
    info = {
        "field_score_function": dict.fromkeys(answer, metric),
        "aggregation": {"function": "mean", "field_weights": dict.fromkeys(answer, 1)},
        "response_parse_function": parser,
    }
    row = parse_row(document(answer=answer, metric_info=info))
    return right_reply(row, parse_task_spec(row.metric_info, row.task_name, tuple(row.answer)))


@for_each(
    ("answer", "metric", "expected"),
    [
        ("yes", "exact_str_match", "Answer: yes"),
        ("['one', 'two']", "multi_ref_phrase", "Answer: one"),
        ("[1, 2]", "sequence_equality", "Answer: [1, 2]"),
        ("", "multi_ref_phrase", "Answer: "),
    ],
)
def test_single_fields_are_answer_lines(answer: str, metric: str, expected: str) -> None:
    assert reply({"answer": answer}, metric, "answer_string") == expected


def test_several_fields_are_json() -> None:
    answer = {"a": "ä", "b": {"c": "d"}}
    assert json.loads(reply(answer, "exact_str_match", "json")) == answer
