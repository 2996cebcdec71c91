import json

import pytest

from lmms_eval.stats import MeanSpread, NoInterval, score_interval
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks.megabench.breakdown.merge import TaskMean, read_scores
from lmms_eval.tasks.megabench.breakdown.output import table
from lmms_eval.tasks.megabench.breakdown.statistics import SMALL_N, breakdown
from lmms_eval.tasks.megabench.facts import Labels, labels
from lmms_eval.utils.numbers import SHARES
from tests.parity.vectors import DATA_DIR

PUBLISHED = DATA_DIR / "megabench" / "analysis"
SITE = DATA_DIR / "megabench" / "site"


def known(*names, skills=("see",)):
    return {name: Labels(tuple(skills), "photo", "text", "1-image", "play") for name in names}


def result(name, score, eval_type="rule", demo=1, queries=4):
    return TaskMean(name, score, eval_type, demo, queries)


def test_core_open_and_overall():
    found = breakdown([result("a", 0.2), result("b", 0.4), result("c", 1.0, "llm")], known("a", "b", "c"))
    assert found.core is not None
    assert found.as_dict()["model_summary"]["core"] == {
        "num_eval_tasks": 2,
        "num_eval_samples": 8,
        "macro_mean_score": pytest.approx(0.3),
    }
    assert found.open is not None
    assert found.open.score == 1.0
    assert found.overall.score == pytest.approx((0.3 * 2 + 1.0) / 3)


def test_one_side_alone_is_the_overall_score():
    assert breakdown([result("a", 0.5)], known("a")).overall.score == 0.5
    assert breakdown([result("a", 0.5, "llm")], known("a")).overall.score == 0.5


def test_nothing_gives_nulls_and_zero():
    found = breakdown([], {})
    assert found.as_dict()["model_summary"] == {"core": None, "open": None, "overall_score": 0.0}
    assert all(keywords == {} for keywords in found.as_dict()["keyword_stats"].values())
    json.dumps(found.intervals())


def test_a_task_counts_once_for_each_of_its_skills_and_demonstrations_count_as_samples():
    found = breakdown([result("a", 0.5)], known("a", skills=("see", "plan")))
    assert found.as_dict()["keyword_stats"]["skills"] == {
        name: {"count": 1, "num_samples": 5, "tasks": [], "average_score": 0.5} for name in ("see", "plan")
    }


def test_unknown_tasks_count_nowhere_and_are_named():
    found = breakdown([result("a", 0.5), result("made_up", 1.0)], known("a"))
    assert found.overall.score == 0.5
    assert found.unknown == ("made_up",)
    assert any("made_up" in warning for warning in found.warnings())


def test_the_interval_is_that_of_means_of_scores_from_0_to_1():
    scores = [0.1, 0.5, 0.9]
    found = breakdown([result(str(n), score) for n, score in enumerate(scores)], known("0", "1", "2"))
    keyword = found.keywords["app"]["play"]
    assert keyword.interval == score_interval(0.5, MeanSpread.of_scores(scores, SHARES), SHARES)
    assert 0 < keyword.interval.low < 0.2 and 0.8 < keyword.interval.high < 1
    assert found.intervals()["keyword_stats"]["app"]["play"]["small_n"] == (len(scores) < SMALL_N)


def test_both_sides_are_strata_of_the_overall_score():
    scores = {"a": 0.2, "b": 0.4, "c": 0.9, "d": 0.8}
    results = [result(name, score, "llm" if name in "cd" else "rule") for name, score in scores.items()]
    found = breakdown(results, known(*scores))
    sides = [MeanSpread.of_scores([0.2, 0.4], SHARES), MeanSpread.of_scores([0.9, 0.8], SHARES)]
    expected = score_interval(found.overall.score, MeanSpread.stratified(sides, [2, 2]), SHARES)
    assert found.overall.interval == expected


def test_a_score_that_is_whole_everywhere_is_not_certain():
    found = breakdown([result(name, 1.0) for name in "abcd"], known(*"abcd"))
    assert found.overall.interval.low == pytest.approx(0.5101, abs=1e-4)


def test_one_task_has_no_interval():
    found = breakdown([result("a", 0.5)], known("a"))
    assert found.keywords["app"]["play"].interval == NoInterval("n = 1")
    assert found.intervals()["keyword_stats"]["app"]["play"]["ci95"] is None
    assert "n = 1" in table(found)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason=f"no published results in {PUBLISHED}")
def test_published_results_are_reproduced_bit_for_bit():
    folders = sorted(PUBLISHED.iterdir())
    assert folders
    for folder in folders:
        results = read_scores(read_json(folder / "task_results.json"), folder.name)
        wanted = read_json(folder / "summary_and_keyword_stats.json")
        summary = wanted["model_summary"]
        wanted["model_summary"] = summary.get("model_summary", summary)  # one file has it nested twice
        assert json.dumps(breakdown(results, labels()).as_dict()) == json.dumps(wanted), folder.name


@pytest.mark.skipif(not SITE.is_dir(), reason=f"no published statistics in {SITE}")
def test_published_keyword_averages_add_up_to_the_overall_score():
    """Scoring rules §3: for every single-label dimension the weighted mean of the averages is the overall score."""
    summaries = read_json(SITE / "all_summary.json")
    for model, stats in read_json(SITE / "all_model_keywords_stats.json").items():
        overall = [summaries[model]["overall_score"]] if model in summaries else []  # two models have none
        for dimension, keywords in stats.items():
            if dimension != "skills":
                count = sum(keyword["count"] for keyword in keywords.values())
                total = sum(keyword["count"] * keyword["average_score"] for keyword in keywords.values())
                overall.append(total / count)
        assert overall == pytest.approx([overall[0]] * len(overall), abs=1e-9), model


def test_fixed_means_stand_beside_the_official_ones():
    results = [TaskMean("a", 0.2, "rule", 1, 4, 0.6), result("b", 0.4), TaskMean("c", 0.5, "llm", 1, 4, 1.0)]
    found = breakdown(results, known("a", "b", "c"))
    plain = breakdown([result("a", 0.2), result("b", 0.4), result("c", 0.5, "llm")], known("a", "b", "c"))
    assert found.as_dict() == plain.as_dict()
    assert found.core.fixed == pytest.approx(0.5)
    assert found.open.fixed == 1.0
    assert found.overall.fixed == pytest.approx(2 / 3)
    assert found.keywords["skills"]["see"].fixed == pytest.approx(2 / 3)
    intervals = found.intervals()
    assert intervals["model_summary"]["core"]["fixed"] == pytest.approx(0.5)
    assert intervals["model_summary"]["overall"]["fixed"] == pytest.approx(2 / 3)
    play, official = (each["keyword_stats"]["app"]["play"] for each in (intervals, plain.intervals()))
    assert play["fixed"] == pytest.approx(2 / 3)
    assert (play["score"], play["ci95"]) == (official["score"], official["ci95"])
    assert plain.overall.fixed == pytest.approx(plain.overall.score)
