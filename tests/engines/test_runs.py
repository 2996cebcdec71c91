"""Whole runs with ``--model vllm``: the engine's death, a kill of the command, and what the same command then does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lmms_eval.processes import descendants
from tests.engines.models import START_S, environment

DOCUMENTS, CONCURRENCY = 16, 2


def write_task(folder: Path) -> Path:
    """Questions with answers of 48 tokens: a run of some seconds."""
    folder.mkdir()
    rows = [{"question": f"Count from {number * 10} on.", "answer": ""} for number in range(DOCUMENTS)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = {
        "task": "counting", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "rows.jsonl"}},
        "test_split": "test", "output_type": "generate_until", "doc_to_text": "question", "doc_to_target": "answer",
        "generation_kwargs": {"max_new_tokens": 48, "min_tokens": 48, "until": [], "do_sample": False},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }  # fmt: skip
    (folder / "counting.yaml").write_text(json.dumps(task))
    return folder


def command(model: Path, tasks: Path, out: Path) -> list[str]:
    arguments = f"model={model},dtype=float32,enforce_eager=true,max_model_len=512,num_concurrent={CONCURRENCY}"
    return [
        sys.executable, "-m", "lmms_eval", "--model", "vllm", "--model_args", arguments, "--tasks", "counting",
        "--include_path", str(tasks), "--output_path", str(out), "--log_samples",
    ]  # fmt: skip


def answered(out: Path) -> int:
    """Responses in the run's journal."""
    return sum(len(file.read_bytes().splitlines()) for file in out.rglob("responses-*.jsonl"))


def start(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(arguments, env=environment(), stdout=output, stderr=subprocess.STDOUT)


def wait_for(process: subprocess.Popen[bytes], out: Path, count: int, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while answered(out) < count:
        assert process.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")[-3000:]
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
def test_the_death_of_the_engine_and_a_kill_lose_nothing(smol: Path, tmp_path: Path) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    arguments = command(smol, write_task(tmp_path / "tasks"), out)

    process = start(arguments, log)
    wait_for(process, out, 3, log)
    (core,) = (pid for pid in descendants(process.pid) if "EngineCore" in name_of(pid))
    os.kill(core, signal.SIGKILL)
    assert process.wait(START_S) == 1, log.read_text(errors="replace")[-3000:]
    said = log.read_text(errors="replace")
    assert "error: vllm died: " in said and "start the same command again" in said
    kept = answered(out)
    assert 3 <= kept < DOCUMENTS

    process = start(arguments, log)
    wait_for(process, out, kept + 3, log)
    below = descendants(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = answered(out)
    assert kept < DOCUMENTS
    deadline = time.monotonic() + 60
    while any(is_alive(pid) for pid in below):
        assert time.monotonic() < deadline, "the engine's processes outlive the command"
        time.sleep(0.2)

    process = start(arguments, log)
    assert process.wait(START_S) == 0, log.read_text(errors="replace")[-3000:]
    assert answered(out) == DOCUMENTS, "what was answered is not asked again"
    (samples,) = out.rglob("*_samples_counting.jsonl")
    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    assert sorted(row["doc_id"] for row in rows) == list(range(DOCUMENTS)) and all(
        row["filtered_resps"] for row in rows
    )
