"""Data of MMIE for tests: the demonstration's records, told to loopback servers what to answer."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from lmms_eval.tasks.mmie.judge_prompts import CONSTANTS
from tests.servers.stub import StubServer

ASKED: dict[str, Any] = {
    "id": "SA-1",
    "question": [{"text": "q", "image": "a.png"}],
    "answer": "yes",
    "model": "m",
    "gt_answer": [{"text": "r", "image": None}, {"text": "s", "image": None}],
}
"""A record to evaluate."""
REPOSITORY = Path(__file__).parents[3]
UNREADABLE = 5
"""Every so many records the judge's reply holds no score."""


def script() -> ModuleType:
    """``examples/make_mmie_demo.py``."""
    spec = importlib.util.spec_from_file_location("make_mmie_demo", REPOSITORY / "examples" / "make_mmie_demo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prompt_file(folder: Path) -> Path:
    """A user's file with texts of all names."""
    file = folder / "prompts.py"
    file.write_text("\n".join(f"{name} = 'text of {name}'" for name in CONSTANTS.values()), encoding="utf-8")
    return file


def score_of(position: int) -> int | None:
    """What the judge says of a record; ``None``: nothing that can be read."""
    return None if position % UNREADABLE == 4 else position % 7


def judged_data(folder: Path, each: int = 12) -> list[dict[str, Any]]:
    """The demonstration's records, each question ending with the reply that the stub gives as judge."""
    script().make(folder, each)
    file = folder / "data.json"
    records: list[dict[str, Any]] = json.loads(file.read_text())
    for position, record in enumerate(records):
        score = score_of(position)
        if score is not None:
            record["conversations"][0]["content"][-1]["text"] = f"No. {position} ANSWER=fine\n### Score\n{score}"
        else:
            record["conversations"][0]["content"][-1]["text"] = f"No. {position}, which nobody can judge."
    file.write_text(json.dumps(records))
    return records


def words(data: Path, out: Path, model: StubServer, judge: StubServer | None, *more: str) -> list[str]:
    """A run's command line."""
    judged = [] if judge is None else ["--judge_model", "jury", "--judge_base_url", judge.url, *CONCURRENT]
    return [
        "--model", "openai", "--model_args", f"model=stub,base_url={model.url},num_concurrent=4", "--tasks", "mmie",
        "--data_root", str(data), "--output_path", str(out), "--log_samples", *judged, *more,
        # Some replies cannot be read: what MMIE makes of them is tested.
        "--judge_error_budget", "1",
    ]  # fmt: skip


CONCURRENT = ("--judge_args", "num_concurrent=4")


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    """The command in the background, its output thrown away."""
    environment = {**os.environ, "OPENAI_API_KEY": "test-key", "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "lmms_eval", *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
