from __future__ import annotations

import pytest

from lmms_eval.tasks.milebench.scoring.model import LEVEL_RANGES, image_level
from lmms_eval.tasks.milebench.summary.dataset import summarise
from lmms_eval.tasks.milebench.summary.image_counts import BINS, MAX_TICKS, needle_grids, pools, scopes
from tests.tasks.milebench.summaries import summary, value


def test_every_number_of_images_is_in_one_bin_and_bins_keep_to_levels() -> None:
    for number in range(300):
        places = [label for label, (least, most) in BINS.items() if least <= number <= most]
        levels = [level for level, (least, most) in LEVEL_RANGES.items() if least <= number <= most]
        assert len(places) == 1
        assert levels == [image_level(number)]
    for least, most in BINS.values():
        assert image_level(least) == image_level(int(min(most, 1000)))


def test_pooling_by_sample_and_by_data_set_differ() -> None:
    members = [summary("TQA", [1.0] * 30, 4), summary("WebQA", [0.0] * 10, 4), summary("DocVQA", [1.0] * 5, 40)]
    (few, many) = pools({"all": members}, LEVEL_RANGES)
    assert (few.label, few.samples, few.datasets, few.images) == ("Few", 40, 2, 4)
    assert few.by_sample.official.value == pytest.approx(75)
    assert few.by_dataset.official.value == pytest.approx(50)
    low, high = few.by_sample.official.ends
    assert low is not None and high is not None and low < 75 < high
    assert (many.label, many.by_sample.official.value) == ("Many", 100)


def test_the_fixed_scores_have_a_pool_of_their_own() -> None:
    (pool,) = pools({"all": [summary("TQA", [0.0] * 4, 7, fixed=1.0)]}, BINS)
    assert (pool.label, pool.by_sample.official.value, pool.by_sample.fixed.value) == ("6-8", 0, 100)


def test_scopes_are_the_two_sets_and_the_diagnostic_groups() -> None:
    members = [summary(name, [1.0]) for name in ("TQA", "GPR1200", "TextNeedleInAHaystack")]
    found = {scope: [one.dataset for one in part] for scope, part in scopes(members).items()}
    assert found == {
        "all": ["TQA", "GPR1200", "TextNeedleInAHaystack"],
        "realistic": ["TQA"],
        "diagnostic": ["GPR1200", "TextNeedleInAHaystack"],
        "I-1": ["GPR1200"],
        "N-1": ["TextNeedleInAHaystack"],
    }


def test_a_grid_holds_means_by_depth_and_length() -> None:
    values = [
        value(1, needle_depth=0, needle_length=100),
        value(0, needle_depth=0, needle_length=100),
        value(1, needle_depth=50.5, needle_length=2000),
    ]
    (grid,) = needle_grids([summarise(values, "TextNeedleInAHaystack"), summary("TQA", [1.0])])
    assert (grid.depths, grid.lengths) == (("0", "50.5"), ("100", "2000"))
    assert grid.cells == ((50, None), (None, 100))
    assert grid.counts == ((2, 0), (0, 1))
    (both, none), (_, one) = grid.figures
    assert both is not None and none is None and one is not None
    assert both.ends == pytest.approx((2.5647, 97.4353), abs=1e-3)  # modified Wilson's of one of two
    assert one.ends == (None, None)


def test_many_lengths_are_put_together() -> None:
    values = [value(float(number > 50), needle_depth=1, needle_length=number) for number in range(101)]
    (grid,) = needle_grids([summarise(values, "TextNeedleInAHaystack")])
    assert len(grid.lengths) == 10 < MAX_TICKS
    assert (grid.lengths[0], grid.lengths[-1]) == ("0-10", "90-100")
    assert sum(grid.counts[0]) == 101
    assert grid.cells[0][0] == 0
    assert grid.cells[0][-1] == 100
