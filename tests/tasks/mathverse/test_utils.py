"""MathVerse: a judge's reply is the score, and parts stand beside it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from PIL import Image

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Unscored
from lmms_eval.tasks.mathverse.utils import doc_to_text, doc_to_visual, process_results, write_records
from tests.cases import for_each

DOC: dict[str, Any] = {
    "problem_version": "Text Lite", "question_for_eval": "Find x.", "answer": "12", "query_wo": " Find x. ",
    "query_cot": "Think.", "image": "", "metadata": {"split": "testmini", "subfield": "Angle"},
}  # fmt: skip


def scored(reply: str | None, **changes: Any) -> dict[str, Any]:
    verdict = Verdict("binary", reply, reply is not None, "j", error=None if reply else "timeout")
    return process_results({**DOC, **changes}, [" 12\n"], {"binary": verdict})


@for_each(("reply", "official", "fixed"), [("1", 1, 1), ("0 (not 1)", 1, 0), ("no", 0, 0)])
def test_a_one_anywhere_counts_and_the_fixed_reading_stands_beside(reply: str, official: int, fixed: int) -> None:
    found = scored(reply)
    assert (found["gpt_eval_score"], found["gpt_eval_score_fixed"]) == (official, fixed)
    assert found["submission"]["prediction"] == "12"
    assert "image" not in found["submission"]


def test_a_dead_judge_is_not_a_wrong_answer() -> None:
    found = scored(None)
    assert found["gpt_eval_score"] == Unscored("the judge gave no reply: timeout")
    assert found["submission"]["true_false"] is None


def test_text_only_problems_have_no_picture() -> None:
    assert doc_to_visual(DOC) == []
    (picture,) = doc_to_visual({**DOC, "image": Image.new("L", (2, 2))})
    assert picture.mode == "RGB"


def test_the_query_is_a_setting() -> None:
    assert doc_to_text(DOC) == "Find x."
    assert doc_to_text(DOC, {"query_type": "query_cot"}) == "Think."


def test_records_are_written_and_their_parts_scored(tmp_path: Path) -> None:
    rows = [scored("1"), scored("0"), scored("1", problem_version="Vision Only"), scored(None)]
    records = [row["submission"] for row in rows]
    args, task = SimpleNamespace(output_path=str(tmp_path)), SimpleNamespace(name="mathverse_testmini")
    found = write_records(records, args, task)
    versions = {name: (one.value, one.n) for name, one in found.sub_scores["problem_version"].items()}
    assert versions == {"Text Lite": (0.5, 2), "Vision Only": (1.0, 1)}
    (path,) = tmp_path.rglob("*.json")
    assert path.name == "mathverse_testmini_results.json"
    assert json.loads(path.read_text("utf-8")) == records
    assert write_records([], args, task).value is None
