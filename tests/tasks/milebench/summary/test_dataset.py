from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from lmms_eval.errors import DataError
from lmms_eval.stats.interval import mean_stderr
from lmms_eval.tasks.milebench.scoring.model import LEVEL_RANGES
from lmms_eval.tasks.milebench.summary.dataset import KEY, DatasetSummary, Moments, estimate, summarise
from tests.cases import for_each
from tests.tasks.milebench.summaries import value

SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=50)


@given(SCORES)
def test_moments_give_mean_and_error_of_the_scores(scores: list[float]) -> None:
    found = Moments.of(scores)
    assert found.mean == pytest.approx(math.fsum(scores) / len(scores))
    assert found.spread.error == pytest.approx(mean_stderr(scores), abs=1e-7)


@given(SCORES, SCORES)
def test_pooled_moments_are_those_of_all_scores(first: list[float], second: list[float]) -> None:
    both, whole = Moments.pooled([Moments.of(first), Moments.of(second)]), Moments.of(first + second)
    assert (both.count, both.total, both.squares) == (
        whole.count,
        pytest.approx(whole.total),
        pytest.approx(whole.squares),
    )


def test_no_scores_have_no_mean() -> None:
    assert math.isnan(Moments().mean)
    assert Moments().spread.size == 0


def test_samples_are_sorted_by_their_number_of_images() -> None:
    found = summarise([value(1, 2), value(0, 5), value(1, 6), value(1, 31, fixed=0), value(0, 32)], "TQA")
    assert [astuple(found.within(*ends).official)[:2] for ends in LEVEL_RANGES.values()] == [(1, 2), (2, 2), (0, 1)]
    assert found.within(6, 31).fixed.mean == 0.5
    assert astuple(found.within(5, 31).official) == (2, 3, 2)


def test_a_summary_survives_json() -> None:
    values = [
        value(0.25, 2, metric="Rouge-L f", sequence=0.5, no_answer=1, step="empty", needle_depth=0.5, needle_length=4),
        value(1.0, 9, metric="Rouge-L f", sequence=0.75, fixed_step="rouge-l", needle_depth=1, needle_length=4),
    ]
    found = summarise(values, "ALFRED", "adversarial")
    again = DatasetSummary.from_details(json.loads(json.dumps(found.as_dict())))
    assert again == found
    assert again.sequence.mean == 0.625
    assert [(cell.depth, cell.length, cell.official.mean) for cell in again.needles] == [(0.5, 4, 0.25), (1, 4, 1)]
    assert (again.no_answer, again.steps, again.variant) == (1, {"empty": 1, "text": 1}, "adversarial")


def test_the_levels_are_those_of_the_evaluation_file() -> None:
    assert summarise([value(1, 2), value(0, 40)], "TQA").as_dict()["levels"] == {
        "Few": [1, 1],
        "Medium": [0, 0],
        "Many": [0, 1],
    }


def test_one_needle_without_a_place_makes_no_grid() -> None:
    assert summarise([value(1, needle_depth=0, needle_length=8), value(1, needle_depth=0)], "TQA").needles == ()


@for_each("broken", [{}, {"by_images": 3}, {"by_images": {"2": {"official": [1]}}}])
def test_other_details_are_refused(broken: dict[str, object]) -> None:
    whole = summarise([value(1)], "TQA").as_dict()
    with pytest.raises(DataError, match="no summary"):
        DatasetSummary.from_details({**whole, **broken} if broken else {})


def test_the_estimate_is_the_official_mean() -> None:
    found = estimate([value(1), value(0, fixed=1), value(0)], "TQA")
    assert (found.value, found.stderr) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert found.details[KEY]["fixed"][:2] == [2, 3]
    assert estimate([value(1)], "TQA").stderr is None
