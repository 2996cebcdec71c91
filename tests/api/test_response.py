"""Answers of models: what counts as shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.response import is_invisible


@given(st.text(st.sampled_from(" \n\t\0\u200b\u200d\ufeff\u2060\u00ad\u2800\u3164\u202e\ufe0f"), max_size=8))
def test_texts_that_show_nothing_are_invisible(text: str) -> None:
    assert is_invisible(text)
    assert not is_invisible(text + "0")
    assert not is_invisible("。" + text)
