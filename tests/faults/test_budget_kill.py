"""SIGKILL in the middle of a run with a budget: what was paid for before the kill still counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.workload import results_of, text_task
from tests.servers.stub import StubServer

DOCUMENTS, CONCURRENCY = 120, 4


def test_a_killed_run_spends_no_more_than_its_budget_and_what_was_in_flight(tmp_path: Path) -> None:
    name = text_task(tmp_path / "tasks", DOCUMENTS)
    with StubServer(delay=0.02) as server:
        command = [
            sys.executable, "-m", "lmms_eval", "eval", "--model", "openai", "--tasks", name, "--include_path",
            str(tmp_path / "tasks"), "--output_path", str(tmp_path / "out"), "--model_args",
            f"model=m,base_url={server.url},num_concurrent={CONCURRENCY}", "--max_tokens",
        ]  # fmt: skip
        environment = {**os.environ, "OPENAI_API_KEY": "none"}
        process = subprocess.Popen([*command, "100000"], env=environment, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while server.stats()["completed"] < 20 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        paid = server.stats()["completed"]
        assert paid >= 20
        first = subprocess.run([*command, "600"], env=environment, capture_output=True, text=True, check=False)
        assert first.returncode == 3, first.stderr
        results = results_of(tmp_path / "out")
        usage = results["usage"]["total"]
        each = usage["total_tokens"] / usage["n_api_calls"]
        assert results["usage"]["budget_exceeded"] and results["timing"]["resumed"] >= paid - 2 * CONCURRENCY
        most = 600 / each + 2 * CONCURRENCY  # in flight at the kill, and at the end
        assert server.stats()["completed"] <= max(most, paid + CONCURRENCY)
        second = subprocess.run([*command, "100000"], env=environment, capture_output=True, text=True, check=False)
        assert second.returncode == 0, second.stderr
        assert server.stats()["completed"] <= DOCUMENTS + 2 * CONCURRENCY
    assert results_of(tmp_path / "out")["outcomes"][name]["scored"] == DOCUMENTS
