"""Trackers that fail in each call, each in every way: the run is not held up, and what became of it is told."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.trackers.contract import Beginning, FinalResults, LiveNumbers, RunEnding, TaskSamples, TrackerTable
from lmms_eval.trackers.session import TrackerProcess, TrackerReport, TrackerTimeouts
from lmms_eval.utils.redaction import REDACTED, learn_secrets
from tests.cases import for_each

MODULE = "tests.trackers.trouble:Trouble"
SHORT = TrackerTimeouts(start=20.0, answer=1.5, end=20.0)


def begun(tmp: Path, patience: TrackerTimeouts = SHORT, **arguments: str) -> TrackerProcess:
    given = {"file": str(tmp / "told.jsonl"), **arguments}
    return TrackerProcess("trouble", MODULE, Beginning(given, "id", "name", {}), patience)


def told(tmp: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp / "told.jsonl").read_text().splitlines()]


def ended(tracker: TrackerProcess) -> TrackerReport:
    table = TrackerTable(("Tasks", "Value"), (("t", 0.5), ("u", None)))
    tracker.send(FinalResults(6, {"t/acc": 0.5}, {}, {"evaluation/eval_results": table}, {}, "r.json"))
    tracker.send(TaskSamples("t", 6, ("doc_id",), (("0",), ("1",))))
    tracker.send(RunEnding("complete"))
    return tracker.wait(time.monotonic())


def until_called(tmp: Path, call: str) -> None:
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        if (tmp / "told.jsonl").exists() and any(one["call"] == call for one in told(tmp)):
            return
        time.sleep(0.02)
    raise AssertionError(f"{call} was not called")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_tracker_is_told_everything_in_order(tmp_path: Path) -> None:
    tracker = begun(tmp_path)
    tracker.offer(LiveNumbers(3, {"live/documents": 3.0}))
    report = ended(tracker)
    assert (report.state, report.error) == ("finished", "")
    assert report.place.folder == str(tmp_path / "told.jsonl")
    calls = told(tmp_path)
    assert [one["call"] for one in calls] == ["start", "step", "results", "samples", "finish"]
    assert calls[2]["rows"] == [2]
    assert not is_alive(calls[0]["pid"])


@for_each("how", ["raise", "exit"])
@for_each("call", ["step", "results", "samples", "finish"])
def test_after_an_error_the_rest_is_told(tmp_path: Path, call: str, how: str) -> None:
    tracker = begun(tmp_path, **{"in": call, "how": how})
    tracker.offer(LiveNumbers(3, {}))
    report = ended(tracker)
    assert report.state == "failed"
    assert report.error.startswith("RuntimeError: no room" if how == "raise" else "SystemExit: 3")
    assert [one["call"] for one in told(tmp_path)][-1] == "finish"


@pytest.mark.parametrize("call", ["start", "step", "results", "samples", "finish"])
@pytest.mark.parametrize("how", ["die", "hang", "stop"])
def test_a_process_that_dies_or_hangs_is_given_up(tmp_path: Path, call: str, how: str) -> None:
    patience = TrackerTimeouts(start=4.0 if call == "start" else 20.0, answer=1.5, end=20.0)
    tracker = begun(tmp_path, patience, **{"in": call, "how": how})
    until_called(tmp_path, "start")
    tracker.offer(LiveNumbers(3, {}))
    report = ended(tracker)
    assert report.state == "failed"
    assert re.search("ended with code -11" if how == "die" else "no answer (within )?1.5 s", report.error)
    assert not is_alive(told(tmp_path)[0]["pid"])


def test_nothing_waits_for_a_tracker_but_the_end(tmp_path: Path) -> None:
    begin = time.monotonic()
    tracker = begun(tmp_path, **{"in": "start", "how": "hang"})
    for number in range(10_000):
        tracker.offer(LiveNumbers(number, {f"live/{number % 7}/n": 1.0}))
    assert time.monotonic() - begin < 10  # SHORT would wait twenty seconds for it
    until_called(tmp_path, "start")
    report = ended(tracker)
    assert report.error == "given up: its start had no answer 1.5 s after the end of the run"


def test_live_numbers_that_wait_are_put_together(tmp_path: Path) -> None:
    tracker = begun(tmp_path)
    for number in range(100):
        tracker.offer(LiveNumbers(number, {"live/documents": float(number), f"live/t{number}/n": 1.0}))
    ended(tracker)
    steps = [one for one in told(tmp_path) if one["call"] == "step"]
    assert {name for one in steps for name in one["values"]} >= {f"live/t{number}/n" for number in range(100)}
    assert steps[-1]["documents"] == 99
    assert len(steps) < 100


def test_errors_are_told_in_one_line_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROUBLE_API_KEY", "canary-8b1d2f-canary")
    learn_secrets({}, os.environ)
    report = ended(begun(tmp_path, **{"in": "results", "how": "raise"}))
    assert report.error == f"RuntimeError: no room for {REDACTED} \\u001b[31mat all"


def test_what_a_package_prints_is_no_reply(tmp_path: Path) -> None:
    assert ended(begun(tmp_path, **{"in": "results", "how": "print"})).state == "finished"


def test_a_run_that_breaks_off_takes_its_tracker_with_it(tmp_path: Path) -> None:
    tracker = begun(tmp_path)
    until_called(tmp_path, "start")
    tracker.kill()
    assert tracker.wait(time.monotonic()).state == "failed"
    assert not is_alive(told(tmp_path)[0]["pid"])
