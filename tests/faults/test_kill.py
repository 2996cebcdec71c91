"""SIGKILL in the middle: see ``benchmarks/kill_resume.py``, which does it more often."""

from __future__ import annotations

from pathlib import Path

from benchmarks.kill_resume import CONCURRENCY, DOCUMENTS, kill_once, uninterrupted
from benchmarks.workload import text_task


def test_a_killed_run_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", DOCUMENTS)
    whole, seconds = uninterrupted(tmp_path)
    for number, share in enumerate((0.7, 0.9)):
        kill = kill_once(tmp_path, number, seconds * share, whole)
        assert kill["exit_code"] == 0
        assert kill["identical"]
        assert kill["never_asked"] == 0
        assert kill["asked_twice"] <= CONCURRENCY
