from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import pytest

import lmms_eval.tasks.milebench as milebench
from lmms_eval.stats.interval import MeanSpread
from lmms_eval.tasks.milebench.facts import datasets
from lmms_eval.tasks.milebench.summary.dataset import Pair
from lmms_eval.tasks.milebench.summary.figures import PERCENT, Figure, FigureEntry, ScoredDataset, overall_entries
from lmms_eval.tasks.milebench.summary.overview import build
from lmms_eval.utils.files import read_table
from tests.cases import for_each
from tests.tasks.milebench.summaries import summary

FOLDER = Path(milebench.__file__).parent
PUBLISHED = read_table(FOLDER / "published.tsv")
LABELS = list(dict.fromkeys(facts.label for facts in datasets().values()))
NOT_RECOMPUTED = {("Random", "realistic"), ("Random", "diagnostic"), ("GPT-4V", "diagnostic"), ("GPT-4o", "diagnostic")}
"""Published figures that do not follow from their groups (the last two print the mean of N-1 and N-2 alone)."""


def recomputed(groups: Mapping[str, float]) -> dict[str, float]:
    """The overall figures, in percent, from the scores of all groups alone, as published tables have them."""
    figures = {label: Figure(value / PERCENT, MeanSpread(math.nan, 0, 1)) for label, value in groups.items()}
    exact = {label: FigureEntry(label, "", Pair(found, found), 0, 0) for label, found in figures.items()}
    found = overall_entries(datasets(), exact)
    return {entry.name: entry.scores.official.value for entry in found if entry.scores is not None}


@for_each("row", PUBLISHED, ids=lambda row: row["model"])
def test_published_averages_follow_from_the_published_groups(row: dict[str, str]) -> None:
    found = recomputed({label: float(row[label]) for label in LABELS})
    for column, name in (("realistic", "Realistic"), ("diagnostic", "Diagnostic")):
        differs = abs(found[name] - float(row[column])) > 0.1
        assert differs == ((row["model"], column) in NOT_RECOMPUTED), (column, found[name])


@for_each("model", ["GPT-4V", "GPT-4o"])
def test_the_other_convention_of_the_paper(model: str) -> None:
    (row,) = [row for row in PUBLISHED if row["model"] == model]
    found = recomputed({label: float(row[label]) for label in LABELS})
    assert found["Needles only"] == pytest.approx(float(row["diagnostic"]), abs=0.1)


def test_the_published_table_is_whole() -> None:
    assert len(PUBLISHED) == 23
    assert list(PUBLISHED[0]) == ["model", "size", *LABELS, "realistic", "diagnostic"]


def test_the_page_lists_the_published_averages() -> None:
    page = (FOLDER / "README.md").read_text("utf-8").splitlines()
    for row in PUBLISHED:
        assert f"| {row['model']} | {row['size'] or '-'} | {row['realistic']} | {row['diagnostic']} |" in page


def test_a_complete_run_has_official_numbers() -> None:
    scored = [
        ScoredDataset(facts, summary(facts.name, [1.0] * 20 + [0.0] * (facts.samples - 20)))
        for facts in datasets().values()
    ]
    found = build(scored[::-1], "")
    content = json.loads(json.dumps(found.as_dict()))
    assert not found.is_partial
    assert list(content["datasets"]) == list(datasets())
    assert content["overall"]["Realistic"]["official"]["score"] == pytest.approx(10)
    assert content["overall"]["Diagnostic"]["official"]["score"] == pytest.approx((6.25 + 6.25 + 100 * 20 / 600) / 3)
    assert content["groups"]["T-1"]["samples"] == 600
    assert sum(level["samples"] for level in content["image_levels"] if level["scope"] == "all") == 6440
    assert content["steps"] == {"text": 6440}
    assert "partial" not in content["overall"]["Realistic"]


def test_an_incomplete_run_has_none() -> None:
    content = build([ScoredDataset(datasets()["TQA"], summary("TQA", [1.0, 0.0], no_answer=1))], "").as_dict()
    realistic = content["overall"]["Realistic"]
    assert content["is_partial"]
    assert realistic["official"] is None
    assert realistic["partial"]["official"]["score"] == 50
    assert "TQA: 2 of 200 samples" in realistic["gaps"]
    assert "WebQA: not in the run" in realistic["gaps"]
    assert content["overall"]["Diagnostic"]["partial"] is None
    assert list(content["groups"]) == ["S-1"]
    assert content["no_answer"] == content["datasets"]["TQA"]["no_answer"] == 2


def test_sequence_rouge_is_in_percent() -> None:
    found = build(
        [ScoredDataset(datasets()["IEdit"], summary("IEdit", [0.5], sequence=0.25, metric="Rouge-L f"))], ""
    ).as_dict()
    assert found["datasets"]["IEdit"]["sequence_rouge_l"] == 25
    assert found["datasets"]["IEdit"]["metric"] == "Rouge-L f"
