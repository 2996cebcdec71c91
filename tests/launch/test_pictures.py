"""Several processes whose model answers with pictures: one set of results and pictures, as from one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.kill_resume import final_state
from benchmarks.workload import text_task
from tests.cases import for_each
from tests.launch.test_processes import environment, free_port
from tests.painting import DIFFERENT

pytest.importorskip("torch")
DOCUMENTS = 60
ROOT = Path(__file__).parents[2]


def start(tasks: Path, cwd: Path, *options: str, rank: int = 0, size: int = 1, port: int = 0) -> subprocess.Popen[str]:
    cwd.mkdir(parents=True, exist_ok=True)
    place = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.painting", str(tasks), "out", "delay=0.02", *options],
        env=environment(**(place if size > 1 else {})), cwd=cwd, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def pictures(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "images").iterdir()}


@for_each("shared", [False, True])
def test_pictures_of_all_processes_stand_beside_the_first_ones_samples(tmp_path: Path, shared: bool) -> None:
    text_task(tmp_path / "tasks", DOCUMENTS)
    port = free_port()
    folders = [tmp_path / ("node" if shared else f"node{rank}") for rank in range(2)]
    nodes = [start(tmp_path / "tasks", folders[rank], rank=rank, size=2, port=port) for rank in range(2)]
    ended = [node.communicate(timeout=120) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], ended
    alone = start(tmp_path / "tasks", tmp_path / "alone")
    assert alone.communicate(timeout=120) and alone.returncode == 0
    assert final_state(folders[0] / "out") == final_state(tmp_path / "alone" / "out")
    assert pictures(folders[0] / "out") == pictures(tmp_path / "alone" / "out")
    assert len(pictures(folders[0] / "out")) == DIFFERENT
    answered = [len(path.read_text().splitlines()) for path in tmp_path.glob("node*/out/.runs/*/responses-*.jsonl")]
    assert len(answered) == 2 and min(answered) > 5, os.fspath(tmp_path)
    assert shared or not list((tmp_path / "node1").rglob("*_samples_*"))
