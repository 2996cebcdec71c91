"""Answers with pictures when the process is killed or the disk is full."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kill_resume import final_state
from benchmarks.workload import text_task
from tests.faults.command import journal, lmms_eval, results
from tests.painting import DIFFERENT

DOCUMENTS = 40


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    text_task(tmp_path / "tasks", DOCUMENTS)
    return tmp_path / "tasks"


def asked(trace: Path) -> list[int]:
    return [int(line) for line in trace.read_text().split()] if trace.exists() else []


def kill_after(answers: int, tasks: Path, out: Path, trace: Path) -> None:
    """Start, and kill when so many questions have been asked in all."""
    command = [sys.executable, "-m", "tests.painting", str(tasks), str(out), "delay=0.01", f"trace={trace}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(asked(trace)) < answers and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def whole_pictures(out: Path) -> set[str]:
    """Pictures by hash; each has the name of its content."""
    found = [path for path in (out / "images").iterdir() if not path.name.startswith(".")]
    assert all(hashlib.sha256(path.read_bytes()).hexdigest() == path.stem for path in found)
    return {path.stem for path in found}


def named(records: list[dict[str, Any]]) -> set[str]:
    return {part["sha256"] for record in records for part in record["parts"] if isinstance(part, dict)}


def test_a_killed_run_goes_on_and_ends_the_same(tasks: Path, tmp_path: Path) -> None:
    whole = lmms_eval(tasks, tmp_path / "whole", module="tests.painting")
    assert whole.code == 0, whole.shown
    out, trace = tmp_path / "out", tmp_path / "trace"
    for answers in (7, 25):
        kill_after(answers, tasks, out, trace)
        assert named(journal(out)) <= whole_pictures(out)
    done = lmms_eval(tasks, out, f"trace={trace}", module="tests.painting")
    assert done.code == 0, done.shown
    assert len(asked(trace)) - DOCUMENTS <= 2  # what was open at each kill
    assert final_state(out) == final_state(tmp_path / "whole")
    assert whole_pictures(out) == whole_pictures(tmp_path / "whole") == named(journal(out))
    assert len(whole_pictures(out)) == DIFFERENT


def test_a_full_disk_ends_the_run_and_keeps_what_was_finished(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    full = lmms_eval(tasks, out, "padding=60000", module="tests.painting", limit_file_size=40_000)
    assert full.code == 1, full.shown
    assert "cannot write the picture" in full.err and "make room and start the same command again" in full.err
    assert journal(out) == []
    assert list((out / "images").iterdir()) == []  # nothing half-written
    ended = lmms_eval(tasks, out, "padding=60000", module="tests.painting")
    assert ended.code == 0, ended.shown
    assert results(out)["results"]["bench_text"]["exact_match,none"] == 1.0
