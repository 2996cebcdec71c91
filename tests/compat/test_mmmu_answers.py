from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.compat import answers as mmmu_answers
from lmms_eval.utils.answer_reading import RUN_SEED
from tests.cases import for_each

LETTERS = ["A", "B", "C", "D"]
OPTIONS = {"A": "red", "B": "blue", "C": "green", "D": "dark blue"}
Parser = Callable[[str, list[str], dict[str, str]], str]
DRAWING: list[Parser] = [
    mmmu_answers.parse_mmmu_multi_choice_response,
    mmmu_answers.parse_jmmmu_multi_choice_response,
]
PARSERS = [*DRAWING, mmmu_answers.parse_videommmu_multi_choice_response]


def test_letters_count_up_by_code_point() -> None:
    index2ans, letters = mmmu_answers.get_multi_choice_info(range(27))
    assert letters[:2] == ["A", "B"] and letters[26] == "["
    assert index2ans["["] == 26
    assert mmmu_answers.get_multi_choice_info("xy", "1") == ({"1": "x", "2": "y"}, ["1", "2"])


@given(st.text(), st.sampled_from(PARSERS))
def test_the_answer_is_a_choice(text: str, parse: Parser) -> None:
    assert parse(text, LETTERS, OPTIONS) in [*LETTERS, "API Error", "No Answer Found."]
    assert parse(text, LETTERS, OPTIONS) == parse(text, LETTERS, OPTIONS)


@for_each("parse", PARSERS)
@for_each(
    ("text", "answer"),
    [
        ("(B) or C", "B"),
        ("(B) or (A)", "A"),
        ("not C but B ,", "B"),
        ("some say red but to me it is green", "C"),
        ("!!B!!", "B"),
    ],
)
def test_signs_that_all_know(parse: Parser, text: str, answer: str) -> None:
    assert parse(text, LETTERS, OPTIONS) == answer


def test_a_letter_that_is_a_sign_of_regular_expressions() -> None:
    assert mmmu_answers.parse_jmmmu_multi_choice_response("([)", ["A", "["], {"A": "x", "[": "y"}) == "["


@for_each("parse", DRAWING)
def test_letters_are_drawn_by_the_runs_seed_and_the_answer(parse: Parser) -> None:
    answers = [f"nothing {number}" for number in range(200)]
    drawn = [parse(answer, LETTERS, OPTIONS) for answer in answers]
    assert drawn == [parse(answer, LETTERS, OPTIONS) for answer in answers]
    assert set(drawn) == set(LETTERS) and max(Counter(drawn).values()) < 80
    token = RUN_SEED.set(1)
    try:
        assert drawn != [parse(answer, LETTERS, OPTIONS) for answer in answers]
    finally:
        RUN_SEED.reset(token)
    with pytest.raises(IndexError):
        parse("nothing", [], {})


def test_a_letter_inside_japanese_text() -> None:
    parse = mmmu_answers.parse_jmmmu_multi_choice_response
    assert parse("答えはBです", LETTERS, OPTIONS) == "B"
    assert parse("。C！", LETTERS, OPTIONS) == "C"


def test_video_answers_that_name_nothing_are_not_drawn() -> None:
    parse = mmmu_answers.parse_videommmu_multi_choice_response
    assert parse("", LETTERS, OPTIONS) == parse("API Error", LETTERS, OPTIONS) == "API Error"
    assert parse("no idea", LETTERS, OPTIONS) == parse("no idea", [], {}) == "No Answer Found."
    assert parse("B: (C) and A.x", LETTERS, OPTIONS) == "A"
    assert parse("A.x then C.x", LETTERS, OPTIONS) == "C"
    with pytest.raises(AttributeError):
        parse("the number is 5 and that is my last word", ["A"], {"A": 5})  # type: ignore[dict-item]


@given(st.text())
def test_a_stated_letter_is_a_choice_or_x(text: str) -> None:
    assert mmmu_answers.parse_jmmmu_pro_multi_choice_response(text, LETTERS) in [*LETTERS, "X"]


@for_each(
    ("text", "answer"),
    [
        ("final b, answer c", "B"),
        ("first line A\nanswer: b", "B"),
        ("A. red\nB. blue\nmy pick: **c**", "C"),
        ("解答 ：【Ｄ】", "D"),
        ("A. red\nB. blue", "X"),
        ("answer E", "X"),
        ("(((((B", "B"),
        (None, "X"),
    ],
)
def test_a_stated_letter(text: str | None, answer: str) -> None:
    assert mmmu_answers.parse_jmmmu_pro_multi_choice_response(text, LETTERS) == answer


PUBLISHED = (
    (mmmu_answers._LETTER, r"[【\[\(\*]*([A-Z])[】\]\)\*]*\b"),
    (
        mmmu_answers._STATED,
        r"(?:answer|final|correct|solution|ans|正解(?:は)?|答え(?:は)?|解答(?:は)?)\s*[:：]?\s*"
        r"[【\[\(\u3010\u3011\*_-]*([A-Z])[】\]\)\*_-]*\b",
    ),
)


@given(st.lists(st.sampled_from([*"Ab_1 *([)]-:【】:は", "ans", "答え", "\n"]), max_size=12).map("".join))
def test_expressions_find_the_letters_of_the_published_ones(text: str) -> None:
    for ours, published in PUBLISHED:
        assert ours.findall(text) == re.findall(published, text, re.IGNORECASE)
