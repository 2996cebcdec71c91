"""Conversion of the outputs of class plugins."""

from __future__ import annotations

from typing import Any

from lmms_eval.api.instance import GenerationResult, TokenCounts, unwrap_generation_output
from tests.cases import for_each


@for_each(
    ("output", "text", "counts"),
    [
        ("a", "a", None),
        (GenerationResult("b", TokenCounts(1, 2, 3)), "b", TokenCounts(1, 2, 3)),
        (("c", {"input_tokens": 1, "output_tokens": 4}), "c", TokenCounts(1, 4)),
        (["one", "two"], ["one", "two"], None),
    ],
)
def test_an_output_is_a_pair(output: Any, text: Any, counts: Any) -> None:
    pair = unwrap_generation_output(output)
    first, second = pair
    assert pair == (first, second) == (text, counts) and isinstance(pair, tuple) and len(pair) == 2
    assert (pair.text, pair.token_counts, pair.parts) == (text, counts, ())


def test_parts_stand_beside_the_pair() -> None:
    pair = unwrap_generation_output(GenerationResult(parts=["a", b"png"]))
    assert pair.parts == ("a", b"png") and len(pair) == 2


def test_counts_that_are_not_known_are_absent() -> None:
    assert TokenCounts(1, None, 0).to_dict() == {"input_tokens": 1, "reasoning_tokens": 0}
    assert TokenCounts().to_dict() == {}
