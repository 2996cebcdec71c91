import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.megabench.parsers import PARSERS, AnswerShape, parse_answer
from tests.tasks.megabench.fuzzing import FUZZ, NASTY, cpu_limit, reply_text

SHAPE = AnswerShape("answer", single_line=True)


def answer(reply: str) -> str:
    return parse_answer(reply, "plain", single_line=True)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Answer: A\nno\nanswer: B", "B"),
        ("**Answer:** B", ""),
        ("**Answer: B**", "B"),
        ("**Answer: 5*6*7**", "5"),
        ("**Answer**: B", "**Answer**: B"),
        ("__Answer:__ B", "__Answer:__ B"),
        ("ANSWER: B", "ANSWER: B"),
        ("Answer: ```python\nx\n```\ndone", "x"),
        ("Answer: A. cat\n\nbecause", "A. cat"),
        ("Answer: (A)\n\nbecause", "(A)"),
        ("Answer: $5\n\nbecause", "$5\n\nbecause"),
        ("Answer: A\nbecause", "A\nbecause"),
        ('Answer: {"a": true}', "{'a': True}"),
        ("Answer: [broken", "[broken"),
        ("Answer: {}", "{}"),
        ("Answer: 'x'", "x"),
        ("Answer: é\n\nx", "é\n\nx"),
        ("", ""),
    ],
)
def test_plain_answers(reply: str, expected: str) -> None:
    assert answer(reply) == expected


def test_prose_is_kept_where_the_truth_has_several_lines() -> None:
    assert parse_answer("Answer: A\n\nbecause", "plain") == "A\n\nbecause"


def test_blanks_in_the_other_modes() -> None:
    assert parse_answer("Answer: B", "ascii") == " B"
    assert parse_answer("Answer:\n\n  a  \n \n\n  b  \n\n", "ascii") == "  a  \n\n  b"
    assert parse_answer("Answer:\n\n  a  \n\n\n  b  \n\n", "verbatim") == "  a  \n\n  b  "


def test_integers_too_long_to_print_stay_text() -> None:
    text = "[0x" + "f" * 9000 + "]"
    assert answer(text) == text


def test_json_values_are_unwrapped() -> None:
    parsed = PARSERS["json"]("{'a': '\"x\"', 'b': ['\"y\"']}", SHAPE)
    assert parsed == {"a": "x", "b": ['"y"']}
    assert PARSERS["json"]("[1]", SHAPE) == [1]


def test_dummy_strips() -> None:
    assert PARSERS["dummy"](" Answer: x \n", SHAPE) == "Answer: x"


def test_string_parsers_fill_the_answer_field() -> None:
    assert PARSERS["verbatim_answer_string"]("x", SHAPE) == {"answer": "x"}


@FUZZ
@given(reply_text)
def test_never_raise(reply: str) -> None:
    for mode in ("plain", "ascii", "verbatim"):
        assert isinstance(parse_answer(reply, mode, single_line=True), str)  # type: ignore[arg-type]
    assert isinstance(PARSERS["json"](reply, SHAPE), dict | list | set)


@FUZZ
@given(st.text("abXY 012,;-", min_size=1).map(str.strip).filter(bool))
def test_a_marked_answer_of_one_line_is_found(text: str) -> None:
    assert answer(f"I thought about it.\nAnswer: {text}") == text
    assert answer(f"**Answer: {text}**\n\nbecause") == text


@pytest.mark.parametrize("parser", ["answer_string", "verbatim_answer_string", "json"])
@pytest.mark.parametrize("name", NASTY)
def test_nasty_replies_are_quick(name: str, parser: str) -> None:
    with cpu_limit():
        PARSERS[parser](NASTY[name], SHAPE)
