from typing import Any

import pytest

from lmms_eval.errors import ItemError
from lmms_eval.tasks.air_bench.utils import aggregate, doc_to_gold, doc_to_text, process_results
from lmms_eval.utils.answer_reading import scoring_notes
from tests.cases import for_each

DOC: dict[str, Any] = {
    "question": "Which?", "choice_a": "dog", "choice_b": "cat", "choice_c": None, "choice_d": "", "answer_gt": "cat",
    "task_name": "t", "uniq_id": 7,
}  # fmt: skip


def test_choices_that_are_missing_get_no_line() -> None:
    assert doc_to_text(DOC, {"post_prompt": "\nLetter."}) == "Which?\nA. dog\nB. cat\n\nLetter."


def test_a_letter_that_the_question_lacks_is_drawn_like_none() -> None:
    with scoring_notes() as chance:
        made = process_results(DOC, ["D"])
    assert chance.drew and made["submission"]["7"] in ("A", "B")


@for_each("answer", ["", "我不知道", "<think>cat", "z" * 100_000])
def test_an_answer_without_a_letter_is_scored(answer: str) -> None:
    assert process_results(DOC, [answer])["accuracy"]["score"] in (0.0, 1.0)


def test_the_reference_answer_is_right() -> None:
    with scoring_notes() as chance:
        made = process_results(DOC, [doc_to_gold(DOC)])
    assert (made["accuracy"]["score"], chance.drew) == (1.0, False)


def test_documents_without_choices_or_without_the_answer_fail() -> None:
    with pytest.raises(ItemError, match="choice_a"):
        doc_to_text({"question": "Which?"})
    with pytest.raises(ItemError, match="'cow'"):
        process_results({**DOC, "answer_gt": "cow"}, ["A"])


def test_numbers_have_five_decimals() -> None:
    made = aggregate([{"score": score, "task": "t"} for score in (1.0, 1.0, 0.0)])
    assert made.value == made.sub_scores["task"]["t"].value == 0.66667
    assert aggregate([]).value is None


@for_each(("held", "name"), [(7, "7"), ("7", "7"), ("bird_7", "bird_7")])
def test_the_id_is_a_text_or_a_whole_number(held: Any, name: str) -> None:
    assert list(process_results({**DOC, "uniq_id": held}, ["B"])["submission"]) == [name]


@for_each("held", [None, 1.5, ["7"], False])
def test_an_id_of_another_type_is_refused_by_its_type(held: Any) -> None:
    with pytest.raises(ItemError, match=rf"column 'uniq_id' holds .*\({type(held).__name__}\)"):
        process_results({**DOC, "uniq_id": held}, ["B"])
