"""LongVideoBench: letters in answers, gaps among options, parts, the file for the organisers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval.errors import ItemError
from lmms_eval.tasks.longvideobench.utils import (
    aggregate,
    doc_to_target,
    doc_to_text,
    letter,
    process_results,
    write_submission,
)
from lmms_eval.utils.answer_reading import scoring_notes
from tests.cases import for_each

DOC: dict[str, Any] = {
    "id": "v_0", "video_id": "v", "video_path": "v.mp4", "question": "What?", "duration_group": 15,
    "question_category": "S2E", "correct_choice": 1, "option0": "x", "option1": "y", "option2": "N/A", "option3": "N/A",
    "option4": "N/A",
}  # fmt: skip


@for_each(("answer", "read"), [("The answer is B", "B"), ("Dogs", "D"), ("I think (E)", "E"), ("<think>C", "C")])
def test_the_first_capital_counts(answer: str, read: str) -> None:
    assert letter(answer, "AB") == read


@for_each("answer", ["", "I do not know", "х" * 100_000])
def test_a_letter_of_an_option_is_drawn_where_there_is_none(answer: str) -> None:
    with scoring_notes() as chance:
        drawn = letter(answer, "AB")
    assert chance.drew
    assert drawn == letter(answer, "AB")
    assert drawn in "AB"


def test_the_prompt_skips_what_is_no_option() -> None:
    assert doc_to_text({**DOC, "option2": "z"}, {"post_prompt": "Go"}) == "What?\nA. x\nB. y\nC. z\nGo"
    assert doc_to_text({**DOC, "option3": "z", "option4": None}) == "What?\nA. x\nB. y\nC. z\n"


@for_each("change", [{"correct_choice": 2}, {"correct_choice": -1}, {"option0": "N/A"}, {"option1": None}])
def test_a_reference_that_is_no_option_fails_its_document(change: dict[str, Any]) -> None:
    with pytest.raises(ItemError, match="column 'correct_choice' holds"):
        doc_to_target({**DOC, **change})


def test_parts_count_documents() -> None:
    made = aggregate([process_results(DOC, [answer])["lvb_acc"] for answer in ("B", "A", "A")])
    assert made.value == 0.33333
    part = made.sub_scores["duration_group"]["15"]
    assert (part.n, part.value) == (3, 0.33333)
    assert aggregate([]).value is None


def test_answers_are_written_by_question(tmp_path: Path) -> None:
    write_submission([{"a": "B. y"}, {"b": ""}], SimpleNamespace(output_path=str(tmp_path)))
    (file,) = tmp_path.rglob("*.json")
    assert (file.name, json.loads(file.read_text("utf-8"))) == (
        "longvideobench_test_for_submission.json", {"a": "B. y", "b": ""},
    )  # fmt: skip
