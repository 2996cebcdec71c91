from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lmms_eval.cli.main import main
from lmms_eval.compare.readers import read_runs
from lmms_eval.errors import DataError, UsageError
from tests.installed import needs

needs("inspect_ai", "logs are made and read by inspect_ai: the extra inspect")

MAKE = """
from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.log import write_eval_log
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, accuracy, match, mean, scorer
from inspect_ai.solver import solver

@scorer(metrics=[accuracy()])
def letters():
    async def score(state, target):
        return Score(value={1: "C", 2: "I", 3: "P", 4: "N", 5: "C"}[state.sample_id])
    return score

@scorer(metrics={"quality": [mean()]})
def graded():
    async def score(state, target):
        return Score(value={"quality": state.epoch / 2})
    return score

@scorer(metrics=[mean()])
def number():
    async def score(state, target):
        return Score(value=float("nan") if state.sample_id == 2 else 0.25 * state.sample_id)
    return score

@solver
def says():
    async def solve(state, generate):
        if state.sample_id == 5:
            raise RuntimeError("broken document")
        state.output = ModelOutput.from_content("mockllm/model", "said")
        return state
    return solve

@task
def first():
    samples = [Sample(id=n, input=f"question {n}", target=str(n), metadata={"topic": "xy"[n % 2]}) for n in range(1, 6)]
    return Task(dataset=samples, solver=says(), scorer=[letters(), graded(), number()], epochs=2, fail_on_error=False)

@task
def second():
    samples = [Sample(id=f"s{n}", input="q", target=text) for n, text in enumerate(["said", "other", "said"])]
    return Task(dataset=samples, solver=says(), scorer=match())

for log in eval([first(), second()], model="mockllm/model", log_dir="logs", display="none"):
    for ending in ("eval", "json"):
        write_eval_log(log, f"{log.eval.task}.{ending}")

@solver
def says_otherwise():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("mockllm/other", "other")
        return state
    return solve

other = second()
other.solver = says_otherwise()
(log,) = eval(other, model="mockllm/other", log_dir="logs", display="none")
write_eval_log(log, "other.eval")
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs that the library itself has written, in a process of its own: it changes signals, loops and logging."""
    folder = tmp_path_factory.mktemp("logs")
    environment = {**os.environ, "HOME": str(folder), "INSPECT_DISPLAY": "none"}
    subprocess.run([sys.executable, "-c", MAKE], cwd=folder, env=environment, check=True, timeout=100)
    return folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ending", ["eval", "json"])
def test_a_log_is_read_by_its_own_library(logs: Path, ending: str) -> None:
    (run,) = read_runs([str(logs / f"first.{ending}")])
    task = run.tasks["first"]
    assert (run.name, run.kind) == ("mockllm/model", "inspect_ai")
    assert list(task.ids) == ["1", "2", "3", "4", "5"]
    assert task.statuses == ["scored", "scored", "scored", "scored", "failed"]
    np.testing.assert_array_equal(task.columns["letters,none"].scores, [1, 0, 0.5, np.nan, np.nan])
    np.testing.assert_array_equal(task.columns["graded/quality,none"].scores, [0.75, 0.75, 0.75, 0.75, np.nan])
    np.testing.assert_array_equal(task.columns["number,none"].scores, [0.25, np.nan, 0.75, 1, np.nan])
    assert (task.columns["number,none"].reported, task.columns["number,none"].scale) == (pytest.approx(2 / 3), 1.0)
    assert (task.columns["graded/quality,none"].reported, task.clusters) == (0.75, None)
    assert task.columns["letters,none"].scale == 0.0  # the library counts N as 0
    assert task.metadata() == {"topic": ["y", "x", "y", "x", "y"]}
    answer = task.answer(2)
    assert answer is not None
    assert (answer.text, answer.target, answer.prompt) == ("said", "3", "question 3")
    assert (task.raw("letters,none", 2), task.raw("graded/quality,none", 0)) == ("P", 0.5)
    assert run.notes == (
        "first: values of number that are not numbers: unscored (2)",
        "first: values of letters that are not numbers: unscored (2)",
    )


@pytest.mark.filterwarnings("ignore")
def test_another_log_has_its_own_task(logs: Path) -> None:
    (run,) = read_runs([str(logs / "second.eval")])
    column = run.tasks["second"].columns["match,none"]
    assert (column.scores.tolist(), column.reported, column.scale) == ([1, 0, 1], pytest.approx(2 / 3), 1.0)


@pytest.mark.filterwarnings("ignore")
def test_a_damaged_log_is_refused(logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.json"
    path.write_text('{"eval": {}, "status": "success", "version": 2}')
    with pytest.raises(DataError, match=r"damaged.json: inspect_ai cannot read this log"):
        read_runs([str(path)])


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.json"
    path.write_text('{"eval": {}, "status": "success", "version": 2}')

    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(UsageError, match=r'pip install "lmms_eval\[inspect\]"'):
        read_runs([str(path)])


@pytest.mark.filterwarnings("ignore")
def test_two_logs_are_compared_and_one_with_another_harness(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flips = tmp_path / "flips.jsonl"
    assert main(["compare", str(logs / "second.eval"), str(logs / "other.eval"), "--flips", str(flips)]) == 0
    out = capsys.readouterr().out
    assert "mockllm/model (first) against mockllm/other (second)" in out
    assert re.search(r"\|second\|match ↑\s*\|66.67%\|33.33%\|\+33.33 pp \[", out)
    found = [json.loads(line) for line in flips.read_text().splitlines()]
    assert sorted((one["id"], one["better"], one["first"]["answer"], one["second"]["answer"]) for one in found) == [
        ("s0", "first", "said", "other"),
        ("s1", "second", "said", "other"),
        ("s2", "first", "said", "other"),
    ]
    table = tmp_path / "mine.csv"
    table.write_text("id,score\ns0,1\ns1,1\ns2,1\n")
    words = [str(table), str(logs / "second.json"), "--task", "second=mine", "--metric", "match=score"]
    assert main(["compare", *words]) == 0
    assert re.search(r"\|second\|match ↑\|100.00%\|66.67%\|\+33.33 pp \[", capsys.readouterr().out)
