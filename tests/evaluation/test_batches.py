"""Whole runs by batch files: pictures, several tasks, rounds, the cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.workload import picture_task, text_task
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from tests.evaluation.kit import config
from tests.servers.batches import BatchServer

ROUNDS = '''
def messages(doc, round_idx=None, previous_output=None, previous_round_info=None):
    """Two rounds, the second of which quotes the answer to the first."""
    if round_idx and round_idx > 1:
        return None, True, previous_output, None
    said = doc["question"] if not round_idx else f"and now? ANSWER={previous_output[-1]}"
    turn = {"role": "user", "content": [{"type": "text", "text": said}]}
    return [turn] if not round_idx else ([turn], False, previous_output, None)


def visuals(doc):
    return []


def text(doc, lmms_eval_specific_kwargs=None):
    return doc["question"]


def score(doc, results):
    return {"exact_match": float(results[0][-1] == doc["answer"])}
'''


@pytest.fixture(scope="module")
def shared() -> Iterator[BatchServer]:
    with BatchServer() as server:
        yield server


@pytest.fixture
def server(shared: BatchServer, monkeypatch: pytest.MonkeyPatch) -> BatchServer:
    shared.reset()
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    return shared


def asked(tmp: Path, server: BatchServer, model_args: str = "", **over: Any) -> RunReport:
    words = f"model=stub,base_url={server.url},batch_poll_s=0.05,retry_backoff_s=0.01{model_args}"
    return run(config(tmp, **{"model": "batch_gpt4", "model_args": words, **over}))


def test_pictures_of_several_tasks_beyond_the_budget_of_memory(tmp_path: Path, server: BatchServer) -> None:
    """The pictures of one batch are four times the budget: they lie in its file."""
    picture_task(tmp_path / "tasks", 30, pictures=2)
    text_task(tmp_path / "tasks", 5)
    report = asked(tmp_path, server, tasks="bench_image,bench_text", prefetch_mb=1)
    results = report.results["results"]
    assert report.exit_code == 0
    assert results["bench_image"]["exact_match,none"] == results["bench_text"]["exact_match,none"] == 1.0
    assert [batch["requests"] for batch in server.stats()["batches"]] == [35]
    described = report.results["model"]
    assert described["batches"] == ["batch-0"] and described["bytes_sent"] > 4 << 20


def test_rounds_of_several_documents_are_a_batch_each(tmp_path: Path, server: BatchServer) -> None:
    text_task(tmp_path / "tasks", 4)
    (tmp_path / "tasks" / "two.py").write_text(ROUNDS)
    (tmp_path / "tasks" / "two_rounds.yaml").write_text(
        "task: two_rounds\ndataset_path: json\ndataset_kwargs:\n  data_files: {test: bench_text.jsonl}\n"
        "test_split: test\noutput_type: generate_until_multi_round\ndoc_to_messages: !function two.messages\n"
        "doc_to_visual: !function two.visuals\ndoc_to_text: !function two.text\ndoc_to_target: answer\n"
        "process_results: !function two.score\ngeneration_kwargs: {max_new_tokens: 16}\n"
        "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n"
    )
    report = asked(tmp_path, server, tasks="two_rounds")
    assert report.results["results"]["two_rounds"]["exact_match,none"] == 1.0, report.table
    assert [batch["requests"] for batch in server.stats()["batches"]] == [4, 4]


def test_the_cache_and_a_limit(tmp_path: Path, server: BatchServer) -> None:
    cache = str(tmp_path / "cache")
    first = asked(tmp_path, server, use_cache=cache, limit="4")
    assert first.exit_code == 0 and [batch["requests"] for batch in server.stats()["batches"]] == [4]
    second = asked(tmp_path, server, use_cache=cache, output_path=str(tmp_path / "again"))
    assert second.exit_code == 0 and second.results["cache"]["hit"] == 4
    assert [batch["requests"] for batch in server.stats()["batches"]] == [4, 2]


def test_lines_that_fail_for_good_are_failed_samples_and_asked_by_the_next_start(
    tmp_path: Path, server: BatchServer
) -> None:
    server.reset(line_fault=400)
    report = asked(tmp_path, server)
    assert report.exit_code == 3
    assert report.results["outcomes"]["bench_text"]["failed"] == 3
    assert any("HTTP 400" in line for line in report.lines)
    assert asked(tmp_path, server).exit_code == 0
    assert [batch["requests"] for batch in server.stats()["batches"]] == [6, 3]
