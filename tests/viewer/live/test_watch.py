"""The runs of a folder while they come, are damaged and vanish."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.viewer.live.watch import Watch
from lmms_eval.viewer.page import ReportOptions
from tests.results.records import Record


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
