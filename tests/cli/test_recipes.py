from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lmms_eval.cli.main import main

Words = Callable[..., str]
INSTRUCT, KIT = "qwen3-vl-instruct@qwen-evaluation", "qwen3-vl-instruct@vlmevalkit"


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Words:
    """Run a command that succeeds, and return what it prints."""

    def run(*words: str) -> str:
        assert main(["recipes", *words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Words:
    """Run a command that fails with exit code 2, and return what it says."""

    def run(*words: str) -> str:
        assert main(["recipes", *words]) == 2
        return capsys.readouterr().err

    return run


def test_recipes_are_listed(said: Words) -> None:
    lines = said("list").splitlines()
    row = next(line for line in lines if INSTRUCT in line)
    assert "Qwen/Qwen3-VL-*-Instruct*" in row and "QwenLM/Qwen3-VL 2026-01-30" in row
    rows = json.loads(said("list", "--json"))
    (one,) = [row for row in rows if row["recipe"] == INSTRUCT]
    assert one["variants"] == ["script", "report", "cot"] and "videomme*" in one["benchmarks"]
    assert len(rows) == len(lines) - 2


def test_recipes_of_a_model(said: Words, capsys: pytest.CaptureFixture[str]) -> None:
    found = said("for", "Qwen/Qwen3-VL-8B-Instruct")
    assert INSTRUCT in found and KIT in found and "thinking" not in found
    assert said("for", "gpt-4o", "--json").strip() == "[]"
    assert main(["recipes", "for", "gpt-4o"]) == 0
    assert "no recipe is for gpt-4o" in capsys.readouterr().err


def test_a_recipe_is_described(said: Words) -> None:
    text = said("describe", f"{INSTRUCT}:cot", "--task", "mmmu_val")
    assert "variant   cot" in text and "realworldqa" not in text.split("\n\n")[1]
    assert "seed                           42  (mmmu:179)" in text
    assert "Determine whether to think step by step" in text
    shared = said("describe", INSTRUCT)
    assert "\nvideomme*\n" in shared
    document = json.loads(said("describe", KIT, "--task", "chartqa", "--json"))
    assert document["tasks"]["chartqa"]["not_stated"][:2] == ["repeats", "system_prompt"]
    assert document["tasks"]["chartqa"]["states"]["gen_kwargs.presence_penalty"] == "1.5"
    assert len(document["sha256"]) == 64
    assert "not stated, so the task's own: repeats, system_prompt" in said("describe", KIT, "--task", "chartqa")


def test_two_recipes_are_compared(said: Words) -> None:
    text = said("diff", INSTRUCT, KIT)
    assert f"  gen_kwargs.max_new_tokens\n    {INSTRUCT}: 32768\n    {KIT}: 16384\n" in text
    found = json.loads(said("diff", f"{INSTRUCT}:script", f"{INSTRUCT}:report", "--json"))
    assert list(found) == ["videomme*"]
    assert {"key": "media.max_frames", "one": "512", "other": "2048"} in found["videomme*"]
    assert said("diff", INSTRUCT, INSTRUCT) == (
        "0 benchmarks differ or are covered by one of them only; 4 are the same\n"
    )


def test_a_users_file_is_checked(said: Words, refused: Words, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"base: {INSTRUCT}\nmodels: [acme/Lens]\ntasks: {{mmstar: {{seed: 3}}}}\n", encoding="utf-8")
    assert said("check", str(path)) == (
        f"{path}: values without a source (key stated): 1, the first in mmstar\n1 checked, 0 problems\n"
    )
    path.write_text("models: [acme/Lens]\ntasks: {mmstra: {extract: guess}}\n", encoding="utf-8")
    error = refused("check", str(path))
    assert "tasks.mmstra: there is no such task" in error and "unknown extraction rule 'guess'" in error
    path.write_text("models: [acme/Lens]\ntasks: {mmstar: {layout: {parts: '{{ qestion }}'}}}\n", encoding="utf-8")
    error = refused("check", str(path))
    assert error.count("\n") == 1 and f"{path}: tasks.mmstar.layout.parts[1]:" in error and "'qestion'" in error


def test_bad_words_are_one_line(refused: Words) -> None:
    assert "did you mean gemma-3@vlmevalkit" in refused("describe", "gemma3@vlmevalkit")
    assert "unknown variant 'logn'" in refused("describe", f"{INSTRUCT}:logn")
    assert "does not cover mme; it covers mmmu_val" in refused("describe", INSTRUCT, "--task", "mme")
    assert "there is no such file" in refused("diff", INSTRUCT, "gone.yaml")
    for words in (["describe", "nobody"], ["for"], ["describe"], ["tell"]):
        assert refused(*words).count("\n") == 1
