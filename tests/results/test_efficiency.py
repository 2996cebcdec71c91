from __future__ import annotations

from pathlib import Path

from lmms_eval.results.document import efficiency
from tests.results.finished import task_result


def test_tokens_per_document_and_per_right_answer(tmp_path: Path) -> None:
    tasks = [task_result(tmp_path, "a", [1.0, 1.0, 0.0, -3.0]), task_result(tmp_path, "b", [0.0, 0.0])]
    found = efficiency(tasks)
    assert found["by_task"]["a"] == {
        "docs": 4.0, "docs_with_token_counts": 4.0, "total_input_tokens": 12.0, "total_output_tokens": 8.0,
        "total_tokens": 20.0, "total_correct_score": 2.0, "avg_output_tokens_per_sample": 2.0,
        "tokens_per_correct_answer": 4.0,
    }  # fmt: skip
    assert found["by_task"]["b"]["tokens_per_correct_answer"] is None
    assert found["overall"]["docs"] == 6.0
    assert found["overall"]["tokens_per_correct_answer"] == 6.0


def test_no_documents_divide_by_nothing() -> None:
    assert efficiency([]) == {
        "by_task": {},
        "overall": {
            "docs": 0.0, "docs_with_token_counts": 0.0, "total_input_tokens": 0.0, "total_output_tokens": 0.0,
            "total_tokens": 0.0, "total_correct_score": 0.0, "avg_output_tokens_per_sample": 0.0,
            "tokens_per_correct_answer": None,
        },
    }  # fmt: skip
