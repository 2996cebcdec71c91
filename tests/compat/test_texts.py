from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.compat.helpers import hash_string, is_json


@given(st.text() | st.dictionaries(st.text(), st.integers()).map(json.dumps))
def test_json_is_what_is_parsed(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        assert not is_json(text)
    else:
        assert is_json(text)


def test_json() -> None:
    assert is_json("NaN") and not is_json("{'a': 1}")
    assert not is_json("[" * 100_000)
    with pytest.raises(TypeError):
        is_json(None)  # type: ignore[arg-type]


def test_hash() -> None:
    assert hash_string("ü") == "607474ca475a9724d7360aba71a56d5df77e61350e3f724cfa1f46e857e2d85f"
