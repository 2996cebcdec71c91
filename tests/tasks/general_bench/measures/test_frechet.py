from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.measures.embeddings import frechet_distance, frechet_from_embeddings
from tests.cases import for_each


def test_of_diagonal_covariances_is_the_sum_over_dimensions():
    found = frechet_distance([0, 0], np.eye(2), [1, 2], np.diag([4.0, 9.0]))
    assert found == pytest.approx(1 + 4 + (2 - 1) ** 2 + (3 - 1) ** 2)


def test_agrees_with_a_root_of_the_product():
    linalg = pytest.importorskip("scipy.linalg")
    draw = np.random.default_rng(3)
    first, second = draw.normal(size=(40, 6)), draw.normal(1, 2, size=(50, 6)) @ draw.normal(size=(6, 6))
    covariances = [np.cov(one, rowvar=False) for one in (first, second)]
    root = linalg.sqrtm(covariances[0] @ covariances[1])
    expected = (
        np.sum((first.mean(0) - second.mean(0)) ** 2)
        + np.trace(covariances[0])
        + np.trace(covariances[1])
        - 2 * np.trace(np.real(root))
    )
    assert frechet_from_embeddings(first, second) == pytest.approx(expected, rel=1e-9)


def test_sets_smaller_than_their_dimensions_have_the_exact_distance():
    """A line along one axis against a line along another: the root of the product is zero."""
    first = np.array([[0.0, 0, 0], [2, 0, 0]])
    second = np.array([[0.0, 0, 0], [0, 2, 0]])
    assert frechet_from_embeddings(first, second) == pytest.approx(1 + 1 + 2 + 2)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(2, 12),
    size=st.integers(2, 8),
    scale=st.sampled_from([1e-4, 1, 1e4]),
)
def test_is_symmetric_not_negative_and_zero_of_itself(seed, count, size, scale):
    draw = np.random.default_rng(seed)
    first, second = draw.normal(size=(count, size)) * scale, draw.normal(size=(count + 1, size)) * scale
    forward = frechet_from_embeddings(first, second)
    assert forward >= 0
    assert forward == pytest.approx(frechet_from_embeddings(second, first), rel=1e-6, abs=1e-7 * scale**2)
    assert frechet_from_embeddings(first, first) == pytest.approx(0, abs=1e-6 * scale**2)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), shift=st.floats(-5, 5))
def test_a_shift_adds_its_square(seed, shift):
    first = np.random.default_rng(seed).normal(size=(20, 4))
    assert frechet_from_embeddings(first, first + shift) == pytest.approx(4 * shift**2, abs=1e-6)


@for_each(
    ("first", "second", "message"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]], "at least 2 embeddings"),
        ([[1.0], [2.0]], [[1.0], [2.0]], "2 to 8192 dimensions"),
        ([[1.0, 2.0]] * 3, [[1.0, 2.0, 3.0]] * 3, "2 and 3 dimensions"),
        ([[1.0, float("nan")], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]], "not finite"),
        ([1.0, 2.0], [[1.0, 2.0], [2.0, 1.0]], "2 axes"),
        ([[1.0, 2.0], [1.0]], [[1.0, 2.0], [2.0, 1.0]], "array of numbers"),
        ("words", [[1.0, 2.0], [2.0, 1.0]], "array of numbers"),
    ],
)
def test_what_is_no_set_of_embeddings_is_refused(first, second, message):
    with pytest.raises(DataError, match=message):
        frechet_from_embeddings(first, second)


def test_a_product_without_real_root_is_refused():
    with pytest.raises(DataError, match="imaginary part"):
        frechet_distance([0, 0], np.eye(2), [0, 0], np.diag([1.0, -1.0]))


def test_a_small_imaginary_part_is_dropped():
    assert frechet_distance([0, 0], np.eye(2), [0, 0], np.diag([1.0, -1e-7])) == pytest.approx(1, abs=1e-6)


def test_a_covariance_that_does_not_fit_its_mean_is_refused():
    with pytest.raises(DataError, match="do not fit"):
        frechet_distance([0, 0, 0], np.eye(2), [0, 0], np.eye(2))
    with pytest.raises(DataError, match="3 and 2 dimensions"):
        frechet_distance([0, 0, 0], np.eye(3), [0, 0], np.eye(2))
