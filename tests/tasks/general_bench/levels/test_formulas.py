import csv
import math

import pytest

from lmms_eval.tasks.general_bench.facts import MODALITIES
from lmms_eval.tasks.general_bench.levels.formulas import (
    GroupMeans,
    combine,
    level4,
    mean_of_rows,
    modality_levels,
    reference_language,
    winning_mean,
)
from tests.parity.vectors import DATA_DIR

LEADERBOARD = DATA_DIR / "general_bench" / "paper_leaderboard.csv"
INCONSISTENT = {"Qwen-VL-Chat", "Long-LLaVA-9B", "DeepSeek-VL-2", "DeepSeek-VL-2-small"}
"""Level-2 rows of the paper whose overall leaves the image part out."""


def test_means_divide_by_all_rows():
    assert mean_of_rows([60.0, math.inf, 30.0]) == 30
    assert mean_of_rows([]) == 0
    assert winning_mean([50.0, 50.0, math.inf], [50.0, 49.9, 80.0]) == pytest.approx(50 / 3)


def test_level_4_needs_both_paradigms():
    assert level4(40.0, 0.0) == level4(0.0, 40.0) == 0
    assert level4(30.0, 60.0) == 40
    assert level4(30.0, 60.0, 1e-6) < 40


def test_level_2_is_the_mean_of_the_paradigms():
    levels = modality_levels([GroupMeans(10, 8), GroupMeans(50, 24)])
    assert (levels[2], levels[3], levels[4]) == (30, 16, 12)
    assert modality_levels([GroupMeans(10, 8)])[4] == 0


def test_language_enters_level_5_only():
    group = GroupMeans(50, 40)
    found = combine({"NLP": GroupMeans(90, 25), "Image-Comprehension": group, "Image-Generation": group})
    assert found.final == {2: 50, 3: 40, 4: 40, 5: 10}
    assert list(found.modalities) == ["Image"]


def test_the_reference_maps_the_model_s_first_rmse_only():
    # 100 (2σ(5/5) - 1) = 46.2 reaches the raw specialists of 2.3 and 40
    assert reference_language(["RMSE", "RMSE"], [2.3, 40.0], [5.0, 5.0]) == pytest.approx(46.2117157 / 2)


@pytest.mark.skipif(not LEADERBOARD.is_file(), reason=f"no {LEADERBOARD}")
def test_the_paper_s_overall_is_the_mean_of_the_modalities():
    with open(LEADERBOARD, encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    differ = {
        line["model"]
        for line in lines
        if abs(mean_of_rows([float(line[name.lower()]) for name in MODALITIES]) - float(line["overall_printed"]))
        > 0.0101
    }
    assert len(lines) == 172
    assert differ == INCONSISTENT
