"""``examples/training_loop.py``: a training whose checkpoints a server of its own evaluates."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

LOOP = Path(__file__).parents[1] / "examples" / "training_loop.py"


def test_each_checkpoint_gets_its_score(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the extra server")
    out = tmp_path / "out"
    command = [sys.executable, str(LOOP), "--out", str(out), "--steps", "4", "--every", "4", "--documents", "6"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    with (out / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["0", "4"]
    assert all(0.0 <= float(row["score"]) <= 1.0 for row in rows)
    assert "to submit" in ended.stdout
    checkpoints = [path.name for path in (out / "checkpoints").iterdir()]
    assert sorted(checkpoints) == ["step_0000", "step_0004"]
