"""The runs of a folder while they come, are damaged and vanish."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.viewer.live.pieces import PieceError
from lmms_eval.viewer.live.watch import Watch
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.results.records import Record
from tests.viewer.conftest import until
from tests.viewer.live.conftest import view_of
from tests.viewer.test_report import content


def runs(watch: Watch) -> dict[str, Any]:
    watch.look()
    found: dict[str, Any] = json.loads(watch.piece("runs"))
    return found


def test_damaged_results_are_told_and_the_journals_shown(tmp_path: Path) -> None:
    record = Record(tmp_path / "m", 20)
    record.score(3, 1.0)
    record.write_state("complete")
    (tmp_path / "m" / "20260101_000000_results.json").write_text('{"results": {')
    (tmp_path / "m" / "20250101_000000_results.json").write_text("[1, 2")
    with Watch(tmp_path, ReportOptions()) as watch:
        told = runs(watch)
        assert [(run["state"], run["live"]["done"]) for run in told["runs"]] == [("complete", 1)]
        problems = told["view"]["problems"]
        assert sorted(Path(problem.split()[0]).name for problem in problems) == [
            "20250101_000000_results.json",
            "20260101_000000_results.json",
        ]
        (tmp_path / "m" / "20250101_000000_results.json").write_text("[1, 2]")
        assert len(runs(watch)["view"]["problems"]) == 1


def test_runs_that_were_given_up_are_left_out_as_in_a_report(tmp_path: Path) -> None:
    old = Record(tmp_path / "m", 20, "old")
    old.folder.release()
    (tmp_path / "m" / "20270101_000000_results.json").write_text("{}")
    with Watch(tmp_path, ReportOptions()) as watch:
        assert runs(watch)["runs"] == []
        old.folder.acquire()
        assert [run["state"] for run in runs(watch)["runs"]] == ["running"]


def test_a_folder_that_vanishes_is_told_and_what_was_read_stays(tmp_path: Path) -> None:
    record = Record(tmp_path / "out" / "m", 20)
    record.score(3, 1.0)
    with Watch(tmp_path / "out", ReportOptions()) as watch:
        runs(watch)
        record.folder.release()
        shutil.rmtree(tmp_path / "out")
        told = runs(watch)
        assert told["view"]["problems"] == [f"{tmp_path / 'out'} is gone: what was read before is shown"]
        assert [(run["state"], run["live"]["done"]) for run in told["runs"]] == [("deleted", 1)]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is not a folder"):
        Watch(tmp_path / "file", ReportOptions())


def folder_of(tmp_path: Path, quiz_runs: tuple[Path, Path]) -> Path:
    """A folder of two runs that have ended and one that has not."""
    for run in quiz_runs:
        shutil.copytree(run, tmp_path / "out" / run.name)
    Record(tmp_path / "out" / "m", 20).score(3, 1.0)
    return tmp_path / "out"


def test_runs_of_a_folder_are_compared_as_in_a_report_of_them(quiz_runs: tuple[Path, Path], tmp_path: Path) -> None:
    write_report([str(run) for run in quiz_runs], tmp_path / "report", ReportOptions())
    with Watch(folder_of(tmp_path, quiz_runs), ReportOptions()) as watch:
        numbers = [run["number"] for run in runs(watch)["runs"] if "live" not in run]
        assert len(numbers) == 2
        of = "-".join(map(str, numbers))
        summary, expected = json.loads(watch.piece(f"of-{of}-compare")), content(tmp_path / "report", "compare")
        assert [(one["first"], one["second"]) for one in summary["pairs"]] == [tuple(numbers)]
        assert (summary["rows"], summary["by"]) == (expected["rows"], expected["by"])
        of_pair = json.loads(watch.piece(f"of-{of}-compare-{of}"))
        assert of_pair["rows"] == content(tmp_path / "report", "compare-0-1")["rows"]
        assert json.loads(watch.piece(f"of-{of}-pairs-{of}-0")) == content(tmp_path / "report", "pairs-0-1-0")
        (live,) = {run["number"] for run in runs(watch)["runs"]} - set(numbers)
        wrong = (f"of-{numbers[0]}-{live}", f"of-{numbers[0]}-{numbers[0]}", f"of-{numbers[0]}-99", "of-0")
        for name in (*(f"{one}-compare" for one in wrong), f"of-{of}-compare-7-8", f"of-{of}-index-0-0"):
            with pytest.raises(PieceError):
                watch.piece(name)


def test_without_a_key_no_column_groups_the_documents(quiz_runs: tuple[Path, Path], tmp_path: Path) -> None:
    with Watch(folder_of(tmp_path, quiz_runs), ReportOptions(redact=frozenset({"level"}))) as watch:
        of = "-".join(str(run["number"]) for run in runs(watch)["runs"] if "live" not in run)
        assert json.loads(watch.piece(f"of-{of}-compare"))["by"] == []


def test_runs_of_a_view_are_chosen_and_compared(quiz_runs: tuple[Path, Path], tmp_path: Path, chromium: Any) -> None:
    with view_of(folder_of(tmp_path, quiz_runs), "--no_browser") as view:
        page = chromium.new_page()
        page.goto(view.address)
        page.wait_for_selector("#runs tbody tr >> nth=2")
        assert page.locator("#runs tbody input:disabled").count() == 1  # the run that has not ended
        for box in page.locator("#runs tbody input:enabled").all():
            box.check()
        page.click("button:has-text('Compare 2 runs')")
        page.wait_for_selector(".kinds")
        assert "+71.01 pp" in page.inner_text("[aria-label=Differences] tbody tr")
        page.click("[aria-label^='49 documents: only']")
        until(page, "() => document.querySelector('[role=status]')?.innerText === '49 of 69 documents'")
        page.locator(".choice input:enabled").first.uncheck()
        page.wait_for_selector("text=Choose at least two runs that have ended.")
        page.close()
