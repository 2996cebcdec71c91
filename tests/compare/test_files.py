from __future__ import annotations

import csv
import io
import json
import math

from lmms_eval.compare.comparing import compare_runs
from lmms_eval.compare.flips import flips_of
from lmms_eval.compare.matching import match_runs
from lmms_eval.compare.runs import DocumentTexts
from lmms_eval.compare.table import comparison_csv, comparison_json, flips_json
from lmms_eval.compare.verdicts import CompareOptions
from tests.compare.runs import column, run, task

HOSTILE = "=cmd|' /C calc'!A0"


def test_json_holds_everything_and_no_number_that_is_none() -> None:
    runs = [run("a", task([1.0, math.nan], metadata={"app": ["x", "y"]})), run("b", task([0.0, 1.0]))]
    found = json.loads(comparison_json(compare_runs(runs, CompareOptions(by=("app",), draws=500))))
    (pair,) = found["pairs"]
    (row,) = pair["rows"]
    assert (row["value"], row["interval"], row["no_interval"], row["verdict"]) == (1.0, None, "n = 1", "cannot tell")
    assert row["pairing"] == {"paired": 1, "only_first": 0, "only_second": 0, "unscored": [1, 0], "failed": [0, 0]}
    assert [cell["cell"] for cell in pair["cells"]["app"]] == ["x"]
    assert found["alpha"] == 0.05


def test_csv_has_a_line_for_each_row_and_cell_and_no_formulas() -> None:
    apps = {"app": ["-1+1", "@x"] * 4}
    first = task([column([0.0, 0.0, 1.0, 0.0] * 2, "+metric")], HOSTILE, metadata=apps)
    second = task([column([1.0] * 8, "+metric")], HOSTILE)
    compared = compare_runs([run("a", first), run("=b", second)], CompareOptions(by=("app",), draws=500))
    lines = list(csv.DictReader(io.StringIO(comparison_csv(compared))))
    assert [line["cell"] for line in lines] == ["", "'-1+1", "'@x"]
    assert {(line["name"], line["metric"], line["second_run"]) for line in lines} == {
        (f"'{HOSTILE}", "'+metric", "'=b")
    }
    assert float(lines[0]["difference"]) == -0.75  # a number, not a text
    assert lines[0]["paired"] == "8" and lines[0]["first_worse"] == "6"


def test_flips_are_lines_of_json_with_hostile_answers_whole() -> None:
    answer = DocumentTexts('\x1b[2J"\n</script>\ud800', "=1+1")
    first = task([1.0], ids=["\x1b]0;x\x07"], answer=lambda row: answer)
    pairs = match_runs([run("a", first), run("b", task([0.0], ids=["\x1b]0;x\x07"]))], CompareOptions())
    (line,) = flips_json(flips_of(pairs))
    assert line.count("\n") == 1 and "\x1b" not in line
    found = json.loads(line)
    assert (found["id"], found["first"]["answer"], found["target"]) == ("\x1b]0;x\x07", answer.text, "=1+1")
