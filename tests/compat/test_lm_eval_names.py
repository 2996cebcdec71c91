"""Functions that task files of lm-eval import."""

from __future__ import annotations

import random

import pytest

from lmms_eval.compat.lm_eval_names import ratio, weighted_f1_score
from tests.cases import for_each


def test_weighted_f1_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="extra dev")
    drawn = random.Random(1)
    for size in (1, 2, 5, 40):
        pairs = [(drawn.randrange(4), drawn.randrange(5)) for _ in range(size)]
        golds, answers = zip(*pairs, strict=True)
        expected = metrics.f1_score(golds, answers, average="weighted", zero_division=0)
        assert weighted_f1_score(pairs) == pytest.approx(expected)
    assert weighted_f1_score([("a", "a"), ("b", "c")]) == 0.5
    with pytest.raises(IndexError):
        weighted_f1_score([])


@for_each(
    ("one", "other", "value"),
    [("abcd", "abcd", 100), ("abcd", "bcde", 75), ("abc", "xyz", 0), ("", "", 100), ("", "a", 0), (None, "a", 0)],
)
def test_ratio(one: str | None, other: str, value: int) -> None:
    assert ratio(one, other) == value
