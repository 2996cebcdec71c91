"""The end of a run whose tracker does not answer: a signal, before or while it is waited for, bounds the wait."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from lmms_eval.trackers.contract import Beginning, RunEnding
from lmms_eval.trackers.session import Session, TrackerProcess, TrackerReport, TrackerTimeouts
from tests.trackers.test_process import MODULE, is_alive, told, until_called

LONG = TrackerTimeouts(start=600.0, answer=600.0, end=600.0)


def _ended(tmp: Path, grace_s: float, interrupted: int | None = None) -> TrackerReport:
    """End a run whose tracker hangs; the test is given up before its patience ends."""
    given = {"file": str(tmp / "told.jsonl"), "in": "finish", "how": "hang"}
    session = Session()
    session._trackers.append(TrackerProcess("trouble", MODULE, Beginning(given, "id", "name", {}), LONG))
    until_called(tmp, "start")
    begin = time.monotonic()
    (report,) = session.end(RunEnding("complete"), grace_s, interrupted)
    assert time.monotonic() - begin < 60
    while is_alive(told(tmp)[0]["pid"]):  # a moment, until its end was noticed
        assert time.monotonic() - begin < 60
        time.sleep(0.02)
    return report


def _send(tmp: Path, *numbers: int) -> None:
    """Send signals to this process once the tracker hangs."""

    def send() -> None:
        until_called(tmp, "finish")
        for number in numbers:
            os.kill(os.getpid(), number)
            time.sleep(0.2)

    threading.Thread(target=send, daemon=True).start()


def test_a_run_that_was_interrupted_waits_for_the_grace_time(tmp_path: Path) -> None:
    assert _ended(tmp_path, 0.4, signal.SIGINT).error == (
        "given up: not everything was sent 0.4 s after the end of the run"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_results_are_sent(number: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _send(tmp_path, number)
    assert _ended(tmp_path, 0.4).error == "given up: interrupted while its results were sent"
    assert capfd.readouterr().err.count("stopping: sending results (trouble) has 0.4 s to finish") == 1


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    _send(tmp_path, signal.SIGTERM, signal.SIGTERM)
    assert _ended(tmp_path, 500.0).error == "given up: interrupted while its results were sent"


def test_of_a_run_that_was_interrupted_the_next_signal_is_the_second(tmp_path: Path) -> None:
    _send(tmp_path, signal.SIGINT)
    assert _ended(tmp_path, 500.0, signal.SIGINT).error == "given up: interrupted while its results were sent"
