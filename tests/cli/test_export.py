from __future__ import annotations

import csv
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from tests.exchange.validation import problems
from tests.results.runs import STAMP, document, write_run


def test_samples_become_one_file(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_run(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(path), "--to", "csv", "--where", "score < 1 and kind == 'x'"]) == 0
    assert capsys.readouterr().out.startswith(f"org__model_{STAMP}.csv: 2 rows, ")
    with open(f"org__model_{STAMP}.csv", newline="") as file:
        assert [row["doc_id"] for row in csv.DictReader(file)] == ["0", "2"]
    assert main(["export", str(path), "quiz", "--to", "jsonl", "--out", "x.jsonl", "--ids", "1,3"]) == 0
    assert len(Path("x.jsonl").read_text().splitlines()) == 2


def test_results_become_records(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_run(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(path), "--to", "eee", "--developer", "Lab"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("eee/data/quiz/Lab/model/")
    assert said.out.endswith(".json: numbers 1, lines of samples 3\n")
    assert said.err == "quiz: failed requests: 1 have no line, since the format needs a score\n"
    assert problems(tmp_path / "eee") == []
    withheld = write_run(tmp_path / "withheld", results=document(results={"quiz": {"alias": "quiz", "acc,none": None}}))
    assert main(["export", str(withheld), "--to", "eee", "--out", "none"]) == 2
    said = capsys.readouterr()
    assert "withheld, so in no record: quiz acc: withheld (1 failed)" in said.err.splitlines()
    assert said.err.endswith(f"error: nothing is written: {withheld} has no number that may leave\n")


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
        (["--to", "csv", "--organization", "Lab"], "--organization: only with --to eee"),
        (["--to", "eee", "--where", "score < 1"], "--where: only with --to parquet, csv, jsonl, xlsx"),
        (["--to", "eee", "--out", own], "that is a file; --to eee writes into a folder"),
        (["other", "--to", "eee"], "other was not selected by itself; there are: quiz"),
    ]:
        assert main(["export", str(path), *words]) == 2, words
        error = capsys.readouterr().err
        assert said in error
        assert len(error.splitlines()) == 1
