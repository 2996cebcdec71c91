"""SIGKILL in the middle of a run of three processes that ends early by a rule."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.faults.command import journal, results
from tests.launch.test_own_processes import begin, ended, wait_for
from tests.servers.stub import StubServer

DOCUMENTS, CONCURRENT, PROCESSES = 400, 6, 3
UNTIL = ("--until", "halfwidth<=0.1", "--processes", str(PROCESSES))
# What a process holds: requests that are open, as many again that are prepared, and answers on their way.
IN_FLIGHT = 4 * CONCURRENT * PROCESSES


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Short questions, of which the server answers two thirds as the reference says."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / "without").mkdir()
    draw = random.Random(0)
    rows = [
        {"question": f"Question {number}. ANSWER=a{number}", "answer": f"a{number}" if draw.random() < 0.67 else "b"}
        for number in range(DOCUMENTS)
    ]
    (tmp_path / "tasks" / "bench_text.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "tasks" / "bench_text.yaml").write_text(
        "task: bench_text\ndataset_path: json\ndataset_kwargs:\n  data_files: {test: bench_text.jsonl}\n"
        "test_split: test\noutput_type: generate_until\ndoc_to_text: question\ndoc_to_target: answer\n"
        "generation_kwargs: {max_new_tokens: 16, until: []}\n"
        "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n"
    )
    return tmp_path


def end_of(out: Path) -> dict[str, Any]:
    found = results(out)
    assert found["state"] == "stopped early"
    parts = ("early_stop", "results", "intervals", "outcomes", "task_hashes")
    return {part: found[part] for part in parts}


def asked(out: Path) -> set[str]:
    return {line["id"] for line in journal(out)}


def test_a_killed_run_comes_to_the_same_end(work: Path) -> None:
    with StubServer(delay=0.15) as server:
        code, _, err = ended(begin(work, server.url, *UNTIL, out="whole", concurrent=CONCURRENT))
        assert code == 0, err
    whole = end_of(work / "whole")
    counted = whole["early_stop"]["bench_text"]["asked"]
    assert 40 < counted < DOCUMENTS - IN_FLIGHT
    with StubServer(delay=0.15) as server:
        killed = begin(work, server.url, *UNTIL, concurrent=CONCURRENT)
        wait_for(server, counted // 2)
        killed.kill()
        killed.communicate(timeout=60)
        code, _, err = ended(begin(work, server.url, *UNTIL, concurrent=CONCURRENT))
        assert code == 0, err
        stats = server.stats()
        assert end_of(work / "out") == whole
        assert len(asked(work / "out")) <= counted + IN_FLIGHT
        assert stats["total"] - len(stats["by_text"]) <= IN_FLIGHT  # asked twice
        # Alone, and with nothing left to ask: the same end.
        code, _, err = ended(begin(work, server.url, "--until", "halfwidth<=0.1"))
        assert code == 0, err
        assert server.stats()["total"] - stats["total"] <= 1  # the first process asks for the server's model
    assert end_of(work / "out") == whole
