"""SIGKILL while questions are with the batch interface: the next start finds its batches, and asks nothing twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.workload import text_task
from tests.faults.command import journal, lmms_eval, results
from tests.servers.batches import BatchServer

DOCUMENTS = 12


def arguments(tmp: Path, server: BatchServer, *more: str, **model: Any) -> list[str]:
    text_task(tmp / "tasks", DOCUMENTS)
    text_task(tmp / "tasks", DOCUMENTS, "other_text")
    given = {
        "model": "stub",
        "base_url": server.url,
        "batch": "true",
        "batch_poll_s": 0.05,
        "retry_backoff_s": 0.05,
        **model,
    }
    return [
        "--model", "openai", "--model_args", ",".join(f"{name}={value}" for name, value in given.items()),
        "--tasks", "bench_text,other_text", "--include_path", str(tmp / "tasks"),
        "--output_path", str(tmp / "out"), *more,
    ]  # fmt: skip


def start(words: list[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "OPENAI_API_KEY": "test-key", "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "lmms_eval", *words], env=environment, stderr=subprocess.PIPE, text=True
    )


def check(tmp: Path, server: BatchServer, words: list[str]) -> None:
    """Start again: everything is scored, and no question was in two batches."""
    ended = lmms_eval(*words)
    assert ended.code == 0, ended.err
    asked = server.stats()["asked"]
    assert asked and set(asked.values()) == {1}
    for name in ("bench_text", "other_text"):
        assert results(tmp / "out")["results"][name]["exact_match,none"] == 1.0
    assert not list((tmp / "out").rglob("lmms_eval-*")), "files of batches that are over are gone"


def test_a_run_that_is_killed_at_every_instant_goes_on(tmp_path: Path) -> None:
    """Five starts, each killed a step later than the one before; the sixth ends."""
    with BatchServer() as server:
        words = arguments(tmp_path, server)
        for instant in ("uploading", "uploaded", "creating", "created", "looking"):
            server.hold(instant)
            before = server.stats()["reached"].get(instant, 0)
            killed = start(words)
            server.wait_for(instant, before + 1)
            killed.kill()
            killed.communicate()
        server.release()
        check(tmp_path, server, words)
        stats = server.stats()
        assert len(stats["batches"]) == 1 and len(stats["asked"]) == 2 * DOCUMENTS


def test_killed_between_the_results_of_two_batches(tmp_path: Path) -> None:
    with BatchServer(slow_after=1) as server:
        words = arguments(tmp_path, server, batch_max_requests=DOCUMENTS)
        killed = start(words)
        deadline = time.monotonic() + 60
        while len(journal(tmp_path / "out")) < DOCUMENTS:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        killed.kill()
        killed.communicate()
        assert len(journal(tmp_path / "out")) == DOCUMENTS
        server.release()
        check(tmp_path, server, words)
        assert [batch["requests"] for batch in server.stats()["batches"]] == [DOCUMENTS, DOCUMENTS]


def test_an_interrupt_leaves_the_batch_running_and_names_it(tmp_path: Path) -> None:
    with BatchServer(slow_after=0, delay=1e6) as server:
        words = arguments(tmp_path, server, "--limit", "3")
        running = start(words)
        server.wait_for("looking")
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=30)
        assert running.returncode == 130
        assert "batch batch-0 continues at" in told and "start the same command again" in told
        server.release()
        check(tmp_path, server, words)
        assert [batch["requests"] for batch in server.stats()["batches"]] == [6]
