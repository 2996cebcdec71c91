import pytest
from hypothesis import given

from lmms_eval.tasks.megabench.conversions.literals import (
    MAX_LITERAL_CHARS,
    LiteralError,
    read_literal,
    unwrap_string,
)
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, NASTY, cpu_limit, reply_text, reply_value


def test_reads_literals_of_every_type() -> None:
    assert read_literal("{'a': (1, 2.5, None, {3})}") == {"a": (1, 2.5, None, {3})}


@for_each("text", ["x", "1 +", "{[1]: 2}", "f'{1}'", "__import__('os')", "[" * 300, "1" * 5000, "\0"])
def test_refuses_what_is_no_literal(text: str) -> None:
    with pytest.raises(LiteralError):
        read_literal(text)


def test_tells_syntax_from_other_errors() -> None:
    with pytest.raises(LiteralError) as no_expression:
        read_literal("(0.1, ")
    with pytest.raises(LiteralError) as no_literal:
        read_literal("[null]")
    with pytest.raises(LiteralError) as unhashable:
        read_literal("{['x']}")
    assert no_expression.value.problem == "syntax"
    assert no_literal.value.problem == "value"
    assert unhashable.value.problem == "unhashable"


def test_refuses_other_types_than_text() -> None:
    with pytest.raises(LiteralError, match="int"):
        read_literal(5)


def test_refuses_long_texts() -> None:
    assert read_literal("'" + "a" * 1000 + "'") == "a" * 1000
    with pytest.raises(LiteralError, match="too many"):
        read_literal("'" + "a" * MAX_LITERAL_CHARS + "'")


LONG = "[" + "1.5, " * (MAX_LITERAL_CHARS // 4)


def test_long_texts_are_read_where_json_spells_them_alike() -> None:
    value = read_literal(LONG + '{"a": -2, "b": [1e999]}]')
    assert value[-1] == {"a": -2, "b": [float("inf")]}
    assert len(value) == MAX_LITERAL_CHARS // 4 + 1


@for_each("end", ["true]", "NaN]", "'a']", '"\\n"]', "(1, 2)]", "1", '"\ud800"]', "[" * 100_000 + "]"])
def test_long_texts_that_json_spells_differently_are_refused(end: str) -> None:
    with pytest.raises(LiteralError, match="too many"):
        read_literal(LONG + end)


@for_each(
    ("text", "expected"),
    [
        ("'x'", "x"),
        ("\"'x'\"", "'x'"),
        ("'a' 'b'", "ab"),
        ("('x') # why", "x"),
        ("r'\\d'", "\\d"),
        ("'\\d'", "\\d"),
        ("b'x'", "b'x'"),
        ("['x']", "['x']"),
        ("'open", "'open"),
    ],
)
def test_unwraps_one_layer_of_quotes(text: str, expected: str) -> None:
    assert unwrap_string(text) == expected


def test_a_text_beyond_the_parsers_stack_becomes_empty() -> None:
    assert unwrap_string("-" * 100_000 + "1") in ("", "-" * 100_000 + "1")  # depends on the version of Python


def test_leaves_other_types_alone() -> None:
    value = ["'x'"]
    assert unwrap_string(value) is value


@FUZZ
@given(reply_value)
def test_never_raises(value: object) -> None:
    result = unwrap_string(value)
    assert isinstance(result, str) == isinstance(value, str)


@FUZZ
@given(reply_text)
def test_quoting_is_undone(text: str) -> None:
    assert unwrap_string(repr(text)) == text or "\ud800" in text


@for_each("name", NASTY)
def test_nasty_texts_are_quick(name: str) -> None:
    with cpu_limit():
        unwrap_string(NASTY[name])
