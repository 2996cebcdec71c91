import math

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import metrics
from lmms_eval.tasks.general_bench.levels.formulas import adjusted_rmse, map_score, paper_score, ranker_score, sigmoid
from tests.cases import for_each


def test_the_mappings():
    assert map_score("psnr", 20) == pytest.approx(100 * math.tanh(1))
    assert map_score("FID", 25) == pytest.approx(100 * (2 / (1 + math.exp(-1)) - 1))
    assert map_score("WER", 0.25) == 75
    assert map_score("MS-SSIM", 0.5) == 75
    assert map_score("MOS", 3) == 50


@for_each("value", [0, -1, math.nan])
def test_the_bare_mapping_refuses_what_is_not_above_zero(value):
    with pytest.raises(DataError, match="above zero"):
        map_score("FID", value)


def test_the_bare_mapping_refuses_unknown_names():
    with pytest.raises(DataError, match="no mapping"):
        map_score("CD (Chamfer Distance)", 1.0)


def test_the_ranker_gives_zero_to_what_is_missing_or_zero():
    assert ranker_score("FID", math.inf) == ranker_score("FID", 0) == 0
    assert ranker_score("Acc", math.inf) == math.inf
    assert ranker_score("CD (Chamfer Distance)", 6540) == 6540


def test_the_paper_s_mapping_is_clipped_and_perfect_at_zero():
    assert paper_score(metrics()["fid"], 0) == 100
    assert paper_score(metrics()["psnr"], 0) == 0
    assert paper_score(metrics()["psnr"], -3) == 0
    assert paper_score(metrics()["wer"], 0) == 100
    assert paper_score(metrics()["wer"], 5.6) == 0
    assert paper_score(metrics()["mos"], 5) == 100
    assert paper_score(metrics()["chamfer_distance"], 1) == pytest.approx(46.2117157)
    assert paper_score(metrics()["accuracy"], 61.5) == 61.5


def test_values_that_overflow_are_refused():
    with pytest.raises(DataError, match="out of range"):
        sigmoid(-800)
    with pytest.raises(DataError, match="RMSE of 0"):
        adjusted_rmse(0)
