"""SIGKILL while questions, or those to a judge, are with the batch interface of any service."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.workload import text_task
from tests.evaluation.judged_kit import NAME, rated_task
from tests.faults.command import lmms_eval, results
from tests.servers.batches import BatchServer
from tests.servers.stub import StubServer

DOCUMENTS = 12
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY"}
INSTANTS = {
    "openai": ("uploading", "uploaded", "creating", "created", "looking", "reading"),
    "anthropic": ("listing", "creating", "created", "looking", "reading"),
    "gemini": ("uploading", "uploaded", "creating", "created", "looking", "reading"),
}
"""The steps in the life of a batch, each of which the server can hold."""
MODULES = {"anthropic": "anthropic", "gemini": "google.genai"}


def need(service: str) -> None:
    """Skip where the package is not installed."""
    if service in MODULES:
        pytest.importorskip(MODULES[service])


def batch_arguments(service: str, server: BatchServer) -> str:
    root = f"http://127.0.0.1:{server.port}{'/v1' if service == 'openai' else ''}"
    return f"base_url={root},batch=true,batch_poll_s=0.05,retry_backoff_s=0.05"


def start(words: list[str], service: str) -> subprocess.Popen[str]:
    environment = {**os.environ, KEYS[service]: "test-key", "OPENAI_API_KEY": "test-key", "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "lmms_eval", *words], env=environment, stderr=subprocess.PIPE, text=True
    )


def kill_at_each_instant(words: list[str], service: str, server: BatchServer) -> None:
    """Start at each instant, and kill a step later than before; then let everything end."""
    for instant in INSTANTS[service]:
        server.hold(instant)
        before = server.stats()["reached"].get(instant, 0)
        killed = start(words, service)
        server.wait_for(instant, before + 1)
        killed.kill()
        killed.communicate()
    server.release()
    running = start(words, service)
    told = running.communicate(timeout=60)[1]
    assert running.returncode == 0, told
    stats = server.stats()
    assert len(stats["batches"]) == 1
    assert len(stats["asked"]) == DOCUMENTS and set(stats["asked"].values()) == {1}


@pytest.mark.parametrize("service", ["anthropic", "gemini"])
def test_a_run_that_is_killed_at_every_instant_goes_on(service: str, tmp_path: Path) -> None:
    need(service)
    text_task(tmp_path / "tasks", DOCUMENTS)
    with BatchServer() as server:
        words = [
            "--model", service, "--model_args", f"model=stub,{batch_arguments(service, server)}",
            "--tasks", "bench_text", "--include_path", str(tmp_path / "tasks"), "--output_path", str(tmp_path / "out"),
        ]  # fmt: skip
        kill_at_each_instant(words, service, server)
    assert results(tmp_path / "out")["results"]["bench_text"]["exact_match,none"] == 1.0
    assert not list((tmp_path / "out").rglob("lmms_eval-*")), "files of batches that are over are gone"


def judged(tmp: Path, model: StubServer, service: str, server: BatchServer) -> list[str]:
    rated_task(tmp / "tasks", DOCUMENTS)
    return [
        "--model", "openai", "--model_args", f"model=stub,base_url={model.url}", "--tasks", NAME,
        "--include_path", str(tmp / "tasks"), "--output_path", str(tmp / "out"), "--judge_model", f"{service}:jury",
        "--judge_args", batch_arguments(service, server),
    ]  # fmt: skip


@pytest.mark.parametrize("service", ["openai", "anthropic", "gemini"])
def test_a_judge_that_is_killed_at_every_instant_goes_on(service: str, tmp_path: Path) -> None:
    """All questions to a judge are one batch, in spite of the kills, and the model is asked once."""
    need(service)
    with StubServer(delay=0.02) as model, BatchServer() as server:
        kill_at_each_instant(judged(tmp_path, model, service, server), service, server)
        assert model.stats()["total"] == DOCUMENTS
        score = results(tmp_path / "out")["results"][NAME]["rating,none"]
        assert score == pytest.approx(sum(number % 10 for number in range(DOCUMENTS)) / DOCUMENTS)
    assert not list((tmp_path / "out").rglob("lmms_eval-*"))


def test_a_judge_scores_a_finished_run_in_a_batch(tmp_path: Path) -> None:
    with StubServer() as model, BatchServer() as server:
        words = judged(tmp_path, model, "openai", server)
        assert lmms_eval(*words[: words.index("--judge_model")]).code == 3  # nothing could be scored
        began = time.monotonic()
        ended = lmms_eval("score", tmp_path / "out", *words[words.index("--judge_model") :])
        assert ended.code == 0, ended.err
        assert time.monotonic() - began < 60
        assert [batch["requests"] for batch in server.stats()["batches"]] == [DOCUMENTS]


def test_more_documents_than_may_wait_for_a_judge(tmp_path: Path) -> None:
    """The judge answers those that wait, in place of waiting for documents for which there is no room."""
    with StubServer() as model, BatchServer() as server:
        words = judged(tmp_path, model, "openai", server)
        rated_task(tmp_path / "tasks", 100)
        words[-1] += ",batch_max_requests=9,num_concurrent=1"
        ended = lmms_eval(*words)
        assert ended.code == 0, ended.err
        stats = server.stats()
    assert len(stats["asked"]) == 100 and set(stats["asked"].values()) == {1}
    assert max(batch["requests"] for batch in stats["batches"]) == 9 and len(stats["batches"]) < 16
