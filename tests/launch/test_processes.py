"""Several processes of one launch on this machine, against a counting server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kill_resume import final_state
from benchmarks.workload import text_task
from lmms_eval.storage.run_folder import RunFolder
from tests.servers.stub import StubServer

pytest.importorskip("torch")
DOCUMENTS = 120
ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def arguments(work: Path, url: str, out: str) -> list[str]:
    return [
        "-m", "lmms_eval", "--model", "openai", "--model_args", f"model=stub,base_url={url},num_concurrent=4",
        "--tasks", "bench_text", "--include_path", str(work / "tasks"), "--output_path", out, "--log_samples",
        "--verbosity", "WARNING",
    ]  # fmt: skip


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "OPENAI_API_KEY": "stub", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **more}


def torchrun(work: Path, url: str, processes: int, out: str = "out", *more: str) -> subprocess.CompletedProcess[str]:
    launch = ["-m", "torch.distributed.run", "--nproc_per_node", str(processes), "--master_port", str(free_port())]
    return subprocess.run(
        [sys.executable, *launch, *arguments(work, url, str(work / out)), *more],
        env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def start(work: Path, url: str, rank: int, size: int, port: int, cwd: Path) -> subprocess.Popen[str]:
    """One process of a launch without a launcher, in a working folder of its own."""
    cwd.mkdir(parents=True, exist_ok=True)
    place = {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    return subprocess.Popen(
        [sys.executable, *arguments(work, url, "out")],
        env=environment(**place, MASTER_PORT=str(port)), cwd=cwd, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def alone(work: Path, url: str) -> dict[str, Any]:
    subprocess.run(
        [sys.executable, *arguments(work, url, str(work / "alone"))], env=environment(), capture_output=True, check=True
    )
    return final_state(work / "alone")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    text_task(tmp_path / "tasks", DOCUMENTS)
    return tmp_path


def test_processes_share_the_documents_and_another_number_resumes(work: Path) -> None:
    with StubServer(delay=0.02) as server:
        done = torchrun(work, server.url, 2)
        assert done.returncode == 0, done.stderr
        stats = server.stats()
        assert stats["total"] == len(stats["by_text"]) == DOCUMENTS
        counts = [len(path.read_text().splitlines()) for path in sorted(work.rglob("responses-*.jsonl"))]
        assert len(counts) == 2
        assert min(counts) > 10
        assert final_state(work / "out") == alone(work, server.url)
        asked = server.stats()["total"]
        for path in work.glob("out/**/run.json"):  # as if the last process had been killed before the end
            folder = RunFolder(path.parent)
            folder.write({**folder.read(), "state": "interrupted"})
        again = torchrun(work, server.url, 3)
        assert again.returncode == 0, again.stderr
        assert server.stats()["total"] == asked


def test_the_first_process_checks_answers_of_all(work: Path) -> None:
    with StubServer(delay=0.02) as server:
        done = torchrun(work, server.url, 2, "out", "--check_batch", str(DOCUMENTS))
        assert done.returncode == 0, done.stderr
        assert server.stats()["total"] == 2 * DOCUMENTS
        assert server.stats()["by_text"] and set(server.stats()["by_text"].values()) == {2}
    (results,) = (work / "out").rglob("*_results.json")
    check = json.loads(results.read_text())["batch_check"]
    assert (check["asked"], check["differing"], check["failed"]) == (DOCUMENTS, 0, [])
    assert sum(len(path.read_text().splitlines()) for path in work.rglob("responses-*.jsonl")) == DOCUMENTS


def test_two_machines_without_shared_files_give_one_result(work: Path) -> None:
    port = free_port()
    with StubServer(delay=0.02) as server:
        nodes = [start(work, server.url, rank, 2, port, work / f"node{rank}") for rank in range(2)]
        ended = [node.communicate(timeout=120) for node in nodes]
        assert [node.returncode for node in nodes] == [0, 0], ended
        assert server.stats()["total"] == DOCUMENTS
        assert not list((work / "node1").rglob("*_results.json"))
        assert final_state(work / "node0" / "out") == alone(work, server.url)


def test_a_process_that_is_killed_ends_the_job_and_costs_only_what_it_had_open(work: Path) -> None:
    port = free_port()
    with StubServer(delay=0.1) as server:
        nodes = [start(work, server.url, rank, 2, port, work / "node") for rank in range(2)]
        deadline = time.monotonic() + 60
        while server.stats()["completed"] < 30 and time.monotonic() < deadline:
            time.sleep(0.05)
        nodes[1].kill()
        nodes[1].communicate()
        nodes[0].send_signal(signal.SIGTERM)  # what a launcher does to the others
        _, error = nodes[0].communicate(timeout=60)
        assert nodes[0].returncode == 143, error
        asked = server.stats()["total"]
        again = subprocess.run(
            [sys.executable, *arguments(work, server.url, "out")],
            cwd=work / "node", env=environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert again.returncode == 0, again.stderr
        assert server.stats()["total"] - asked <= DOCUMENTS - asked + 8


def test_a_launcher_that_is_killed_ends_its_processes_with_one_line_each(work: Path) -> None:
    launch = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", str(free_port())]
    with StubServer(delay=0.1) as server:
        words = arguments(work, server.url, str(work / "out"))
        launcher = subprocess.Popen(
            [sys.executable, *launch, *words], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        while server.stats()["completed"] < 20 and launcher.poll() is None:
            time.sleep(0.05)
        launcher.kill()
        _, error = launcher.communicate(timeout=60)  # to the end of all that write there
        assert server.stats()["total"] < DOCUMENTS
        lines = error.splitlines()
        assert len(lines) == 2, error
        for rank, line in enumerate(sorted(lines)):
            assert line.startswith(f"error: process {rank}: the process that hosts the launch's store ")
            assert "start the same command again" in line
        again = subprocess.run(
            [sys.executable, *words], env=environment(), capture_output=True, text=True, timeout=120, check=False
        )
        assert again.returncode == 0, again.stderr
        assert server.stats()["total"] - DOCUMENTS <= 8  # what was in flight


def crash(work: Path, restarts: int) -> subprocess.CompletedProcess[str]:
    launch = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--max_restarts", str(restarts)]
    child = ["-m", "tests.launch.crashing", str(work / "tasks"), str(work / "out"), str(work / "trace"), str(restarts)]
    return subprocess.run(
        [sys.executable, *launch, "--master_port", str(free_port()), *child],
        env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip


def test_under_restarts_the_job_goes_on_from_the_journals(work: Path) -> None:
    done = crash(work, restarts=1)
    assert done.returncode == 0, done.stderr
    asked = [int(line) for line in (work / "trace").read_text().split()]
    assert set(asked) == set(range(DOCUMENTS))
    assert len(asked) - DOCUMENTS <= 2  # what the two processes had open
    assert final_state(work / "out")["results"]["bench_text"]["exact_match,none"] == 1.0


def test_without_restarts_a_crash_ends_the_job_within_seconds(work: Path) -> None:
    start_s = time.monotonic()
    done = crash(work, restarts=0)
    assert done.returncode != 0
    assert time.monotonic() - start_s < 60
    kept = sum(len(path.read_text().splitlines()) for path in work.rglob("responses-*.jsonl"))
    assert kept >= 10
