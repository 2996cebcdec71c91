import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lmms_eval.tasks.general_bench.measures.geometry import all_distances, chamfer_distance, nearest_distances

CLOUDS = arrays(np.float64, st.tuples(st.integers(1, 40), st.just(3)), elements=st.floats(-1e3, 1e3, width=32))


def test_hand_computed():
    first = np.array([[0.0, 0, 0], [1, 0, 0]])
    second = np.array([[0.0, 3, 4]])
    assert chamfer_distance(first, second) == pytest.approx((5 + np.sqrt(26)) / 2 + 5)


@given(CLOUDS, CLOUDS)
def test_the_tree_and_all_distances_agree(first, second):
    pytest.importorskip("scipy")
    assert nearest_distances(first, second) == pytest.approx(all_distances(first, second), rel=1e-6, abs=1e-6)


@given(CLOUDS, CLOUDS)
def test_symmetric_and_zero_for_the_same_cloud(first, second):
    assert chamfer_distance(first, first[::-1]) == 0
    assert chamfer_distance(first, second) == chamfer_distance(second, first) >= 0
    assert chamfer_distance(2 * first, 2 * second) == pytest.approx(2 * chamfer_distance(first, second))


def test_without_scipy_all_distances_are_computed(monkeypatch):
    clouds = np.random.default_rng(1).random((2, 1500, 3)) * 1e-3 + 1e4  # small, and far from the origin
    with_tree = nearest_distances(*clouds)
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    assert nearest_distances(*clouds) == pytest.approx(with_tree, rel=1e-9)


def test_a_cloud_of_equal_points_takes_no_longer():
    pytest.importorskip("scipy")
    start = time.perf_counter()
    assert chamfer_distance(np.zeros((32_768, 3)), np.ones((32_768, 3))) == pytest.approx(2 * 3**0.5)
    assert time.perf_counter() - start < 20
