from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from lmms_eval.api.outcome import Estimate, Withheld
from lmms_eval.api.task import Group, GroupMetric
from lmms_eval.config import RunConfig
from lmms_eval.results.baseline import PairedScores
from lmms_eval.results.document import results_document
from lmms_eval.utils import make_table
from tests.results.finished import FACTS, run_result, selection, task_result


def test_the_keys_of_the_family_and_our_own(tmp_path: Path) -> None:
    task = task_result(tmp_path, "quiz")
    document = results_document(run_result(task), selection(task), FACTS, {})
    assert document["results"]["quiz"]["acc,none"] == 0.5
    assert document["results"]["quiz"]["acc_stderr,none"] == pytest.approx(0.5)
    assert document["results"]["quiz"]["acc_stderr_clustered,none"] == "N/A"
    assert "groups" not in document and "efficiency" not in document and "throughput" not in document
    assert document["group_subtasks"] == {"quiz": []}
    assert document["n-samples"] == {"quiz": {"original": 2, "effective": 2}}
    assert document["higher_is_better"] == {"quiz": {"acc": True}}
    assert document["lmms_eval_version"] == "main@01234567"
    assert document["total_evaluation_time_seconds"] == "60.5"
    assert document["usage"]["total"]["n_api_calls"] == 2
    assert document["usage"]["by_task"]["quiz"]["total_tokens"] == 10
    assert document["timing"] == {
        "collect": 1.0, "ask": 2.0, "first_request_to_last_response": 0.0, "asked": 0, "resumed": 3,
    }  # fmt: skip
    assert document["intervals"]["quiz"]["acc,none"]["method"] == "modified wilson"
    assert (document["state"], document["run_key"], document["prompt_fingerprint"]) == ("complete", "k" * 16, "f" * 64)
    json.dumps(document)


def test_a_withheld_score_is_null_and_its_partial_value_stands_apart(tmp_path: Path) -> None:
    task = task_result(tmp_path, "quiz", [1.0, 0.0, 1.0], lost=1)
    document = results_document(run_result(task), selection(task), FACTS, {})
    entry = document["results"]["quiz"]
    assert entry["acc,none"] is None
    assert {entry[f"acc_{name},none"] for name in ("stderr", "stderr_clt", "stderr_clustered")} == {"N/A"}
    outcome = document["outcomes"]["quiz"]
    assert (outcome["requested"], outcome["scored"], outcome["failed"], outcome["withheld"]) == (4, 3, 1, True)
    assert outcome["partial"]["acc,none"]["value"] == pytest.approx(2 / 3)
    assert outcome["partial"]["acc,none"]["interval"] is not None
    assert document["intervals"]["quiz"] == {} and document["state"] == "withheld"


def test_an_official_total_that_is_withheld_and_parts_of_a_task(tmp_path: Path) -> None:
    estimate = Estimate(0.7, 0.1, {"megabench": {"tasks": 3}})
    task = task_result(tmp_path, "quiz", aggregation=lambda values: Withheld(estimate, "needs a judge"))
    document = results_document(run_result(task), selection(task), FACTS, {})
    assert document["results"]["quiz"]["acc,none"] is None
    assert document["outcomes"]["quiz"]["partial"]["acc,none"]["reason"] == "needs a judge"
    assert document["megabench"] == {"quiz": {"tasks": 3}}
    assert document["state"] == "complete"


def test_groups_come_first_then_their_leaves_and_direct_tasks_stand_alone(tmp_path: Path) -> None:
    tasks = [task_result(tmp_path, name) for name in ("a", "b", "c")]
    groups = [
        Group("outer", "Outer", ("inner", "b"), (GroupMetric("acc", "mean"),), 2.0),
        Group("inner", "Inner", ("a",)),
    ]
    chosen = selection(*tasks, groups=groups, direct=["b", "c"])
    document = results_document(run_result(*tasks, groups=groups), chosen, FACTS, {})
    aliases = {name: entry["alias"] for name, entry in document["results"].items()}
    assert list(aliases) == ["outer", "inner", "a", "b", "c"]
    assert aliases == {"outer": "Outer", "inner": " - Inner", "a": "  - a", "b": "b", "c": "c"}
    assert list(document["groups"]) == ["outer"]
    assert document["results"]["outer"]["acc,none"] == 0.5
    assert document["results"]["inner"] == {" ": " ", "alias": " - Inner"}
    assert document["group_subtasks"] == {"outer": ["inner", "b"], "inner": ["a"], "b": [], "c": []}
    assert document["versions"] == {"a": 1.0, "b": 1.0, "c": 1.0, "outer": 2.0}
    assert document["higher_is_better"]["outer"] == {"acc": True}
    assert document["intervals"]["outer"]["acc,none"]["low"] < 0.5


def test_a_group_with_a_withheld_part_and_one_without_the_metric(tmp_path: Path) -> None:
    tasks = [task_result(tmp_path, "a"), task_result(tmp_path, "b", lost=1)]
    groups = [Group("all", "all", ("a", "b"), (GroupMetric("acc", "mean"), GroupMetric("f1", "mean")))]
    document = results_document(run_result(*tasks, groups=groups), selection(*tasks, groups=groups), FACTS, {})
    assert document["results"]["all"]["acc,none"] is None
    assert document["left_out"] == {"all": {"f1,none": ("a", "b")}}
    outcome = document["outcomes"]["all"]
    assert (outcome["requested"], outcome["scored"], outcome["failed"], outcome["withheld"]) == (5, 4, 1, True)
    assert "withheld (1 failed)" in make_table(document, "groups")


def test_comparison_efficiency_speed_and_system_prompt(tmp_path: Path) -> None:
    task = task_result(tmp_path, "quiz")
    paired = PairedScores("earlier", "percent", 40.0, 10.0, 5.0, 15.0, 0.01, 2)
    facts = structs.replace(FACTS, config=RunConfig(log_samples=True, system_instruction="be brief"))
    run = run_result(task, output_tokens=50, answered=5, seconds=2.0, timed=2, latency=0.8)
    document = results_document(run, selection(task), facts, {"quiz": {"acc,none": paired}})
    assert document["results"]["quiz"]["paired_baseline"] == "earlier"
    assert document["results"]["quiz"]["paired_pvalue"] == 0.01
    assert document["paired"]["quiz"]["acc,none"]["difference"] == 10.0
    assert document["throughput"] == {
        "total_gen_tokens": 50, "total_elapsed_time": 2.0, "avg_speed": 25.0, "avg_latency": 0.4,
    }  # fmt: skip
    assert document["efficiency"]["overall"]["docs"] == 2.0
    assert len(document["system_instruction_sha"]) == 64


def test_a_missing_interval_has_its_reason(tmp_path: Path) -> None:
    task = task_result(tmp_path, "quiz", [1.0])
    document = results_document(run_result(task), selection(task), FACTS, {})
    assert document["intervals"]["quiz"]["acc,none"] == {"low": None, "high": None, "reason": "n = 1"}
    assert "|n = 1|" in make_table(document)


def test_bounds_of_documents_without_a_score_are_in_the_outcomes(tmp_path: Path) -> None:
    quiz = task_result(tmp_path, "quiz", [1.0] * 20 + [0.0] * 10, lost=4, error_budget=0.5)
    other = task_result(tmp_path, "other", [1.0, 0.0, 0.0], lost=1, aggregation=max, error_budget=0.5)
    outcomes = results_document(run_result(quiz, other), selection(quiz, other), FACTS, {})["outcomes"]
    bounds = outcomes["quiz"]["missing_bounds"]["acc,none"]
    assert (bounds["n"], bounds["reason"]) == (4, "") and 0.4 < bounds["low"] < 20 / 34 < 24 / 34 < bounds["high"] < 0.9
    nothing = {"n": 1, "low": None, "high": None, "reason": "not a mean over documents"}
    assert outcomes["other"]["missing_bounds"] == {"acc,none": nothing}
    whole = task_result(tmp_path, "whole")
    assert "missing_bounds" not in results_document(run_result(whole), selection(whole), FACTS, {})["outcomes"]["whole"]


def test_an_interrupted_run_says_so(tmp_path: Path) -> None:
    task = task_result(tmp_path, "quiz", interrupted=True)
    document = results_document(run_result(task, interrupted=2), selection(task), FACTS, {})
    assert document["state"] == "interrupted"
    assert document["outcomes"]["quiz"]["partial"]["acc,none"]["reason"] == "the run was interrupted"
