"""The report of a run (``--report``): written while it goes on and at its end, and nothing depends on it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.errors import ConfigError
from lmms_eval.evaluation import writing
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from tests.evaluation.kit import DOCUMENTS, Told, config, fails_on, right
from tests.viewer.test_report import content, only_run, warnings

WAIT_S = 30.0
ENDLESS = """
import sys, time
from pathlib import Path
from tests.evaluation.kit import Told, config
from lmms_eval.evaluation.run import run

run(config(Path(sys.argv[1]), model="told", report=True), Told(lambda request: time.sleep(60)))
"""


def told(tmp: Path, answer: Callable[[Request], Response], **over: Any) -> RunReport:
    return run(config(tmp, model="told", report=True, **over), Told(answer))


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def folder(tmp: Path) -> Path:
    (found,) = (tmp / "out").rglob("*_report")
    return found


def writers(pid: int) -> list[int]:
    """The processes below one that write reports."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            with contextlib.suppress(OSError):
                if b"renewing" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(child)
    return found


def test_the_report_of_a_run_stands_beside_its_results(tmp_path: Path) -> None:
    report = told(tmp_path, fails_on(2))
    out = folder(tmp_path)
    (results,) = (tmp_path / "out").rglob("*_results.json")
    assert out.name == results.name.replace("_results.json", "_report")
    assert report.exit_code == 3
    assert report.lines[-1] == f"report: {out / 'index.html'}"
    entry = only_run(out)
    assert (entry["state"], entry["tasks"][0]["samples"]) == ("withheld", DOCUMENTS)
    assert not [text for text in warnings(out) if "unfinished" in text]


def test_without_the_option_there_is_none(tmp_path: Path) -> None:
    run(config(tmp_path, model="told"), Told())
    assert not list((tmp_path / "out").rglob("*_report"))
    with pytest.raises(ConfigError, match="--report writes pages next to the results"):
        run(config(tmp_path, model="told", report=True, output_path=None), Told())


def test_pages_can_be_read_while_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "FIRST_S", 0.0)
    seen: list[tuple[int, list[str], list[str]]] = []

    def answer(request: Request) -> Response:
        if request.doc_id == DOCUMENTS - 1:
            until(lambda: list((tmp_path / "out").rglob("*_report/data/runs.js")))
            out = folder(tmp_path)
            ids = [sample["id"] for sample in content(out, "text-0-0-0")]
            seen.append((len(ids), ids, warnings(out)))
        return right(request)

    told(tmp_path, answer)
    ((count, ids, texts),) = seen
    assert 0 < count < DOCUMENTS
    assert set(ids) <= {str(number) for number in range(DOCUMENTS)}
    (text,) = [text for text in texts if text.startswith("unfinished")]
    record = next((tmp_path / "out/.runs").glob("*/run.json")).parent
    assert f"`lmms-eval report {record} --out {folder(tmp_path)}` writes these pages again" in text
    assert only_run(folder(tmp_path))["tasks"][0]["samples"] == DOCUMENTS


def test_an_interrupted_run_has_its_report(tmp_path: Path) -> None:
    def answer(request: Request) -> Response:
        if request.doc_id == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return right(request)

    report = told(tmp_path, answer)
    assert report.exit_code == 130
    assert only_run(folder(tmp_path))["state"] == "interrupted"
    assert report.lines[-1] == f"report: {folder(tmp_path) / 'index.html'}"


def test_a_report_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    def answer(request: Request) -> Response:
        (reserved,) = (tmp_path / "out").rglob("*.reserved")
        taken = reserved.parents[1] / f"{reserved.stem}_report"
        taken.mkdir(exist_ok=True)
        (taken / "letter.txt").write_text("mine")
        return right(request)

    report = told(tmp_path, answer)
    plain = run(config(tmp_path, model="told", output_path=str(tmp_path / "plain")), Told())
    assert report.exit_code == 0
    assert report.results["results"] == plain.results["results"]
    assert "could not be written" in report.lines[-1]
    assert "holds something other than a report" in report.lines[-1]
    assert [path.name for path in folder(tmp_path).iterdir()] == ["letter.txt"]


def test_a_killed_writer_changes_nothing(tmp_path: Path) -> None:
    def answer(request: Request) -> Response:
        for pid in writers(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        return right(request)

    report = told(tmp_path, answer)
    assert report.exit_code == 0
    assert only_run(folder(tmp_path))["state"] == "complete"


def test_a_writer_that_cannot_start_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "WRITER", "lmms_eval.no_such_module")
    report = told(tmp_path, right)
    assert report.exit_code == 0
    assert re.search(r"could not be written: .* ended with code 1; `lmms-eval report .*` does it$", report.lines[-1])
    assert report.results["state"] == "complete"


def test_the_writer_ends_with_a_run_that_is_killed(tmp_path: Path) -> None:
    config(tmp_path)  # writes the task
    process = subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path)], stderr=subprocess.DEVNULL)
    try:
        until(lambda: writers(process.pid))
        (writer,) = writers(process.pid)
        until(lambda: os.getpriority(os.PRIO_PROCESS, writer) == 19)
    finally:
        process.kill()
        process.wait()
    until(lambda: not Path(f"/proc/{writer}").exists() or "Z" in Path(f"/proc/{writer}/stat").read_text().split()[2])
