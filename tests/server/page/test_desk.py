"""What the page shows of jobs: their names, headline numbers, tables and reasons of failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmms_eval.server.outcome import headline_rows, short_reason
from lmms_eval.server.page.desk import entry, tables
from lmms_eval.server.store import Job
from tests.cases import for_each
from tests.results.runs import document


def job(tmp_path: Path, **stated: Any) -> Job:
    request = {"model": "hf", "model_args": {"pretrained": "me/small", "dtype": "float32"}, "tasks": ["quiz"]}
    return Job(
        "j", 1, **{"state": "completed", "request": request, "folder": str(tmp_path), "created_at": "now", **stated}
    )


def scored(**metrics: float | None) -> dict[str, Any]:
    """A results document of one task."""
    n = {f"{name},none": 20 for name in metrics}
    results = {"quiz": {f"{name},none": value for name, value in metrics.items()}}
    outcomes = {"quiz": {"requested": 20, "scored": 14, "failed": 6, "reasons": {"no answer": 6}, "n": n}}
    return {**document(), "results": results, "outcomes": outcomes, "group_subtasks": {}}


def test_an_evaluation_has_the_name_of_its_model(tmp_path: Path) -> None:
    assert (entry(job(tmp_path), 0)["name"], entry(job(tmp_path), 0)["model"]) == ("me/small", "hf")
    assert entry(job(tmp_path, request={"model": "baseline", "tasks": ["quiz"]}), 0)["name"] == "baseline"


def test_the_list_shows_the_newest_numbers(tmp_path: Path) -> None:
    files = {}
    for stamp, value in (("20260101_000000", 0.25), ("20260102_000000", 0.75)):
        file = tmp_path / f"{stamp}_results.json"
        file.write_text(json.dumps(scored(exact_match=value, scored=14)))
        files[stamp] = {"results": str(file), "samples": []}
    shown = entry(job(tmp_path, result=files), 0)
    assert [(row["metric"], row["value"]) for row in shown["headlines"]] == [("exact_match", 0.75)]
    assert shown["headlines_left_out"] == 0
    (tmp_path / "20260102_000000_results.json").write_text("{")
    assert entry(job(tmp_path, result=files), 0)["headlines"] == []
    assert entry(job(tmp_path, result=files, state="queued"), 0)["headlines"] == []


def test_the_headline_is_the_first_score_of_a_group_or_else_of_its_tasks() -> None:
    found = scored(scored=20, exact_match=0.5, f1=0.4)
    assert [(row["task"], row["metric"]) for row in headline_rows(found)] == [("quiz", "exact_match")]
    grouped = {**found, "results": {"all": {}, **found["results"]}, "group_subtasks": {"all": ["quiz"]}}
    assert [row["task"] for row in headline_rows(grouped)] == ["quiz"]
    grouped["results"]["all"] = {"exact_match,none": 0.6}
    grouped["outcomes"] = {**found["outcomes"], "all": {"n": {"exact_match,none": 20}}}
    assert [(row["task"], row["value"]) for row in headline_rows(grouped)] == [("all", 0.6)]


def test_counts_are_not_among_the_scores() -> None:
    found = tables(scored(exact_match=0.5, submission=None, scored=14))
    assert [row["metric"] for row in found["rows"]] == ["exact_match"]
    assert [(one["label"], one["n"]) for one in found["counts"]] == [
        ("answers for submission", 20),
        ("scored documents", 20),
    ]
    (outcome,) = found["outcomes"]
    assert (outcome["requested"], outcome["failed"], outcome["reasons"]) == (20, 6, {"no answer": 6})


@for_each(
    ("error", "reason"),
    [
        ("hf: no such folder (exit code 2); the end of its log:\nerror: hf", "hf: no such folder (exit code 2)"),
        ("the run ended with exit code 2; the end of its log:\na\nerror: b\nerror: c", "c"),
        ("the run ended with exit code 2; the end of its log:\na", "the run ended with exit code 2"),
        ("the server cannot start it", "the server cannot start it"),
        ("", ""),
    ],
)
def test_the_reason_of_a_failure_is_one_line(error: str, reason: str) -> None:
    assert short_reason(error) == reason
