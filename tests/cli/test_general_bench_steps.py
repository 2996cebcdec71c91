"""``run.sh`` and ``lmms-eval general-bench run``: predictions, scores, levels, in any choice of steps."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli import evaluate
from lmms_eval.cli.general_bench import run_steps
from lmms_eval.cli.main import main
from lmms_eval.errors import UsageError
from tests.cases import for_each
from tests.faults.general_bench_kit import CHOICES, DEFECTS, FLOOD, RAIN, TASKS, workbook_cells
from tests.tasks.general_bench.demo_kit import SET, copied

SCRIPT = Path(__file__).parents[2] / "lmms_eval" / "tasks" / "general_bench" / "run.sh"
SPORTS = "image/comprehension/Sports-Classification"
GOLD = ["--model", "baseline", "--model_args", "strategy=gold"]
LANGUAGE = ["--tasks", "general_bench_nlp_code_defect_detection"]


class Steps:
    """Stands for the three steps: notes what they are given, ends with the code that is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **codes: int) -> None:
        self.given: dict[str, list[str]] = {}
        self.codes = codes
        monkeypatch.setattr(evaluate, "run", self.step("ask"))

    def step(self, name: str) -> Callable[[Sequence[str]], int]:
        def run(words: Sequence[str]) -> int:
            self.given[name] = list(words)
            return self.codes.get(name, 0)

        return run

    def run(self, *words: str) -> int:
        return run_steps(words, self.step("register"), self.step("rank"))


NAMES = {"1": "ask", "2": "register", "3": "rank"}


@for_each("step", ["1", "2", "3", "12", "23", "13", "123", "321", "11"])
@for_each("spelling", ["--step={}", "--step {}"])
@for_each("place", [0, 1, 2])
def test_each_digit_is_a_step(step: str, spelling: str, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    words = [["--model", "baseline"], ["--dataset", "data"]]
    words.insert(place, spelling.format(step).split())
    assert steps.run(*(word for group in words for word in group)) == 0
    assert list(steps.given) == [NAMES[digit] for digit in "123" if digit in step]


def test_all_steps_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    assert steps.run("--model", "baseline") == 0
    assert list(steps.given) == ["ask", "register", "rank"]


def test_what_the_steps_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    steps.run(
        "--model", "hf", "--model_args", "pretrained=Org/Net", "--dataset", "data", "--output", "out", "--limit", "2",
        "--task_kwargs", "subset=closed", "--tasks", "general_bench_nlp", "--profile", "reference", "-p", "a.json",
    )  # fmt: skip
    asked = dict(zip(steps.given["ask"][::2], steps.given["ask"][1::2], strict=True))
    assert asked == {
        "--model": "hf", "--model_args": "pretrained=Org/Net", "--tasks": "general_bench_nlp", "--data_root": "data",
        "--task_kwargs": "predictions=beside,prediction_name=a.json,subset=closed", "--output_path": "out/runs",
        "--limit": "2",
    }  # fmt: skip
    assert steps.given["register"] == [
        "-d", "data", "-o", "out", "-m", "Org/Net", "--profile", "reference", "-p", "a.json",
        "--task_kwargs", "subset=closed",
    ]  # fmt: skip
    assert steps.given["rank"][:4] == ["-p", "out/Org__Net_result.xlsx", "-m", "Org/Net"]


def test_steps_1_and_2_are_told_of_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    judge = ["--judge_model", "gpt", "--judge_base_url", "http://127.0.0.1:1/v1"]
    assert steps.run("--model", "baseline", *judge) == 0
    assert steps.given["ask"][-4:] == steps.given["register"][-4:] == judge
    assert "--judge_model" not in steps.given["rank"]


def test_the_name_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    for words, name in (
        (["--model", "baseline"], "baseline"),
        (["--name", "Mine", "--model", "baseline"], "Mine"),
        (["--step", "23", "--name", "Mine"], "Mine"),
        (["--step", "3", "--model_args", "model=gpt"], "gpt"),
    ):
        steps.run(*words)
        assert steps.given["rank"][3] == name
    with pytest.raises(UsageError, match="--name NAME"):
        steps.run("--step", "23")


@for_each(
    ("codes", "ended", "run"),
    [
        ({}, 0, 3),
        ({"ask": 3}, 3, 3),
        ({"register": 2}, 2, 3),
        ({"ask": 3, "register": 2}, 3, 3),
        ({"ask": 130}, 130, 1),
        ({"ask": 143, "register": 2}, 143, 1),
    ],
)
def test_exit_codes(codes: dict[str, int], ended: int, run: int, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch, **codes)
    assert steps.run("--model", "baseline") == ended
    assert len(steps.given) == run


@for_each(
    ("words", "says"),
    [
        (["--step", "4"], "--step 4: give digits of steps"),
        (["--step", ""], "give digits of steps"),
        (["--step", "one"], "--step one"),
        (["--step", "1"], "step 1 needs a model"),
        ([], "step 1 needs a model"),
        (["--step", "23", "--name", "m", "--limit", "2"], "--limit 2: further options go to step 1"),
        (["--profile", "other", "--model", "baseline"], "--profile"),
    ],
)
def test_wrong_command_lines(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["general-bench", "run", *words]) == 2
    assert says in capsys.readouterr().err


def test_a_wrong_model_ends_the_run_before_the_other_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = copied(tmp_path / "data", DEFECTS)
    words = ["--model", "nobody", "--dataset", str(root), "--output", str(tmp_path / "out"), *LANGUAGE]
    assert main(["general-bench", "run", *words]) == 2
    assert "unknown model 'nobody'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# --- really


def script(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": sys.executable, "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        ["bash", str(SCRIPT), *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def levels(out: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / f"{name}_levels.json").read_bytes())
    return content


def test_the_script_with_right_replies(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", DEFECTS, CHOICES, SPORTS, FLOOD, RAIN)
    asked = ",".join(f"general_bench_{TASKS.get(folder, 'image_comprehension_sports_image_classification')}"
                     for folder in (DEFECTS, CHOICES, SPORTS, FLOOD))  # fmt: skip
    words = ["--dataset", "data", "--name", "Org/Gold", "--output", "out"]
    first = script("--step=123", *GOLD, *words, "--tasks", asked, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    written = {path.parent.name: json.loads(path.read_text()) for path in root.rglob("prediction.json")}
    assert set(written) == {
        "Defects",
        "Commonsense-Reasoning",
        "Sports-Classification",
        "Flood-Segmentation",
        "Deraining",
    }
    assert [record["prediction"] for record in written["Sports-Classification"]] == ["red", "blue", "green"]
    cells = workbook_cells(tmp_path / "out" / "Org__Gold_result.xlsx", "Org/Gold")
    assert {task: value for (_, task), value in cells.items()} == {
        "Commonsense Reasoning": 100, "Code Defect Detection": 100, "Sports Image Classification": 100,
        "Flood Area Segmentation": 100, "Image Deraining": pytest.approx(38.7, abs=0.05),
    }  # fmt: skip
    found = levels(tmp_path / "out", "Org__Gold")
    psnr = 100 * math.tanh(cells["Image-Generation", "Image Deraining"] / 20)
    assert found["levels"]["level2"] == pytest.approx((200 / 271 + psnr / 45) / 2 / 4)
    assert "step 1" in first.stderr and "step 3" in first.stderr and "General-Level of Org/Gold" in first.stdout
    again = script(*words, "--step", "23", cwd=tmp_path)  # from any position; nothing is asked
    assert again.returncode == 0, again.stderr
    assert "step 1" not in again.stderr
    assert workbook_cells(tmp_path / "out" / "Org__Gold_result.xlsx", "Org/Gold") == cells
    assert levels(tmp_path / "out", "Org__Gold") == found


def test_the_script_with_the_model_of_the_package(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", DEFECTS, SPORTS)
    names = "general_bench_nlp_code_defect_detection,general_bench_image_comprehension_sports_image_classification"
    model = ["--model", "hf", "--model_args", "pretrained=embedded,dtype=float32,device=cpu"]
    done = script(*model, "--dataset", str(root), "--tasks", names, "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = {path.parent.name: json.loads(path.read_text()) for path in root.rglob("prediction.json")}
    assert {name: [record["id"] for record in records] for name, records in made.items()} == {
        "Defects": ["q0", "q1", "q2"], "Sports-Classification": [0, 1, 2],
    }  # fmt: skip
    assert len(workbook_cells(tmp_path / "out" / "embedded_result.xlsx", "embedded")) == 2
    assert levels(tmp_path / "out", "embedded")["model"] == "embedded"


# --- what a folder holds


def test_tasks_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = copied(tmp_path, DEFECTS, RAIN)
    assert main(["general-bench", "tasks", "-d", str(root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "general_bench_image_generation_image_deraining" in lines[2] and f"{SET}/{RAIN}" in lines[2]
    assert "general_bench_nlp_code_defect_detection" in lines[3] and "offline-text" in lines[3]
    (root / SET / "nlp" / "Empty").mkdir()
    assert main(["general-bench", "tasks", "-d", str(root)]) == 2
    assert "Empty holds no annotation.json" in capsys.readouterr().err
    assert main(["general-bench", "tasks", "-d", str(root), "--subset", "closed"]) == 2
    assert main(["general-bench", "tasks", "-d", str(root / "nothing")]) == 2


def test_the_table_of_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["general-bench", "metrics"]) == 0
    printed = capsys.readouterr().out
    assert all(f"| {name} |" in printed or f"`{name}`" in printed for name in ("psnr", "micro_f1", "fid", "gpt_score"))
