"""Runs whose judge is served for their time."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from examples.build_tiny_model import build_tiny_vlm
from lmms_eval.config import build_config
from lmms_eval.errors import ConfigError, ModelError
from lmms_eval.evaluation.rescore import rescore
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.judges.serving.server import LOG
from tests.evaluation.judged_kit import NAME, rated_task
from tests.evaluation.kit import Told, right
from tests.judges.serving.stand_in import install
from tests.judges.serving.test_server import ended, pids

DOCUMENTS = 6


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(install(tmp_path))
    monkeypatch.syspath_prepend(path)
    monkeypatch.setenv("PYTHONPATH", path)


def judged(tmp: Path, out: str = "out", **over: Any) -> RunReport:
    if not (tmp / "tasks").exists():
        rated_task(tmp / "tasks", DOCUMENTS)
    values = {
        "model": "told", "tasks": NAME, "include_path": str(tmp / "tasks"), "output_path": str(tmp / out),
        "log_samples": True, "launcher_args": "name=vllm,model=judge", **over,
    }  # fmt: skip
    return run(build_config(values, {}), Told(right))


def logs(tmp: Path, out: str = "out") -> list[Path]:
    return list((tmp / out).rglob(LOG))


def test_a_run_starts_its_judge_asks_it_and_ends_it(tmp_path: Path) -> None:
    report = judged(tmp_path)
    assert report.results["results"][NAME]["rating,none"] == 2.5
    assert report.results["judge"]["served_by"] == {"name": "vllm", "model": "judge", "options": []}
    assert report.results["judge"]["base_url"] is None and report.results["judge"]["answered"] == DOCUMENTS
    (log,) = logs(tmp_path)
    assert ended(pids(log), 0.1)


def test_a_run_that_goes_on_asks_a_judge_at_another_port_nothing_again(tmp_path: Path) -> None:
    assert judged(tmp_path).results["judge"]["asked"] == DOCUMENTS
    again = judged(tmp_path, resume=True)
    assert again.results["judge"].get("asked", 0) == 0
    assert again.results["results"][NAME]["rating,none"] == 2.5


def test_a_run_is_judged_later_by_a_judge_that_is_served(tmp_path: Path) -> None:
    assert "judge" not in judged(tmp_path, launcher_args=None).results
    later = rescore(tmp_path / "out", {"launcher_args": "name=vllm,model=judge"}, "score")
    assert later.results["results"][NAME]["rating,none"] == 2.5
    (log,) = logs(tmp_path)
    assert ended(pids(log), 0.1)


def test_nothing_is_started_where_nothing_is_judged(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "plain.jsonl").write_text('{"question": "q", "answer": "a"}\n')
    (tmp_path / "tasks" / "plain.yaml").write_text(
        f"task: plain\ndataset_path: json\ndataset_kwargs: {{data_files: {tmp_path}/tasks/plain.jsonl}}\n"
        "test_split: train\ndoc_to_text: question\ndoc_to_target: answer\n"
        "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
    )
    judged(tmp_path, tasks="plain")
    assert logs(tmp_path) == []


def test_a_judge_that_does_not_start_ends_the_run_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="CUDA out of memory"):
        judged(tmp_path, launcher_args="name=vllm,model=crashes")


def test_options_that_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="serves judge, but --judge_model names other"):
        judged(tmp_path, judge_model="other")
    with pytest.raises(ConfigError, match="leave --judge_base_url out"):
        judged(tmp_path, judge_base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match="sglang is not installed here"):
        judged(tmp_path, launcher_args="name=sglang,model=judge")


def command(tmp: Path, *more: str) -> list[str]:
    rated_task(tmp / "tasks", DOCUMENTS)
    return [
        sys.executable, "-m", "lmms_eval", "--model", "baseline", "--model_args", "strategy=gold", "--tasks", NAME,
        "--include_path", str(tmp / "tasks"), "--output_path", str(tmp / "out"), *more,
    ]  # fmt: skip


def test_processes_of_a_launch_share_the_judge(tmp_path: Path) -> None:
    arguments = command(tmp_path, "--launcher_args", "name=vllm,model=judge", "--processes", "2")
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (log,) = logs(tmp_path)
    assert "2.5" in done.stdout and ended(pids(log), 1)


def test_a_run_that_is_killed_takes_its_judge_along(tmp_path: Path) -> None:
    arguments = command(tmp_path, "--launcher_args", "name=vllm,model=slow", "--judge_args", "num_concurrent=1")
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "takes requests" in line:
            break
    (log,) = logs(tmp_path)
    running = pids(log)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert ended(running)


def test_transformers_serves_a_judge_for_real(tmp_path: Path) -> None:
    if not all(map(importlib.util.find_spec, ("fastapi", "uvicorn"))):
        pytest.skip("transformers serve needs fastapi and uvicorn")
    model = build_tiny_vlm(tmp_path / "tiny")
    report = judged(
        tmp_path,
        launcher_args=f"name=transformers,model={model},device=cpu,timeout=300",
        judge_args="max_new_tokens=4",
        judge_retries=0,
    )
    (log,) = logs(tmp_path)
    assert report.results["judge"]["replies"] == DOCUMENTS, log.read_text()
