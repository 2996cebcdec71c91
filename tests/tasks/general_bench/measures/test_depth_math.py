from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.measures.pixels import (
    aligned_abs_rel,
    angular_rms,
    depth_rms,
    has_valid_depth,
)
from tests.cases import for_each


def maps(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(1, 60, shape).astype(np.float32)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(0.1, 30), shift=st.floats(0, 50))
def test_scale_and_shift_cost_nothing(seed, scale, shift):
    reference = maps(seed, 3, 4, 5).astype(np.float64)
    assert aligned_abs_rel(reference * scale + shift, reference) == pytest.approx(0, abs=1e-9)


def test_agrees_with_a_general_least_squares_solver():
    reference, prediction = maps(1, 2, 5, 6), maps(2, 2, 5, 6)
    reference[0, 0, :3] = (0, 95, np.nan)
    prediction[1, 0, 0] = -3
    valid = (reference > 0.001) & (reference < 80)
    ours, theirs = np.maximum(prediction[valid], 0.001).astype(float), reference[valid].astype(float)
    scale, shift = np.linalg.lstsq(np.stack([ours, np.ones_like(ours)], 1), theirs, rcond=None)[0]
    aligned = np.clip(scale * ours + shift, 0.001, 80)
    assert aligned_abs_rel(prediction, reference) == pytest.approx(np.mean(np.abs(aligned - theirs) / theirs))


def test_one_fit_holds_for_the_whole_video():
    reference = maps(1, 2, 4, 5)
    prediction = reference.copy()
    prediction[1] *= 2
    assert aligned_abs_rel(prediction[:1], reference[:1]) == pytest.approx(0, abs=1e-6)
    assert aligned_abs_rel(prediction, reference) > 0.01


def test_a_flat_prediction_becomes_the_mean():
    reference = np.array([[[10.0, 30.0]]])
    assert aligned_abs_rel(np.full((1, 1, 2), 7.0), reference) == pytest.approx((10 / 10 + 10 / 30) / 2)


def test_pixels_without_reference_may_hold_anything():
    reference = maps(1, 1, 2, 3)
    prediction = reference.copy()
    reference[0, 0, 0] = 0
    prediction[0, 0, 0] = np.nan
    assert aligned_abs_rel(prediction, reference) == pytest.approx(0, abs=1e-6)
    assert depth_rms(prediction, reference) == 0


@for_each("value", [np.nan, np.inf])
def test_predictions_that_are_not_finite_are_refused(value):
    reference = maps(1, 1, 2, 3)
    prediction = reference.copy()
    prediction[0, 0, 0] = value
    for error in (aligned_abs_rel, depth_rms):
        with pytest.raises(DataError, match="not finite"):
            error(prediction, reference)


def test_references_without_depth_are_refused():
    empty = np.zeros((1, 2, 3), np.float32)
    assert not has_valid_depth(empty)
    assert not has_valid_depth(np.full((1, 2, 3), np.nan))
    assert has_valid_depth(maps(1, 1, 2, 3))
    for error in (aligned_abs_rel, depth_rms):
        with pytest.raises(DataError, match="no depth"):
            error(maps(1, 1, 2, 3), empty)
        with pytest.raises(DataError, match="cannot be compared"):
            error(maps(1, 1, 2, 3), maps(1, 1, 3, 2))


def test_rms_is_not_aligned_and_takes_positive_references():
    reference = np.array([[[1.0, 0.0, 100.0, np.inf]]])
    assert depth_rms(np.array([[[4.0, 9.0, 104.0, 1.0]]]), reference) == pytest.approx(math.sqrt((9 + 16) / 2))


@for_each(("oriented", "expected"), [(True, 180.0), (False, 0.0)])
def test_opposite_normals_are_far_apart_or_the_same(oriented, expected):
    normal = np.array([[0.0, 0.6, 0.8]])
    assert angular_rms(-2 * normal, normal, oriented=oriented) == pytest.approx(expected, abs=1e-6)


@given(degrees=st.floats(1e-6, 89.9), lengths=st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)))
def test_angles_are_exact_and_know_no_length(degrees, lengths):
    turned = [math.cos(math.radians(degrees)), math.sin(math.radians(degrees)), 0]
    found = angular_rms(np.array([turned]) * lengths[0], np.array([[1.0, 0, 0]]) * lengths[1], oriented=True)
    assert found == pytest.approx(degrees, rel=1e-6)


def test_normals_are_squared_before_their_mean_and_missing_ones_left_out():
    reference = np.array([[1.0, 0, 0], [1, 0, 0], [0, 0, 0], [np.nan, 0, 1]])
    prediction = np.array([[1.0, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    assert angular_rms(prediction, reference, oriented=True) == pytest.approx(math.sqrt(90**2 / 2))


def test_a_prediction_without_length_is_a_right_angle_off():
    assert angular_rms(np.zeros((2, 3)), np.ones((2, 3)), oriented=True) == 90


def test_normals_that_cannot_be_compared_are_refused():
    ones = np.ones((2, 3))
    with pytest.raises(DataError, match="cannot be compared"):
        angular_rms(ones, np.ones((3, 3)), oriented=True)
    with pytest.raises(DataError, match="no normals"):
        angular_rms(ones, np.zeros((2, 3)), oriented=True)
    with pytest.raises(DataError, match="not finite"):
        angular_rms(ones * np.inf, ones, oriented=True)
