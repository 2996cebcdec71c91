from __future__ import annotations

import itertools
import random

import pytest

from lmms_eval.errors import UsageError
from lmms_eval.stats import cosine, krippendorff_alpha, pearson, weighted_kappa
from tests.cases import for_each

X = None
PUBLISHED = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3),
    (X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X),
)
"""Four observers, twelve units (Krippendorff 2011, "Computing Krippendorff's alpha-reliability", example C)."""


def kappa_of_tables(first: list[int], second: list[int], categories: int) -> float:
    """By the definition: tables of observed and expected shares with weights (i − j)²."""
    n = len(first)
    observed = expected = 0.0
    for i, j in itertools.product(range(categories), repeat=2):
        weight = (i - j) ** 2
        observed += weight * sum(a == i and b == j for a, b in zip(first, second, strict=True)) / n
        expected += weight * first.count(i) * second.count(j) / n**2
    return 1 - observed / expected


def test_kappa_by_hand() -> None:
    # observed (3 - 2)² / 3; expected (0+1+1 + 1+0+0 + 4+1+1) / 9
    assert weighted_kappa([1, 2, 3], [1, 2, 2]) == pytest.approx(1 - (1 / 3) / 1)
    assert weighted_kappa([0, 6, 0, 6], [6, 0, 6, 0]) == pytest.approx(-1)
    assert weighted_kappa([0, 3, 6], [0, 3, 6]) == 1
    assert weighted_kappa([2, 2], [2, 2]) is None
    assert weighted_kappa([], []) is None


def test_kappa_is_that_of_the_tables() -> None:
    draw = random.Random(1)
    for _ in range(20):
        first = [draw.randrange(7) for _ in range(50)]
        second = [min(6, max(0, score + draw.randrange(-1, 3))) for score in first]
        assert weighted_kappa(first, second) == pytest.approx(kappa_of_tables(first, second, 7), abs=1e-12)


def test_alpha_of_the_published_example() -> None:
    assert krippendorff_alpha(list(zip(*PUBLISHED, strict=True))) == pytest.approx(0.849, abs=5e-4)


def test_alpha_by_hand() -> None:
    # pairs (1, 1), (2, 3): D_o = 2 · 1 / 4; values 1, 1, 2, 3: Σ over ordered pairs = 2 (1 + 4 + 1 + 4 + 1) over 4 · 3
    assert krippendorff_alpha([[1, 1], [2, 3]]) == pytest.approx(1 - (2 / 4) / (22 / 12))
    assert krippendorff_alpha([[1, 1], [2, 3], [9, None]]) == krippendorff_alpha([[1, 1], [2, 3]])
    assert krippendorff_alpha([[4, 4], [4, 4]]) is None
    assert krippendorff_alpha([[1], [2]]) is None


def test_correlation_and_cosine() -> None:
    assert pearson([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    assert pearson([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert pearson([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)
    assert pearson([1, 1], [1, 2]) is None and pearson([1], [1]) is None
    assert cosine([3, 4], [4, 3]) == pytest.approx(24 / 25)
    assert cosine([0, 0], [1, 2]) is None


@for_each("function", [weighted_kappa, pearson, cosine])
def test_lists_of_two_lengths(function) -> None:
    with pytest.raises(UsageError, match="2 scores against 1"):
        function([1, 2], [1])
