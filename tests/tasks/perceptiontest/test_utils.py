"""Perception Test: letters in answers, options of any number, and both ways to ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import ItemError
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.tasks.perceptiontest.utils import aggregate, doc_to_text, process_results
from tests.cases import for_each

DOC: dict[str, Any] = {
    "video_name": "v1", "question": "Where?", "options": ["x", "y", "z"], "answer_id": "1", "area": "memory",
    "reasoning": "descriptive",
}  # fmt: skip


@for_each(
    ("answer", "read"),
    [("B", 1), ("(B)", 1), ("b", -1), ("", -1), ("A dog is in B", 0), ("D", 3), ("E", -1), ("是 B", 1),
     ("x" * 100_000, -1), ("<think>B", 1)],
)  # fmt: skip
def test_the_first_capital_that_stands_alone_counts(answer: str, read: int) -> None:
    made = process_results(DOC, [answer])["accuracy"]
    assert made["pred_id"] == read
    assert made["extracted"] == ("" if read < 0 else "ABCD"[read])


def test_a_fourth_option_has_a_letter_of_its_own() -> None:
    assert "\nC. z\nD. w\n" in doc_to_text({**DOC, "options": [*DOC["options"], "w"]})


@for_each("answer_id", ["3", "-1", "B", None])
def test_a_reference_that_is_no_option_fails_its_document(answer_id: str | None) -> None:
    with pytest.raises(ItemError, match=f"column 'answer_id' holds '{answer_id}'"):
        process_results({**DOC, "answer_id": answer_id}, ["B"])


def test_parts_are_areas_and_kinds_of_reasoning() -> None:
    made = aggregate([process_results({**DOC, "area": area}, ["B"])["accuracy"] for area in ("memory", "physics")])
    assert (made.value, list(made.sub_scores)) == (1, ["area", "reasoning"])
    assert aggregate([]).value is None


@for_each("name", ["perceptiontest_val_mc", "perceptiontest_val_mcppl"])
def test_reference_answers_have_full_marks(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "PerceptionTest_Val" / "mc_question_val"
    folder.mkdir(parents=True)
    docs = [{**DOC, "answer_id": str(number % 3)} for number in range(3)]
    (folder / "validation.jsonl").write_text("".join(f"{json.dumps(doc)}\n" for doc in docs), "utf-8")
    made = simple_evaluate(
        model="baseline", model_args="strategy=gold", tasks=[name], data_root=str(tmp_path), no_media=True
    )
    assert made["results"][name]["accuracy,none"] == 1
