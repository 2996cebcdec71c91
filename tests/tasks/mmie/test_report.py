from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lmms_eval.api.outcome import TaskNumbers
from lmms_eval.errors import DataError
from lmms_eval.tasks.mmie.report import report
from lmms_eval.tasks.mmie.summary import table
from tests.tasks.mmie.test_summary import SAMPLES, sample

NOTES = {
    "cut_answers": 2, "missing_images": 0, "undrawn_pictures": 3, "answers_with_pictures": 1,
    "skipped_ids": [f"MSR-{n}" for n in range(7)],
}  # fmt: skip


def numbers(samples: list[dict[str, Any]], withheld: str = "", **more: Any) -> TaskNumbers:
    part = {
        "metric": "mmie_judge", "prompts": {"official": False}, "view": "official", "t2i": None,
        **table(samples).as_dict(), "notes": NOTES, "sensitivity": {"length": None, "pictures": None}, **more,
    }  # fmt: skip
    return TaskNumbers({"mmie": part}, withheld)


def of(tag: str) -> list[dict[str, Any]]:
    return [item for item in SAMPLES if item["category"] == tag]


def test_both_scales_both_means_and_all_counts() -> None:
    made = report({"mmie": numbers(SAMPLES)}, None)
    assert made is not None
    line = next(line for line in made.text.splitlines() if line.startswith("|AVG"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[0] == "AVG" and cells[1] == "3.500" and cells[2] == "58.33"
    assert cells[3] == "[16.63, 90.76]"
    assert cells[4:6] == ["2.000", "33.33"] and cells[6:] == ["4", "1", "1", "1"]
    assert "no published number (judged with other texts" in made.text and "7 of 20103 questions" in made.text
    assert "skipped for their pictures: MSR-0, MSR-1, MSR-2, MSR-3, MSR-4, ..." in made.text
    assert "2 answers that the judge saw cut" in made.text and "3 pictures described and not drawn" in made.text
    assert made.files == ()


def test_three_categories_make_the_whole() -> None:
    whole = report({"mmie": numbers(SAMPLES)}, None)
    parts = {f"mmie_{tag.lower()}": numbers(of(tag)) for tag in ("SA", "PBL", "MSR")}
    joined = report(parts, None)
    assert whole is not None and joined is not None
    for part in ("categories", "fields", "subfields"):
        assert joined.parts["mmie_report"]["mmie"][part] == whole.parts["mmie_report"]["mmie"][part]
    both = report({"mmie": numbers(SAMPLES), **parts, "mmie_demo": numbers(of("SA"))}, None)
    assert both is not None and set(both.parts["mmie_report"]) == {"mmie", "mmie_demo"}
    assert both.parts["mmie_report"]["mmie"]["categories"] == whole.parts["mmie_report"]["mmie"]["categories"]


def test_bounds_whatever_samples_without_a_score_would_have() -> None:
    made = report({"mmie": numbers(SAMPLES)}, None)
    assert made is not None
    found = made.parts["mmie_report"]["mmie"]["missing"]
    # 4, 1, 6 and 3 of 7 samples; one of three of PBL has none. MSR has no mean, and SA lacks nothing.
    assert found["AVG"] == {"n": 3, "low": pytest.approx(14 / 7 / 6 * 100), "high": pytest.approx(32 / 7 / 6 * 100)}
    assert found["PBL"] == {"n": 1, "low": pytest.approx(50), "high": pytest.approx(15 / 3 / 6 * 100)}
    assert set(found) == {"AVG", "PBL"}
    assert "AVG: 3 documents without a score: 33.33 to 76.19 whatever they would score" in made.text


def test_bounds_with_answers_that_failed_before_the_judge() -> None:
    failed = {"": 2}
    whole = report({"mmie": replace(numbers(SAMPLES), missing=failed)}, None)
    assert whole is not None
    found = whole.parts["mmie_report"]["mmie"]["missing"]
    assert (found["AVG"]["n"], found["AVG"]["low"]) == (5, pytest.approx(14 / 9 / 6 * 100))
    assert found["SA"] == {"n": 2, "reason": "the categories of 2 documents that failed are not known"}
    parts = {f"mmie_{tag.lower()}": numbers(of(tag)) for tag in ("SA", "PBL")}
    parts["mmie_sa"] = replace(parts["mmie_sa"], missing=failed)
    joined = report(parts, None)
    assert joined is not None
    by_task = joined.parts["mmie_report"]["mmie"]["missing"]
    assert by_task["SA"] == {"n": 2, "low": pytest.approx(5 / 4 / 6 * 100), "high": pytest.approx(17 / 4 / 6 * 100)}
    assert by_task["PBL"]["n"] == 1


def test_agreement_and_calibration_are_shown() -> None:
    repeats = {"askings": 3, "n": 9, "weighted_kappa": 0.75, "krippendorff_alpha": None, "all_alike": 0.5}
    found = {"n": 4, "pearson": 0.5, "cosine": 0.9, "mse": 1.0, "mae": 0.5, "corrected": None}
    made = report({"mmie_sa": numbers(of("SA"), "interrupted", repeats=repeats, calibration=found)}, None)
    assert made is not None
    assert "3 askings of 9 samples: weighted kappa 0.750, alpha -, all alike 50.0%" in made.text
    assert "Pearson 0.500, cosine 0.900, MSE 1.000, MAE 0.500; too few for a corrected mean" in made.text
    assert "no published number (interrupted;" in made.text
    corrected = {**found, "corrected": {"mean": 2.5, "interval": [2.0, 3.0]}}
    other = report({"mmie_sa": numbers(of("SA"), calibration=corrected)}, None)
    assert other is not None and "mean corrected for bias 2.500 [2.000, 3.000]" in other.text


def test_weights_of_the_published_counts() -> None:
    samples = [sample("SA", 0), sample("PBL", 6), sample("MSR", 0)]
    made = report({"mmie": numbers(samples)}, None)
    assert made is not None
    assert made.parts["mmie_report"]["mmie"]["weighted_by_published_counts"] == pytest.approx(6 * 11482 / 20103)


def test_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    made = report({"mmie": numbers(SAMPLES)}, tmp_path / "stamp")
    assert made is not None
    folder = tmp_path / "stamp_mmie"
    assert {path.name for path in folder.iterdir()} == {
        "report.json",
        "scores.csv",
        "scores.png",
        "scores.svg",
        "scores.pdf",
    }
    with (folder / "scores.csv").open(newline="") as file:
        rows = {(row["kind"], row["name"]): row for row in csv.DictReader(file)}
    assert rows["category", "AVG"]["mean"] == "3.5" and rows["category", "AVG"]["unparsable"] == "1"
    assert rows["field", "FSA"]["scored"] == "2" and rows["subfield", "s"]["n"] == "7"
    assert json.loads((folder / "report.json").read_text()) == json.loads(json.dumps(made.parts["mmie_report"]["mmie"]))
    (tmp_path / "full").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        report({"mmie": numbers(SAMPLES)}, tmp_path / "full" / "stamp")


def test_no_task_of_the_benchmark_no_report() -> None:
    assert report({"other": TaskNumbers({}, "")}, None) is None
