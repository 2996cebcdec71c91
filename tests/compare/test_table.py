from __future__ import annotations

import csv
import io
import json
import re
from typing import get_args

import pytest
from msgspec import structs

from lmms_eval.compare.comparing import compare_runs
from lmms_eval.compare.table import (
    WIDTH,
    comparison_csv,
    comparison_json,
    comparison_latex,
    comparison_markdown,
    comparison_text,
    forest_plot,
)
from lmms_eval.compare.verdicts import CompareOptions, Comparison, Rank, Verdict
from lmms_eval.stats import Interval
from lmms_eval.utils.terminal import display_width
from tests.cases import for_each
from tests.compare.runs import column, run, stopped, task

HOSTILE = "\x1b[31m<script>|[x](javascript:1)\n# =cmd()|`*"


def compared(name: str = "quiz", **options) -> Comparison:
    scores = [[float(number < count) for number in range(40)] for count in (33, 20)]
    tasks = [task(one, name, statuses=["scored"] * 40, metadata={"app": ["x"] * 20 + ["y"] * 20}) for one in scores]
    runs = [run(label, one) for label, one in zip("ab", tasks, strict=True)]
    return compare_runs(runs, CompareOptions(draws=500, **options))


def test_numbers_have_their_unit_and_the_table_its_legend() -> None:
    text = comparison_text(compared(margin=0.1))
    assert "a (first) against b (second)" in text
    row = next(line for line in text.splitlines() if line.startswith("|quiz"))
    assert re.search(r"\|82.50%\|50.00%\s*\|\+32.50 pp \[\+\d+.\d\d, \+\d+.\d\d\]\|0.0002\s*\|40 \|better\s*\|", row)
    assert (
        "quiz acc: 40 documents; first better on 13, worse on 0; smallest detectable difference (80 % power): " in text
    )
    assert "in brackets the 95 % interval" in text and "corrected over 1 test (Holm)" in text
    assert "lie within ±0.1" in text


def test_files_name_what_each_difference_is_about() -> None:
    (pair,) = json.loads(comparison_json(compared(by=("app",))))["pairs"]
    assert [one["estimand"] for one in (*pair["rows"], *pair["cells"]["app"])] == ["generalised accuracy"] * 3
    early = [[float(number % 3 < count) for number in range(60)] for count in (2, 1)]
    runs = [run(name, task(one, early_stop=stopped(60, 90))) for name, one in zip("ab", early, strict=True)]
    found = compare_runs(runs, CompareOptions(draws=500))
    (pair,) = json.loads(comparison_json(found))["pairs"]
    assert [one["estimand"] for one in pair["rows"]] == ["benchmark accuracy"]
    assert [one["estimand"] for one in csv.DictReader(io.StringIO(comparison_csv(found)))] == ["benchmark accuracy"]
    single = compare_runs([run(name, task([1.0])) for name in "ab"], CompareOptions(draws=500))
    (pair,) = json.loads(comparison_json(single))["pairs"]
    assert [(one["interval"], one["estimand"]) for one in pair["rows"]] == [(None, None)]


def test_own_units_directions_and_absent_intervals() -> None:
    facts = {"score_range": None, "higher_is_better": False}
    runs = [run("a", task([column([10.0], "wer", **facts)])), run("b", task([column([12.5], "wer", **facts)]))]
    text = comparison_text(compare_runs(runs, CompareOptions(draws=500)))
    assert "|wer ↓" in text and "|-2.5 (n = 1)" in text and "|cannot tell" in text


def test_long_names_leave_the_table_within_the_terminal() -> None:
    text = comparison_text(compared("a_very_long_name_of_a_task_" * 5 + "end", by=("app",)))
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert tables and max(map(display_width, tables)) <= WIDTH
    assert any("…" in line and "_end" in line for line in tables)


def test_cells_with_few_documents_are_marked() -> None:
    text = comparison_text(compared(by=("app",)))
    assert "by app" in text and "|x*" in text and "|y*" in text
    assert "*: few documents (2 of 2 parts)" in text


def test_many_rows_are_told_in_the_files() -> None:
    tasks = [[task([1.0, 0.0, 1.0], f"t{number}") for number in range(12)] for _ in "ab"]
    text = comparison_text(compare_runs([run("a", *tasks[0]), run("b", *tasks[1])], CompareOptions(draws=500)))
    assert "12 more rows: counts, tests and detectable differences are in --json and --csv" in text
    assert "t3 acc: 3 documents" not in text


def test_sensitivity_and_what_is_absent() -> None:
    first = task([1, 1, None, 0], statuses=["scored", "scored", "failed", "scored"])
    text = comparison_text(compare_runs([run("a", first), run("b", task([1, 0, 1]))], CompareOptions(draws=500)))
    assert "2 documents; first better on 1, worse on 0; only first has 1; failed: 1 in first, 0 in second" in text
    assert "documents without a score left out: +50.00 pp; counted wrong: +0.00 pp (n = 3)" in text
    assert "(n = 3); +0.00 pp to +33.33 pp whatever they would score" in text


def test_ranks_follow() -> None:
    comparison = structs.replace(
        compared(), ranks={"quiz acc,none": [Rank("a", 0.8, 1, 1, 2), Rank("b", 0.5, 2, 1, 2)]}
    )
    text = comparison_text(comparison)
    assert "Ranks: quiz acc,none" in text and re.search(r"\|a  \|\s*0.8\|\s*1\|\s*1\|\s*2\|", text)


def test_hostile_texts_are_no_markup_in_markdown() -> None:
    text = comparison_markdown(compared(HOSTILE))
    assert "<script" not in text.replace("\\<script", "") and "\x1b" not in text
    assert "\\[x\\](javascript:1)" in text
    rows = [line for line in text.splitlines() if line.startswith("|") and "script" in line]
    assert len(rows) == 1 and len(re.findall(r"(?<!\\)\|", rows[0])) == 9  # eight columns
    assert not any(line.startswith("# =cmd") for line in text.splitlines())


def test_several_columns_are_not_corrected_together() -> None:
    note = "p: corrected over this column, not over all"
    assert note not in comparison_text(compared(by=("app",)))
    parts = {"app": ["x"] * 20 + ["y"] * 20, "size": ["s", "l"] * 20}
    tasks = [
        task([float(number < count) for number in range(40)], "quiz", statuses=["scored"] * 40, metadata=parts)
        for count in (33, 20)
    ]
    runs = [run(label, one) for label, one in zip("ab", tasks, strict=True)]
    text = comparison_text(compare_runs(runs, CompareOptions(draws=500, by=("app", "size"))))
    assert text.count(f"{note} 2") == 2


@for_each("verdict", get_args(Verdict))
def test_the_plot_shows_every_verdict(verdict: Verdict) -> None:
    pytest.importorskip("matplotlib")
    found = compared()
    (pair,) = found.pairs
    rows = [structs.replace(row, verdict=verdict) for row in pair.rows]
    plot = forest_plot(structs.replace(found, pairs=[structs.replace(pair, rows=rows)]), ".svg")
    assert plot.startswith(b"<?xml")


def test_files_say_what_each_interval_is_about() -> None:
    found = compared()
    (row,) = json.loads(comparison_json(found))["pairs"][0]["rows"]
    (line,) = csv.DictReader(io.StringIO(comparison_csv(found)))
    assert isinstance(found.pairs[0].rows[0].interval, Interval)
    assert row["estimand"] == line["estimand"] == "generalised accuracy"


def test_names_that_are_cut_stay_different() -> None:
    names = [f"benchmark_of_long_names_{one}_needle_in_a_haystack_of_pages" for one in ("text", "image")]
    scores = [[float(number < count) for number in range(40)] for count in (33, 20)]
    runs = [run(label, *(task(one, name) for name in names)) for label, one in zip("ab", scores, strict=True)]
    text = comparison_text(compare_runs(runs, CompareOptions(draws=500)))
    shown = {line.split("|")[1] for line in text.splitlines() if line.startswith("|") and "haystack" in line}
    assert len(shown) == 2


def test_latex_has_what_differs_below_the_last_table() -> None:
    text = comparison_latex(structs.replace(compared(by=("app",)), notes=["a and b got other prompts"]))
    first, *_, last = text.split("\\end{tabular}")
    assert "percentage points" in first and "other prompts" not in first
    assert "other prompts" in last
