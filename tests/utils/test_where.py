from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.utils.where import MAX_DEPTH, MAX_LENGTH, WhereError, parse_where
from tests.cases import for_each

SAMPLE: dict[str, Any] = {
    "application": "Perception",
    "score": 0.5,
    "doc_id": "12",
    "two words": "x y",
    "tags": ["a", 3],
    "flag": True,
    "nothing": None,
    "nan": float("nan"),
    "big": 10**400,
}


@for_each(
    ("text", "expected"),
    [
        ("application == 'Perception' and score < 1", True),
        ("application != 'Perception'", False),
        ("score >= 0.5 and score <= 5e-1", True),
        ('score > 1 or application == "Perception"', True),
        ("not score < 1", False),
        ("NOT (score < 1 or score > 2) OR doc_id == 12", True),
        ("doc_id < 100", True),
        ("doc_id in (1, 12)", True),
        ("application in ('A', 'Perception')", True),
        ("application not in ('A')", True),
        ("nothing not in ('A')", False),
        ("`two words` contains 'x'", True),
        ("application startswith 'Per' and application endswith 'tion'", True),
        ("tags contains 'a' and tags contains 3", True),
        ("flag == true", True),
        ("nothing is missing and nan is missing and score is not missing", True),
        ("nothing == 0 or nothing != 0 or nothing < 1", False),
        ("big > 1", True),
        ("big == 1", False),
        ("score < application", False),
        ("score == -0.5", False),
    ],
)
def test_expressions(text: str, expected: bool) -> None:
    assert parse_where(text).holds(SAMPLE.get) is expected


def test_and_binds_more_tightly_than_or() -> None:
    found = parse_where("a == 1 or b == 1 and c == 1")
    assert found.holds({"a": 1, "b": 0, "c": 0}.get)
    assert not found.holds({"a": 0, "b": 1, "c": 0}.get)
    assert found.columns == ("a", "b", "c")


@for_each(
    ("text", "position", "said"),
    [
        ("score = 1", 7, "write =="),
        ("score == 1x", 10, "not a number"),
        ("score == ", 10, "column"),
        ("", 1, "column"),
        ("score == 'open", 10, "not closed"),
        ("(score == 1", 12, "')' is needed"),
        ("score == 1 score", 12, "'and', 'or' or the end"),
        ("score", 6, "a comparison is needed"),
        ("score is 1", 10, "'missing' is needed"),
        ("and == 1", 1, "name of a column"),
        ("__import__('os')", 11, "a comparison is needed"),
        ("score == 1; x", 11, "operator is needed"),
        ("(" * 60 + "a == 1" + ")" * 60, 51, "nested brackets"),
        ("not " * 60 + "a == 1", 201, "nested brackets"),
        ("a" * (MAX_LENGTH + 1), MAX_LENGTH + 1, "at most"),
    ],
)
def test_mistakes_point_at_their_place(text: str, position: int, said: str) -> None:
    with pytest.raises(WhereError, match="--where: at ") as caught:
        parse_where(text)
    assert (caught.value.position, said in str(caught.value)) == (position, True)


def test_unknown_columns_name_the_nearest() -> None:
    with pytest.raises(WhereError, match=r"character 14 .*no column 'aplication'; nearest: application"):
        parse_where("score < 1 or aplication == 'x'").check(SAMPLE)


_WORDS = st.sampled_from(
    ["a", "`b c`", "and", "or", "not", "(", ")", "==", "<", "in", ",", "'x'", "1", "-2.5", "is", "missing", "contains"]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), lambda one: st.lists(one, max_size=3)
)


@given(st.text(max_size=60) | st.lists(_WORDS, max_size=12).map(" ".join), _VALUES, _VALUES)
def test_any_text_is_read_or_refused_and_reading_a_sample_never_fails(text: str, one: Any, other: Any) -> None:
    try:
        found = parse_where(text)
    except WhereError as error:
        position = error.position
    else:
        assert found.holds({"a": one, "b c": other}.get) in (True, False)
        return
    assert 1 <= position <= len(text) + 1


@given(st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "contains", "startswith"]), _VALUES, _VALUES)
def test_values_of_any_kind_can_be_compared(word: str, one: Any, other: Any) -> None:
    assert parse_where(f"a {word} `b c`").holds({"a": one, "b c": other}.get) in (True, False)


LONG = ["(", "not ", "a == 1 or ", "not (a == 1 and ", "a in (1, ", ") ", "a == 1 and b == 2 or "]


@for_each("part", LONG)
def test_long_hostile_texts_are_read_or_refused_at_once(part: str) -> None:
    text = (part * MAX_LENGTH)[: MAX_LENGTH - len("a == 1")] + "a == 1"
    begin = time.monotonic()
    with contextlib.suppress(WhereError):
        parse_where(text).holds({"a": 1, "b": 2}.get)
    assert time.monotonic() - begin < 2


def test_an_expression_of_the_most_depth_is_read() -> None:
    depth = MAX_DEPTH - 1
    assert parse_where("(" * depth + "a == 1" + ")" * depth).holds({"a": 1}.get)
    assert parse_where("not " * depth + "a == 1").holds({"a": 1}.get) is (depth % 2 == 0)


def test_words_of_python_are_columns_or_refused() -> None:
    assert parse_where("lambda == 1 and `import os` is missing").holds({"lambda": 1}.get)
    for text in ("a if b else c", "[a for a in b]", "a == 1 and f(b)", "a := 1", "a.b() == 1", "a == 1 < 2"):
        with pytest.raises(WhereError):
            parse_where(text)
