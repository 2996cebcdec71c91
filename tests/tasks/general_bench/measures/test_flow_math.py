from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.measures.pixels import endpoint_error
from tests.cases import for_each


def test_is_the_mean_distance_over_all_rows():
    reference = np.zeros((600, 2, 2))
    prediction = reference.copy()
    prediction[0, 0] = (3, 4)
    prediction[599, 1] = (-6, 8)
    assert endpoint_error(prediction, reference) == pytest.approx((5 + 10) / 1200)


@given(seed=st.integers(0, 2**32 - 1), shift=st.tuples(st.floats(-50, 50), st.floats(-50, 50)))
def test_a_shift_costs_its_length(seed, shift):
    flow = np.random.default_rng(seed).normal(size=(4, 5, 2))
    assert endpoint_error(flow + np.array(shift), flow) == pytest.approx(np.hypot(*shift), abs=1e-9)
    assert endpoint_error(flow, flow) == 0


def test_integers_do_not_wrap():
    assert endpoint_error(np.zeros((1, 1, 2), np.uint8), np.full((1, 1, 2), (0, 200), np.uint8)) == 200


@for_each("shape", [(3, 4, 2), (2, 2, 3), (4,), (0, 2, 2)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(DataError, match="no two flows"):
        endpoint_error(np.zeros(shape), np.zeros(shape if shape != (3, 4, 2) else (4, 3, 2)))


@for_each("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(value):
    flow = np.full((2, 2, 2), value)
    with pytest.raises(DataError, match="not finite"):
        endpoint_error(flow, flow)
