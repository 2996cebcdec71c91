"""Runs of different recipes: the comparison says so first, and its verdicts are about models under their settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.command import Ended, in_process

SCRIPTS, KIT = "qwen3-vl-instruct@qwen-evaluation", "plain@vlmevalkit"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    many = root / "many" / "RealWorldQA"
    many.mkdir(parents=True)
    question = "Which car is nearest to number {}?\nA. The red one\nB. The white one"
    lines = [{"image": None, "question": question.format(number), "answer": "A"} for number in range(30)]
    (many / "test-00000-of-00001.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    asked = {"right": ("A", SCRIPTS), "wrong": ("B", KIT), "plain": ("B", ""), "again": ("B", SCRIPTS)}
    for name, (answer, recipe) in asked.items():
        words = ["--recipe", recipe] if recipe else []
        ended = in_process("--model", "baseline", "--model_args", f"strategy=constant,text={answer},no_media=true",
                           "--tasks", "realworldqa", "--data_root", many.parent, "--output_path", root / name,
                           "--log_samples", *words)  # fmt: skip
        assert ended.code == 0, ended.shown
    return root


def compared(runs: Path, *names: str) -> Ended:
    return in_process("compare", *(runs / name for name in names), "--json", runs / "out.json")


def test_different_recipes_are_said_first(runs: Path) -> None:
    ended = compared(runs, "right", "wrong")
    assert ended.code == 0, ended.shown
    lines = [line for line in ended.out.splitlines() if line]
    assert lines[1].startswith(f"asked by different recipes: baseline@right with {SCRIPTS}:script (sha256 ")
    assert f"wrong with {KIT}:default" in lines[1]
    assert "under their settings, not alone; differs: prompts, options, pictures and frames, " in lines[1]
    assert "better under its settings" in ended.out
    (pair,) = json.loads((runs / "out.json").read_text())["pairs"]
    assert pair["recipes"] == lines[1]
    assert {(row["verdict"], row["own_settings"]) for row in pair["rows"]} == {("better", True)}


def test_a_run_without_a_recipe_has_other_settings_too(runs: Path) -> None:
    ended = compared(runs, "right", "plain")
    assert "plain with no recipe" in ended.out and "better under its settings" in ended.out


def test_the_same_recipe_is_the_same_settings(runs: Path) -> None:
    ended = compared(runs, "right", "again")
    assert ended.code == 0, ended.shown
    assert "recipes" not in ended.out and "under its settings" not in ended.out
