from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.mmie.summary import (
    CategoryRow,
    CategoryTable,
    mean,
    official_average,
    percent,
    repeat_agreement,
    sensitivity,
    table,
    weighted_average,
)
from tests.cases import for_each
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


def sample(category: str, score: int | None, outcome: str = "scored", **more: Any) -> dict[str, Any]:
    return {
        "category": category, "field": f"F{category}", "subfield": "s", "score": score, "outcome": outcome,
        "repeats": [], "answer_chars": 10, "answer_images": 0, **more,
    }  # fmt: skip


SAMPLES = [
    sample("SA", 4), sample("SA", 1), sample("PBL", 6), sample("PBL", None, "unparsable"),
    sample("MSR", None, "skipped"), sample("MSR", None, "unscored"), sample("PBL", 3),
]  # fmt: skip


def test_means_and_counts() -> None:
    found = table(SAMPLES)
    average = found.categories["AVG"]
    assert list(found.categories) == ["AVG", "SA", "PBL", "MSR"]
    assert (average.n, average.scored, average.unparsable, average.skipped, average.unscored) == (7, 4, 1, 1, 1)
    assert average.mean == average.official == 3.5
    assert average.strict == pytest.approx(14 / 7)
    assert average.ends == [pytest.approx(0.998, abs=1e-3), pytest.approx(5.446, abs=1e-3)]
    assert found.categories["PBL"].mean == 4.5 and found.categories["PBL"].strict == 3
    empty = found.categories["MSR"]
    assert empty.mean is empty.strict is empty.ends is empty.official is None
    assert found.fields["FSA"].as_dict()["percent"] == pytest.approx(2.5 / 6 * 100)


def test_the_official_mean_is_rounded_and_the_other_is_not() -> None:
    row = CategoryRow(scored=3, total=10, squares=36)
    assert row.official == 3.333 and row.mean == 10 / 3


def test_tables_of_categories_join_to_that_of_all() -> None:
    whole = table(SAMPLES)
    parts = [table([item for item in SAMPLES if item["category"] == tag]) for tag in ("MSR", "SA", "PBL")]
    joined = CategoryTable.from_dict(parts[0].as_dict()) + parts[1] + parts[2]
    assert joined == whole
    assert list(joined.categories) == list(whole.categories)


def test_repeats() -> None:
    assert repeat_agreement(SAMPLES) is None
    units = [[4, 4], [2, 3], [None, 5], [6, 6]]
    found = repeat_agreement([sample("SA", unit[0], repeats=unit) for unit in units])
    assert found is not None
    assert found["askings"] == 2 and found["n"] == 4 and found["all_alike"] == 0.5
    # (4,4), (2,3), (6,6): observed 1/3; expected (0+1+4 + 4+1+16 + 4+9+0) / 9
    assert found["weighted_kappa"] == pytest.approx(1 - (1 / 3) / (39 / 9))
    assert found["means"] == [4, 4.5]
    assert 0.9 < found["krippendorff_alpha"] < 1


def test_sensitivity() -> None:
    samples = [sample("SA", score, answer_chars=10 * score, answer_images=6 - score) for score in range(7)]
    assert sensitivity(samples) == {"length": pytest.approx(1), "pictures": pytest.approx(-1)}
    assert sensitivity(SAMPLES) == {"length": None, "pictures": None}


def test_ties_go_to_the_even_thousandth() -> None:
    assert official_average([0] * 1999 + [1]) == 0.0
    assert official_average([0] * 399 + [1]) == 0.002
    assert official_average([]) is None


@FUZZ
@given(st.lists(st.integers(0, 6), min_size=1, max_size=60))
def test_it_is_numpys_rounding(scores: list[int]) -> None:
    import numpy as np

    assert official_average(scores) == float(np.round(np.mean(scores), 3))


@for_each("row", ROWS)
def test_published_averages_are_means_over_samples(row: tuple[float, ...]) -> None:
    sa, pbl, msr, average = row
    assert abs(weighted_average({"SA": sa, "PBL": pbl, "MSR": msr}) - average) <= 0.015


def test_the_mean_of_the_categories_would_not_do() -> None:
    assert len(ROWS) == 20
    assert all(abs(sum(row[:3]) / 3 - row[3]) > 0.015 for row in ROWS)


def test_percent_and_mean() -> None:
    assert percent(3.0) == 50.0
    assert percent(None) is mean([]) is None
    assert math.isclose(mean([1, 2, 4]) or 0, 7 / 3)
