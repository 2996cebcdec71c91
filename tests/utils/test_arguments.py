from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.utils import parse_seed_list, simple_parse_args_string

KEYS = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
VALUES = st.one_of(
    st.booleans(), st.integers(0, 10**12), st.floats(allow_nan=False), st.from_regex(r"[A-Z/.:-]{1,8}x", fullmatch=True)
)


@given(st.text())
def test_any_text_is_parsed_or_a_usage_error(text: str) -> None:
    try:
        parsed = simple_parse_args_string(text)
    except UsageError:
        return
    assert all(isinstance(value, bool | int | float | str) for value in parsed.values())


@given(st.text(alphabet="a=,'\"{}[] 1.²½٣", max_size=20))
def test_any_text_of_special_characters_too(text: str) -> None:
    if all("=" in part for part in text.split(",") if part.strip()) and not set(text) & set("'\"{}[]"):
        assert all(key in text for key in simple_parse_args_string(text))
    else:
        with contextlib.suppress(UsageError):
            simple_parse_args_string(text)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_what_is_written_is_read(values: dict[str, object]) -> None:
    text = ",".join(f"{key}={value}" for key, value in values.items())
    assert simple_parse_args_string(text) == values


def test_values() -> None:
    assert simple_parse_args_string("a=٣,b=²,c=1_000,d=TRUE,e=") == {"a": 3, "b": "²", "c": 1000.0, "d": True, "e": ""}
    assert simple_parse_args_string(None) == {}
    assert simple_parse_args_string("a=1,a=2") == {"a": 2}
    assert simple_parse_args_string('a={"x": [1, 2]},b=]') == {"a": '{"x": [1, 2]}', "b": "]"}
    assert simple_parse_args_string(f"a={'9' * 5000}") == {"a": "9" * 5000}


@given(st.lists(st.one_of(st.none(), st.integers()), min_size=4, max_size=4))
def test_four_seeds(seeds: list[int | None]) -> None:
    assert parse_seed_list(",".join(map(str, seeds))) == seeds


@given(st.text())
def test_seeds_are_four_or_a_usage_error(text: str) -> None:
    try:
        seeds = parse_seed_list(text)
    except UsageError:
        return
    assert len(seeds) == 4


def test_seed_message_names_the_value() -> None:
    with pytest.raises(UsageError, match="'x'"):
        parse_seed_list("1,x")
    with pytest.raises(UsageError, match="5 values"):
        parse_seed_list("1,2,3,4,5")
