"""Ends of jobs whose runs do not simply succeed, as a client of a real server reads them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.workload import text_task
from lmms_eval.entrypoints import EvalClient
from lmms_eval.errors import JobFailedError
from tests.server.process import ServerProcess, running_server

UTILS = """
def process(doc, results):
    if int(doc["answer"][1:]) < 6:
        raise ValueError("no scale fits")
    return {"exact_match": 1.0}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("outcome")
    for name in ("bench_text", "uneven"):
        text_task(folder / "tasks", 400, name)
    (folder / "tasks" / "utils.py").write_text(UTILS)
    with open(folder / "tasks" / "uneven.yaml", "a") as file:
        file.write("process_results: !function utils.process\n")
    words = ("--include_path", str(folder / "tasks"), "--plugins", "faulty_plugin", "--parallel", "2")
    with running_server(folder / "server", *words, PYTHONPATH=str(Path(__file__).parent)) as running:
        yield running


@pytest.fixture
def client(server: ServerProcess) -> Iterator[EvalClient]:
    with EvalClient(str(server.client.base_url)) as made:
        yield made


def test_withheld_scores_are_a_failure_that_has_results(client: EvalClient) -> None:
    job = client.evaluate("faulty", ["uneven"], limit=20)["job_id"]
    with pytest.raises(JobFailedError, match=r"score withheld \(exit code 3\): uneven: 6 of 20 failed; the end"):
        client.wait_for_job(job, poll_interval=0.1, timeout=120)
    results = client.results(job)
    assert (results.status, results.states) == ("failed", {"faulty": "withheld"})
    assert results.score("uneven", "exact_match") is None
    assert client.samples(job)["total"] == 20


def test_a_run_that_until_stops_is_completed_and_says_so(client: EvalClient) -> None:
    job = client.evaluate("baseline", ["bench_text"], {"strategy": "gold"}, until="halfwidth<=0.2")["job_id"]
    assert client.wait_for_job(job, poll_interval=0.1, timeout=120)["error"] is None
    results = client.results(job)
    assert (results.status, results.states) == ("completed", {"baseline": "stopped early"})
    (score,) = results.scores
    assert 0 < score.n < 400


def test_a_run_that_others_interrupt_has_failed(server: ServerProcess, client: EvalClient) -> None:
    job = client.evaluate("faulty", ["bench_text"], {"mode": "hang"}, limit=5)["job_id"]
    folder = server.folder / "jobs" / job
    deadline = time.monotonic() + 60
    while not (folder / "work" / "pids").exists():
        assert time.monotonic() < deadline, server.log
        time.sleep(0.1)
    os.killpg(json.loads((folder / "child.json").read_text())["pid"], signal.SIGTERM)
    with pytest.raises(JobFailedError, match="interrupted by SIGTERM, which this server has not sent"):
        client.wait_for_job(job, poll_interval=0.1, timeout=120)
    assert client.results(job).states == {"faulty": "interrupted"}
