"""``examples/results.ipynb`` runs, cell after cell, and stores no outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.results.runs import sample, write_run

NOTEBOOK = Path(__file__).parents[1] / "examples" / "results.ipynb"
CELLS = [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_it_stores_no_outputs() -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CELLS)


def test_it_goes_from_a_folder_to_a_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra plots")
    write_run(tmp_path / "run", [sample(number) for number in range(40)])
    program = "\n".join("".join(cell["source"]) for cell in CELLS)
    environment = {**os.environ, "MPLBACKEND": "Agg", "RUN": str(tmp_path / "run"), "PICTURE": str(tmp_path / "x.svg")}
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "said 0" in ended.stdout
    picture = (tmp_path / "x.svg").read_text()
    assert "topic: a (n = 20)" in picture
