"""Gaffke's bound against direct simulation, closed forms, and its promised rates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lmms_eval.errors import UsageError
from lmms_eval.stats.bounded import gaffke_limits, gaffke_p
from lmms_eval.utils.numbers import SHARES, ScoreRange
from tests.cases import for_each


@for_each("values", [[0.2], [0.1, 0.9], [0.3, 0.31, 0.29, 0.8], [0.02] * 19 + [0.9]])
@for_each("mean", [0.05, 0.2, 0.6])
def test_p_is_the_share_of_random_weights_whose_mean_is_lower(values: list[float], mean: float) -> None:
    weights = np.random.default_rng(1).exponential(size=(400_000, len(values) + 1))
    means = weights @ np.array([0.0, *values]) / weights.sum(axis=1)
    assert gaffke_p(values, mean, SHARES) == pytest.approx(float(np.mean(means <= mean)), abs=0.003)


@for_each("mean", [0.01, 0.3, 0.5, 0.69])
def test_p_of_equal_values_has_a_closed_form(mean: float) -> None:
    """The share of n values among n + 1 exponential weights is beta-distributed: P(B ≤ m / x) = (m / x)ⁿ."""
    assert gaffke_p([0.7] * 6, mean, SHARES) == pytest.approx((mean / 0.7) ** 6, abs=1e-9)


def test_limits_of_equal_values_have_a_closed_form() -> None:
    low, high = gaffke_limits([0.7] * 6, SHARES)
    assert low == pytest.approx(0.7 * 0.025 ** (1 / 6), abs=1e-6)
    assert high == pytest.approx(1 - 0.3 * 0.025 ** (1 / 6), abs=1e-6)


def test_limits_scale_with_the_range_and_mirror() -> None:
    values = [0.1, 0.15, 0.4, 0.2]
    low, high = gaffke_limits(values, SHARES)
    assert gaffke_limits([100 * x for x in values], ScoreRange(0, 100)) == pytest.approx((100 * low, 100 * high))
    assert gaffke_limits([1 - x for x in values], SHARES) == pytest.approx((1 - high, 1 - low))
    assert gaffke_p(values, low, SHARES) == pytest.approx(0.025, abs=1e-5)


def test_limits_at_the_ends() -> None:
    low, high = gaffke_limits([0.0, 0.0, 0.0], SHARES)
    assert (low, high) == (0.0, pytest.approx(1 - 0.025 ** (1 / 3), abs=1e-6))
    assert gaffke_p([0.5], -0.1, SHARES) == 0.0
    assert gaffke_p([0.5], 1.0, SHARES) == 1.0


@for_each(("values", "within"), [([], SHARES), ([1.2], SHARES), ([0.5], ScoreRange(0, math.inf))])
def test_wrong_values(values: list[float], within: ScoreRange) -> None:
    with pytest.raises(UsageError, match="bounded mean"):
        gaffke_limits(values, within)


@for_each("n", [5, 20, 50])
@for_each("shape", [(0.1, 4.9), (0.3, 0.3), (2.0, 2.0)])
def test_tests_rarely_reject_the_mean_of_skewed_scores(n: int, shape: tuple[float, float]) -> None:
    """The limits hold the mean if neither test rejects it at half the level."""
    generator, truth = np.random.default_rng(n), shape[0] / sum(shape)
    draws = generator.beta(*shape, (400, n))
    assert np.mean([gaffke_p(draw.tolist(), truth, SHARES) < 0.025 for draw in draws]) <= 0.025
    assert np.mean([gaffke_p((1 - draw).tolist(), 1 - truth, SHARES) < 0.025 for draw in draws]) <= 0.025


@for_each("sizes", [[4] * 5, [1, 2, 3, 4, 20]])
def test_clusters_are_weighed_by_their_sizes(sizes: list[int]) -> None:
    values, mean = [0.2, 0.5, 0.4, 0.9, 0.3], 0.35
    moved = np.array([-mean, *(size / max(sizes) * (value - mean) for value, size in zip(values, sizes, strict=True))])
    weights = np.random.default_rng(2).exponential(size=(400_000, 6))
    expected = float(np.mean(weights @ moved <= 0))
    assert gaffke_p(values, mean, SHARES, sizes) == pytest.approx(expected, abs=0.003)
    low, high = gaffke_limits(values, SHARES, 0.95, sizes)
    assert gaffke_p(values, low, SHARES, sizes) == pytest.approx(0.025, abs=1e-5)
    assert gaffke_p([1 - x for x in values], 1 - high, SHARES, sizes) == pytest.approx(0.025, abs=1e-5)
    if sizes == [4] * 5:
        assert (low, high) == pytest.approx(gaffke_limits(values, SHARES))
    mean_of_documents = np.average(values, weights=sizes)
    assert low < mean_of_documents < high
