from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks._task_utils.reasoning_utils import parse_mcq, relax_exact_match

ANSWERS = st.text("ABCH abi.-_=():1238", max_size=30)


def test_a_number_before_the_letter_beats_a_phrase() -> None:
    assert parse_mcq("i choose C because 2. B is right") == "B"
    assert parse_mcq("i choose C because 2. C is right") == "C"
    assert parse_mcq(None) == ""


@given(text=ANSWERS)
def test_a_letter_is_found_where_there_is_one(text: str) -> None:
    letter = parse_mcq(text)
    assert (letter in text) if letter else not set("ABCDEFGH") & set(text)


@given(predict=ANSWERS, truth=ANSWERS)
def test_equal_answers_match(predict: str, truth: str) -> None:
    assert relax_exact_match(truth, truth) == 1.0
    assert relax_exact_match(predict, truth) in (0.0, 1.0)


def test_the_portion_bounds_containment() -> None:
    assert relax_exact_match("red", "red fox", relax_portion=0.4) == 1.0
    assert relax_exact_match("red", "red fox") == 0.0
