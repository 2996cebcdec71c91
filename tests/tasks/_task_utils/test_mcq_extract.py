from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks._task_utils.mcq_extract import extract_mcq_answer


@given(st.text(), st.lists(st.sampled_from("ABCDEFG"), max_size=5))
def test_the_answer_is_an_option_that_occurs(text: str, choices: list[str]) -> None:
    answer = extract_mcq_answer(text, choices)
    assert answer == "" or (answer in choices and answer in text)
    assert bool(answer) == any(choice in text for choice in choices)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("(B), not A.", "B"),
        ("All say C.", "C"),
        ("Apples: D", "D"),
        ("(C) or (B)", "B"),
        ("none of them", ""),
    ],
)
def test_the_clearest_sign_wins(text: str, answer: str) -> None:
    assert extract_mcq_answer(text) == answer
