from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.filters.reasoning import (
    parse_reasoning_tags_config,
    strip_reasoning_tags,
)

ONE_PAIR = [("<think>", "</think>")]
TAGGED = st.lists(st.sampled_from(["<think>", "</think>", "a", " b ", "\n"]), max_size=12).map("".join)


@given(TAGGED)
def test_stripping_twice_changes_nothing(text: str) -> None:
    once = strip_reasoning_tags(text, ONE_PAIR)
    assert strip_reasoning_tags(once, ONE_PAIR) == once


@given(TAGGED)
def test_no_closed_thought_is_left(text: str) -> None:
    opening, found, rest = strip_reasoning_tags(text, ONE_PAIR).partition("<think>")
    assert not found or "</think>" not in rest
    assert found or "</think>" not in opening


def stripped_step_by_step(text: str, opening: str, closing: str) -> str:
    """The rule as it is written: what a removal joins together is looked at again."""
    while (start := text.find(opening)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            return text.strip()
        text = text[:start] + text[end + len(closing) :]
    return text.rpartition(closing)[2].strip()


@given(
    st.lists(st.sampled_from(["<a>", "</a>", "<", "a", ">", "/a>", "<a", "aa", "b"]), max_size=20).map("".join),
    st.sampled_from([("<a>", "</a>"), ("a", "b"), ("a", "a"), ("aa", "b"), ("<a>", "a"), ("a", "<a>")]),
)
def test_one_pass_gives_what_the_steps_give(text: str, pair: tuple[str, str]) -> None:
    assert strip_reasoning_tags(text, [pair]) == stripped_step_by_step(text, *pair)


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    assert strip_reasoning_tags(text) == strip_reasoning_tags(text).strip()


def test_equal_tags() -> None:
    assert strip_reasoning_tags("|x|y", [("|", "|")]) == "y"


@given(st.text(max_size=30))
def test_configuration_is_pairs_or_a_usage_error(text: str) -> None:
    try:
        pairs = parse_reasoning_tags_config(cli_value=text)
    except UsageError:
        return
    assert pairs is None or all(opening and closing for opening, closing in pairs)


@pytest.mark.parametrize(
    "value", ['[["a", ""]]', '[["a"]]', '["ab"]', "5", '{"a": 1}', "[[1, 2]]", "true", "[" * 99999]
)
def test_other_json_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="reasoning tags"):
        parse_reasoning_tags_config(cli_value=value)


def test_the_task_beats_the_command_line() -> None:
    assert parse_reasoning_tags_config("none", '[["<r>", "</r>"]]') == [("<r>", "</r>")]
    assert parse_reasoning_tags_config('[["<r>", "</r>"]]', False) is None
    assert parse_reasoning_tags_config("NULL") is None
