import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.metrics.vqa import answer_accuracy, normalised, without_punctuation
from tests.cases import for_each


@for_each(
    ("text", "wanted"),
    [
        ("The Two dogs.", "2 dogs"),
        ("dont", "don't"),
        ("it's", "it 's"),
        ("1,000", "1000"),
        ("3.5", "3.5"),
        ("a/b", "b"),
        ("", ""),
    ],
)
def test_answers_take_a_plain_form(text: str, wanted: str) -> None:
    assert normalised(text) == wanted


def test_the_script_of_vqav2_leaves_out_the_first_step() -> None:
    assert normalised("it's", has_words_apart=False) == "it's"


def test_full_stops_are_counted_from_the_left() -> None:
    assert without_punctuation("a.b.c.", 2) == "abc."
    assert without_punctuation("a.b.c.") == "abc"


@for_each(("given_by", "score"), [(0, 0.0), (1, 0.3), (2, 0.6), (3, 0.9), (4, 1.0), (10, 1.0)])
def test_an_answer_of_some_of_ten_people(given_by: int, score: float) -> None:
    people = ["red"] * given_by + [f"other {number}" for number in range(10 - given_by)]
    assert answer_accuracy("red", people) == pytest.approx(score)


def test_nothing_is_right_without_people() -> None:
    assert answer_accuracy("red", []) == 0.0


@given(st.text(max_size=40), st.lists(st.text(max_size=3), max_size=10))
def test_any_text_is_scored(text: str, people: list[str]) -> None:
    assert 0.0 <= answer_accuracy(normalised(text), people) <= 1.0
