from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.metrics import mmmu
from lmms_eval.metrics.mmmu import candidates, is_right
from tests.cases import for_each


@for_each(
    ("answer", "meanings"),
    [
        ("The answer is 5.", [5.0]),
        ("so 1.2e3", [1.0, 3.0, 1200.0]),
        ("It is 1,200 units", [200.0, 1200.0, "1,200 units"]),
        ("x = 0.333", [0.33]),
        ("x = 7\nthat is all", ["all"]),
        ("it is so\nit is blue", ["blue", "so"]),
        ("the result is so clear that it is A", [" a", "a "]),
        ("Copper.", ["copper"]),
        ("answer is :", ["answer is :"]),
        ("nan", ["nan"]),
        ("1e999", [999.0, "1e999"]),
        ("", [""]),
        ("答えは 12 です", [12.0, "答えは 12 です"]),
    ],
)
def test_what_an_answer_may_mean(answer: str, meanings: list[float | str]) -> None:
    assert candidates(answer) == meanings


@for_each(
    ("answer", "gold", "right"),
    [
        ("It is copper wire", ["copper"], True),
        ("copper", ["copper wire"], False),
        ("3.431", ["24/7", "3.43"], True),
        ("1,200", ["1200"], True),
        ("15", ["5"], False),
        ("the letter is a", ["a"], True),
        ("banana", ["a"], False),
        ("", ["5"], False),
        ("I'm sorry, but I can't help with that.", ["5"], False),
        *((gold, [gold], False) for gold in ("inf", "-inf", "nan", "NaN", "Infinity", " +inf ", "1e999", "-1,0e999")),
        ("the answer is inf", ["inf"], False),
        ("the answer is infinite", ["nan", "infinite"], True),
        ("the answer is nano", ["nano"], True),
    ],
)
def test_a_number_equals_and_a_text_contains_the_gold(answer: str, gold: list[str], right: bool) -> None:
    assert is_right(candidates(answer), gold) is right


@given(st.text())
def test_any_answer_is_read(answer: str) -> None:
    assert candidates(answer)


def test_long_answers_are_read() -> None:
    for answer in ("1" * 100_000, "1," * 50_000, "1.2e" * 25_000, "so " * 33_000, "1" * 99_999 + "x"):
        assert candidates(answer)


PUBLISHED = (
    r"-?\b\d{1,3}(?:,\d{3})+\b",
    r"-?\d+(?:\.\d+)?[eE][+-]?\d+",
    r"-?(?:\d+\.\d+|\.\d+|\d+\b)(?![eE][+-]?\d+)(?![,\d])",
)


@given(st.text(alphabet="0123.,-+eE x", max_size=20))
def test_expressions_find_the_numbers_of_the_published_ones(text: str) -> None:
    for ours, published in zip(mmmu._NUMBERS, PUBLISHED, strict=True):
        assert ours.findall(text) == re.findall(published, text)
