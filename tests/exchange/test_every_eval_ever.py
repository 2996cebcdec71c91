from __future__ import annotations

import math
import tarfile
from pathlib import Path
from typing import Any

import pytest

from benchmarks.workload import text_task
from lmms_eval.api.request import Request, Response, Usage
from lmms_eval.errors import UsageError
from lmms_eval.evaluation.run import run as evaluate
from lmms_eval.exchange.every_eval_ever import Export, Source, export_records
from lmms_eval.judges import register_script
from lmms_eval.results import load
from tests.evaluation.kit import NAME, Told, config, fails_on, right
from tests.evaluation.test_batches import ROUNDS
from tests.exchange.validation import lines_of, problems, records_in
from tests.parity.vectors import DATA_DIR
from tests.results.runs import document, sample, write_record, write_run
from tests.results.test_runs_of_1_0_0 import ARCHIVE

TWO_ROUNDS = (
    "task: two_rounds\ndataset_path: json\ndataset_kwargs:\n  data_files: {test: bench_text.jsonl}\n"
    "test_split: test\noutput_type: generate_until_multi_round\ndoc_to_messages: !function two.messages\n"
    "doc_to_visual: !function two.visuals\ndoc_to_text: !function two.text\ndoc_to_target: answer\n"
    "process_results: !function two.score\ngeneration_kwargs: {max_new_tokens: 16}\n"
    "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n"
)
HOSTILE = "a\x00b\x1b[31m \ud800 </script> `x` | --- # \u202e\r\n'\""


def exported(source: Path, out: Path, **about: str) -> Export:
    return export_records(load(source), out, Source(**about))


def thoughtful(request: Request) -> Response:
    return Response(
        request.id,
        text=f"<think>Hm, {request.doc_id}.</think>{right(request).text}",
        usage=Usage(7, 5, 3),
        finish_reason="stop",
        latency=0.25,
    )


def test_an_answered_document_is_a_line_with_thoughts_tokens_and_time(tmp_path: Path) -> None:
    assert evaluate(config(tmp_path, log_samples=True, repeats=2), Told(thoughtful, "lab/told")).exit_code == 0
    export = exported(tmp_path / "out", tmp_path / "eee", organization="Lab", relationship="first_party")
    assert problems(tmp_path / "eee") == []
    (record,) = records_in(tmp_path / "eee")
    (written,) = export.records
    assert (written.results, written.rows) == (1, 6)
    assert record["source_metadata"]["source_organization_name"] == "Lab"
    (result,) = record["evaluation_results"]
    assert result["score_details"]["score"] == 1.0
    uncertainty = result["score_details"]["uncertainty"]
    assert uncertainty["num_samples"] == 6 and uncertainty["confidence_interval"]["confidence_level"] == 0.95
    assert uncertainty["confidence_interval"]["method"] and uncertainty["standard_error"]["method"] == "analytic"
    assert result["generation_config"]["generation_args"]["reasoning"] is True
    assert result["metric_config"]["metric_unit"] == "proportion"
    assert written.samples is not None
    line = lines_of(written.samples)[0]
    assert line["output"]["reasoning_trace"] == ["Hm, 0.", "Hm, 0."]
    assert [one["extracted_value"] for one in line["answer_attribution"]] == line["input"]["reference"] * 2
    assert line["token_usage"] == {
        "input_tokens": 14, "output_tokens": 10, "total_tokens": 24, "reasoning_tokens": 6,
    }  # fmt: skip
    assert line["performance"]["latency_ms"] == 500
    assert line["evaluation"] == {"score": 1.0, "is_correct": True}


def test_the_same_run_gives_the_same_files(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    exported(path, tmp_path / "a")
    exported(path, tmp_path / "b")
    files = [
        {one.relative_to(root): one.read_bytes() for one in root.rglob("*.json*")} for root in tmp_path.glob("[ab]")
    ]
    assert files[0] == files[1] and len(files[0]) == 2


def test_several_rounds_are_messages(tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 2)
    (tmp_path / "tasks" / "two.py").write_text(ROUNDS)
    (tmp_path / "tasks" / "two_rounds.yaml").write_text(TWO_ROUNDS)
    assert evaluate(config(tmp_path, tasks="two_rounds", log_samples=True), Told(thoughtful)).exit_code == 0
    (written,) = exported(tmp_path / "out", tmp_path / "eee").records
    assert problems(tmp_path / "eee") == []
    assert written.samples is not None
    line = lines_of(written.samples)[0]
    assert line["interaction_type"] == "multi_turn" and line["evaluation"]["num_turns"] == 2
    assert [one["role"] for one in line["messages"]] == ["user", "assistant", "user", "assistant"]
    assert [one.get("reasoning_trace") for one in line["messages"]] == [None, "Hm, 0.", None, "Hm, 0."]
    assert line["answer_attribution"][0]["turn_idx"] == 3


def test_calls_of_tools_are_kept_with_their_results(tmp_path: Path) -> None:
    call = {"id": "c1", "name": "add", "arguments": '{"first": 1, "deep": {"a": [2]}}'}
    messages = [
        {"role": "user", "content": [{"input": [0, 3]}]},
        {"role": "assistant", "content": [{"call": call}, {"call": {"id": "", "name": "odd", "arguments": "{"}}]},
        {"role": "tool", "content": [{"text": "3"}], "call": "c1"},
        {"role": "assistant", "content": [{"text": "three"}]},
    ]
    (written,) = exported(write_run(tmp_path / "run", [sample(1, messages=messages)]), tmp_path / "eee").records
    assert problems(tmp_path / "eee") == []
    assert written.samples is not None
    line = lines_of(written.samples)[0]
    assert line["interaction_type"] == "agentic"
    assert line["messages"][1]["tool_calls"] == [
        {"id": "c1", "name": "add", "arguments": {"first": "1", "deep": '{"a":[2]}'}},
        {"id": "odd", "name": "odd", "arguments": {"arguments": "{"}},
    ]
    assert line["messages"][2]["tool_call_id"] == ["c1"]
    assert line["evaluation"]["tool_calls_count"] == 2


def test_a_withheld_number_is_in_no_record(tmp_path: Path) -> None:
    run = evaluate(config(tmp_path, log_samples=True), Told(fails_on(2)))
    assert run.exit_code == 3
    export = exported(tmp_path / "out", tmp_path / "eee")
    assert export.records == [] and not (tmp_path / "eee").exists()
    assert f"withheld, so in no record: {NAME} exact_match: withheld (1 failed)" in export.notes


def test_documents_without_a_score_have_no_line(tmp_path: Path) -> None:
    budget = config(tmp_path, log_samples=True, error_budget=0.5)
    assert evaluate(budget, Told(fails_on(2))).exit_code == 0
    export = exported(tmp_path / "out", tmp_path / "eee")
    assert problems(tmp_path / "eee") == []
    assert [one.rows for one in export.records] == [5]
    assert f"{NAME}: failed requests: 1 have no line, since the format needs a score" in export.notes
    (record,) = records_in(tmp_path / "eee")
    assert record["evaluation_results"][0]["score_details"]["details"]["without_score"] == "1 failed"


def test_hostile_texts_are_written_as_they_are(tmp_path: Path) -> None:
    rows = [
        sample(n, filtered_resps=HOSTILE, resps=HOSTILE * 2, input=HOSTILE, target=HOSTILE, thoughts=HOSTILE,
               doc={HOSTILE: HOSTILE, "big": 10**30, "nan": math.nan}, elapsed=math.nan)
        for n in range(2)
    ]  # fmt: skip
    rows.append(sample(2, filtered_resps="x" * 5_000_000))
    (written,) = exported(
        write_run(tmp_path / "run", rows, document(model_name=f"../{HOSTILE}/..")), tmp_path / "eee"
    ).records
    assert problems(tmp_path / "eee") == []
    assert written.record.resolve().is_relative_to(tmp_path / "eee" / "data")
    assert written.samples is not None
    line = lines_of(written.samples)[0]
    assert line["input"]["raw"] == HOSTILE.replace("\ud800", "\ufffd")
    assert line["output"]["reasoning_trace"] == [HOSTILE.replace("\ud800", "\ufffd")]


def test_scores_whose_best_is_not_known_have_no_lines(tmp_path: Path) -> None:
    whole = document(results={"quiz": {"alias": "quiz", "graded,none": 0.25}})
    export = exported(write_run(tmp_path / "run", results=whole), tmp_path / "eee")
    assert problems(tmp_path / "eee") == []
    assert export.records[0].samples is None
    assert "quiz graded: without lines of samples, since no score is known to be correct" in export.notes


def test_what_cannot_be_exported_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no results yet"):
        exported(write_record(tmp_path / "record"), tmp_path / "eee")
    with pytest.raises(UsageError, match="other was not selected by itself; there are: quiz"):
        export_records(load(write_run(tmp_path / "run")), tmp_path / "eee", Source(), ["other"])


def test_runs_of_the_family_and_of_1_0_0(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "old", filter="data")
    for name in ("complete", "until", "judged", "controls"):
        exported(tmp_path / "old" / name, tmp_path / "eee")
    assert problems(tmp_path / "eee") == []
    by_name = {one["evaluation_results"][0]["evaluation_name"]: one for one in records_in(tmp_path / "eee")}
    assert not any("@" in name for name in by_name)
    whole = {
        key: value for key, value in document(date="20240101_000000").items() if key not in ("run_key", "outcomes")
    }
    exported(write_run(tmp_path / "family", results=whole), tmp_path / "other")
    assert problems(tmp_path / "other") == []


def judged(payload: Any, request: Request) -> str:
    return "### Score\n4"


@pytest.mark.parametrize("names", ["megabench_demo", "milebench_demo_webqa", "general_bench_demo_3d", "mmie_demo"])
def test_demonstrations_are_valid(tmp_path: Path, names: str) -> None:
    register_script("every_eval_ever", judged)
    given: dict[str, Any] = {"judge_model": "scripted:every_eval_ever"} if names == "mmie_demo" else {"limit": "2"}
    chosen = config(tmp_path, tasks=names, include_path=None, log_samples=True, model_args="strategy=gold", **given)
    assert evaluate(chosen).exit_code == 0
    exported(tmp_path / "out", tmp_path / "eee", developer="lab")
    assert problems(tmp_path / "eee") == []
    (record,) = records_in(tmp_path / "eee")
    assert record["detailed_evaluation_results"]["total_rows"] > 0
    if names == "mmie_demo":
        scoring = record["evaluation_results"][0]["metric_config"]["llm_scoring"]
        assert scoring["judges"][0]["model_info"]["name"] == "every_eval_ever"


POPULAR = DATA_DIR / "popular_tasks"


@pytest.mark.parametrize("name", ["chartqa", "mmmu_val", "pope"])
def test_popular_tasks_are_valid(tmp_path: Path, name: str) -> None:
    folder = POPULAR / name
    if not folder.is_dir():
        pytest.skip(f"no small data of {name}")
    chosen = config(
        tmp_path, tasks=name, include_path=None, log_samples=True, model_args="strategy=gold", data_root=str(folder)
    )
    assert evaluate(chosen).exit_code == 0
    exported(tmp_path / "out", tmp_path / "eee")
    assert problems(tmp_path / "eee") == []
    assert all(one["source_data"]["hf_repo"] for one in records_in(tmp_path / "eee")[0]["evaluation_results"])
