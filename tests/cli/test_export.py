from __future__ import annotations

import csv
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from tests.results.runs import STAMP, write_run


def test_samples_become_one_file(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_run(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(path), "--to", "csv", "--where", "score < 1 and kind == 'x'"]) == 0
    assert capsys.readouterr().out.startswith(f"org__model_{STAMP}.csv: 2 rows, ")
    with open(f"org__model_{STAMP}.csv", newline="") as file:
        assert [row["doc_id"] for row in csv.DictReader(file)] == ["0", "2"]
    assert main(["export", str(path), "quiz", "--to", "jsonl", "--out", "x.jsonl", "--ids", "1,3"]) == 0
    assert len(Path("x.jsonl").read_text().splitlines()) == 2


def test_mistakes_are_one_line(tmp_path: Path, capsys) -> None:
    path = write_run(tmp_path)
    own = str(tmp_path / f"{STAMP}_samples_quiz.jsonl")
    for words, said in [
        (["--to", "csv", "--out", own], "that is a file of the run"),
        (["--to", "csv", "--out", str(tmp_path)], "that is a folder"),
        (["--to", "csv", "--where", "scor < 1"], "nearest: score"),
        (["--to", "csv", "--ids", "x"], "--ids"),
        (["other", "--to", "csv"], "no samples of a task 'other'"),
        (["--to", "pickle"], "invalid choice"),
    ]:
        assert main(["export", str(path), *words]) == 2, words
        error = capsys.readouterr().err
        assert said in error
        assert len(error.splitlines()) == 1
