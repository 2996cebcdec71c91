from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.models.model_utils.reasoning_model_utils import parse_reasoning_model_answer

PARTS = ["<think>", "</think>", "<answer>", "</answer>", r"\boxed{", "}", "{", "a", "\n", " "]


@given(st.lists(st.sampled_from(PARTS), max_size=14).map("".join))
def test_the_answer_is_that_of_the_expressions(text: str) -> None:
    rest = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL)
    tagged = re.search(r"<answer>(.*?)</answer>", rest, flags=re.DOTALL)
    boxed = re.search(r"\\boxed\{\s*(.*?)\s*\}", rest, flags=re.DOTALL)
    assert parse_reasoning_model_answer(text) == (tagged or boxed or [rest, rest])[1].strip()
