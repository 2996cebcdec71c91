from __future__ import annotations

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.judges.prompts import READERS, parse_binary_response, parse_json, parse_score, reader
from tests.cases import for_each


@for_each(
    ("name", "readable", "unreadable"),
    [
        ("text", "well", " \n"),
        ("score", "about -3.5", "none"),
        ("binary", "[0]", "yes"),
        ("yes_no", "No.", "nobody knows"),
        ("comparative", "8 7\nbecause", "8\n7"),
        ("json", 'so: {"a": 1}', "{a: 1}"),
    ],
)
def test_readers_by_name(name: str, readable: str, unreadable: str) -> None:
    assert READERS[name](readable)
    assert not READERS[name](unreadable)
    assert reader(name, "here")(readable)


def test_a_tasks_own_reader_refuses_by_none_false_or_an_error() -> None:
    accepts = reader(int, "here")
    assert accepts("0")
    assert not accepts("zero")
    assert not reader(lambda text: None if text == "a" else text, "here")("a")
    assert not reader(lambda text: False, "here")("a")
    with pytest.raises(TaskError, match="here: reader 'number'"):
        reader("number", "here")


@for_each(
    ("text", "right"),
    [
        ("true", True),
        ("This is True.", True),
        ("untrue", True),
        ("False", False),
        ("Correct", True),
        ("INCORRECT, though 1 part is right", False),
        ("NOT_ATTEMPTED", False),
        ("not_attempted: 1 of 2 asked", False),
        ("Not_Attempted (a correct answer is B)", False),
        ("not attempted", False),
        ("not attempted, 1", True),
        ("yes", True),
        ("[1]", True),
        ("0.1", True),
        ("", False),
    ],
)
def test_what_means_right(text: str, right: bool) -> None:
    assert parse_binary_response(text) is right


def test_scores_are_held_within_their_range() -> None:
    assert parse_score("12", (1, 10)) == 10
    assert parse_score("-2", (1, 10)) == 1
    assert parse_score("none") == 0


@for_each("text", ["[1]", "{" * 100_000 + "}" * 100_000, '{"a": [1}'])
def test_what_is_no_object_is_empty(text: str) -> None:
    assert parse_json(text) == {}
