import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.mmie.average import mean, official_average, percent, weighted_average
from tests.tasks.megabench.fuzzing import FUZZ

PUBLISHED = """
47.63 55.12 42.17 50.92|39.65 46.12 50.75 45.33|46.72 57.57 39.33 51.58|48.95 59.05 51.72 55.22
53.05 71.40 53.67 63.65|53.00 71.20 53.67 63.52|56.12 73.25 53.67 65.47|54.97 68.80 53.67 62.63
48.08 67.93 60.05 61.57|47.48 68.70 60.05 61.87|49.43 71.85 60.05 64.15|47.07 68.33 60.05 61.55
54.12 73.47 47.28 63.93|54.72 72.55 47.28 63.57|55.97 74.60 47.28 65.05|54.23 71.32 47.28 62.73
52.73 71.63 55.63 64.05|54.98 71.87 55.63 64.75|52.58 73.57 55.63 65.12|54.23 69.47 55.63 63.18
"""
"""SA, PBL, MSR, AVG of the paper's twenty systems."""
ROWS = [tuple(map(float, row.split())) for row in PUBLISHED.strip().replace("\n", "|").split("|")]


def test_ties_go_to_the_even_thousandth():
    assert official_average([0] * 1999 + [1]) == 0.0
    assert official_average([0] * 399 + [1]) == 0.002
    assert official_average([]) is None


@FUZZ
@given(st.lists(st.integers(0, 6), min_size=1, max_size=60))
def test_it_is_numpys_rounding(scores):
    import numpy as np

    assert official_average(scores) == float(np.round(np.mean(scores), 3))


@pytest.mark.parametrize("row", ROWS)
def test_published_averages_are_means_over_samples(row):
    sa, pbl, msr, average = row
    assert abs(weighted_average({"SA": sa, "PBL": pbl, "MSR": msr}) - average) <= 0.015


def test_the_mean_of_the_categories_would_not_do():
    assert len(ROWS) == 20
    assert all(abs(sum(row[:3]) / 3 - row[3]) > 0.015 for row in ROWS)


def test_percent_and_mean():
    assert percent(3.0) == 50.0
    assert percent(None) is mean([]) is None
    assert math.isclose(mean([1, 2, 4]), 7 / 3)
