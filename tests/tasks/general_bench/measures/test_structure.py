from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lmms_eval.tasks.general_bench.measures.masks import authors_structure_measure, structure_measure
from tests.cases import for_each

SHAPE = (5, 6)


@given(arrays(float, SHAPE, elements=st.floats(0, 1)), arrays(bool, SHAPE))
def test_is_bounded(prediction: np.ndarray, truth: np.ndarray):
    assert 0 <= structure_measure(prediction, truth) <= 1 + 1e-9


@given(arrays(bool, SHAPE))
def test_the_object_itself_is_perfect(truth: np.ndarray):
    assert structure_measure(truth.astype(float), truth) == pytest.approx(1)


def test_pictures_without_or_full_of_object():
    level = np.full(SHAPE, 0.25)
    assert structure_measure(level, np.zeros(SHAPE, bool)) == 0.75
    assert structure_measure(level, np.ones(SHAPE, bool)) == 0.25


def test_an_object_in_the_corner():
    truth = np.zeros(SHAPE, bool)
    truth[0, :2] = True
    assert structure_measure(truth.astype(float), truth) == pytest.approx(1)


def test_by_hand():
    truth = np.array([[True, False]])
    prediction = np.array([[0.5, 0.5]])
    # object: 2 * 0.5 / (0.25 + 1) on both sides; quarters of one pixel each without spread: 0 + 0 -> 1 where both are
    # even, so 1 on the left (4 * mean * mean * 0 = 0 over 0) and on the right
    assert structure_measure(prediction, truth) == pytest.approx(0.5 * 0.8 + 0.5 * 1)


def test_structure_of_a_quarter_by_hand():
    truth = np.array([[True, False, True, True]])
    prediction = np.array([[1.0, 0.0, 0.5, 1.0]])
    # centroid in column 5/3, rounded to 2, so that the first three pixels are the upper left quarter
    x, y = prediction[0, :3], truth[0, :3].astype(float)
    cov = np.cov(x, y)
    quarter = 4 * x.mean() * y.mean() * cov[0, 1] / ((x.mean() ** 2 + y.mean() ** 2) * (cov[0, 0] + cov[1, 1]))
    inside = np.array([1, 0.5, 1.0])
    level, spread = inside.mean(), inside.std(ddof=1)
    objects = 0.75 * 2 * level / (level**2 + 1 + spread) + 0.25 * 1
    assert structure_measure(prediction, truth) == pytest.approx(0.5 * objects + 0.5 * (0.75 * quarter + 0.25))


def test_a_better_map_scores_higher():
    truth = np.zeros((20, 20), bool)
    truth[5:14, 6:15] = True
    draw = np.random.default_rng(1)
    noise = draw.random((20, 20))
    values = [structure_measure(share * truth + (1 - share) * noise, truth) for share in (0.0, 0.3, 0.6, 0.9)]
    assert values == sorted(values)


def test_the_authors_formula_by_hand():
    truth = np.zeros((4, 4), bool)
    truth[1:3, 1:3] = True  # centroid (1.5, 1.5), rounded to (2, 2): four quarters of 2 x 2
    prediction = np.where(truth, 0.8, 0.2)
    objects = 0.25 * 1.6 / (0.64 + 1) + 0.75 * 1.6 / (0.64 + 1)
    # in each quarter one pixel of four is set: means 0.35 and 0.25, variances 0.0675 and 0.1875, covariance 0.1125
    quarter = (2 * 0.35 * 0.25 + 1e-4) * (2 * 0.1125 + 9e-4)
    quarter /= (0.35**2 + 0.25**2 + 1e-4) * (0.0675 + 0.1875 + 9e-4)
    assert authors_structure_measure(prediction, truth) == pytest.approx(0.5 * objects + 0.5 * quarter, abs=1e-6)


@for_each("place", [(0, 3), (3, 0)])
def test_the_authors_formula_has_no_value_at_the_first_row_and_column(place: tuple[int, int]):
    truth = np.zeros((5, 5), bool)
    truth[place] = True
    assert np.isnan(authors_structure_measure(truth.astype(float), truth))


@given(arrays(float, SHAPE, elements=st.floats(0, 1)), arrays(bool, SHAPE))
def test_the_authors_formula_is_bounded_or_has_no_value(prediction: np.ndarray, truth: np.ndarray):
    found = authors_structure_measure(prediction, truth)
    assert np.isnan(found) or 0 <= found <= 1 + 1e-9
