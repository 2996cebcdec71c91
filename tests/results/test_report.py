from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lmms_eval.api.outcome import SubScore, Withheld
from lmms_eval.api.task import Group, GroupMetric, PipelineScore
from lmms_eval.config import RunConfig
from lmms_eval.results.summary import estimand_lines, header, notes
from lmms_eval.stats import Interval
from tests.engine.fakes import FakeTask
from tests.engine.journaled import aggregated, scored
from tests.results.finished import FACTS, run_result, task_result

FILES = ("a.json",)


def test_the_header() -> None:
    config = RunConfig(
        model="openai", model_args="model=x", gen_kwargs="temperature=0", limit=5.0, offset=2, batch_size=1
    )
    assert header(config) == (
        "openai (model=x), gen_kwargs: (temperature=0), limit: 5.0, offset: 2, num_fewshot: None, batch_size: 1"
    )


def test_a_clean_run_has_nothing_to_say_but_its_files(tmp_path: Path) -> None:
    assert notes(run_result(task_result(tmp_path, "a")), FACTS, FILES) == ["written: a.json"]


def test_failures_are_counted_explained_and_continued(tmp_path: Path) -> None:
    lines = notes(run_result(task_result(tmp_path, "a", [1.0, 0.0, 1.0], lost=1)), FACTS, FILES)
    assert lines[0] == "a: 3 scored, 0 unscored, 1 failed of 4 (coverage 75.0%)"
    assert lines[1] == "  1 x failed: timeout"
    assert lines[2].startswith(
        "a: acc is withheld (1 of 4 failed); partial value over 3 documents, not a score: 0.6667 ["
    )
    assert lines[3].endswith("run the same command again:\n  lmms-eval --model fake")


def test_bounds_follow_the_counts_of_documents_without_a_score(tmp_path: Path) -> None:
    task = task_result(tmp_path, "a", [1.0] * 20 + [0.0] * 10, lost=4, error_budget=0.5)
    lines = notes(run_result(task), FACTS, FILES)
    assert re.fullmatch(
        r"a: acc: 4 of 34 documents have no score: 0\.4\d+ to 0\.8\d+ whatever they would score", lines[2]
    )
    task = task_result(tmp_path, "b", [1.0, 0.0, 0.0], lost=1, aggregation=max, error_budget=0.5)
    assert not any("whatever" in line for line in notes(run_result(task), FACTS, FILES))


def test_the_most_frequent_reasons_stand_first_and_the_rest_is_counted(tmp_path: Path) -> None:
    task = FakeTask(10)
    reasons = ["rare", "often", "often", "often", "b", "b", "c", "c", "d", "d"]
    records = [scored(task, n, PipelineScore("none", None, {}, "unscored", reason)) for n, reason in enumerate(reasons)]
    lines = notes(run_result(aggregated(tmp_path, task, records)), FACTS, FILES)
    assert lines[1] == "  3 x unscored: often"
    assert lines[4] == "  ... and 2 more reasons (see outcomes in the results file)"


def test_early_end_interrupt_and_broken_aggregation(tmp_path: Path) -> None:
    stopped = notes(run_result(task_result(tmp_path, "a", lost=1), give_up="HTTP 401"), FACTS, FILES)
    assert "stopped asking early: HTTP 401" in stopped
    interrupted = notes(run_result(task_result(tmp_path, "b", interrupted=True), interrupted=2), FACTS, FILES)
    assert "interrupted: what was finished is kept" in interrupted
    assert any("run the same command again" in line for line in interrupted)

    def broken(values: list[float]) -> float:
        raise ValueError("no weights")

    lines = notes(run_result(task_result(tmp_path, "c", aggregation=broken)), FACTS, FILES)
    assert any("raised ValueError: no weights" in line for line in lines)
    assert not any("to ask only what is missing" in line for line in lines)  # nothing is missing


def test_a_group_says_what_it_leaves_out(tmp_path: Path) -> None:
    groups = [Group("all", "all", ("a",), (GroupMetric("f1", "mean"),))]
    lines = notes(run_result(task_result(tmp_path, "a"), groups=groups), FACTS, FILES)
    assert lines[0] == "group all: f1,none is absent from a, which is left out of its row"


def test_a_partial_value_that_is_no_number_is_not_printed(tmp_path: Path) -> None:
    def partial(values: Any) -> Withheld:
        return Withheld({"by": "type"}, "needs a judge")

    assert notes(run_result(task_result(tmp_path, "a", aggregation=partial)), FACTS, FILES) == ["written: a.json"]


def test_paths_are_of_one_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative below the current folder, absolute elsewhere, however each was stated."""
    monkeypatch.chdir(tmp_path)
    files = ("out/a.json", str(tmp_path / "out" / "b.json"), "./out/c.json", str(tmp_path.parent / "d.json"))
    assert notes(run_result(task_result(tmp_path, "a")), FACTS, files) == [
        "written: out/a.json", "written: out/b.json", "written: out/c.json", f"written: {tmp_path.parent}/d.json",
    ]  # fmt: skip


def test_many_files_are_counted_by_kind(tmp_path: Path) -> None:
    samples = [f"out/{number}_samples_{number}.jsonl" for number in range(20)]
    files = (*samples, "out/results.json", *(f"out/gb/{number}/prediction.json" for number in range(4)))
    assert notes(run_result(task_result(tmp_path, "a")), FACTS, files) == [
        "written: 20 files *_samples_* below out",
        "written: out/results.json",
        "written: 4 files prediction.json below out/gb",
    ]


def test_tasks_without_any_score_for_one_reason_share_a_line(tmp_path: Path) -> None:
    def unscored(name: str, reason: str) -> Any:
        task = FakeTask(2)
        task.name = name
        records = [scored(task, n, PipelineScore("none", None, {}, "unscored", reason)) for n in range(2)]
        return aggregated(tmp_path / name, task, records)

    lines = notes(
        run_result(*(unscored(f"t{n}", "closed set") for n in range(6)), unscored("u", "no judge")), FACTS, FILES
    )
    assert lines[0] == "6 tasks are not scored at all (t0, t1, t2, ...): unscored: closed set"
    assert lines[1].startswith("u: 0 scored, 2 unscored") and lines[2] == "  2 x unscored: no judge"


def test_sentences_of_an_aggregation_are_printed_and_sub_scores_are_not(tmp_path: Path) -> None:
    result = task_result(tmp_path, "a")
    parts = {f"part {number}": SubScore(0.5, number) for number in range(30)}
    metric = structs.replace(result.metrics[0], sub_scores={"kind": parts}, notes=("two were left out",))
    lines = notes(run_result(structs.replace(result, metrics=(metric,))), FACTS, FILES)
    assert lines[0] == f"a: {metric.metric}: two were left out"
    assert not any("by kind" in line for line in lines)  # they are a table: tests/results/test_tables.py


def test_a_line_states_what_the_intervals_are_about(tmp_path: Path) -> None:
    whole, early = task_result(tmp_path, "a", [1.0, 0.0, 1.0]), task_result(tmp_path, "b", [1.0, 0.0, 1.0])
    line = "CI95: generalised accuracy, the expected score over questions like these"
    assert estimand_lines(run_result(whole)) == [line]
    (metric,) = early.metrics
    sampled = structs.replace(metric.certainty, interval=Interval(0.2, 0.9, "betting"))
    early = structs.replace(early, metrics=(structs.replace(metric, certainty=sampled),))
    assert estimand_lines(run_result(whole, early)) == [
        line.replace("CI95:", "CI95 of a:"),
        "CI95 of b: benchmark accuracy, the score over all questions of this list",
    ]
    one = task_result(tmp_path, "c", [1.0])
    assert estimand_lines(run_result(one)) == []


def test_a_missing_judge_is_what_the_same_command_needs(tmp_path: Path) -> None:
    task = FakeTask(2)
    reason = "no judge: give --judge_model"
    records = [scored(task, n, PipelineScore("none", None, {}, "unscored", reason)) for n in range(2)]
    lines = notes(run_result(aggregated(tmp_path, task, records)), FACTS, FILES)
    assert any("add --judge_model NAME to the same command (the model is not asked again)" in line for line in lines)
    assert not any("run the same command again" in line for line in lines)
