"""Heavy libraries are ordinary dependencies, but what does not need them works where they are not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.workload import picture_task
from tests.faults.command import Ended, results
from tests.servers.stub import StubServer

ROOT = Path(__file__).parents[1]
BLOCKED = ("torch", "transformers", "datasets", "accelerate", "pandas", "matplotlib", "sklearn")
BLOCKER = f"""
import sys


class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            return None
        return self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)


sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""


@pytest.fixture(scope="module")
def blocker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH in which every interpreter, also of worker processes, starts without these libraries."""
    folder = tmp_path_factory.mktemp("blocker")
    (folder / "sitecustomize.py").write_text(BLOCKER)
    return folder


def python(blocker: Path, *arguments: str | Path, cwd: Path | None = None) -> Ended:
    path = os.pathsep.join([str(blocker), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "OPENAI_API_KEY": "test-key", "HF_HUB_OFFLINE": "1"}
    environment |= {"XDG_STATE_HOME": str(blocker / "state"), "VERBOSITY": "INFO"}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True, text=True, env=environment, cwd=cwd or blocker, timeout=90, check=False,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)


def lmms_eval(blocker: Path, *arguments: str | Path) -> Ended:
    return python(blocker, "-m", "lmms_eval", *arguments)


@pytest.mark.parametrize("name", BLOCKED)
def test_the_blocker_blocks(blocker: Path, name: str) -> None:
    ended = python(blocker, "-c", f"import {name}")
    assert ended.code == 1 and f"No module named '{name}'" in ended.err


@pytest.mark.parametrize(
    ("words", "shows"),
    [
        (["--help"], "--tasks"),
        (["tasks", "list"], "megabench_demo"),
        (["models"], "openai"),
        (["version"], "lmms"),
        (["doctor"], "torch"),
        (["power"], "2181"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands(blocker: Path, words: list[str], shows: str) -> None:
    ended = lmms_eval(blocker, *words)
    assert ended.code == 0, ended.shown
    assert shows in ended.out
    assert "Traceback" not in ended.shown


def test_a_local_model_says_what_it_needs(blocker: Path) -> None:
    ended = lmms_eval(blocker, "--model", "hf", "--model_args", "pretrained=embedded", "--tasks", "megabench_demo")
    assert ended.code == 2
    assert "which a lean install leaves out: pip install torch transformers accelerate" in ended.err


def test_a_server_is_asked_about_pictures(blocker: Path, tmp_path: Path) -> None:
    picture_task(tmp_path / "tasks", 6, pictures=2)
    with StubServer() as server:
        ended = lmms_eval(
            blocker, "--model", "openai", "--model_args", f"model=stub,base_url={server.url},num_concurrent=4",
            "--tasks", "bench_image", "--include_path", tmp_path / "tasks", "--output_path", tmp_path / "out",
            "--log_samples",
        )  # fmt: skip
        bodies = server.bodies()
    assert ended.code == 0, ended.shown
    document = results(tmp_path / "out")
    assert document["results"]["bench_image"]["exact_match,none"] == 1.0
    assert "torch" not in document["machine"]
    assert len(bodies) == 6
    assert all(body["messages"][-1]["content"][0]["type"] == "image_url" for body in bodies)
    (path,) = (tmp_path / "out").rglob("*_samples_*.jsonl")
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 6


def test_megabench_is_scored_from_prompt_to_total(blocker: Path, tmp_path: Path) -> None:
    ended = lmms_eval(
        blocker, "--model", "baseline", "--model_args", "strategy=gold", "--tasks", "megabench_demo",
        "--output_path", tmp_path / "out",
    )  # fmt: skip
    assert ended.code == 0, ended.shown
    assert results(tmp_path / "out")["results"]["megabench_demo"]["macro_mean,none"] == pytest.approx(1.0)
