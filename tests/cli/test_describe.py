"""``lmms-eval tasks describe`` and ``search``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from tests.cases import for_each

TASK = """
task: zz_local
dataset_path: json
dataset_kwargs:
  data_files: rows.jsonl
test_split: train
doc_to_text: "{{question}}"
doc_to_target: answer
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "local.yaml").write_text(TASK)
    return tmp_path


def test_what_is_known_and_what_is_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tasks", "describe", "zz_local", "--include_path", str(folder)]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "zz_local (task)"
    assert "  documents   not stated" in lines and "    metrics: exact_match (higher is better, from 0 to 1)" in lines
    assert lines[-2].startswith("  data not downloaded") and lines[-1] == "  lmms-eval fetch zz_local gets the data"
    (folder / "rows.jsonl").write_text('{"question": "1 + 1", "answer": "2"}\n')
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "missing here: nothing"


def test_a_judged_task_as_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LMMS_EVAL_JUDGE_MODEL", raising=False)
    assert main(["tasks", "describe", "mmie_demo", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["documents"], found["needs"], found["kind"]) == (36, ["judge"], "task")
    assert found["missing"][0].startswith("judge: none is named")
    assert found["parts"][0]["metrics"][0] == {"name": "mmie_judge", "higher_is_better": True, "low": 0.0, "high": 6.0}


def test_of_a_group_the_needs_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "describe", "docvqa", "--no-check"]) == 0
    out = capsys.readouterr().out
    assert "10,537" in out and "(1 of 2 tasks)" in out and "missing" not in out


def test_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "search", "docvqa", "--modality", "image", "--no-needs"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[2].split("|")[1].strip() == "docvqa_val" and "groups: docvqa" in out
    assert main(["tasks", "search", "--needs", "judge", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"mmie", "megabench_open"} <= {row["name"] for row in found}
    assert main(["tasks", "search", "no such word"]) == 0
    assert capsys.readouterr().out.startswith("0 of ")


@for_each(
    ("words", "text"),
    [
        (["describe"], "NAME"),
        (["describe", "mmee"], "did you mean mme"),
        (["search", "--modality", "smell"], "invalid choice"),
        (["search", "--no-needs", "luck"], "invalid choice"),
    ],
)
def test_mistakes(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", *words]) == 2
    assert text in capsys.readouterr().err
