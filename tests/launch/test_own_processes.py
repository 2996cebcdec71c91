"""``--processes``: several processes of one command, against a counting server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kill_resume import final_state
from benchmarks.workload import text_task
from lmms_eval.config import build_config
from lmms_eval.errors import UsageError
from lmms_eval.evaluator import run
from tests.servers.stub import StubServer
from tests.test_without_torch import BLOCKER

DOCUMENTS = 120
ROOT = Path(__file__).parents[2]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    text_task(tmp_path / "tasks", DOCUMENTS)
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text(BLOCKER)
    return tmp_path


def begin(work: Path, url: str, *more: str, out: str = "out", concurrent: int = 8) -> subprocess.Popen[str]:
    arguments = [
        "-m", "lmms_eval", "--model", "openai", "--tasks", "bench_text", "--include_path", str(work / "tasks"),
        "--model_args", f"model=stub,base_url={url},num_concurrent={concurrent},max_retries=0",
        "--output_path", str(work / out), "--log_samples", "--verbosity", "WARNING", *more,
    ]  # fmt: skip
    path = os.pathsep.join([str(work / "without"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, "OPENAI_API_KEY": "stub", "PYTHONPATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def processes_of(work: Path, launcher: int) -> list[int]:
    """The processes that a launcher has started, by rank."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    ranks = {Path(f"/proc/{child}/environ").read_bytes().partition(b"\0RANK=")[2][:1]: int(child) for child in children}
    return [ranks[rank] for rank in sorted(ranks) if rank]


def wait_for(server: StubServer, total: int) -> dict[str, Any]:
    deadline = time.monotonic() + 30
    while (stats := server.stats())["total"] < total:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return stats


def test_the_documents_and_the_connections_are_shared_and_another_number_resumes(work: Path) -> None:
    with StubServer(delay=0.05) as server:
        code, out, err = ended(begin(work, server.url, "--processes", "3"))
        assert code == 0, err
        assert out.count("|bench_text|") == 1
        stats = server.stats()
        assert stats["total"] == len(stats["by_text"]) == DOCUMENTS
        assert stats["max_in_flight"] <= stats["connections"] - 1 <= 8  # the first process asks for the numbers
        counts = [len(path.read_text().splitlines()) for path in sorted(work.rglob("responses-*.jsonl"))]
        assert len(counts) == 3 and sum(counts) == DOCUMENTS and min(counts) > 10
        again = ended(begin(work, server.url, "--processes", "2", "--resume"))
        assert again[0] == 0 and server.stats()["total"] == DOCUMENTS
        assert ended(begin(work, server.url, out="alone"))[0] == 0
    assert final_state(work / "out") == final_state(work / "alone")


def test_a_signal_goes_to_all_and_costs_nothing_that_was_answered(work: Path) -> None:
    with StubServer(delay=0.2) as server:
        process = begin(work, server.url, "--processes", "2")
        wait_for(server, 20)
        process.send_signal(signal.SIGINT)
        assert ended(process)[0] == 130
        asked = server.stats()["total"]
        assert asked < DOCUMENTS
        assert ended(begin(work, server.url, "--processes", "2"))[0] == 0
        assert server.stats()["total"] == DOCUMENTS


def test_a_process_that_is_killed_ends_the_others(work: Path) -> None:
    with StubServer(delay=0.2) as server:
        process = begin(work, server.url, "--processes", "2")
        wait_for(server, 20)
        os.kill(processes_of(work, process.pid)[1], signal.SIGKILL)
        code, _, err = ended(process)
        assert code == 128 + signal.SIGKILL
        assert "process 1 of 2 was killed by signal 9: the others are stopped; what was finished is kept" in err
        assert ended(begin(work, server.url, "--processes", "2"))[0] == 0
        assert server.stats()["total"] <= DOCUMENTS + 4


def test_without_the_command_that_started_them_the_processes_end(work: Path) -> None:
    with StubServer(delay=0.2) as server:
        process = begin(work, server.url, "--processes", "2")
        wait_for(server, 20)
        process.kill()
        _, err = process.communicate(timeout=60)  # until both have closed their standard streams
        assert "the process that hosts the launch's store" in err
        assert server.stats()["total"] < DOCUMENTS


def test_the_exit_code_is_the_first_process_s(work: Path) -> None:
    with StubServer(fault="400") as server:
        code, out, _ = ended(begin(work, server.url, "--processes", "2"))
    assert code == 3 and out.count("|bench_text|") == 1


def test_a_wrong_place_for_it_is_said(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "stub")
    config = build_config({"model": "openai", "model_args": "model=m", "tasks": "x", "processes": 2})
    with pytest.raises(UsageError, match="which a call from Python"):
        run(config)
    monkeypatch.setenv("WORLD_SIZE", "2")
    code, _, err = ended(begin(work, "http://127.0.0.1:9/v1", "--processes", "2"))
    assert code == 2 and "--processes: a launcher (accelerate, torchrun) has started several already" in err
