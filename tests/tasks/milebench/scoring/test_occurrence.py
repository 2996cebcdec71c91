from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.milebench.scoring.fixed_choice import LARGE, CharacterBlocks, possible
from tests.tasks.megabench.fuzzing import FUZZ

few = st.text(alphabet="ab ", max_size=40)


@FUZZ
@given(few, st.integers(0, 40), st.integers(0, 40))
def test_what_occurs_is_never_left_out(text: str, start: int, length: int) -> None:
    assert CharacterBlocks(text).may_hold(text[start : start + length])


@FUZZ
@given(few, few)
def test_nothing_that_occurs_is_left_out(text: str, piece: str) -> None:
    assert CharacterBlocks(text).may_hold(piece) or piece not in text


def test_most_of_what_does_not_occur_is_left_out() -> None:
    text = "option number " * (LARGE // 1000 // 14 + 1)
    pieces = [f"option number {index}" for index in range(1000)]
    assert len(text) * len(pieces) >= LARGE
    assert not possible(text, pieces)
    assert list(possible(f"{text}7", pieces)) == [7]


def test_a_small_search_needs_no_index() -> None:
    assert possible("a", ["x", "y"]) == range(2)
