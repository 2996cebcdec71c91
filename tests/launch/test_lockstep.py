"""A plugin whose forward passes meet in collectives, in several processes: out of step it would hang or fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kill_resume import final_state
from benchmarks.workload import text_task
from tests.launch.test_processes import ROOT, environment, free_port

pytest.importorskip("torch")
DOCUMENTS = 37


@pytest.fixture
def work(tmp_path: Path) -> Path:
    text_task(tmp_path / "tasks", DOCUMENTS)
    text_task(tmp_path / "tasks", 5, name="bench_few")
    return tmp_path


IMPATIENT = """
import sys
from lmms_eval.cli.main import main
from lmms_eval.engine import lockstep
lockstep.PATIENCE_S = 1.0
sys.exit(main())
"""


def run(work: Path, out: str, processes: int, bad: int = -1, **more: str) -> subprocess.CompletedProcess[str]:
    """``processes`` under torchrun, or one by itself; chunks of 4 requests."""
    program = ["--no-python", sys.executable, "-c", IMPATIENT] if "RAISE_AT" in more else ["-m", "lmms_eval"]
    launch = ["-m", "torch.distributed.run", "--nproc_per_node", str(processes), "--master_port", str(free_port())]
    command = [
        sys.executable, *(launch if processes > 1 else []), *program, "--model", "collective",
        "--model_args", f"trace={work / 'trace'},bad={bad}", "--tasks", "bench_text,bench_few",
        "--include_path", str(work / "tasks"), "--output_path", str(work / out), "--log_samples",
        "--verbosity", "WARNING", "--chunk_size", "4", "--error_budget", "0.5",
    ]  # fmt: skip
    plugin = {"LMMS_EVAL_PLUGINS": "collective_plugin", "PYTHONPATH": f"{ROOT}{os.pathsep}{Path(__file__).parent}"}
    return subprocess.run(
        command, env=environment(**plugin, **more), capture_output=True, text=True, timeout=120, check=False
    )


def journaled(work: Path, out: str) -> Counter[str]:
    """Answers by request id, over all processes."""
    lines = [line for path in work.glob(f"{out}/**/responses-*.jsonl") for line in path.read_text().splitlines()]
    return Counter(record["id"] for record in map(json.loads, lines) if "error" not in record)


def state(work: Path, out: str) -> dict[str, Any]:
    return final_state(work / out)


@pytest.mark.parametrize("processes", [2, 3])
def test_every_block_has_the_same_size_everywhere(work: Path, processes: int) -> None:
    done = run(work, "out", processes)
    assert done.returncode == 0, done.stderr
    alone = run(work, "alone", 1)
    assert alone.returncode == 0, alone.stderr
    assert state(work, "out") == state(work, "alone")
    answers = journaled(work, "out")
    assert len(answers) == DOCUMENTS + 5
    assert set(answers.values()) == {1}
    assert not any("repeated" in request_id for request_id in answers)


def test_a_process_without_a_document_keeps_step(work: Path) -> None:
    text_task(work / "tasks", 1, name="bench_text")
    text_task(work / "tasks", 1, name="bench_few")
    done = run(work, "out", 3)
    assert done.returncode == 0, done.stderr
    assert len((work / "trace").read_text().splitlines()) == 6
    assert sum(journaled(work, "out").values()) == 2


def test_one_bad_request_costs_one_sample(work: Path) -> None:
    done = run(work, "out", 2, bad=11)
    assert done.returncode == 0, done.stderr
    answers = journaled(work, "out")
    assert len(answers) == DOCUMENTS + 4
    assert "bench_text/11/0/0/0" not in answers


def test_a_process_that_dies_ends_the_others_and_the_same_command_goes_on(work: Path) -> None:
    start = time.monotonic()
    broken = run(work, "out", 2, DIE_AT="3")
    assert broken.returncode != 0
    assert time.monotonic() - start < 55  # less than the time after which a silent process is taken for dead
    kept = journaled(work, "out")
    assert len(kept) >= 2 * 2 * 4
    asked = (work / "trace").read_text().splitlines()
    again = run(work, "out", 3)
    assert again.returncode == 0, again.stderr
    alone = run(work, "alone", 1)
    assert alone.returncode == 0, alone.stderr
    assert state(work, "out") == state(work, "alone")
    more = len((work / "trace").read_text().splitlines()) - len(asked) - (DOCUMENTS + 5)  # less those of "alone"
    assert more <= DOCUMENTS + 5 - len(kept) + 2 * 2 * 4  # repeated ones, at the end of each task
    assert set(journaled(work, "out").values()) == {1}


def test_a_failure_before_a_collective_does_not_leave_the_others_waiting(work: Path) -> None:
    start = time.monotonic()
    broken = run(work, "out", 2, RAISE_AT="2")
    assert time.monotonic() - start < 60
    assert broken.returncode != 0
    assert "no longer line up" in broken.stderr
