"""The scripts for SLURM run real evaluations under stand-ins for its programs, and go on after every end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.workload import text_task
from tests.examples.slurm import install
from tests.servers.stub import StubServer

ROOT = Path(__file__).parents[2]
DOCUMENTS, OPEN = 60, 4


class Cluster:
    """One user's jobs."""

    def __init__(self, folder: Path, server: StubServer) -> None:
        self.folder, self.server = folder, server
        self.environment = install(folder)
        text_task(folder / "tasks", DOCUMENTS)
        model = f"model=stub,base_url={server.url},num_concurrent={OPEN}"
        self.options = [
            "--model",
            "openai",
            "--model_args",
            model,
            "--include_path",
            str(folder / "tasks"),
            "--grace",
            "1",
        ]

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sbatch", *command, *self.options], cwd=ROOT, env=self.environment)

    def batch_shell(self) -> int:
        return int((self.folder / "spool" / "pid").read_text())

    def codes(self) -> list[str]:
        path = self.folder / "spool" / "codes"
        return path.read_text().splitlines() if path.exists() else []

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + 120
        while not is_so():
            assert time.monotonic() < end, (self.codes(), self.server.stats()["total"])
            time.sleep(0.02)

    def samples(self) -> list[int]:
        found = [path for path in self.folder.rglob("*_samples_*.jsonl") if ".runs" not in path.parts]
        return [len(path.read_text().splitlines()) for path in found]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with StubServer(delay=0.1) as server:
        yield Cluster(tmp_path, server)


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_job_of_an_array_that_is_stopped_goes_on(cluster: Cluster, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "list").write_text("bench_text\n\nbench_text,bench_text\n")
    job = cluster.start("--array=0-1", "examples/slurm/array.sh", str(tmp_path / "list"), str(tmp_path / "out"))
    cluster.wait_for(lambda: cluster.server.stats()["total"] >= 20)
    os.kill(cluster.batch_shell(), number)
    assert job.wait(120) == 0
    assert cluster.codes() == ["100 0 143", "100 1 0", "101 0 0"]
    assert cluster.samples() == [DOCUMENTS, DOCUMENTS]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["bench_text", "bench_text_bench_text"]
    assert 2 * DOCUMENTS <= cluster.server.stats()["total"] <= 2 * DOCUMENTS + OPEN


def test_a_job_that_is_killed_goes_on_when_it_is_started_again(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "list").write_text("bench_text\n")
    command = ("--array=0-0", "examples/slurm/array.sh", str(tmp_path / "list"), str(tmp_path / "out"))
    job = cluster.start(*command)
    cluster.wait_for(lambda: cluster.server.stats()["total"] >= 20)
    os.killpg(cluster.batch_shell(), signal.SIGKILL)  # a node that fails: nobody puts the job back
    assert job.wait(60) == 0 and cluster.codes() == ["100 0 -9"]
    assert cluster.start(*command).wait(120) == 0
    assert cluster.codes()[1:] == ["100 0 0"] and cluster.samples() == [DOCUMENTS]
    assert cluster.server.stats()["total"] <= DOCUMENTS + OPEN


def test_two_nodes_share_the_documents_and_go_on_after_preemption(cluster: Cluster, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out = str(tmp_path / "out")
    job = cluster.start(
        "--nodes=2", "examples/slurm/multi_node.sh", "--tasks", "bench_text", "--output_path", out, "--log_samples"
    )
    cluster.wait_for(lambda: cluster.server.stats()["total"] >= 20)
    os.kill(cluster.batch_shell(), signal.SIGTERM)
    assert job.wait(180) == 0
    assert cluster.codes() == ["100 0 143", "100 1 0"]
    assert cluster.samples() == [DOCUMENTS]
    assert cluster.server.stats()["total"] <= DOCUMENTS + 2 * OPEN
    (results,) = [path for path in (tmp_path / "out").rglob("*_results.json") if ".runs" not in path.parts]
    assert json.loads(results.read_text())["results"]["bench_text"]


def test_a_job_that_is_stopped_again_and_again_ends(cluster: Cluster, tmp_path: Path) -> None:
    cluster.environment |= {"MAX_REQUEUES": "0"}
    (tmp_path / "list").write_text("bench_text\n")
    job = cluster.start("--array=0-0", "examples/slurm/array.sh", str(tmp_path / "list"), str(tmp_path / "out"))
    cluster.wait_for(lambda: cluster.server.stats()["total"] >= 5)
    os.kill(cluster.batch_shell(), signal.SIGUSR1)
    assert job.wait(60) == 0 and cluster.codes() == ["100 0 143"]


def test_a_line_that_is_not_there_and_a_wrong_option_are_not_tried_again(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "list").write_text("bench_text\n")
    arguments = ("examples/slurm/array.sh", str(tmp_path / "list"), str(tmp_path / "out"))
    assert cluster.start("--array=1-1", *arguments).wait(60) == 0
    assert cluster.start("--array=0-0", *arguments, "--no_such_option").wait(60) == 0
    assert cluster.codes() == ["101 0 1", "100 0 2"]
