"""Room for jobs, with a real server and runs that hang: GPUs by name, order, and what leaves the list."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.workload import text_task
from tests.server.process import ServerProcess, running_server

PLUGIN = Path(__file__).parent


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    text_task(tmp_path / "tasks", 4)
    words = ("--include_path", str(tmp_path / "tasks"), "--plugins", "faulty_plugin", "--grace", "1")
    more = ("--gpus", "7,8", "--parallel", "3", "--max_completed_jobs", "2", "--delete_files")
    with running_server(tmp_path / "server", *words, *more, PYTHONPATH=str(PLUGIN)) as running:
        yield running


def _hang(server: ServerProcess, **more: Any) -> str:
    return server.submit(model="faulty", tasks=["bench_text"], model_args={"mode": "hang"}, **more)


def _seen(server: ServerProcess, job_id: str) -> str:
    """The GPUs that a hanging run sees."""
    file = server.folder / "jobs" / job_id / "work" / "pids"
    for _ in range(600):
        if file.exists():
            variables = Path(f"/proc/{file.read_text().split()[0]}/environ").read_bytes().split(b"\0")
            return next(text.decode() for text in variables if text.startswith(b"CUDA_VISIBLE_DEVICES="))
        time.sleep(0.1)
    raise AssertionError(server.job(job_id))


def test_gpus_are_given_out_and_taken_back(server: ServerProcess) -> None:
    eighth, any_other, waits = _hang(server, device="cuda:8"), _hang(server), _hang(server)
    without = _hang(server, device="cpu")
    assert _seen(server, eighth) == "CUDA_VISIBLE_DEVICES=8"
    assert _seen(server, any_other) == "CUDA_VISIBLE_DEVICES=7"
    queue = server.client.get("/queue").json()
    assert (queue["running_jobs"], queue["queued_jobs"]) == ([eighth, any_other], [waits, without])
    assert "lmms_eval_gpus_held 2.0" in server.client.get("/metrics").text
    server.client.delete(f"/jobs/{eighth}")
    assert server.wait(eighth)["status"] == "cancelled"
    assert _seen(server, waits) == "CUDA_VISIBLE_DEVICES=8"
    assert _seen(server, without) == "CUDA_VISIBLE_DEVICES="
    answer = server.client.post("/evaluate", json={"model": "faulty", "tasks": ["bench_text"], "num_gpus": 3})
    assert (answer.status_code, "assigns 2" in answer.text) == (400, True)
    for job in (waits, any_other, without):
        server.client.delete(f"/jobs/{job}")
        server.wait(job)
    gone, kept = (eighth, waits), (any_other, without)
    assert [server.client.get(f"/jobs/{job}").status_code for job in (*gone, *kept)] == [404, 404, 200, 200]
    assert {path.name for path in (server.folder / "jobs").iterdir()} == set(kept)
