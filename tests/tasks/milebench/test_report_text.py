from __future__ import annotations

import csv
import io

from lmms_eval.tasks.milebench.facts import datasets
from lmms_eval.tasks.milebench.report_text import NO_GRID, images_csv, report_text, score_table, scores_csv, title
from lmms_eval.tasks.milebench.summary.dataset import DatasetSummary, summarise
from lmms_eval.tasks.milebench.summary.figures import ScoredDataset
from lmms_eval.tasks.milebench.summary.overview import Overview, build
from tests.tasks.milebench.summaries import summary, value


def overview(*summaries: DatasetSummary, variant: str = "") -> Overview:
    return build([ScoredDataset(datasets()[one.dataset], one) for one in summaries], variant)


def row_of(text: str, start: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"|{start}")]
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_a_row_tells_value_interval_and_the_fixed_score() -> None:
    found = overview(summary("nuscenes", [1.0] * 150 + [0.0] * 50, fixed=1.0, no_answer=1))
    assert row_of(score_table(found), "- nuscenes") == [
        "- nuscenes", "200", "75", "[68.6, 80.5]", "100", "[98.1, 100.0]", "200",
    ]  # fmt: skip
    assert row_of(score_table(found), "S-5")[:3] == ["S-5 Space Understanding", "200", "75"]


def test_partial_rows_are_marked_and_explained() -> None:
    text = report_text(overview(summary("MMCoQA", [1.0, 0.0])))
    assert text.startswith("MileBench (partial)\n")
    assert row_of(text, "S-4")[0] == "S-4 Dialogue *"
    assert row_of(text, "- MMCoQA")[0] == "- MMCoQA *"
    assert "2 of 200 samples: MMCoQA" in text
    assert "and 23 more" in text
    assert "Diagnostic *" not in text


def test_a_whole_group_is_not_marked_by_what_others_lack() -> None:
    text = score_table(overview(summary("nuscenes", [1.0] * 200)))
    assert row_of(text, "S-5")[0] == "S-5 Space Understanding"
    assert row_of(text, "Realistic")[0] == "Realistic *"


def test_the_title_names_the_variant() -> None:
    assert title(overview(summary("TQA", [1.0]), variant="demo-adversarial-combined_1")) == (
        "MileBench (demonstration data, adversarial, combined 1, partial)"
    )


def test_rouge_is_told_apart() -> None:
    assert (
        row_of(score_table(overview(summary("IEdit", [0.5], metric="Rouge-L f"))), "- IEdit")[0]
        == "- IEdit (ROUGE-L) *"
    )


def test_levels_and_both_conventions_are_in_the_text() -> None:
    text = report_text(overview(summary("TQA", [1.0] * 3, 4), summary("WebQA", [0.0], 40)))
    levels = text.partition("By number of pictures: levels")[2].partition("By number of pictures")[0]
    few, many = [line.split("|")[2:5] for line in levels.splitlines() if line.startswith("|all")]
    assert [cell.strip() for cell in few] == ["Few", "3", "100"]
    assert [cell.strip() for cell in many] == ["Many", "1", "0"]
    assert "mean of N-1, N-2 and I-1" in text
    assert "mean of N-1 and N-2\nalone" in text


def test_a_grid_of_needles_or_the_reason_why_there_is_none() -> None:
    assert NO_GRID in report_text(overview(summary("TextNeedleInAHaystack", [1.0])))
    assert NO_GRID not in report_text(overview(summary("TQA", [1.0])))
    values = [value(1, needle_depth=25, needle_length=8000), value(0, needle_depth=25, needle_length=8000)]
    text = report_text(overview(summarise(values, "ImageNeedleInAHaystack")))
    assert NO_GRID not in text
    assert row_of(text, "Depth") == ["Depth", "8000"]
    assert row_of(text, "25") == ["25", "50"]


def test_empty_answers_and_deciding_rules_are_counted() -> None:
    values = [value(1, step="empty", no_answer=1), value(0), value(0)]
    text = report_text(overview(summarise(values, "TQA")))
    assert "Empty answers: 1 of 3" in text
    assert "official rule that decided: text 2, empty 1" in text
    assert "fixed rule that decided: statement 3" in text


def test_tables_for_spreadsheets() -> None:
    found = overview(summary("TQA", [1.0, 0.0, 1.0], 7), summary("GPR1200", [0.0], 30))
    rows = list(csv.DictReader(io.StringIO(scores_csv(found))))
    assert [row["kind"] for row in rows] == ["overall"] * 3 + ["group"] * 2 + ["dataset"] * 2
    (tqa,) = [row for row in rows if row["name"] == "TQA"]
    assert (tqa["official"], tqa["samples"], tqa["published_samples"], tqa["is_partial"]) == (
        "66.67",
        "3",
        "200",
        "yes",
    )
    (needles,) = [row for row in rows if row["name"] == "Needles only"]
    assert (needles["official"], needles["fixed_low"]) == ("", "")
    images = list(csv.DictReader(io.StringIO(images_csv(found))))
    assert {row["scope"] for row in images} == {"all", "realistic", "diagnostic", "I-1"}
    (whole,) = [row for row in images if row["kind"] == "level" and row["scope"] == "all"]
    assert (whole["images"], whole["by_sample_official"], whole["by_dataset_official"]) == ("Medium", "50.00", "33.33")
