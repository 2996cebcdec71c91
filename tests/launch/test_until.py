"""Runs of several processes that end before their documents do, by a rule or a budget; controls in several."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.workload import picture_task
from lmms_eval.evaluation.run import run
from tests.evaluation.kit import Told, config
from tests.faults.command import journal, lmms_eval, results
from tests.launch.test_own_processes import begin, ended
from tests.servers.stub import StubServer

DOCUMENTS, CONCURRENT = 240, 6
UNTIL = "halfwidth<=0.12"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Short questions, of which the server answers two thirds as the reference says."""
    folder = tmp_path / "tasks"
    folder.mkdir()
    (tmp_path / "without").mkdir()
    draw = random.Random(0)
    rows = [
        {"question": f"Question {number}. ANSWER=a{number}", "answer": f"a{number}" if draw.random() < 0.67 else "b"}
        for number in range(DOCUMENTS)
    ]
    (folder / "bench_text.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "bench_text.yaml").write_text(
        "task: bench_text\ndataset_path: json\ndataset_kwargs:\n  data_files: {test: bench_text.jsonl}\n"
        "test_split: test\noutput_type: generate_until\ndoc_to_text: question\ndoc_to_target: answer\n"
        "generation_kwargs: {max_new_tokens: 16, until: []}\n"
        "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n"
    )
    return tmp_path


def stop_of(out: Path) -> dict[str, Any]:
    found = results(out)
    assert found["state"] == "stopped early"
    stop: dict[str, Any] = found["early_stop"]["bench_text"]
    return stop


def alone(work: Path, **options: Any) -> dict[str, Any]:
    """The results of the same run in this process, whose model answers as the server does."""
    chosen = {"model": "told", "until": UNTIL, "output_path": str(work / "alone"), **options}
    return run(config(work, **chosen), Told()).results


def test_processes_stop_where_one_does_and_scoring_again_keeps_it(work: Path) -> None:
    with StubServer(delay=0.05) as server:
        code, _, err = ended(begin(work, server.url, "--until", UNTIL, "--processes", "2", concurrent=CONCURRENT))
        assert code == 0, err
        total = server.stats()["total"]
    stop = stop_of(work / "out")
    assert stop["asked"] <= total <= stop["asked"] + 2 * CONCURRENT + 2
    assert 30 < stop["asked"] < 150 and stop == alone(work)["early_stop"]["bench_text"]
    scored = lmms_eval("score", work / "out", "--log_samples")
    assert scored.code == 0, scored.shown
    latest = max((work / "out").rglob("*_results.json"), key=lambda path: path.stat().st_mtime)
    found = json.loads(latest.read_text())
    assert {**found["early_stop"]["bench_text"], "rule": stop["rule"]} == stop
    assert f"(stopped early: {stop['asked']} of {DOCUMENTS})" in scored.out


def test_a_budget_is_that_of_all_processes_and_a_larger_one_goes_on(work: Path) -> None:
    with StubServer(delay=0.05) as server:
        first = begin(work, server.url, "--max_tokens", "600", "--processes", "2", concurrent=CONCURRENT)
        code, out, err = ended(first)
        assert code == 3, err
        assert "the budget of 600 tokens is spent" in out
        usage = results(work / "out")["usage"]["total"]
        each = usage["total_tokens"] / usage["n_api_calls"]
        assert 600 <= usage["total_tokens"] <= 600 + 4 * CONCURRENT * each
        asked = len(journal(work / "out"))
        assert asked == usage["n_api_calls"] < DOCUMENTS / 2
        again = begin(work, server.url, "--max_tokens", "100000", "--processes", "2", concurrent=CONCURRENT)
        code, _, err = ended(again)
        assert code == 0, err
        stats = server.stats()
    assert len(stats["by_text"]) == DOCUMENTS and max(stats["by_text"].values()) == 1
    assert results(work / "out")["outcomes"]["bench_text"]["scored"] == DOCUMENTS


def test_controls_are_shared_by_processes(tmp_path: Path) -> None:
    picture_task(tmp_path / "tasks", 24, pictures=3)
    (tmp_path / "without").mkdir()
    words = ("--tasks", "bench_image", "--ablate", "no-media,shuffled-media", "--processes", "2")
    with StubServer(delay=0.02) as server:
        code, _, err = ended(begin(tmp_path, server.url, *words))
        assert code == 0, err
        assert sum(server.stats()["by_text"].values()) == 3 * 24
    found = results(tmp_path / "out")
    single = alone(tmp_path, tasks="bench_image", ablate="no-media,shuffled-media", until=None)
    for part in ("results", "controls", "task_hashes"):
        assert found[part] == single[part]
    assert found["controls"]["bench_image"]["no-media"]["exact_match,none"]["n"] == 24
    journals = sorted((tmp_path / "out").rglob("responses-*.jsonl"))
    assert len(journals) == 2 and all(path.stat().st_size for path in journals)


def test_processes_in_lockstep_stop_at_the_same_block(work: Path) -> None:
    pytest.importorskip("torch")
    from tests.launch.test_lockstep import ROOT, environment
    from tests.launch.test_processes import free_port

    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", str(free_port()),
        "-m", "lmms_eval", "--model", "collective", "--model_args", f"trace={work / 'trace'}", "--tasks", "bench_text",
        "--include_path", str(work / "tasks"), "--output_path", str(work / "out"), "--chunk_size", "4",
        "--verbosity", "WARNING", "--until", UNTIL,
    ]  # fmt: skip
    plugin = {
        "LMMS_EVAL_PLUGINS": "collective_plugin",
        "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}",
        "CALL_TAKES_S": "0.1",
    }
    done = subprocess.run(command, env=environment(**plugin), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    stop = stop_of(work / "out")
    assert stop == alone(work)["early_stop"]["bench_text"] and stop["asked"] < 150
    assert len((work / "trace").read_text().splitlines()) < stop["asked"] + 100
