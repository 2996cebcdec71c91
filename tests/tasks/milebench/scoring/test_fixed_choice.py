from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.milebench.scoring.fixed_choice import occurs, plain, read_choice
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, MEGABYTE, NASTY, cpu_limit, reply_text

COLOURS = ["red", "blue", "green", "dark red"]
NUMBERS = ["1,000", "100,000", "1.000", "10,000"]
MANY = [f"picture {index}" for index in range(1000)]
RUNS = ["a" * length for length in range(1, 1001)]


@for_each(
    ("answer", "index"),
    [
        ("The answer is B.", 1),
        ("Answer: C", 2),
        ("answer:(b)", 1),
        ("ANSWER IS [D]", 3),
        ("Option A is wrong. The answer is: B", 1),
        ("The answer is B, not option A", 0),
        ("my choice b", 1),
        ("answer option C", 2),
        ("The answer is A. It is answered below", 0),
        ("answer: a", 0),
    ],
)
def test_a_statement(answer: str, index: int) -> None:
    assert read_choice(answer, COLOURS) == (index, "statement")


@for_each(
    "answer", ["The answer is a shade that I cannot name", "answer: E", "answerB", "answer Blue-ish", "answers: A"]
)
def test_no_statement(answer: str) -> None:
    assert read_choice(answer, ["x1", "x2", "x3", "x4"]) == (None, "none")


@for_each("answer", ["B. red", "B) red", "(B) red", " (b) red", "b.red", "B."])
def test_a_leading_letter(answer: str) -> None:
    assert read_choice(answer, COLOURS) == (1, "leading letter")


@for_each("answer", ["B", " b\n"])
def test_one_letter(answer: str) -> None:
    assert read_choice(answer, COLOURS) == (1, "one letter")


def test_keys_of_several_letters_are_compared_whole() -> None:
    assert read_choice("AB", MANY) == (27, "one letter")
    assert read_choice("AB. picture 1", MANY) == (27, "leading letter")
    assert read_choice("The answer is ALL", MANY) == (999, "statement")
    assert read_choice("the answer is all", MANY[:700]) == (None, "none")


@for_each(
    ("answer", "options", "index"),
    [
        ("It looks dark red to me", COLOURS, 3),
        ("RED", COLOURS, 0),
        ("scored", COLOURS, None),
        ("not blue but green!", ["blue", "green"], 1),
        ("either red or tan", ["red", "tan"], None),
        ("3.5", ["3.5", "4"], 0),
        ("$12", ["$12", "$13"], 0),
        ("10,000", NUMBERS, 3),
        ("3.5", ["3", "5"], None),
        ("exactly 3.", ["3", "5"], 0),
        ("picture 10", ["picture 1", "picture 10"], 1),
        ("dark \n red", COLOURS, 3),
        ("pizza red sauce", ["red", "blue", "green"], 0),
        ("C++", ["C++", "C", "C#"], 0),
        ("", COLOURS, None),
        ("anything", ["", "x"], None),
    ],
)
def test_the_longest_option_between_word_borders(answer: str, options: list[str], index: int | None) -> None:
    assert read_choice(answer, options)[0] == index


def test_equal_options_are_no_tie() -> None:
    assert read_choice("it is the same", ["same", "SAME", "x"]) == (0, "text")


@FUZZ
@given(st.text(alphabet="ab _-$", min_size=1, max_size=4), st.text(alphabet="ab _-$", max_size=20))
def test_occurs_as_a_regular_expression_says(piece: str, text: str) -> None:
    before = r"(?<!\w)" if re.match(r"\w", piece[0]) else ""
    after = r"(?!\w)" if re.match(r"\w", piece[-1]) else ""
    assert occurs(piece, text) == bool(re.search(before + re.escape(piece) + after, text))


@FUZZ
@given(reply_text, st.lists(reply_text, max_size=6))
def test_any_text_names_an_option_or_none(answer: str, options: list[str]) -> None:
    index, step = read_choice(answer, options)
    assert (index is None) == (step == "none")
    if step == "text" and index is not None:
        assert plain(options[index]) in plain(answer)


@for_each("options", [COLOURS, MANY, RUNS], ids=["four", "a thousand", "a thousand runs"])
@for_each("text", [*NASTY.values(), "a" * MEGABYTE, "answer" + " " * MEGABYTE, "xred " * (MEGABYTE // 5)])
def test_a_megabyte(text: str, options: list[str]) -> None:
    with cpu_limit(1):
        read_choice(text, options)
