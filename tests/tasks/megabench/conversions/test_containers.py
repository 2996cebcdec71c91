from typing import Any

from hypothesis import given

from lmms_eval.tasks.megabench.conversions.containers import (
    freeze,
    str_to_list,
    str_to_set,
    to_dict,
    to_frozen_set,
    to_set,
)
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, NASTY, cpu_limit, reply_value


@for_each(
    ("text", "expected"),
    [
        ("a, b ,c", ["a", "b", "c"]),
        ("[a, 'b']", ["a", "'b'"]),
        ("[1, 'a']", [1, "a"]),
        ("a,", ["a", ""]),
        ("5", [5]),
        ("True", [True]),
        ("'abc'", ["a", "b", "c"]),
        ("{'x': 1}", ["x"]),
        ("[a", []),
        ("1j", []),
        ("", []),
        (None, []),
        ([1], []),
    ],
)
def test_texts_to_lists(text: Any, expected: list[Any]) -> None:
    assert str_to_list(text) == expected


def test_the_text_none_is_an_empty_text() -> None:
    assert str_to_list("None") == str_to_set("None") == to_set("None") == ""
    assert to_set(None) == set()


def test_nested_lists_make_a_text_empty_but_a_list_does_not() -> None:
    assert to_set("[[1], [2]]") == set()
    assert to_set([[1], [2]]) == {(1,), (2,)}
    assert to_set({"a": [1]}) == {("a", (1,))}


@for_each("text", ['{["x","y"]}', "{['x'], ['y']}", "{{1}}", "[{[1]: 2}]"])
def test_texts_of_what_cannot_be_hashed_are_empty(text: str) -> None:
    assert str_to_list(text) == []
    assert str_to_set(text) == to_set(text) == to_frozen_set(text) == set()


def test_numbers_that_are_no_text_give_nothing() -> None:
    assert to_set(5) == set()


def test_freeze_is_recursive() -> None:
    assert freeze({"a": [1, {2}]}) == frozenset({("a", (1, frozenset({2})))})


def test_texts_in_dictionaries_are_read_but_not_the_values_of_read_ones() -> None:
    assert to_dict({"a": "{'b': '[1]'}"}) == {"a": {"b": "[1]"}}
    assert to_dict("{'a': '[1]'}") == {"a": "[1]"}


def test_empty_structures_stay_texts() -> None:
    assert to_dict("{}") == "{}"
    assert to_dict({"a": "[]"}) == {"a": "[]"}


@FUZZ
@given(reply_value)
def test_never_raise(value: Any) -> None:
    assert isinstance(str_to_list(value), list | str)
    assert isinstance(str_to_set(value), set | str)
    assert isinstance(to_set(value), set | str)
    assert isinstance(to_dict(value), dict) or not isinstance(value, dict)


@for_each("name", NASTY)
def test_nasty_texts_are_quick(name: str) -> None:
    for convert in (str_to_list, str_to_set, to_dict):
        with cpu_limit():
            convert(NASTY[name])


@for_each(
    ("value", "expected"),
    [
        ("[[1, [2]], (3,)]", {(1, (2,)), (3,)}),
        ("[{'a': [1]}]", {frozenset({("a", (1,))})}),
        ("[1, 'a']", {1, "a"}),
        ("a, b", {"a", "b"}),
        ("[[1", set()),
        ("None", ""),
        ([[1], 2], {(1,), 2}),
        (5, set()),
        (None, set()),
    ],
)
def test_frozen_sets(value: Any, expected: Any) -> None:
    assert to_frozen_set(value) == expected


@FUZZ
@given(reply_value)
def test_frozen_sets_differ_in_nested_lists_only(value: Any) -> None:
    official, frozen = to_set(value), to_frozen_set(value)
    if not any(isinstance(item, tuple | frozenset) for item in frozen):
        assert repr(official) == repr(frozen) or official == frozen
