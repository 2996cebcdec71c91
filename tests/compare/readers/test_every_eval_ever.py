from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.main import main
from lmms_eval.compare.readers import read_runs
from lmms_eval.errors import DataError, UsageError
from lmms_eval.exchange.every_eval_ever import Source, export_records
from lmms_eval.results import load
from tests.results.runs import FAILED, document, sample, write_run

UUID = "01234567-89ab-4cde-8f01-23456789abcd"
RESULT = {
    "evaluation_name": "GSM8K",
    "evaluation_result_id": "gsm8k#accuracy",
    "source_data": {"dataset_name": "gsm8k", "source_type": "hf_dataset"},
    "metric_config": {
        "metric_id": "accuracy", "metric_name": "Accuracy", "lower_is_better": False, "score_type": "continuous",
        "min_score": 0, "max_score": 100,
    },
    "score_details": {"score": 50.0},
}  # fmt: skip


def record(**parts: Any) -> dict[str, Any]:
    """A record of another harness."""
    return {
        "schema_version": "0.3.0", "evaluation_id": "gsm8k/lab/finch/1", "retrieved_timestamp": "1",
        "model_info": {"name": "finch", "id": "lab/finch", "additional_details": {}},
        "eval_library": {"name": "other", "version": "1"}, "evaluation_results": [RESULT], **parts,
    }  # fmt: skip


def line(sample_id: Any, score: Any, **parts: Any) -> dict[str, Any]:
    return {
        "schema_version": "0.3.0", "evaluation_id": "gsm8k/lab/finch/1", "model_id": "lab/finch",
        "evaluation_name": "GSM8K", "evaluation_result_id": "gsm8k#accuracy", "sample_id": sample_id,
        "interaction_type": "single_turn", "input": {"raw": "2 + 2?", "reference": ["4"]},
        "output": {"raw": ["It is 4."]}, "evaluation": {"score": score, "is_correct": bool(score)},
        "answer_attribution": [], "metadata": {"topic": "sums"}, **parts,
    }  # fmt: skip


def write(folder: Path, lines: list[dict[str, Any]], whole: Mapping[str, Any] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{UUID}.json"
    path.write_text(json.dumps(record() if whole is None else whole, indent=1))
    (folder / f"{UUID}_samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def test_a_record_of_another_harness_is_a_run(tmp_path: Path) -> None:
    lines = [line("a", 1), line("b", 0), line("b", 1), line("c", 0, answer_attribution=[{"extracted_value": "5"}])]
    (run,) = read_runs([str(write(tmp_path, lines))])
    assert (run.name, run.kind, list(run.tasks)) == ("lab/finch", "every_eval_ever", ["GSM8K"])
    task = run.tasks["GSM8K"]
    assert (list(task.ids), task.statuses) == (["a", "b", "c"], ["scored"] * 3)
    column = task.columns["accuracy,none"]
    assert column.scores.tolist() == [1.0, 0.5, 0.0]
    assert (column.reported, column.scale, column.higher_is_better, column.states_filter) == (50.0, 100.0, True, False)
    assert column.score_range is not None and (column.score_range.low, column.score_range.high) == (0.0, 1.0)
    first, last = task.answer(0), task.answer(2)
    assert first is not None and last is not None
    assert (first.text, first.target, first.prompt, last.text) == ("It is 4.", "4", "2 + 2?", "5")
    assert task.metadata() == {"topic": ["sums"] * 3}


def test_our_record_gives_what_the_run_gives(tmp_path: Path) -> None:
    rows = [sample(n, filter=name) for name in ("strict", "loose") for n in range(4)]
    results = {"quiz": {"alias": "quiz", "acc,strict": 0.5, "acc,loose": 0.5}}
    clusters = {"quiz": {"by": "column topic", "count": 2, "documents": 4}}
    configs = {"quiz": {"score_key": "score", "cluster_key": "topic", "metric_list": [{"metric": "acc"}]}}
    path = write_run(tmp_path / "run", rows, document(results=results, clusters=clusters, configs=configs, outcomes={}))
    export_records(load(path), tmp_path / "eee", Source())
    ours, read = (run.tasks["quiz"] for run in read_runs([str(path), str(tmp_path / "eee")]))
    assert list(read.columns) == ["acc,strict", "acc,loose"]
    for key, column in read.columns.items():
        mine = ours.columns[key]
        assert column.scores.tolist() == mine.scores.tolist()
        assert (column.reported, column.scale) == (mine.reported, mine.scale)
    assert (list(read.ids), read.hashes) == (list(ours.ids), ours.hashes)
    assert read.clusters is not None and ours.clusters is not None
    pairs = set(zip(read.clusters, ours.clusters, strict=True))
    assert len(pairs) == len(set(ours.clusters)) == 2
    assert read.metadata() == {name: ours.metadata()[name] for name in read.metadata()}


def test_what_the_record_lacks_is_noted(tmp_path: Path) -> None:
    early = {"quiz": {"asked": 3, "of": 9, "order": "o", "rule": "ci=0.1"}}
    path = write_run(tmp_path / "early", results=document(early_stop=early))
    export_records(load(path), tmp_path / "a", Source())
    with pytest.raises(DataError, match="holds no document"):
        read_runs([str(tmp_path / "a")])
    path = write_run(tmp_path / "failed", [sample(0), sample(1), FAILED])
    export_records(load(path), tmp_path / "b", Source())
    (run,) = read_runs([str(tmp_path / "b")])
    assert "quiz: 1 failed: the record lacks these documents, so no verdict covers them" in run.notes


def test_folders_hold_one_run_of_several_records(tmp_path: Path) -> None:
    other = {**RESULT, "evaluation_name": "MATH", "evaluation_result_id": "math"}
    write(tmp_path / "data" / "gsm8k" / "lab" / "finch", [line("a", 1)])
    write(
        tmp_path / "data" / "math" / "lab" / "finch",
        [line("a", 1, evaluation_name="MATH", evaluation_result_id="math")],
        record(evaluation_results=[other]),
    )
    for place in (tmp_path, tmp_path / "data"):
        (run,) = read_runs([str(place)])
        assert list(run.tasks) == ["GSM8K", "MATH"]
    samples = tmp_path / "data" / "gsm8k" / "lab" / "finch" / f"{UUID}_samples.jsonl"
    (run,) = read_runs([str(samples)])
    assert run.tasks["GSM8K"].columns["accuracy,none"].reported == 50.0
    alone = tmp_path / "data" / "alone.jsonl"
    alone.write_bytes(samples.read_bytes())
    (run,) = read_runs([str(alone)])
    assert (run.name, list(run.tasks["GSM8K"].columns)) == ("lab/finch", ["gsm8k#accuracy,none"])
    alone.unlink()
    write(tmp_path / "data" / "gsm8k" / "lab" / "wren", [line("a", 1)], record(model_info={"id": "lab/wren"}))
    with pytest.raises(DataError, match="holds several runs"):
        read_runs([str(tmp_path)])


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([line("a", 1), {**line("b", 0), "evaluation": 3}], "line 2: not a sample of Every Eval Ever"),
        ([line("a", 1), line([], 0)], "line 2: not a sample of Every Eval Ever"),
        ([line("a", 1, evaluation_name={})], "line 1: not a sample of Every Eval Ever"),
        ([], "holds no document"),
    ],
)
def test_damage_is_named(tmp_path: Path, lines: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read_runs([str(write(tmp_path, lines))])


def test_odd_values_are_no_scores(tmp_path: Path) -> None:
    odd = {**RESULT, "metric_config": 3, "score_details": []}
    whole = record(evaluation_results=[odd, "x"], model_info=[], eval_library=None)
    lines = [line("a", "high"), line(2, 1, input=None, output=[], metadata=[]), line("c", 0)]
    (run,) = read_runs([str(write(tmp_path, lines, whole))])
    task = run.tasks["GSM8K"]
    assert task.statuses == ["unscored", "scored", "scored"]
    assert run.notes == ("GSM8K: scores of score that are not finite numbers: unscored (1)",)
    answer = task.answer(1)
    assert answer is not None and answer.text == ""


def test_a_record_without_samples_cannot_be_compared(tmp_path: Path) -> None:
    path = write(tmp_path, [])
    (tmp_path / f"{UUID}_samples.jsonl").unlink()
    with pytest.raises(DataError, match="a record without its samples"):
        read_runs([str(path)])
    path.write_text('{"evaluation_id": 1}')
    with pytest.raises(UsageError, match="a record of Every Eval Ever"):
        read_runs([str(path)])


def test_compare_takes_records(tmp_path: Path, capsys) -> None:
    first = write(tmp_path / "a", [line(str(n), 1) for n in range(40)])
    second = write(tmp_path / "b", [line(str(n), n % 2) for n in range(40)], record(model_info={"id": "lab/wren"}))
    assert main(["compare", str(first), str(second)]) == 0
    printed = capsys.readouterr().out
    assert "lab/finch (first) against lab/wren (second)" in printed and "better" in printed
