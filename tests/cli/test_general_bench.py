"""``register.py`` and ``ranker.py`` as their users start them: as files, from anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from lmms_eval.tasks.general_bench.facts import tasks
from tests import forks
from tests.faults.general_bench_kit import (
    DEFECTS,
    FLOOD,
    SPEECH,
    TASKS,
    cell_of,
    data_set,
    register,
    workbook_cells,
)
from tests.tasks.general_bench.demo_kit import SET, edit

BENCHMARK = Path(__file__).parents[2] / "lmms_eval" / "tasks" / "general_bench"


def start(script: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return forks.run(str(BENCHMARK / script), *words, cwd=cwd)


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


def test_predictions_are_scored_and_entered(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data_set(tmp_path / "data")
    assert main(["general-bench", "register", "-d", "data", "-m", "Org/Toy"]) == 0
    printed = capsys.readouterr()
    assert "5 of 5 results entered; sheets: NLP, Image-Comprehension" in printed.out
    assert "nlp_code_defect_detection: scored" in printed.err
    outcome = tmp_path / "outcome"
    scores = {one["task"]: one for one in json.loads((outcome / "Org__Toy_scores.json").read_text())}
    assert scores["nlp_commonsense_reasoning"]["strict"] == pytest.approx(100 / 3)
    cells = workbook_cells(outcome / "Org__Toy_result.xlsx", "Org/Toy")
    assert {task: cells[sheet, task] for sheet, task in cells} == {
        facts.name: pytest.approx(scores[facts.id]["strict"]) for facts in tasks() if facts.id in scores
    }
    assert len(list((outcome / ".scores" / "Org__Toy").glob("*.jsonl"))) == 5
    assert main(["general-bench", "rank", "-p", "outcome/Org__Toy_result.xlsx", "-m", "Org/Toy"]) == 0


def test_the_folder_of_a_set_and_the_folder_above_it(tmp_path, capsys):
    root = data_set(tmp_path / "data")
    found = [register(folder, tmp_path / str(place)) for place, folder in enumerate((root, root / SET))]
    assert [one.ended.code for one in found] == [0, 0]
    assert found[0].scores == found[1].scores and found[0].cells == found[1].cells


def test_files_of_another_name(tmp_path):
    root = data_set(tmp_path / "data")
    folder = root / SET / DEFECTS
    (folder / "prediction.json").rename(folder / "other.json")
    found = register(root, tmp_path / "out", **{"-p": "other.json"})
    assert found.ended.code == 0 and list(found.scores) == [TASKS[DEFECTS]]


def test_the_reference_scores_language_tasks_only(tmp_path):
    root = data_set(tmp_path / "data")
    found = register(root, tmp_path / "out", **{"--profile": "reference"})
    assert found.ended.code == 0, found.ended.shown
    assert "profile reference scores language tasks only: 3 files of predictions are left out" in found.ended.err
    # the reference leaves percentages to the reader: it writes fractions
    assert {task: value for (_, task), value in found.cells.items()} == {
        "Code Defect Detection": pytest.approx(2 / 3), "Commonsense Reasoning": pytest.approx(1 / 3),
    }  # fmt: skip


def test_results_and_predictions_together(tmp_path):
    root = data_set(tmp_path / "data")
    rows = [{"model": "m", "task": "TextToSpeech", "metric": "WER", "score": "0.25"}]
    (root / SET / SPEECH / "prediction.json").write_text(json.dumps(rows))
    found = register(root, tmp_path / "out")
    assert found.ended.code == 0, found.ended.shown
    assert found.cells["Audio-Generation", "TextToSpeech"] == 0.25
    assert set(found.scores) == set(TASKS.values()) - {TASKS[SPEECH]}


def test_what_cannot_be_evaluated_has_a_reason_and_an_exit_code_of_its_own(tmp_path):
    root = data_set(tmp_path / "data")
    edit(
        root / SET / FLOOD / "annotation.json", lambda content: [one.pop("output") for one in content["data"]] and None
    )
    found = register(root, tmp_path / "out")
    assert found.ended.code == 3, found.ended.shown
    assert found.scores[TASKS[FLOOD]]["status"] == "not evaluated"
    assert cell_of(FLOOD) not in found.cells and len(found.cells) == 4
    assert any(line.startswith("Flood Area Segmentation: not evaluated: ") for line in found.ended.err.splitlines())


def test_options_of_the_tasks(tmp_path):
    root = data_set(tmp_path / "data")
    found = register(root, tmp_path / "out", **{"--task_kwargs": "subset=open,max_frames=3"})
    assert found.ended.code == 0 and len(found.cells) == 5
    wrong = register(root, tmp_path / "other", **{"--task_kwargs": "sub=open"})
    assert wrong.ended.code == 2 and "no task option 'sub'" in wrong.ended.err


def test_one_file_of_predictions_needs_its_data_set(tmp_path):
    root = data_set(tmp_path / "data")
    found = register(root / SET / DEFECTS / "prediction.json", tmp_path / "out")
    assert found.ended.code == 2
    assert "give the data set's folder, which has the answers (-d)" in found.ended.err


def test_wrong_command_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["general-bench", "rank"]) == 2
    assert main(["general-bench", "register"]) == 2
    assert main(["general-bench", "other"]) == 2
    assert main(["general-bench", "rank", "-p", str(tmp_path), "--draws", "x"]) == 2
    errors = capsys.readouterr().err
    assert "emu2_result.xlsx: no such file" in errors
    assert "General-Bench-Openset: no such folder" in errors


def test_a_picture_only_where_it_is_asked_for(made, capsys, monkeypatch):
    words = ["general-bench", "rank", "-p", str(made / "m_result.csv"), "-m", "m", "--draws", "0"]
    assert main(words) == 0
    assert not (made / "m_levels.png").exists()
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "matplotlib.figure", None)
        assert main([*words, "--picture"]) == 0
    assert "install matplotlib" in capsys.readouterr().err
    pytest.importorskip("matplotlib")
    assert main([*words, "--picture"]) == 0
    assert (made / "m_levels.png").read_bytes().startswith(b"\x89PNG")
    assert f"picture: {made / 'm_levels.png'}, {made / 'm_levels.svg'}" in capsys.readouterr().out


def test_openpyxl_is_imported_without_numpy(made):
    code = (
        "import sys; from lmms_eval.cli.main import main;"
        f"main(['general-bench', 'rank', '-p', {str(made / 'm_result.xlsx')!r}, '-m', 'm']);"
        "assert 'numpy' not in sys.modules; import numpy, PIL"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
