from __future__ import annotations

import pytest

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.megabench.metrics.judged import ascii_art_gpt4o_judge, gpt_4o_as_judge, read_rating
from tests.cases import for_each


def said(text: str | None) -> Verdict:
    return Verdict("a", text, text is not None, "jury", error=None if text is not None else "timeout: too slow")


@for_each(
    ("text", "rating"),
    [
        ("**Score**: 8", 8),
        ("x **Score** :\n12 **Score**: 3", 12),
        ("**Score:** 8", None),
        ("**score**: 8", None),
        ("", None),
    ],
)
def test_ratings_are_read_to_the_letter(text: str, rating: int | None) -> None:
    assert read_rating(text) == rating


def test_ratings_are_tenths_and_not_clamped() -> None:
    found = gpt_4o_as_judge("", "", said("**Score**: 11 **Score explanation**: more than full"))
    assert (found.score, found.info) == (1.1, "Score: 11; Explanation: more than full")


def test_a_judge_that_is_absent_or_silent_is_not_evaluated() -> None:
    with pytest.raises(NotEvaluated, match="--judge_model"):
        gpt_4o_as_judge("", "", None)
    with pytest.raises(NotEvaluated, match="timeout"):
        ascii_art_gpt4o_judge("x", "y", said(None))


@pytest.mark.parametrize(("response", "truth", "score"), [("", "x", 0), (None, "x", 0), ("x", 5, 0)])
def test_what_cannot_be_drawn_needs_no_judge(response: object, truth: object, score: int) -> None:
    assert ascii_art_gpt4o_judge(response, truth, None) == score


def test_an_empty_truth_is_an_error() -> None:
    with pytest.raises(ValueError, match="empty picture"):
        ascii_art_gpt4o_judge("x", "", said("yes"))
