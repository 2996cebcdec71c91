"""``register.py`` and ``ranker.py`` as their users start them: as files, from anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from lmms_eval.tasks.general_bench.facts import tasks

BENCHMARK = Path(__file__).parents[2] / "lmms_eval" / "tasks" / "general_bench"


def start(script: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARK / script), *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def results(path: Path, *further: dict[str, object]) -> Path:
    """The specialists' scores as results of tasks."""
    rows = [{"task_name": task.name, "metric": task.spelling, "score": task.sound_specialist} for task in tasks()]
    path.write_text(json.dumps([*rows, *further]), encoding="utf-8")
    return path


def test_register_and_ranker(tmp_path):
    data = tmp_path / "data"
    (data / "nlp" / "one").mkdir(parents=True)
    results(data / "nlp" / "one" / "scores.json")
    made = start("register.py", "-d", "data", "-p", "scores.json", "-o", "out", "-m", "Org/My-Model", cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    assert "699 of 699 results entered" in made.stdout
    ranked = start("ranker.py", "-p", "out/Org__My-Model_result.xlsx", "-m", "org/my-model", cwd=tmp_path)
    assert (ranked.returncode, ranked.stderr) == (0, "")
    assert "level reached: 5" in ranked.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "Org__My-Model_result.xlsx",
        "Org__My-Model_result.csv",
        "Org__My-Model_result.json",
        "score_calculation_org__my-model.log",
        "org__my-model_levels.json",
        "org__my-model_levels.csv",
    }
    levels = json.loads((tmp_path / "out" / "org__my-model_levels.json").read_bytes())["levels"]
    assert levels["level5"] == pytest.approx(38.884, abs=1e-3)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A folder with a result workbook of the model ``m``."""
    monkeypatch.chdir(tmp_path)
    assert main(["general-bench", "register", "-d", str(results(tmp_path / "r.json")), "-m", "m"]) == 0
    return tmp_path / "outcome"


def test_both_profiles_and_all_forms(made, capsys):
    for suffix in (".xlsx", ".csv", ".json"):
        assert main(["general-bench", "rank", "-p", str(made / f"m_result{suffix}"), "-m", "m", "--draws", "0"]) == 0
    assert main(["general-bench", "rank", "-p", str(made / "m_result.xlsx"), "-m", "m", "--profile", "reference"]) == 0
    assert "profile reference" in capsys.readouterr().out
    assert json.loads((made / "m_levels.json").read_bytes())["profile"] == "reference"


def test_a_given_template_and_specialists(made, capsys):
    words = ["-d", str(made.parent / "r.json"), "-t", str(made / "m_result.xlsx")]
    assert main(["general-bench", "register", *words, "-m", "SoTA Performance"]) == 0
    sota = made / "SoTA Performance_result.xlsx"
    assert main(["general-bench", "rank", "-p", str(sota), "-m", "m", "-s", str(sota), "-o", str(made / "x")]) == 0
    assert "level reached: 5" in capsys.readouterr().out
    assert (made / "x" / "score_calculation_m.log").is_file()


def test_a_scope(made, capsys):
    words = ["general-bench", "rank", "-p", str(made / "m_result.xlsx"), "-m", "m"]
    assert main([*words, "--scope", "C:3D-Generation"]) == 0
    assert "scope C:3D-Generation" in capsys.readouterr().out
    assert main([*words, "--scope", "D:nothing"]) == 2
    assert main([*words, "--scope", "B:Image", "--profile", "reference"]) == 2
    assert "neither scopes nor units" in capsys.readouterr().err


def test_problems_give_exit_code_2_and_all_else_is_done(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    bad = {"task_name": "No Such Task Anywhere", "metric": "ACC", "score": 3}
    assert main(["general-bench", "register", "-d", str(results(tmp_path / "r.json", bad)), "-m", "m"]) == 2
    printed = capsys.readouterr()
    assert "699 of 700 results entered" in printed.out
    assert "error: " in printed.err and "No Such Task Anywhere" in printed.err


def test_predictions_are_said_not_to_be_evaluated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data" / "nlp" / "a"
    folder.mkdir(parents=True)
    (folder / "prediction.json").write_text('[{"id": 1, "prediction": "x"}]')
    assert main(["general-bench", "register", "-d", "data"]) == 3
    assert "not evaluated: predictions are not scored" in capsys.readouterr().err
    assert (tmp_path / "outcome" / "test_result.xlsx").is_file()


def test_wrong_command_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["general-bench", "rank"]) == 2
    assert main(["general-bench", "register"]) == 2
    assert main(["general-bench", "other"]) == 2
    assert main(["general-bench", "rank", "-p", str(tmp_path), "--draws", "x"]) == 2
    errors = capsys.readouterr().err
    assert "emu2_result.xlsx: no such file" in errors
    assert "General-Bench-Openset: no such folder" in errors


def test_openpyxl_is_imported_without_numpy(made):
    code = (
        "import sys; from lmms_eval.cli.main import main;"
        f"main(['general-bench', 'rank', '-p', {str(made / 'm_result.xlsx')!r}, '-m', 'm']);"
        "assert 'numpy' not in sys.modules; import numpy, PIL"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
