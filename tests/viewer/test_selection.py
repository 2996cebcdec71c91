"""Reports of chosen samples: by number and by expression, of runs of any format."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from lmms_eval.errors import LmmsEvalError
from lmms_eval.results import load
from lmms_eval.results.breakdown import breakdown
from lmms_eval.results.run import Choice
from lmms_eval.utils.where import WhereError, parse_where
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.cases import for_each
from tests.results.runs import FAILED, document, sample, write_run
from tests.viewer.conftest import Watched
from tests.viewer.test_report import content


def ids(out: Path, piece: str = "text-0-0-0") -> list[str]:
    return [one["id"] for one in content(out, piece)]


@for_each(
    ("flags", "chosen"),
    [
        (["--ids", "1,4-5"], ["1", "4", "5"]),
        (["--where", "topic == 'a' and acc == 1"], ["1", "5"]),
        (["--where", "outcome == 'truncated'"], ["2"]),
        (["--ids", "0-3", "--where", "acc == 0"], ["0", "2"]),
        (["--where", "acc == 0", "--limit", "2"], ["0", "2"]),
        (["--where", "acc == 0", "--only", "failed"], []),
    ],
)
def test_samples_are_chosen_as_show_does(tmp_path: Path, flags: list[str], chosen: list[str]) -> None:
    run = write_run(tmp_path / "run", [sample(number) for number in range(6)])
    assert main(["report", str(run), "--out", str(tmp_path / "r"), *flags]) == 0
    assert (ids(tmp_path / "r") if chosen else []) == chosen
    (entry,) = content(tmp_path / "r", "runs")["runs"]
    assert (entry["selection"]["shown"], entry["selection"]["of"]) == (len(chosen), 6)
    assert " ".join(entry["selection"]["how"]).startswith(("--ids", "--where", "--only"))
    assert entry["rows"][0]["n"] == 3  # the run's own numbers are those of the whole


def test_breakdowns_of_chosen_samples_have_no_interval(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [sample(number) for number in range(12)])
    write_report([str(run)], tmp_path / "r", ReportOptions(choice=Choice(where=parse_where("year >= 2004"))))
    (topics,) = [
        one for one in content(tmp_path / "r", "run-0")["tasks"]["quiz"]["breakdowns"] if one["column"] == "topic"
    ]
    for cell in topics["metrics"]["acc,none"]:
        assert (cell["n"], cell["low"], cell["method"]) == (4, None, "chosen samples")


def test_breakdowns_have_bounds_whatever_the_listed_documents_without_a_score_would_score(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [*(sample(number) for number in range(12)), {**FAILED, "doc_id": 12}])

    def missing(name: str, options: ReportOptions) -> list[str]:
        write_report([str(run)], tmp_path / name, options)
        found = content(tmp_path / name, "run-0")["tasks"]["quiz"]["breakdowns"]
        (cells,) = (one["metrics"]["acc,none"] for one in found if one["column"] == "topic")
        return [cell.get("missing", "") for cell in cells]

    whole = missing("whole", ReportOptions())
    shown = breakdown((of := load(run)), of.task("quiz"), "acc").cells
    assert whole == [cell.missing_text() for cell in shown if cell.by == "topic"]
    assert all(text.startswith("1 missing: 0.") for text in whole)
    assert missing("first", ReportOptions(limit=12)) == [""] * len(whole)
    assert missing("chosen", ReportOptions(choice=Choice(where=parse_where("year >= 2004")))) == [""] * len(whole)


def test_runs_without_a_column_say_so(tmp_path: Path) -> None:
    with_it = write_run(tmp_path / "a", [sample(0), sample(1)])
    without = write_run(tmp_path / "b", [{**sample(0), "doc": {}}], document(run_key="other"))
    choice = Choice(where=parse_where("topic == 'a'"))
    report = write_report([str(with_it), str(without)], tmp_path / "r", ReportOptions(choice=choice))
    assert report.samples == 2
    assert report.problems == ("--where: no sample here has 'topic'",)
    with pytest.raises(WhereError, match="no column 'topics'; nearest: topic"):
        write_report([str(with_it)], tmp_path / "s", ReportOptions(choice=Choice(where=parse_where("topics == 'a'"))))
    assert not (tmp_path / "s").exists()


def test_foreign_runs_are_chosen_by_what_they_hold(tmp_path: Path) -> None:
    table = tmp_path / "MMBench.csv"
    with open(table, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "score", "topic"])
        rows.writerows([number, number % 2, "ab"[number // 4]] for number in range(8))
    choice = Choice(where=parse_where("topic == 'b' and score == 1"))
    write_report([str(table)], tmp_path / "r", ReportOptions(choice=choice))
    assert ids(tmp_path / "r") == ["5", "7"]
    with pytest.raises(LmmsEvalError, match="no column 'prediction_length'"):
        write_report(
            [str(table)], tmp_path / "s", ReportOptions(choice=Choice(where=parse_where("prediction_length > 1")))
        )


def test_pages_say_that_samples_were_chosen(tmp_path: Path, watched: Watched) -> None:
    run = write_run(tmp_path / "run", [sample(number, doc={"k<b>": "ab"[number % 2]}) for number in range(6)])
    write_report(
        [str(run)], tmp_path / "r", ReportOptions(choice=Choice(where=parse_where("`k<b>` != '<i>x</i>' and acc == 1")))
    )
    told = "Only 3 of 6 samples are in this report: --where `k<b>` != '<i>x</i>' and acc == 1"
    for address, more in (
        ("#/org%2Fmodel?page=breakdown", "results and outcomes are those of the whole run"),
        ("#/org%2Fmodel/quiz", ""),
        ("#/org%2Fmodel?page=audit", "over the samples that are listed"),
    ):
        page = watched.open(tmp_path / "r", address)
        note = page.wait_for_selector(".selection").inner_text()
        assert note.startswith(told)
        assert more in note
