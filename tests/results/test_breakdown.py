from __future__ import annotations

import math
from pathlib import Path

import pytest

from lmms_eval.results import load
from lmms_eval.results.breakdown import breakdown, breakdown_text
from lmms_eval.results.run_reader.run import Choice
from lmms_eval.stats import Interval, Spread, score_interval
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.utils.where import parse_where
from tests.results.run_reader.runs import FAILED, document, sample, write_run


def rows() -> list[dict]:
    made = [
        sample(number, doc={"topic": "ab"[number % 4 == 0], "text": f"own {number}", "year": 2000 + number % 2})
        for number in range(80)
    ]
    return [*made, {**FAILED, "doc_id": 80}]


def test_values_of_metadata_have_means_and_intervals_by_the_rule(tmp_path: Path) -> None:
    run = load(write_run(tmp_path, rows()))
    found = breakdown(run, run.task("quiz"))
    assert (found.metric, found.filter, found.note) == ("acc", "none", "")
    assert found.outcomes == {"scored": 79, "truncated": 1, "failed": 1}
    cells = {(cell.by, cell.value): cell for cell in found.cells}
    assert list(cells) == [
        ("", ""), ("topic", "a"), ("topic", "b"), ("year", "2000"), ("year", "2001"), ("kind", "x"), ("kind", "y"),
    ]  # fmt: skip
    whole = cells["", ""]
    shares = ScoreRange(0, 1)
    expected = score_interval(0.5, Spread.of_scores([0.0, 1.0] * 40, shares), shares)
    assert isinstance(expected, Interval)
    assert (whole.n, whole.mean, whole.low, whole.high) == (80, 0.5, expected.low, expected.high)
    topic = cells["topic", "b"]
    assert (topic.n, topic.mean, topic.is_few, cells["topic", "a"].is_few) == (20, 0.0, True, False)


def test_another_metric_and_fewer_samples(tmp_path: Path) -> None:
    run = load(write_run(tmp_path, rows()))
    found = breakdown(run, run.task("quiz"), "graded", Choice(where=parse_where("topic == 'b'")))
    assert (found.metric, found.cells[0].n) == ("graded", 20)
    assert math.isclose(found.cells[0].mean or 0, sum(range(0, 80, 4)) / 4 / 20)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"early_stop": {"quiz": {"asked": 80, "of": 200}}}, "stopped early"),
        ({"configs": {"quiz": {"cluster_key": "video"}}}, "clusters"),
    ],
)
def test_no_interval_where_the_plain_one_does_not_hold(tmp_path: Path, part: dict, reason: str) -> None:
    run = load(write_run(tmp_path, rows(), document() | part))
    cells = breakdown(run, run.task("quiz")).cells
    assert {(cell.low, cell.high, cell.no_interval) for cell in cells} == {(None, None, reason)}
    assert cells[0].mean == 0.5


def test_a_number_that_is_no_mean_is_told(tmp_path: Path) -> None:
    run = load(write_run(tmp_path, rows(), document(results={"quiz": {"acc,none": 0.75}})))
    assert "own number is 0.7500" in breakdown(run, run.task("quiz")).note
    percent = load(write_run(tmp_path, rows(), document(results={"quiz": {"acc,none": 50.0}})))
    assert breakdown(percent, percent.task("quiz")).note == ""


@pytest.mark.parametrize("lines", [[], [FAILED]])
def test_nothing_scored(tmp_path: Path, lines: list[dict]) -> None:
    run = load(write_run(tmp_path, lines))
    (cell,) = breakdown(run, run.task("quiz")).cells
    assert (cell.n, cell.mean, cell.no_interval) == (0, None, "n = 0")


def test_text_is_a_table_that_marks_few_documents_and_shows_hostile_names(tmp_path: Path) -> None:
    hostile = [sample(n, doc={"a|b\x1b[2J": ["<i>", "*x*"][n % 2]}) for n in range(8)]
    text = breakdown_text(breakdown(run := load(write_run(tmp_path, hostile)), run.task("quiz")))
    assert "\x1b" not in text
    assert "\\<i\\>" in text
    assert "a\\|b" in text
    assert "few" in text
