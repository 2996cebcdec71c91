from __future__ import annotations

import math
import random

import pytest

from lmms_eval.stats import Interval, MeanSpread, NoInterval
from lmms_eval.tasks.milebench.facts import datasets, find
from lmms_eval.tasks.milebench.summary.dataset import Moments, Pair
from lmms_eval.tasks.milebench.summary.figures import (
    Figure,
    FigureEntry,
    ScoredDataset,
    combined,
    dataset_entry,
    figure,
    group_entries,
    overall_entries,
)
from tests.tasks.milebench.summaries import summary


def exact(score: float) -> Figure:
    """A score in percent."""
    return Figure(score / 100, MeanSpread(0.0, 9, 10))


def entry(name: str, score: float, *gaps: str) -> FigureEntry:
    return FigureEntry(name, "", Pair(exact(score), exact(score)), 10, 10, gaps)


def test_a_data_set_has_wilsons_interval() -> None:
    found = figure(Moments.of([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]))
    assert found is not None and isinstance(found.interval, Interval)
    assert found.ends == (pytest.approx(31.27, abs=0.01), pytest.approx(83.18, abs=0.01))
    whole = figure(Moments.of([1.0] * 20))
    assert whole is not None and whole.ends == (pytest.approx(83.89, abs=0.01), 100.0)
    assert figure(Moments()) is None


def test_one_sample_has_no_interval_and_says_why() -> None:
    found = figure(Moments.of([1.0]))
    assert found is not None and found.interval == NoInterval("n = 1")
    assert found.as_dict() == {"score": 100.0, "low": None, "high": None}


def test_groups_without_a_right_answer_are_not_certain_to_be_0() -> None:
    """As much is known as of 20 samples: two data sets of 10, each counting half."""
    parts = [part for _ in range(2) if (part := figure(Moments.of([0.0] * 10)))]
    assert combined(parts).ends == (0.0, pytest.approx(16.11, abs=0.01))


def test_weights_count_in_value_and_error() -> None:
    found = combined([Figure(0.0, MeanSpread(0.02, 9, 10)), Figure(1.0, MeanSpread(0.04, 9, 10))], [3, 1])
    assert (found.value, found.spread.error) == (25, pytest.approx(math.hypot(3 * 0.02, 0.04) / 4))


def test_means_of_means_have_the_interval_of_the_flat_mean() -> None:
    spreads = [MeanSpread(error, 9, 10) for error in (0.05, 0.04, 0.03, 0.06)]
    parts = [Figure(mean, spread) for mean, spread in zip((0.1, 0.2, 0.6, 0.9), spreads, strict=True)]
    nested = combined([combined(parts[:2]), combined(parts[2:])])
    flat = combined(parts)
    assert (nested.value, *nested.ends) == pytest.approx((flat.value, *flat.ends))


def test_the_interval_of_a_group_covers_its_true_mean_as_often_as_it_says() -> None:
    source = random.Random(5)
    shares = (0.03, 0.5, 0.9)
    hits = 0
    for _ in range(1000):
        sets = [Moments.of([float(source.random() < share) for _ in range(40)]) for share in shares]
        found = combined([part for moments in sets if (part := figure(moments)) is not None])
        low, high = found.ends
        assert low is not None and high is not None
        hits += low <= 100 * sum(shares) / 3 <= high
    assert 0.92 < hits / 1000 < 0.98


def test_a_complete_data_set_has_no_gap() -> None:
    found = dataset_entry(ScoredDataset(find("TQA"), summary("TQA", [1.0] * 50 + [0.0] * 150)))
    assert found.gaps == ()
    assert found.scores is not None
    assert found.scores.official.value == 25
    assert (found.samples, found.published) == (200, 200)


def test_every_reason_for_a_gap_is_told() -> None:
    few = summary("TQA", [1.0, 0.0])
    assert dataset_entry(ScoredDataset(find("TQA"), few)).gaps == ("TQA: 2 of 200 samples",)
    assert dataset_entry(ScoredDataset(find("TQA"), few, "3 of 5 failed")).gaps == ("TQA: withheld, 3 of 5 failed",)
    assert dataset_entry(ScoredDataset(find("TQA"), None)).gaps == ("TQA: nothing was scored",)


def test_groups_are_unweighted_means_and_name_what_they_lack() -> None:
    entries = {
        "MMCoQA": entry("MMCoQA", 30),
        "ALFRED": entry("ALFRED", 50),
        "GPR1200": entry("GPR1200", 5, "GPR1200: few"),
    }
    groups = group_entries(datasets(), entries)
    assert list(groups) == ["T-1", "T-2", "T-3", "T-4", "S-1", "S-2", "S-3", "S-4", "S-5", "N-1", "N-2", "I-1"]
    dialogue = groups["S-4"]
    assert dialogue.scores is not None
    assert (dialogue.scores.official.value, dialogue.gaps) == (40, ())
    assert groups["I-1"].gaps == ("GPR1200: few",)
    assert groups["S-5"].scores is None
    assert groups["S-5"].gaps == ("nuscenes: not in the run",)


def test_realistic_is_the_mean_of_groups_not_of_data_sets() -> None:
    scores = {label: 0.0 for label in ("T-1", "T-2", "T-3", "T-4", "S-1", "S-2", "S-3", "S-4")} | {"S-5": 90.0}
    needles = {"N-1": 90.0, "N-2": 60.0, "I-1": 0.0}
    found = overall_entries(datasets(), {label: entry(label, score) for label, score in (scores | needles).items()})
    assert [one.scores.official.value for one in found if one.scores is not None] == [10, 50, 75]
    assert [one.name for one in found] == ["Realistic", "Diagnostic", "Needles only"]


def test_a_gap_of_one_group_marks_the_overall_figure() -> None:
    groups = {facts.label: entry(facts.label, 10) for facts in datasets().values()}
    groups["N-2"] = entry("N-2", 20, "gone")
    assert [one.gaps for one in overall_entries(datasets(), groups)] == [(), ("gone",), ("gone",)]
