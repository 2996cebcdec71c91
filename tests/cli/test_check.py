"""``lmms-eval check`` as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from tests.tasks.kit import BASE, Function, write_rows, write_yaml


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rows(tmp_path)
    write_yaml(tmp_path / "well.yaml", {**BASE, "task": "well"})
    write_yaml(
        tmp_path / "generous.yaml",
        {
            **BASE,
            "task": "generous",
            "process_results": Function("utils.one"),
            "metric_list": [{"metric": "m", "aggregation": "mean", "range": [0, 1]}],
        },
    )
    write_yaml(tmp_path / "broken.yaml", {**BASE, "task": "broken", "doc_to_text": Function("utils.lost")})
    (tmp_path / "utils.py").write_text("def one(doc, results):\n    return {'m': 1.0}\n")
    return tmp_path


def test_json_and_exit_codes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "--include-path", str(folder), "--json", "--processes", "1", "--documents", "2"]
    assert main([*command, "--tasks", "well,generous,broken"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] == {"broken": 1, "doubtful": 1, "skipped": 0, "well": 1}
    by_name = {each["name"]: each for each in found["checked"]}
    assert by_name["well"]["findings"][0] == {"step": "functions", "status": "ok"}
    assert by_name["broken"]["findings"][0]["kind"] == "task file wrong"
    assert main([*command, "--tasks", "generous"]) == 0
    assert main([*command, "--tasks", "generous", "--strict"]) == 2


def test_model_with_tasks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "--include-path", str(folder), "--tasks", "well", "--model", "baseline", "--processes", "1"]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("1 task, 1 model checked: OK (")


def test_unknown_names_are_a_usage_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--include-path", str(folder), "--tasks", "wel"]) == 2
    assert "did you mean well" in capsys.readouterr().err
    assert main(["check", "--documents", "0"]) == 2


SIZED = """\
import datasets


def make(tokenizer=None, **given):
    assert tokenizer, "No tokenizer provided"
    return {"test": datasets.Dataset.from_list([{"question": tokenizer, "answer": tokenizer}])}
"""


def test_tasks_get_the_arguments_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LMMS_EVAL_PACKS", str(tmp_path / "store"))
    tasks = tmp_path / "mine/lm_eval/tasks"
    tasks.mkdir(parents=True)
    (tasks / "utils.py").write_text(SIZED)
    scored = {"metric_list": [{"metric": "exact_match"}], "doc_to_text": "question", "doc_to_target": "answer"}
    write_yaml(
        tasks / "sized.yaml",
        {"task": "sized", "test_split": "test", "custom_dataset": Function("utils.make"), **scored},
    )
    assert main(["packs", "add", str(tmp_path / "mine"), "--name", "mine", "--trust"]) == 0
    command = ["check", "--tasks", "mine:sized", "--model_args", "tokenizer=tiny", "--processes", "1"]
    assert main(command) == 0
    assert "1 task checked: OK" in capsys.readouterr().out
