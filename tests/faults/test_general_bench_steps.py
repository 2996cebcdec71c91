"""SIGKILL in the first and in the second step of ``run.sh``, which then goes on and leaves the same files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.command import results
from tests.faults.general_bench_kit import CHOICES, FLOOD, RAIN, TASKS, lines_of, many, workbook_cells
from tests.servers.stub import StubServer
from tests.tasks.general_bench.demo_kit import SET

SCRIPT = Path(__file__).parents[2] / "lmms_eval" / "tasks" / "general_bench" / "run.sh"
EACH = 40
QUESTIONS = EACH + 3
CONCURRENCY = 4


@dataclass(frozen=True)
class Place:
    """A data set and where the files of its runs go."""

    root: Path
    out: Path

    def command(self, server: StubServer, step: str = "123") -> list[str]:
        asked = f"general_bench_{TASKS[CHOICES]},general_bench_{TASKS[FLOOD]}"
        model = f"model=stub,base_url={server.url},num_concurrent={CONCURRENCY}"
        return [
            "bash", str(SCRIPT), f"--step={step}", "--model", "openai", "--model_args", model,
            "--dataset", str(self.root),
            "--tasks", asked, "--name", "Toy", "--output", str(self.out),
        ]  # fmt: skip

    @property
    def left(self) -> dict[str, Any]:
        """What must not depend on the way: predictions, scores, workbook, levels."""
        kept = {path.parent.name: json.loads(path.read_text()) for path in self.root.rglob("prediction.json")}
        files = {name: json.loads((self.out / f"Toy_{name}.json").read_text()) for name in ("scores", "levels")}
        workbook = workbook_cells(self.out / "Toy_result.xlsx", "Toy")
        return {**kept, **files, "workbook": workbook, "run": results(self.out / "runs")["results"]}


def place(folder: Path) -> Place:
    root = many(folder / "data", EACH)
    for name in (CHOICES, FLOOD):  # those that are asked
        (root / SET / name / "prediction.json").unlink()
    return Place(root, folder / "out")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHON": sys.executable, "OPENAI_API_KEY": "test-key", "HF_HUB_OFFLINE": "1"}


def finished(command: list[str]) -> None:
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def killed(command: list[str]) -> Iterator[Callable[[Callable[[], bool]], None]]:
    """Start a command; what is given waits for something, then all its processes are killed at once."""
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )

    def kill_when(is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not is_so():
            assert process.poll() is None, "it ended before"
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)

    try:
        yield kill_when
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_kills_in_both_steps_change_nothing(tmp_path: Path) -> None:
    whole, other = place(tmp_path / "whole"), place(tmp_path / "other")
    with StubServer() as server:
        finished(whole.command(server))
    expected = whole.left
    assert len(expected["Commonsense-Reasoning"]) == EACH and len(expected["workbook"]) == 5
    with StubServer(delay=0.05) as server:
        command = other.command(server)
        with killed(command) as kill_when:
            kill_when(lambda: server.stats()["completed"] >= QUESTIONS // 3)
        assert not (other.root / SET / CHOICES / "prediction.json").exists()
        assert server.stats()["total"] < QUESTIONS
        scores = other.out / ".scores" / "Toy"
        with killed(command) as kill_when:
            kill_when(lambda: lines_of(scores) >= EACH + 1)
        assert (other.root / SET / CHOICES / "prediction.json").exists()
        assert not (other.out / "Toy_result.xlsx").exists()
        asked = server.stats()["total"]
        finished(other.command(server, "23"))
        assert server.stats()["total"] == asked
        assert asked - QUESTIONS <= CONCURRENCY
    assert other.left == expected
    assert lines_of(scores / f"{TASKS[RAIN]}.jsonl") <= EACH + 1  # nothing was scored twice
