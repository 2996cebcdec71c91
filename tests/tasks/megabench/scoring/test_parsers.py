import re

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.megabench.scoring.parsers import PARSERS, AnswerShape, is_repaired, parse_answer, parse_repaired
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, NASTY, cpu_limit, reply_text

SHAPE = AnswerShape("answer", single_line=True)


def answer(reply: str) -> str:
    return parse_answer(reply, "plain", single_line=True)


@for_each(
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
        ("Answer: A\u2028B\n\nbecause", "A\u2028B\n\nbecause"),  # the second line is B
        ("Answer: A\u2028\nB\n\nbecause", "A\u2028\nB"),
        ("Answer: A\r\n\nbecause\n\nit is", "A"),
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


@FUZZ
@given(st.lists(st.sampled_from(["Answer:", "*", "**", " ", "\n", "a", "_", "B"]), max_size=12).map("".join))
def test_an_answer_is_what_the_official_expression_finds(reply: str) -> None:
    last = reply.rfind("Answer:")
    text = reply if last < 0 else reply[:last].replace("Answer:", "") + reply[last:]
    found = re.search(r"\*{1,2}Answer:(.*?)\*{1,2}|\bAnswer:(.*)", text, re.DOTALL)
    if found is not None:
        text = next(group for group in found.groups() if group is not None)
    assert parse_answer(reply, "plain") == text.strip()


def test_dummy_strips() -> None:
    assert PARSERS["dummy"](" Answer: x \n", SHAPE) == "Answer: x"


def test_string_parsers_fill_the_answer_field() -> None:
    assert PARSERS["verbatim_answer_string"]("x", SHAPE) == {"answer": "x"}


@for_each(
    ("reply", "official", "repaired"),
    [
        ("**Answer:** B", "", "B"),
        ("*Answer:* B", "", "B"),
        ("***Answer:*** B", "", "B"),
        ("**Answer**: B", "**Answer**: B", "B"),
        ("**answer:** B", "", "B"),
        ("**Final Answer:** B", "** B", "B"),
        ("The **final answer**: B", "The **final answer**: B", "B"),
        ("So:\n\n**Answer:**\nB", "", "B"),
        ("**Answer:** ```python\nx\n```", "", "x"),
    ],
)
def test_asterisks_around_the_marker_are_dropped_in_the_repaired_reading(
    reply: str, official: str, repaired: str
) -> None:
    assert is_repaired("answer_string", reply)
    assert answer(reply) == official
    assert parse_repaired("answer_string", reply, SHAPE) == {"answer": repaired}


@for_each(
    "reply",
    [
        "**Answer: B**",
        "Answer: **B**",
        "Answer: B",
        "**Answer: *italic* B**",
        "**Answer:\n* one\n* two",
        "__Answer:__ B",
        "ANSWER:** B",
        "5*6*7",
    ],
)
def test_the_repaired_reading_changes_nothing_else(reply: str) -> None:
    assert not is_repaired("answer_string", reply)
    assert parse_repaired("answer_string", reply, SHAPE) == PARSERS["answer_string"](reply, SHAPE)


def test_the_other_string_parsers_are_repaired_likewise() -> None:
    assert parse_repaired("verbatim_answer_string", "**Answer:** B", SHAPE) == {"answer": " B"}
    assert parse_repaired("ascii_answer_string", "**Answer**:\n  /\\ \n", SHAPE) == {"answer": "  /\\"}


@for_each(
    ("reply", "official", "repaired"),
    [
        ('Answer: {\n  "a": "1",\n  "b": "2"\n}', {}, {"a": "1", "b": "2"}),
        ('Answer:\n```json\n{"a": "1"}\n```', {}, {"a": "1"}),
        ('Answer: ```json\n{\n"a": "\'x\'"\n}\n```\nDone.', {}, {"a": "x"}),
        ('**Answer:**\n{\n"a": "1"}', {}, {"a": "1"}),
        ('Answer: {"a": "1"}', {"a": "1"}, {"a": "1"}),
        ('Answer: {"a": "1"}\nThis is it.', {"a": "1"}, {"a": "1"}),
        ('Answer: {"a": "1"}\nAnswer: {"a": "2"}', {"a": "1"}, {"a": "2"}),
        ('{"a": "1"}', {"a": "1"}, {"a": "1"}),
    ],
)
def test_all_that_follows_the_marker_is_read_in_the_repaired_json(
    reply: str, official: object, repaired: object
) -> None:
    assert PARSERS["json"](reply, SHAPE) == official
    assert parse_repaired("json", reply, SHAPE) == repaired
    assert is_repaired("json", reply) == ("Answer:" in reply)


def test_parsers_without_a_fault_are_never_repaired() -> None:
    for name in ("dummy", "unsupported"):
        assert not is_repaired(name, "**Answer:** {\n'a': 1}")
        assert parse_repaired(name, "**Answer:** {\n'a': 1}", SHAPE) == PARSERS[name]("**Answer:** {\n'a': 1}", SHAPE)


@FUZZ
@given(reply_text)
def test_never_raise(reply: str) -> None:
    for mode in ("plain", "ascii", "verbatim"):
        assert isinstance(parse_answer(reply, mode, single_line=True), str)
    assert isinstance(PARSERS["json"](reply, SHAPE), dict | list | set)
    for name, parser in PARSERS.items():
        repaired, official = parse_repaired(name, reply, SHAPE), parser(reply, SHAPE)
        assert isinstance(repaired, str | dict | list | set)
        if not is_repaired(name, reply):
            assert repr(repaired) == repr(official)


@FUZZ
@given(st.text("abXY 012,;-", min_size=1).map(str.strip).filter(bool))
def test_a_marked_answer_of_one_line_is_found(text: str) -> None:
    assert answer(f"I thought about it.\nAnswer: {text}") == text
    assert answer(f"**Answer: {text}**\n\nbecause") == text


@for_each("parser", ["answer_string", "verbatim_answer_string", "json"])
@for_each("name", NASTY)
def test_nasty_replies_are_quick(name: str, parser: str) -> None:
    with cpu_limit():
        PARSERS[parser](NASTY[name], SHAPE)
