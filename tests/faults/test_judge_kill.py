"""SIGKILL while a judge is asked: the next start asks again at most what was in flight."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.evaluation.judged_kit import NAME, rated_task
from tests.faults.command import lmms_eval, results
from tests.servers.stub import StubServer

DOCUMENTS, CONCURRENCY = 80, 4


def arguments(tmp: Path, model: StubServer, judge: StubServer) -> list[str]:
    return [
        "--model", "openai", "--model_args", f"model=stub,base_url={model.url},num_concurrent=8", "--tasks", NAME,
        "--include_path", str(tmp / "tasks"), "--output_path", str(tmp / "out"), "--judge_model", "jury",
        "--judge_base_url", judge.url, "--judge_args", f"num_concurrent={CONCURRENCY}",
    ]  # fmt: skip


def test_a_run_killed_while_judging_goes_on(tmp_path: Path) -> None:
    rated_task(tmp_path / "tasks", DOCUMENTS)
    with StubServer() as model, StubServer(delay=0.05) as judge:
        words = arguments(tmp_path, model, judge)
        environment = {**os.environ, "OPENAI_API_KEY": "test-key", "HF_HUB_OFFLINE": "1"}
        killed = subprocess.Popen([sys.executable, "-m", "lmms_eval", *words], env=environment)
        deadline = time.monotonic() + 60
        while judge.stats()["completed"] < DOCUMENTS // 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        killed.kill()
        killed.wait()
        asked_before = judge.stats()["total"]
        assert asked_before < DOCUMENTS
        ended = lmms_eval(*words)
        assert ended.code == 0, ended.err
        stats = judge.stats()
    asked_twice = sum(number - 1 for number in stats["by_text"].values())
    assert len(stats["by_text"]) == DOCUMENTS
    assert asked_twice <= CONCURRENCY
    assert results(tmp_path / "out")["results"][NAME]["rating,none"] == 4.5


def test_score_is_a_command(tmp_path: Path) -> None:
    rated_task(tmp_path / "tasks", 10)
    with StubServer() as model, StubServer() as judge:
        words = arguments(tmp_path, model, judge)
        assert lmms_eval(*words[: words.index("--judge_model")]).code == 3  # nothing could be scored
        assert results(tmp_path / "out")["outcomes"][NAME]["unscored"] == 10
        model_asked = model.stats()["total"]
        ended = lmms_eval("score", tmp_path / "out", "--judge_base_url", judge.url)
        assert ended.code == 0, ended.err
        assert model.stats()["total"] == model_asked == 10
        assert judge.bodies()[0]["model"] == "gpt-4o-2024-11-20"
    assert results(tmp_path / "out")["results"][NAME]["rating,none"] == 4.5
    assert "4.5" in ended.out
    assert lmms_eval("score").code == 2
    assert "The model is not asked" in lmms_eval("score", "--help").out
