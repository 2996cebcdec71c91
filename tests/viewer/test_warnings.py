"""Sentences about a run's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lmms_eval.viewer.numbers import _outcome_warnings, counted, stated_rows
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.cases import for_each
from tests.results.runs import document, write_run
from tests.viewer.conftest import Watched
from tests.viewer.test_report import content


def texts(**counts: Any) -> list[str]:
    return [warning["text"] for warning in _outcome_warnings("t", {"requested": 10, **counts})]


def test_replies_that_the_judge_owes_and_bounds_of_truncated_answers_are_said() -> None:
    bounds = {"acc,none": {"low": 0.25, "high": 0.75}, "f1,none": {"low": None, "high": None}}
    assert texts(judge_unread=3, truncation=bounds) == [
        "3 of 10 samples lack a readable reply of the judge",
        "acc,none lies between 0.25 and 0.75, whatever the truncated answers are worth",
    ]


def test_bounds_of_documents_without_a_score_are_given() -> None:
    bounds = {"acc,none": {"n": 3, "low": 0.25, "high": 0.75, "reason": ""}, "f1,none": {"n": 3, "reason": "no mean"}}
    assert texts(missing_bounds=bounds) == [
        "acc,none lies between 0.25 and 0.75, whatever documents without a score are worth"
    ]


@for_each("truncation", [None, [], "x", {"acc": None}, {"acc": [1]}, {"acc": {"low": "0", "high": 1}}])
def test_results_of_strangers_say_nothing_of_it(truncation: Any) -> None:
    assert texts(truncation=truncation) == []


def test_a_withheld_score_and_its_cause_are_one_warning() -> None:
    (found,) = _outcome_warnings(
        "t", {"requested": 9, "failed": 2, "withheld": True, "reasons": {"failed: HTTP 400": 2}}
    )
    assert found["kind"] == "withheld" and found["cause"] == "HTTP 400" and found["short"] == "2 of 9 samples failed"
    assert found["text"] == "score withheld: 2 of 9 samples failed (most often: HTTP 400)"
    assert texts(withheld=True) == ["score withheld"]
    assert texts(failed=2, unscored=3, withheld=True) == [
        "score withheld: 2 of 10 samples failed",
        "3 of 10 samples could not be scored",
    ]


def test_tasks_with_one_cause_share_a_box(tmp_path: Path, watched: Watched) -> None:
    outcome = {"requested": 3, "scored": 2, "failed": 1, "withheld": True, "n": {"acc,none": 2}}
    causes = {"a": "HTTP 400", "<b>b</b>": "HTTP 400", "c": "no memory"}
    outcomes = {task: outcome | {"reasons": {f"failed: {cause}": 1}} for task, cause in causes.items()}
    made = document(outcomes=outcomes, state="withheld", results={task: {"alias": task} for task in causes})
    write_report([str(write_run(tmp_path / "run", [], made))], tmp_path / "report", ReportOptions())
    assert [one["kind"] for one in content(tmp_path / "report", "runs")["runs"][0]["warnings"]] == ["withheld"] * 3
    page = watched.open(tmp_path / "report", "#/org%2Fmodel")
    boxes = page.query_selector_all(".warnings li.grave")
    assert [box.inner_text().split("\n")[0] for box in boxes] == [
        "Score withheld: 2 tasks failed: HTTP 400",
        "c: score withheld: 1 of 3 samples failed (most often: no memory)",
    ]
    boxes[0].query_selector("summary").click()
    assert [one.inner_text() for one in boxes[0].query_selector_all("ul li")] == [
        "a: 1 of 3 samples failed",
        "<b>b</b>: 1 of 3 samples failed",
    ]


def test_metrics_that_score_nothing_are_counts() -> None:
    made = {
        "results": {"quiz": {"alias": " - Quiz", "acc,none": 0.5, "scored,none": 4, "submission,none": None}},
        "outcomes": {"quiz": {"n": {"acc,none": 4, "scored,none": 4, "submission,none": 3, "dump,none": 2}}},
    }
    made["outcomes"]["quiz"]["wrote_files"] = ["dump,none"]
    (row,) = stated_rows(made, "quiz")
    assert (row["metric"], row["alias"], row["n"], row["over"]) == ("acc", " - Quiz", 4, "questions")
    assert counted(made) == [
        {"task": "quiz", "label": "scored documents", "n": 4},
        {"task": "quiz", "label": "answers for submission", "n": 3},
        {"task": "quiz", "label": "answers in files", "n": 2},
    ]
    assert counted({}) == []
