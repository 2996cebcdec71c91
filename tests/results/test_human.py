"""People's scores over whole runs: drawn, filled in, and used when the run is scored again."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.config import build_config
from lmms_eval.errors import DataError, LmmsEvalError, UsageError
from lmms_eval.evaluation.rescore import rescore
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.results.human import plan_labels, write_plan
from lmms_eval.results.run import load
from tests.cases import for_each
from tests.evaluation.judged_kit import NAME, rated_task
from tests.evaluation.kit import Told
from tests.servers.stub import StubServer

DOCUMENTS, SECRET = 60, "sk-very-secret-0123456789abcdef"
Row = dict[str, str]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose judge rated document N with N % 10; its server is gone."""
    folder = tmp_path_factory.mktemp("judged")
    rated_task(folder / "tasks", DOCUMENTS)
    with StubServer(key=SECRET) as server:
        values = {
            "model": "told", "tasks": NAME, "include_path": str(folder / "tasks"), "output_path": str(folder / "out"),
            "log_samples": True, "judge_model": "jury", "judge_base_url": server.url,
            "judge_args": f"api_key={SECRET},max_retries=0",
        }  # fmt: skip
        assert run(build_config(values, {}), Told()).exit_code == 0
    return folder / "out"


def drawn(judged: Path, tmp_path: Path, labels: int = 30, name: str = "labels.csv") -> list[Row]:
    path = tmp_path / name
    write_plan(plan_labels(load(judged), labels), path)
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def scored(judged: Path, tmp_path: Path, rows: list[Row]) -> RunReport:
    path = tmp_path / "filled.csv"
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return rescore(judged, {"human_scores": str(path)})


def lower(row: Row) -> Row:
    """Fill in what people say: one less than the judge, at least 0."""
    return {**row, "score": str(max(0, int(row["id"]) % 10 - 1))}


def entry(report: RunReport) -> Any:
    return report.results["human_scores"][NAME]


def test_the_list_is_random_blind_and_the_same_again(judged: Path, tmp_path: Path) -> None:
    rows = drawn(judged, tmp_path)
    assert drawn(judged, tmp_path, name="again.csv") == rows
    assert list(rows[0]) == [
        "task",
        "id",
        "score",
        "question",
        "answer",
        "reference",
        "media",
        "stratum",
        "probability",
    ]
    assert len({row["id"] for row in rows}) == 30 and all(row["score"] == "" for row in rows)
    assert rows[0]["question"].startswith(f"Question {rows[0]['id']}:") and rows[0]["answer"]
    assert rows[0]["reference"] == f"a{rows[0]['id']}"
    sizes = {row["stratum"]: float(row["probability"]) for row in rows}
    assert len(sizes) == 3
    whole = sum(sum(row["stratum"] == name for row in rows) / share for name, share in sizes.items())
    assert whole == pytest.approx(DOCUMENTS)
    other = {row["id"] for row in plan_labels(load(judged), 30, seed=1).rows}
    assert other != {row["id"] for row in rows}


def test_the_judge_is_corrected_without_being_asked(judged: Path, tmp_path: Path) -> None:
    report = scored(judged, tmp_path, [lower(row) for row in drawn(judged, tmp_path)])
    assert report.exit_code == 0 and report.results["judge"]["asked"] == 0
    found = entry(report)
    assert (found["metric"], found["judge"], found["labels"], found["documents"]) == ("rating,none", 4.5, 30, DOCUMENTS)
    assert found["drawn"] == "planned" and found["without_score"] == 0
    assert found["corrected"] == pytest.approx(3.6, abs=0.1)
    assert found["on_list"]["low"] < 3.6 < found["on_list"]["high"]
    assert found["interval"]["low"] < found["on_list"]["low"] and "questions like these" in found["interval"]["about"]
    assert 0.8 < found["agreement"]["bias"] <= 1
    (line,) = [line for line in report.lines if "corrected by 30 human scores of 60 documents" in line]
    assert "judge's rating 4.5000" in line and "for questions like these" in line and "for these documents" in line
    (results,) = judged.rglob("*_results.json")
    assert json.loads(results.read_text())["human_scores"][NAME] == found


def test_a_workbook_serves_as_well(judged: Path, tmp_path: Path) -> None:
    from openpyxl import load_workbook

    path = tmp_path / "labels.xlsx"
    write_plan(plan_labels(load(judged), 30), path)
    book = load_workbook(path)
    sheet = book.worksheets[0]
    names = [cell.value for cell in sheet[1]]
    for number in range(2, sheet.max_row + 1):
        doc_id = int(sheet.cell(number, names.index("id") + 1).value)
        sheet.cell(number, names.index("score") + 1).value = max(0, doc_id % 10 - 1)
    book.save(path)
    by_csv = scored(judged, tmp_path, [lower(row) for row in drawn(judged, tmp_path)])
    assert entry(rescore(judged, {"human_scores": str(path)})) == entry(by_csv)


def test_scores_of_one_s_own_choice_count_as_random(judged: Path, tmp_path: Path) -> None:
    report = scored(judged, tmp_path, [lower({"id": str(number)}) for number in range(0, DOCUMENTS, 3)])
    assert entry(report)["drawn"] == "taken as random" and entry(report)["labels"] == 20
    assert any("taken as drawn at random" in line for line in report.lines)


@for_each(
    ("change", "words"),
    [
        (lambda rows: [{**rows[0], "id": "60"}, *rows[1:]], "row 1: task 'rated' has no document '60'"),
        (lambda rows: [{**rows[0], "id": "x"}, *rows[1:]], "row 1: task 'rated' has no document 'x'"),
        (lambda rows: [rows[0], *rows], "row 2: a second score"),
        (lambda rows: [{**rows[0], "task": "other"}, *rows[1:]], "row 1: no judged task 'other'"),
        (lambda rows: [{**rows[0], "score": "good"}, *rows[1:]], "row 1: the score 'good' is no number"),
        (lambda rows: rows[:20], "keep"),
    ],
)
def test_bad_labels(judged: Path, tmp_path: Path, change: Callable[[list[Row]], list[Row]], words: str) -> None:
    rows = [lower(row) for row in drawn(judged, tmp_path)]
    with pytest.raises(DataError, match=words) as caught:
        scored(judged, tmp_path, change(rows))
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)


def test_bad_plans(judged: Path, tmp_path: Path) -> None:
    loaded = load(judged)
    for labels in (1, DOCUMENTS + 1):
        with pytest.raises(UsageError, match="60 judged documents"):
            plan_labels(loaded, labels)
    with pytest.raises(UsageError, match="no samples of a task 'other'"):
        plan_labels(loaded, 10, "other")
    plan = plan_labels(loaded, 10)
    (tmp_path / "labels.csv").write_text("id,score\n1,2\n")
    with pytest.raises(UsageError, match="may hold scores"):
        write_plan(plan, tmp_path / "labels.csv")
    with pytest.raises(LmmsEvalError, match="cannot write"):
        write_plan(plan, tmp_path / "labels.csv" / "labels.csv")


def test_a_run_without_judged_tasks(tmp_path: Path) -> None:
    (tmp_path / "human.csv").write_text("id,score\n0,1\n1,1\n")
    values = {"model": "baseline", "tasks": "colours", "include_path": "examples/task",
              "human_scores": str(tmp_path / "human.csv"), "output_path": str(tmp_path / "out")}  # fmt: skip
    with pytest.raises(UsageError, match="no task of this run is judged"):
        run(build_config(values, {}))
    del values["human_scores"]
    run(build_config({**values, "log_samples": True}, {}))
    with pytest.raises(UsageError, match="0 judged tasks"):
        plan_labels(load(tmp_path / "out"), 2)


def test_a_run_without_a_judge_has_nothing_to_correct(tmp_path: Path) -> None:
    rated_task(tmp_path / "tasks", 4)
    values = {"model": "told", "tasks": NAME, "include_path": str(tmp_path / "tasks"), "log_samples": True,
              "output_path": str(tmp_path / "out")}  # fmt: skip
    run(build_config(values, {}), Told())
    (tmp_path / "human.csv").write_text("id,score\n0,1\n1,1\n")
    with pytest.raises(UsageError, match="names no judge: give the options of the judge"):
        rescore(tmp_path / "out", {"human_scores": str(tmp_path / "human.csv")})
