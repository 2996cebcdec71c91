"""A running process publishes its counts; errors of that never fail the run."""

from __future__ import annotations

import json
import os
from pathlib import Path

from lmms_eval.engine.live import Vitals


def test_the_file_is_there_while_the_process_is_at_work(tmp_path: Path) -> None:
    with Vitals(tmp_path, 3, lambda: {"in_flight": 5}) as vitals:
        while not (file := tmp_path / "live-3.json").exists():
            vitals._ended.wait(0.01)
        told = json.loads(file.read_bytes())
    assert (told["pid"], told["in_flight"]) == (os.getpid(), 5)
    assert told["started"] <= told["time"]
    assert told["memory"] > 1 << 20
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with Vitals(tmp_path / "file" / "folder", 0, dict):
        pass
    assert (tmp_path / "file").read_text() == ""
