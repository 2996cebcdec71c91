from __future__ import annotations

import pytest

from lmms_eval.errors import ItemError
from lmms_eval.tasks.mlvu import utils
from tests.cases import for_each

DOC = {"question": "Which?", "task_type": "count", "answer": "E", "candidates": "['a', 'b', 'c', 'd', 'e', 'f']"}


def row(kind: str, said: str) -> dict[str, str]:
    return {"task_type": kind, "pred_answer": said, "answer": "A"}


def test_letters_beyond_d_are_known_to_the_fixed_metric_alone() -> None:
    scored = utils.process_results(DOC, ["E"])
    assert {name: one["score"] for name, one in scored.items()} == {
        "mlvu_percetion_score": 0.0, "mlvu_perception_score": 0.0, "mlvu_percetion_score_fixed": 1.0,
    }  # fmt: skip
    four = utils.process_results(DOC | {"candidates": None, "answer": "B"}, ["B"])
    assert four["mlvu_percetion_score_fixed"]["score"] == 1.0


@for_each("candidates", ["a, b", "", 3, {"A": "a"}, "[", None])
def test_candidates_that_are_no_list_leave_the_letters_of_the_rule(candidates: object) -> None:
    scored = utils.process_results(DOC | {"candidates": candidates, "answer": "D"}, ["D"])
    assert {name: row["score"] for name, row in scored.items()} == dict.fromkeys(scored, 1.0)
    scored = utils.process_results({**DOC, "candidates": candidates}, ["E"])
    assert scored["mlvu_percetion_score_fixed"]["score"] == 0


@for_each("column", ["answer", "task_type"])
def test_an_answer_or_type_that_is_no_text_is_named_with_its_type(column: str) -> None:
    with pytest.raises(ItemError, match=rf"column '{column}' holds 3 \(int\)"):
        utils.process_results(DOC | {column: 3}, ["E"])


def test_the_mean_is_over_the_types_that_have_documents() -> None:
    made = utils.aggregate_dev(
        [row("count", "A"), row("count", "A"), row("count", "B"), row("ego", "B"), row("new", "A")]
    )
    assert made.value == pytest.approx(100 / 3)
    assert [note.split(" ", 2)[:2] for note in made.notes] == [["absent_types:", "5"], ["unknown_types:", "1"]]


def test_nothing_but_unknown_types_has_no_value() -> None:
    made = utils.aggregate_dev([row("sportsQA", "A")])
    assert made.value is None and "sportsQA" in made.notes[1]
    assert utils.aggregate_test([row("sportsQA", "A")]).value == 100
