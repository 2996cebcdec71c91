from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.storage.codec import EACH, MisshapenError, shaped
from tests.cases import for_each

SHAPE: dict[str, Any] = {"name": str, "parts": {EACH: {"n": float}}, "all": [{}], "flag": bool, "count": int}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*SHAPE, "n", "x"]), inner, max_size=3),
    max_leaves=12,
)


def fits(value: Any, shape: Any) -> bool:
    try:
        shaped(value, shape)
    except MisshapenError:
        return False
    return True


@for_each(
    ("value", "found"),
    [
        ({"name": "a"}, {"name": "a"}),
        ({"name": "a", "other": [1], "": 2}, {"name": "a", "other": [1], "": 2}),
        ({"name": "a", "parts": None, "all": None, "flag": None}, {"name": "a", "flag": None}),
        ({"name": "a", "parts": {"x": {"n": 1, "m": []}, "y": None}}, {"name": "a", "parts": {"x": {"n": 1, "m": []}}}),
    ],
)
def test_what_fits_is_returned_without_empty_parts(value: Any, found: Any) -> None:
    assert shaped(value, SHAPE) == found
    assert fits(value, SHAPE)


@for_each(
    ("value", "told"),
    [
        ([], "'' holds [], not an object"),
        ({"name": 3}, "'name' holds 3, not text"),
        ({"name": "a", "parts": {"x": 1}}, "'parts.x' holds 1, not an object"),
        ({"name": "a", "parts": {"x": {"n": True}}}, "'parts.x.n' holds True, not a number"),
        ({"name": "a", "all": [{}, 1]}, "'all.1' holds 1, not an object"),
        ({"name": "a", "all": "x"}, "'all' holds 'x', not a list"),
        ({"name": "a", "flag": 1}, "'flag' holds 1, not true or false"),
        ({"name": "a", "count": 1.5}, "'count' holds 1.5, not a whole number"),
        ({"name": "\ud800", "flag": "\ud800"}, "holds '\\ud800', not true or false"),
    ],
)
def test_what_does_not_is_told_with_its_place(value: Any, told: str) -> None:
    with pytest.raises(MisshapenError) as caught:
        shaped(value, SHAPE)
    assert told in str(caught.value)
    str(caught.value).encode()
    assert not fits(value, SHAPE)


@given(JSON)
def test_what_is_returned_has_the_shape(value: Any) -> None:
    try:
        found = shaped(value, SHAPE)
    except MisshapenError:
        return
    assert shaped(found, SHAPE) == found
    for part in found.get("parts", {}).values():
        assert isinstance(part, dict) and isinstance(part.get("n"), int | float | None)
    assert all(isinstance(item, dict) for item in found.get("all", []))
