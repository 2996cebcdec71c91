from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.compare.readers import read_runs
from lmms_eval.errors import DataError

# A line that the classes of evalscope 1.14.1 (ReviewResult.model_dump_json) wrote.
LINE = (
    '{"index":0,"target":["a"],"messages":[{"id":"x","content":"Which?","source":null,"metadata":null,"internal":null,'
    '"role":"user","tool_call_id":null}],"agent_trace":null,"sample_score":{"score":{"value":{"acc":true,"f1":0.5},'
    '"status":"success","judge_summary":null,"extracted_prediction":"A","prediction":"the A","explanation":null,'
    '"metadata":{},"main_score_name":null},"sample_id":0,"group_id":0,"generation_index":0,"sample_metadata":'
    '{"topic":"x"}}}'
)


def review(index: int, document: int, acc: Any, status: str = "success") -> str:
    line = json.loads(LINE)
    line["index"] = index
    line["sample_score"] |= {"sample_id": index, "group_id": document}
    line["sample_score"]["score"] |= {"value": {"acc": acc}, "status": status}
    return json.dumps(line)


def reviews(folder: Path, *lines: str) -> Path:
    path = folder / "reviews" / "some-model" / "quiz_main.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines))
    return path


def test_a_review_is_a_row(tmp_path: Path) -> None:
    (run,) = read_runs([str(reviews(tmp_path, LINE))])
    task = run.tasks["quiz_main"]
    assert (run.name, run.kind, run.notes) == ("some-model", "evalscope", ())
    assert {name: column.scores.tolist() for name, column in task.columns.items()} == {
        "acc,none": [1.0],
        "f1,none": [0.5],
    }
    answer = task.answer(0)
    assert answer is not None
    assert (answer.text, answer.target, answer.prompt) == ("the A", "a", "Which?")
    assert task.raw("acc,none", 0) is True


def test_answers_of_one_document_are_averaged_and_others_are_told_apart(tmp_path: Path) -> None:
    lines = [
        review(0, 0, 1),
        review(1, 0, 0),
        review(2, 1, 0, "transport_error"),
        review(3, 2, 0, "parse_error"),
        review(4, 3, None),
    ]
    (run,) = read_runs([str(reviews(tmp_path, *lines))])
    task = run.tasks["quiz_main"]
    assert list(task.ids) == ["0", "1", "2", "3"]
    assert task.statuses == ["scored", "failed", "unscored", "unscored"]
    np.testing.assert_array_equal(task.columns["acc,none"].scores, [0.5, np.nan, np.nan, np.nan])
    assert task.metadata() == {"topic": ["x"] * 4}
    assert len(run.notes) == 3


def test_the_reviews_of_a_model_are_one_run(tmp_path: Path) -> None:
    path = reviews(tmp_path, LINE)
    (path.parent / "other.jsonl").write_text(LINE)
    for folder in (path.parent, tmp_path):
        (run,) = read_runs([str(folder)])
        assert (run.name, list(run.tasks)) == ("some-model", ["other", "quiz_main"])


def test_a_line_that_is_no_review_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"quiz_main.jsonl, line 2: not a review"):
        read_runs([str(reviews(tmp_path, LINE, '{"index": 1, "sample_score": 3}'))])
