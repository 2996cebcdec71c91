"""Tasks of lm-eval whose scoring runs programs that a model wrote (key ``unsafe_code``)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from lmms_eval.api.task import Answer, ScoredDoc, TaskOptions
from lmms_eval.errors import TaskError
from lmms_eval.sandbox import layers
from lmms_eval.tasks.selection import build_task
from lmms_eval.tasks.yaml import included
from lmms_eval.tasks.yaml.included import include
from lmms_eval.tasks.yaml.loader import YamlReader
from lmms_eval.tasks.yaml.task import TaskSource, YamlTask
from tests.tasks.kit import BASE, Function, write_rows, write_yaml

IN_THE_SANDBOX = """\
import evaluate

pass_at_k = evaluate.load("code_eval")
pass_at_k.compute(references=["assert f() == 1"], predictions=[["def f(): return 1"]], k=[1])


def pass_at_1(references, predictions):
    return pass_at_k.compute(references=references, predictions=[predictions], k=[1])[0]["pass@1"]
"""
BY_ITSELF = """\
def pass_at_1(references, predictions):
    return float(eval(predictions[0]) == 4)
"""
ROWS = [{"question": "2 + 2", "answer": "assert f() == 4"}]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of task files of lm-eval."""
    monkeypatch.setattr(included._FINDER, "roots", [])
    made = tmp_path / "lm_eval" / "tasks"
    made.mkdir(parents=True)
    include(made, is_deep=False, package="lm_eval")
    return made


def built(folder: Path, code: str, options: TaskOptions, is_marked: bool = True) -> YamlTask:
    entry = {"metric": Function("utils.pass_at_1"), "aggregation": "mean", "higher_is_better": True}
    write_rows(folder, ROWS)
    (folder / "utils.py").write_text(code, encoding="utf-8")
    file = write_yaml(folder / "probe.yaml", {**BASE, "metric_list": [entry], "unsafe_code": is_marked})
    task = build_task(TaskSource("probe", str(file), YamlReader().read(file), {}), options)
    assert isinstance(task, YamlTask)
    return task


def scored(folder: Path, code: str, answer: str, options: TaskOptions, is_marked: bool = True) -> ScoredDoc:
    task = built(folder, code, options, is_marked)
    task.load()
    return task.score(0, [Answer(answer)])


def test_programs_of_code_eval_run_in_the_sandbox(folder: Path) -> None:
    made = scored(folder, IN_THE_SANDBOX, "def f(): return 4", TaskOptions())
    assert dict(made.scores[0].metrics) == {"pass_at_1": 1.0}
    made = scored(folder, IN_THE_SANDBOX, "raise SystemExit(0)", TaskOptions())
    assert dict(made.scores[0].metrics) == {"pass_at_1": 0.0}


def test_without_a_sandbox_the_task_is_not_built(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "probe_layers", list)
    with pytest.raises(TaskError, match=r"probe\.yaml.* nothing confines .*--allow_unsafe_code runs programs without"):
        built(folder, IN_THE_SANDBOX, TaskOptions())
    made = scored(folder, IN_THE_SANDBOX, "def f(): return 4", TaskOptions(allow_unsafe_code=True))
    assert dict(made.scores[0].metrics) == {"pass_at_1": 1.0}


def test_programs_that_the_task_runs_itself_need_the_flag(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("lmms_eval").propagate = True
    made = scored(folder, BY_ITSELF, "2 + 2", TaskOptions())
    assert made.scores[0].status == "unscored"
    assert made.scores[0].reason == (
        "its scoring runs programs of the model outside the sandbox (key unsafe_code); --allow_unsafe_code permits that"
    )
    assert made.target == "assert f() == 4"
    assert [
        record.message for record in caplog.records if "task probe: its samples will not be scored" in record.message
    ]
    made = scored(folder, BY_ITSELF, "2 + 2", TaskOptions(allow_unsafe_code=True))
    assert dict(made.scores[0].metrics) == {"pass_at_1": 1.0}
    assert scored(folder, BY_ITSELF, "2 + 2", TaskOptions(predict_only=True)).scores[0].status == "scored"
    assert scored(folder, BY_ITSELF, "2 + 2", TaskOptions(), is_marked=False).scores[0].status == "scored"


def test_the_key_is_true_or_false(folder: Path) -> None:
    file = write_yaml(folder / "probe.yaml", {**BASE, "unsafe_code": "perhaps"})
    with pytest.raises(TaskError, match="unsafe_code"):
        build_task(TaskSource("probe", str(file), YamlReader().read(file), {}), TaskOptions())
