from __future__ import annotations

import json
from typing import Any

import pytest

from lmms_eval.utils import Column, make_table, markdown_table
from lmms_eval.utils.terminal import display_width
from tests.parity.vectors import GOLDEN_DIR

RUNS = GOLDEN_DIR / "harness" / "runs"
PLAIN = [path.parent for path in sorted(RUNS.glob("*/results.json")) if path.parent.name != "base1"]


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line]


@pytest.mark.skipif(not PLAIN, reason=f"no recorded runs at {RUNS}")
def test_recorded_tables_are_reproduced_to_the_character() -> None:
    for run in PLAIN:
        results = json.loads((run / "results.json").read_text("utf-8"))
        table = make_table(results)
        if results.get("groups"):
            table += "\n" + make_table(results, "groups")
        assert table.strip() in (run / "table.txt").read_text("utf-8"), run.name


def result(**entry: Any) -> dict[str, Any]:
    return {"results": {"t": {"alias": "T", **entry}}, "n-shot": {"t": 0}, "higher_is_better": {"t": {"acc": True}}}


def test_interval_and_count_stand_at_the_right_end() -> None:
    results = result(**{"acc,none": 0.5, "acc_stderr,none": 0.1})
    results["intervals"] = {"t": {"acc,none": {"low": 0.304, "high": 0.696}}}
    results["outcomes"] = {"t": {"scored": 20, "failed": 0}}
    heading, _, row = rows(make_table(results))
    assert heading[-2:] == ["CI95", "N"]
    assert row[-2:] == ["[0.3040, 0.6960]", "20"]


def test_a_withheld_value() -> None:
    results = result(**{"acc,none": None, "acc_stderr,none": None})
    results["outcomes"] = {"t": {"scored": 3, "failed": 7}}
    row = dict(zip(*[rows(make_table(results))[i] for i in (0, 2)], strict=True))
    assert row["Value"] == "withheld (7 failed)"
    assert row["Stderr"] == "N/A"
    assert row["N"] == "3"


def test_a_metric_that_only_wrote_a_file_has_no_row_beside_others() -> None:
    results = result(**{"acc,none": 0.5, "predictions,none": None})
    assert len(rows(make_table(results))) == 4
    results["outcomes"] = {"t": {"partial": {}, "wrote_files": ["predictions,none"]}}
    (_, _, row) = rows(make_table(results))
    assert row[3] == "acc"
    alone = result(**{"predictions,none": None}) | {"outcomes": results["outcomes"]}
    assert len(rows(make_table(alone))) == 3


def test_the_difference_is_the_middle_of_its_interval() -> None:
    results = result(
        **{
            "acc,none": 0.5,
            "paired_baseline": "b",
            "paired_ci_lower": -10.0,
            "paired_ci_upper": 30.0,
            "paired_pvalue": 0.01,
        }
    )
    row = dict(zip(*[rows(make_table(results))[i] for i in (0, 2)], strict=True))
    assert (row["Baseline"], row["Diff"], row["CI"], row["P_Value"]) == ("b", "+10.0%", "[-10.0%, +30.0%]", "0.0100*")


def test_every_row_shows_its_own_comparison() -> None:
    facts = {"baseline": "b", "unit": "percent", "ci_lower": None, "ci_upper": None}
    results = result(**{"acc,none": 0.5, "f1,none": 0.5, "mos,none": 3.5, "paired_baseline": "b"})
    results["paired"] = {
        "t": {
            "acc,none": {**facts, "difference": 100.0, "pvalue": None},
            "mos,none": {**facts, "unit": "", "difference": 1.5, "ci_lower": 1.0, "ci_upper": 2.0, "pvalue": 2e-7},
        }
    }
    heading, _, *shown = rows(make_table(results))
    cells = [dict(zip(heading, row, strict=True)) for row in shown]
    names = ("Metric", "Baseline", "Diff", "CI", "P_Value")
    assert [[cell[name] for name in names] for cell in cells] == [
        ["acc", "b", "+100.0%", "", ""],
        ["f1", "", "", "", ""],
        ["mos", "b", "+1.5", "[+1, +2]", "<0.0001*"],
    ]


def test_a_difference_that_depends_on_missing_documents_has_no_star() -> None:
    facts = {"baseline": "b", "unit": "percent", "ci_lower": 1.0, "ci_upper": 3.0, "difference": 2.0, "pvalue": 0.01}
    depends = "depends on 3 documents without a score"
    results = result(**{"acc,none": 0.5}) | {"paired": {"t": {"acc,none": {**facts, "depends": depends}}}}
    assert rows(make_table(results))[2][-1] == f"0.0100 ({depends})"


def test_metrics_named_like_an_error_are_shown() -> None:
    shown = [
        row[3] for row in rows(make_table(result(**{"my_stderr,none": 1.0, "acc,none": 0.5, "acc_stderr,none": 0.1})))
    ]
    assert shown[2:] == ["acc", "my_stderr"]


def test_a_group_without_metrics_has_no_number_in_any_column() -> None:
    group = {"alias": "G", " ": " "}
    heading, _, row = rows(make_table({"results": {"g": group}}))
    assert heading[-3:] == ["Value", "", "Stderr"]
    assert row == ["G", "", "", "", "", "", "±", "N/A"]
    comparison = {"paired_baseline": "b", "paired_ci_lower": 1.0, "paired_ci_upper": 3.0, "paired_pvalue": 0.5}
    task = {"alias": "T", "acc,none": 0.5, "acc_stderr,none": 0.1, "acc_stderr_clt,none": 0.1, **comparison}
    heading, _, row, compared = rows(make_table({"results": {"g": group, "t": task}}))
    assert heading[7:] == ["Stderr", "Stderr_CLT", "Baseline", "Diff", "CI", "P_Value"]
    assert row == ["G", "", "", "", "", "", "±", *["N/A"] * 6]
    assert compared[8:] == ["0.1000", "b", "+2.0%", "[+1.0%, +3.0%]", "0.5000"]


def test_nothing_to_show() -> None:
    assert len(rows(make_table({"results": {}}))) == 2


def test_numbers_and_texts_in_columns() -> None:
    table = markdown_table(
        [
            Column("numbers", ("1.5000", "0.2500")),
            Column("mixed", ("1.5000", "N/A")),
            Column("late", ("N/A", "1.5000")),
            Column("names", ("1.50", "2"), is_text=True),
        ]
    )
    assert table.splitlines() == [
        "|numbers|mixed| late |names|",
        "|------:|-----|------|-----|",
        "|   1.50|  1.5|N/A   |1.50 |",
        "|   0.25|N/A  |1.5000|2    |",
    ]


def test_a_blank_cell_in_a_column_of_decimals_stays_blank() -> None:
    assert markdown_table([Column("n", ("1.50", " ", "2"))]).splitlines()[2:] == ["|1.5|", "|   |", "|2.0|"]


def test_cells_cannot_break_the_table() -> None:
    table = markdown_table([Column("a", ("x|y", "two\nlines"))])
    assert [line.count("|") - line.count("\\|") for line in table.splitlines()] == [2, 2, 2, 2]


def test_wide_characters_take_two_columns() -> None:
    assert display_width("任务a") == 5
    lines = markdown_table([Column("a", ("任务", "x"))]).splitlines()
    assert len({display_width(line) for line in lines}) == 1
