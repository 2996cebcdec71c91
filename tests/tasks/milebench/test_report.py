from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lmms_eval.api.outcome import TaskNumbers
from lmms_eval.errors import DataError
from lmms_eval.plots import figure
from lmms_eval.tasks.milebench import report as report_module
from lmms_eval.tasks.milebench.report import report
from tests.tasks.milebench.summaries import complete, numbers


def test_a_complete_run(tmp_path: Path) -> None:
    found = report(complete(right=50), tmp_path / "2026_run")
    assert found is not None
    whole = found.parts["milebench_report"]["milebench"]
    assert whole["overall"]["Realistic"]["official"]["score"] == pytest.approx(25)
    assert found.text.startswith("MileBench\n")
    assert found.files[0] == str(tmp_path / "2026_run_milebench")
    assert (tmp_path / "2026_run_milebench" / "report.json").is_file()


def test_a_withheld_data_set_marks_its_group(tmp_path: Path) -> None:
    tasks = complete()
    tasks["milebench_tqa"] = numbers("TQA", 100, 197, withheld="3 of 200 failed")
    found = report(tasks, None)
    assert found is not None
    groups = found.parts["milebench_report"]["milebench"]["groups"]
    assert groups["S-1"]["official"] is None
    assert groups["S-1"]["gaps"] == ["TQA: withheld, 3 of 200 failed"]
    assert groups["S-2"]["official"] is not None
    assert found.files == ()


def test_bounds_are_the_scores_if_everything_missing_were_wrong_or_right() -> None:
    def whole(right: int, count: int, missing: int = 0) -> Any:
        tasks = complete(right=50)
        tasks["milebench_tqa"] = replace(numbers("TQA", right, count), missing={"": missing} if missing else {})
        found = report(tasks, None)
        assert found is not None
        return found.text, found.parts["milebench_report"]["milebench"]

    text, content = whole(100, 197, 3)
    (_, low), (_, high) = whole(100, 200), whole(103, 200)
    assert set(content["missing"]) == {"Realistic", "S-1"}  # the others lack nothing
    for name, part in (("Realistic", "overall"), ("S-1", "groups")):
        ends = [one[part][name]["official"]["score"] for one in (low, high)]
        bounds = content["missing"][name]
        assert (bounds["n"], bounds["low"], bounds["high"]) == (3, pytest.approx(ends[0]), pytest.approx(ends[1]))
        line = f"{name}: 3 documents without a score: {ends[0]:.2f} to {ends[1]:.2f} whatever they would score"
        assert line in text
    assert "missing" not in whole(100, 200)[1]


def test_a_data_set_that_lacks_all_scores_leaves_no_bounds() -> None:
    tasks = complete() | {"milebench_ocr-vqa": TaskNumbers({}, missing={"": 9})}
    found = report(tasks, None)
    assert found is not None
    bounds = found.parts["milebench_report"]["milebench"]["missing"]
    assert bounds["S-2"] == bounds["Realistic"] == {"n": 9, "reason": "no document of OCR-VQA has a score"}
    assert "S-2: 9 documents without a score, no bounds: no document of OCR-VQA has a score" in found.text


def test_a_task_without_any_score_is_a_gap_too() -> None:
    tasks = complete() | {"milebench_ocr-vqa": TaskNumbers({}, "nothing was scored")}
    found = report(tasks, None)
    assert found is not None
    group = found.parts["milebench_report"]["milebench"]["groups"]["S-2"]
    assert group["gaps"] == ["OCR-VQA: withheld, nothing was scored"]
    assert group["partial"]["official"]["score"] == 50


def test_variants_are_not_mixed(tmp_path: Path) -> None:
    tasks = {
        "milebench_tqa": numbers("TQA", 200),
        "milebench_demo_tqa": numbers("TQA", 0, 3, variant="demo"),
        "milebench_demo_webqa": TaskNumbers({}, "nothing was scored"),
    }
    found = report(tasks, tmp_path / "run")
    assert found is not None
    parts = found.parts["milebench_report"]
    assert list(parts) == ["milebench", "demo"]
    assert parts["milebench"]["datasets"]["TQA"]["official"]["score"] == 100
    assert parts["demo"]["datasets"]["TQA"]["official"]["score"] == 0
    assert "WebQA" not in parts["milebench"]["datasets"]
    assert parts["demo"]["datasets"]["WebQA"]["gaps"] == ["WebQA: withheld, nothing was scored"]
    assert (tmp_path / "run_milebench_demo" / "scores.csv").is_file()


def test_the_rest_is_written_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> list[Path]:
        raise figure.PlotUnavailable("none")

    monkeypatch.setattr(report_module, "draw", absent)
    found = report({"milebench_tqa": numbers("TQA", 1)}, tmp_path / "run")
    assert found is not None
    assert found.files == (str(tmp_path / "run_milebench"),)


def test_nothing_scored_is_no_report() -> None:
    assert report({"milebench_tqa": TaskNumbers({}, "nothing was scored")}, None) is None


def test_details_of_something_else_are_refused() -> None:
    with pytest.raises(DataError, match="no summary"):
        report({"milebench_tqa": TaskNumbers({"milebench": {"dataset": "TQA"}})}, None)
