"""Places of reports: nothing of others is overwritten, and two writings are not mixed."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from lmms_eval.errors import UsageError
from lmms_eval.viewer.page import check_place, writing_alone
from tests.viewer.test_comparison import table


def test_a_single_file_replaces_no_file_of_something_else(tmp_path: Path) -> None:
    run = table(tmp_path / "run.csv", [1, 0])
    before = run.read_bytes()
    assert main(["report", str(run), "--single_file", "--out", str(run)]) == 2
    assert run.read_bytes() == before
    for _ in range(2):  # the second time it replaces a report
        assert main(["report", str(run), "--single_file", "--out", str(tmp_path / "one.html")]) == 0
    with pytest.raises(UsageError, match="is a folder"):
        check_place(tmp_path, single_file=True)


def test_a_page_of_someone_else_makes_no_report(tmp_path: Path) -> None:
    run = table(tmp_path / "run.csv", [1, 0])
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<title>My site</title>")
    assert main(["report", str(run), "--out", str(site)]) == 2
    assert [path.name for path in site.iterdir()] == ["index.html"]


def test_a_report_is_written_by_one_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, out = table(tmp_path / "run.csv", [1, 0]), tmp_path / "out"
    with writing_alone(out):
        assert main(["report", str(run), "--out", str(out)]) == 2
        assert "is being written by another process" in capsys.readouterr().err
    (out / ".writing").touch()  # as a killed process leaves it
    assert main(["report", str(run), "--out", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {"index.html", "app.js", "app.css", "data"}


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = table(tmp_path / "run.csv", [1, 0])
    for more in ([], ["--single_file"]):
        assert main(["report", str(run), "--out", str(run / "below"), *more]) != 0
        error = capsys.readouterr().err
        assert error.startswith("error: cannot ") and "Traceback" not in error
