"""The table of a folder's runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.main import main
from lmms_eval.results.listing import MAX_CELL, listed_runs, runs_table
from tests.results.runs import KEY, document, write_record


def write(folder: Path, stamp: str, **parts: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stamp}_results.json"
    path.write_text(json.dumps(document(**parts)))
    return path


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]


def test_runs_by_date_with_their_headline_scores(tmp_path: Path) -> None:
    interval = {"intervals": {"quiz": {"acc,none": {"low": 0.25, "high": 0.75}}}}
    write(tmp_path / "late", "20240103_000000", run_key="b", date="2024-01-03T01:02:03", state="withheld")
    write(tmp_path / "early", "20240102_000000", run_key="a", date="2024-01-02T01:02:03", **interval)
    write_record(tmp_path / ".runs" / KEY)
    runs = listed_runs(tmp_path)
    heading, _, *rows = cells(runs_table(runs, tmp_path))
    assert heading == ["Model", "Tasks", "Score", "CI95", "Metric", "State", "Date", "Run"]
    found = {row[-1]: row for row in rows}
    early, late = found["early/20240102_000000_results.json"], found["late/20240103_000000_results.json"]
    assert early[:-1] == ["org/model", "quiz", "0.5", "[0.2500, 0.7500]", "acc", "complete", "2024-01-02 01:02"]
    assert late[3:6] == ["", "acc", "withheld"] and rows.index(early) < rows.index(late)
    assert [run.as_dict()["score"] for run in runs if run.state == "complete"] == [0.5]


def test_a_count_is_no_headline_and_a_model_without_a_name_has_its_arguments(tmp_path: Path) -> None:
    metrics = [{"metric": name} for name in ("submission", "scored", "macro_mean")]
    write(
        tmp_path, "20240102_000000", model_name="", model_source="baseline",
        results={"quiz": {"submission,none": None, "scored,none": 59, "macro_mean,none": 0.25}},
        configs={"quiz": {"metric_list": metrics}}, config={"model_args": "strategy=gold"},
    )  # fmt: skip
    (run,) = listed_runs(tmp_path)
    assert (run.model, run.metric, run.score) == ("baseline (strategy=gold)", "macro_mean", 0.25)


def test_hostile_names_are_harmless(tmp_path: Path) -> None:
    hostile = "\x1b[2J\u202e|" + "x" * 500
    results = {hostile: {"alias": hostile, "acc,none": 0.5}, "nan": {"acc,none": float("inf")}}
    write(
        tmp_path,
        "20240102_000000",
        model_name=hostile,
        results=results,
        configs={key: {} for key in results},
        date=hostile,
    )
    table = runs_table(listed_runs(tmp_path), tmp_path)
    assert "\x1b" not in table and "\u202e" not in table
    assert len(table.splitlines()) == 3 and max(map(len, table.splitlines())) < 8 * MAX_CELL


def test_show_lists_several_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        write(tmp_path / str(number), "20240102_000000", run_key=str(number))
    assert main(["show", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert told.out.count("_results.json") == 2 and f"for one run: lmms-eval show {tmp_path}/RUN" in told.out
    assert main(["show", str(tmp_path), "--json"]) == 0
    assert [run["model"] for run in json.loads(capsys.readouterr().out)] == ["org/model"] * 2
    assert main(["show", str(tmp_path), "quiz"]) == 2
    assert "holds 2 runs: name one of them" in capsys.readouterr().err


def test_a_damaged_results_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "1", "20240102_000000")
    (tmp_path / "1" / "20240103_000000_results.json").write_text("{")
    assert main(["show", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
