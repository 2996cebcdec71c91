"""Means and spreads of many cells at once: those that the project's rule gives for one after the other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.stats import ANY_NUMBER, MeanSpread
from lmms_eval.stats.cells import cell_means
from lmms_eval.utils.numbers import ScoreRange

SHARES = ScoreRange(0, 1)
CELLS = 4
VALUES = {
    "right or wrong": st.sampled_from([0.0, 1.0]),
    "alike": st.just(0.1),
    "shares": st.floats(0, 1),
    "few far": st.sampled_from([0.0, 0.0, 0.0, 0.001, 1.0]),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("within", [SHARES, ANY_NUMBER])
@pytest.mark.parametrize("has_clusters", [False, True])
@given(data=st.data())
def test_the_same_as_cell_by_cell(data, kind, within, has_clusters) -> None:
    rows = data.draw(st.lists(st.tuples(VALUES[kind], st.integers(-1, CELLS - 1), st.integers(0, 3)), max_size=40))
    scores = np.array([score for score, _, _ in rows])
    codes = np.array([code for _, code, _ in rows], dtype=np.intp)
    clusters = np.array([cluster for _, _, cluster in rows], dtype=np.intp)
    found = cell_means(scores, codes, CELLS, within, clusters if has_clusters else None)
    assert len(found) == CELLS
    for code, (n, mean, spread) in enumerate(found):
        values = [score for score, of, _ in rows if of == code]
        assert n == len(values)
        if not values:
            assert math.isnan(mean)
            continue
        assert mean == math.fsum(values) / len(values)
        named = [cluster for _, of, cluster in rows if of == code]
        expected = MeanSpread.clustered(values, named, within) if has_clusters else MeanSpread.of_scores(values, within)
        assert spread.error == pytest.approx(expected.error, rel=1e-6, abs=1e-9, nan_ok=True)
        assert (spread.size, spread.is_binary) == (expected.size, expected.is_binary)
        if expected.error > 1e-9:  # what is below comes of rounding, and has no kurtosis
            assert spread.freedom == pytest.approx(expected.freedom, rel=1e-5)
            assert spread.silent == expected.silent
            if expected.sizes:
                assert sorted(spread.sizes) == sorted(expected.sizes)
            assert sorted(spread.graded) == pytest.approx(sorted(expected.graded))
