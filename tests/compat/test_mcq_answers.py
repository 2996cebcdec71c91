from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.metrics.answers import extract_mcq_answer
from tests.cases import for_each


@given(st.text(), st.lists(st.sampled_from("ABCDEFG"), max_size=5))
def test_the_answer_is_a_choice_that_occurs(text: str, choices: list[str]) -> None:
    answer = extract_mcq_answer(text, choices)
    letters = choices or list("ABCDEFGH")
    assert answer == "" or (answer in letters and answer in text)
    assert bool(answer) == any(letter in text for letter in letters)


@for_each(
    ("text", "answer"),
    [
        ("B, or (A)", "B"),
        ("(A) is wrong: C", "C"),
        ("(A) is wrong, the answer is D here", "D"),
        ("It is (B), not A. at all", "B"),
        ("It is B. not A: at all", "B"),
        ("It is B: not A) at all", "B"),
        ("It is B) not A at all", "B"),
        ("mid A-x B-x", "B"),
        ("none of them", ""),
        ("the answer is b", ""),
        (None, ""),
        (" . ", ""),
    ],
)
def test_the_clearest_sign_wins(text: str | None, answer: str) -> None:
    assert extract_mcq_answer(text) == answer


def test_of_equal_signs_the_last_in_the_text_wins() -> None:
    assert extract_mcq_answer("I choose D because A is wrong") == "A"
    assert extract_mcq_answer("either (B) or (A) here") == "A"


def test_of_choices_at_one_place_the_first_given_wins() -> None:
    assert extract_mcq_answer("A1 it is", ["A1", "A"]) == "A1"
    assert extract_mcq_answer("A1 it is", ["A", "A1"]) == "A"


def test_a_phrase_in_another_language() -> None:
    assert extract_mcq_answer("正确答案是C,不是前面的那个") == "C"
    assert extract_mcq_answer("정답은 B 입니다") == "B"
