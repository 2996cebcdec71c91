"""The stand-alone scripts as users start them: as files, from anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.main import main
from tests import forks
from tests.cases import for_each

BENCHMARK = Path(__file__).parents[2] / "lmms_eval" / "tasks" / "milebench"


def start(script: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return forks.run(str(BENCHMARK / script), *words, cwd=cwd)


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def dataset(root: Path, name: str, gold: str, question_type: str, answer: Any) -> None:
    """A data set of two samples below ``data``, and predictions below ``outputs/m``."""
    instance = {"images_path": ["a", "b"], "choice_list": ["x", "y"]}
    data = [
        {"sample_id": number, "response": gold, "image_quantity_level": "Few", "task_instance": instance}
        for number in (1, 2)
    ]
    annotation = {"meta_data": {"question_type": question_type}, "data": data}
    write(root / "data" / name / f"{name}.json", annotation)
    records = [{"sample_id": number, "gt_response": gold, "pred_response": answer} for number in (2, 1)]
    write(root / "outputs" / "m" / name / "pred.json", records)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    dataset(tmp_path, "TQA", "y", "multi-choice", "B")
    dataset(tmp_path, "IEdit", "a b", "open-ended", "b")
    dataset(tmp_path, "MyOwn", "y", "multi-choice", "A")
    return tmp_path


def test_all_data_sets_of_a_folder_and_their_table(root: Path) -> None:
    done = start("evaluate.py", "--data-dir", "data", "--result-dir", "outputs/m/", cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split(":  ")[:2] for line in done.stdout.splitlines()] == [
        ["m", "TQA"],
        ["m", "IEdit"],
        ["m", "MyOwn"],
    ]
    first = "m:  TQA:  {'Accuracy': 1.0, 'image_quantity_level-Accuracy': {'Few': 1.0, 'Medium': 0, 'Many': 0}, "
    assert done.stdout.startswith(first + "'image_quantity_level-Result': {'Few': [2, 2], ")
    assert not (root / "outputs/m/IEdit/pred_with_extracted.json").exists()
    done = start("score.py", "--result-dir", "outputs", "--models", "m", cwd=root)
    assert done.returncode == 0
    assert (root / "outputs/result.csv").read_text() == "Model,IEdit (Rouge-L f),TQA (Accuracy)\nm,66.67,100.0\n"
    assert "m has no result of 27 data sets" in done.stderr


def test_the_report(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["milebench", "report", "--result-dir", f"{root}/outputs/m"]
    assert main(words) == 2
    assert "TQA/pred.json was not evaluated" in capsys.readouterr().err
    assert main(["milebench", "evaluate", "--data-dir", f"{root}/data", "--result-dir", f"{root}/outputs/m"]) == 0
    capsys.readouterr()
    assert main([*words, "--output_dir", f"{root}/reports"]) == 0
    shown = capsys.readouterr().out
    assert "S-1" in shown
    written = json.loads((root / "reports/m_milebench/report.json").read_text())
    assert written["datasets"]["TQA"]["partial"]["official"]["score"] == 100
    assert f"file: {root}/reports/m_milebench" in shown
    path = root / "outputs/m/TQA/pred.json"
    path.write_text(path.read_text() + " ")
    assert main(words) == 2
    assert "computed from other predictions" in capsys.readouterr().err


def test_a_report_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["milebench", "report", "--result-dir", str(tmp_path)]) == 2
    assert "no data set was evaluated" in capsys.readouterr().err
    (tmp_path / "TQA").mkdir()
    (tmp_path / "TQA/eval_fixed.json").write_text("{}")
    assert main(["milebench", "report", "--result-dir", str(tmp_path)]) == 2
    assert "holds no summary of TQA" in capsys.readouterr().err


def test_one_data_set_with_adversarial_annotations(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads((root / "data/TQA/TQA.json").read_text())
    for sample in data["data"]:
        sample["task_instance"]["choice_list"] = ["y", "x"]
    write(root / "data/TQA/TQA-adv.json", data)
    words = ["--data-dir", f"{root}/data", "--dataset", "TQA", "--result-dir", f"{root}/outputs/m", "--adv"]
    assert main(["milebench", "evaluate", *words]) == 0
    assert "'Accuracy': 0.0" in capsys.readouterr().out
    assert not (root / "outputs/m/IEdit/eval.json").exists()
    assert json.loads((root / "outputs/m/TQA/eval_fixed.json").read_text())["summary"]["variant"] == "adversarial"


def test_a_data_set_that_does_not_fit_leaves_the_others(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "outputs/m/TQA/pred.json"
    write(path, json.loads(path.read_text())[:1])
    words = ["--data-dir", f"{root}/data", "--result-dir", f"{root}/outputs/m"]
    assert main(["milebench", "evaluate", *words]) == 2
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 2
    assert f"error: TQA: {path} does not fit" in shown.err
    assert "1 of 3 data sets have no new result" in shown.err
    assert not path.with_name("eval.json").exists()
    assert main(["milebench", "evaluate", *words, "--allow_partial"]) == 0
    assert "scored 1 of 2 samples (50.0%)" in capsys.readouterr().err


def test_failed_samples_withhold_the_score(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "outputs/m/TQA/pred.json"
    records = json.loads(path.read_text())
    records[0]["pred_response"] = None
    write(path, records)
    words = ["--data-dir", f"{root}/data", "--dataset", "TQA", "--result-dir", f"{root}/outputs/m"]
    assert main(["milebench", "evaluate", *words]) == 3
    assert "sample 2: the prediction is null" in capsys.readouterr().err
    assert not path.with_name("eval.json").exists()
    assert main(["milebench", "evaluate", *words, "--allow_partial"]) == 0
    assert json.loads(path.with_name("eval_fixed.json").read_text())["failed"] == 1
    records[1]["pred_response"] = None
    write(path, records)
    assert main(["milebench", "evaluate", *words, "--allow_partial"]) == 3


def test_usage(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["milebench", "evaluate", "--data-dir", "d", "--result-dir", f"{root}/empty"]) == 2
    assert "no folder with a pred.json" in capsys.readouterr().err
    assert main(["milebench", "score", "--result-dir", f"{root}/none", "--models", "m"]) == 2
    assert main(["milebench", "other"]) == 2
    assert main(["milebench", "score", "--result-dir", f"{root}/outputs"]) == 2
    assert "--models" in capsys.readouterr().err


@for_each("script", ["evaluate.py", "score.py"])
def test_help_stands_alone(script: str, tmp_path: Path) -> None:
    done = start(script, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "--result-dir" in done.stdout


def test_scoring_imports_nothing_heavy(root: Path) -> None:
    code = (
        "import sys; from lmms_eval.cli.main import main; "
        f"main(['milebench', 'evaluate', '--data-dir', {str(root / 'data')!r}, "
        f"'--result-dir', {str(root / 'outputs/m')!r}]); "
        "print(sorted({'torch', 'transformers', 'numpy', 'pandas', 'datasets', 'PIL'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines()[-1] == "[]"
