"""The trackers of a run together: what becomes of each is told, and none is waited for in vain."""

from __future__ import annotations

import time

import pytest

from lmms_eval.config.tracking import HUB, WANDB
from lmms_eval.engine.live import ProgressLine
from lmms_eval.trackers import session
from lmms_eval.trackers.contract import Beginning, LiveNumbers, RunEnding, TrackerPlace
from lmms_eval.trackers.session import Session, TrackerReport, TrackerTimeouts, report_lines, report_part

BEGINNING = Beginning({}, "id", "name", {})


class Recorded:
    """A tracker without a process: it keeps what it is told."""

    def __init__(self, name: str, _module: str, _beginning: Beginning, patience: TrackerTimeouts) -> None:
        self.name, self.patience, self.steps, self.error = name, patience, list[LiveNumbers](), ""
        self.is_killed, self.longest_s = False, patience.end

    def offer(self, step: LiveNumbers) -> None:
        self.steps.append(step)

    def send(self, _message: object) -> None: ...

    def fail(self, error: str) -> None:
        self.error = error

    def kill(self) -> None:
        self.is_killed = True

    def wait(self, _ended: float, _most_s: float | None = None) -> TrackerReport:
        return self.report()

    def report(self) -> TrackerReport:
        return TrackerReport(self.name, "failed" if self.error else "finished", TrackerPlace(), self.error)


@pytest.fixture(autouse=True)
def _recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "TrackerProcess", Recorded)
    monkeypatch.setattr(session, "package_version", lambda _: "1.0")


def test_a_package_that_is_missing_is_told_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "package_version", lambda name: None if name == "wandb" else "1.0")
    told = Session()
    told.begin(WANDB, BEGINNING)
    told.begin(HUB, BEGINNING)
    reports = told.end(RunEnding("complete"), 20.0)
    assert {one.name: one.state for one in reports} == {"hub": "finished", "wandb": "failed"}
    (line,) = report_lines(reports)
    assert line == (
        "wandb failed: the package wandb is missing: pip install 'lmms_eval[wandb]'; the results here are complete"
    )


def test_an_interruption_while_results_are_sent_gives_the_trackers_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> TrackerReport:
        raise KeyboardInterrupt

    monkeypatch.setattr(Recorded, "wait", interrupted)
    told = Session()
    told.begin(WANDB, BEGINNING)
    (report,) = told.end(RunEnding("complete"), 20.0)
    assert (report.state, report.error) == ("failed", "given up: interrupted while its results were sent")
    assert told._trackers[0].is_killed  # type: ignore[attr-defined]


def test_files_may_take_longer_than_numbers() -> None:
    told = Session()
    told.begin(WANDB, BEGINNING)
    told.begin(HUB, BEGINNING)
    wandb, hub = (tracker.patience for tracker in told._trackers)  # type: ignore[attr-defined]
    assert hub.answer > wandb.answer


def test_live_numbers_are_told_as_they_change_and_at_the_end() -> None:
    told, progress = Session(step_s=0.02), ProgressLine(4, enabled=False)
    told.begin(WANDB, BEGINNING)
    progress.count_by_task(())
    told.follow(progress)
    record = {"task": "t", "scores": [{"metrics": {"acc": 1.0}}]}
    progress.document(record)
    tracker = told._trackers[0]
    limit = time.monotonic() + 20
    while len(tracker.steps) < 2 and time.monotonic() < limit:  # type: ignore[attr-defined]
        time.sleep(0.01)
        if tracker.steps and tracker.steps[-1].documents == 1:  # type: ignore[attr-defined]
            break
    progress.document({**record, "task": "u"})
    told.stop()
    first, last = tracker.steps[0], tracker.steps[-1]  # type: ignore[attr-defined]
    assert (last.documents, last.values["live/documents"], last.values["live/u/score"]) == (2, 2, 1.0)
    assert first.documents <= 1
    assert "live/t/score" not in last.values  # it was told before


def test_results_say_what_has_become_of_each() -> None:
    reports = (
        TrackerReport("a", "finished", TrackerPlace(url="https://x.example/1")),
        TrackerReport("b", "finished", TrackerPlace(folder="/f", hint="look into it")),
        TrackerReport("c", "failed", TrackerPlace(url="https://x.example/2"), "no room."),
        TrackerReport("d", "finished", TrackerPlace(hint="nothing was pushed")),
        TrackerReport("e", "finished", TrackerPlace()),
    )
    assert report_lines(reports) == [
        "a: https://x.example/1",
        "b: /f (look into it)",
        "c failed: no room; what it received is at https://x.example/2; the results here are complete",
        "d: nothing was pushed",
    ]
    assert report_part(reports)["c"] == {
        "state": "failed", "url": "https://x.example/2", "folder": "", "error": "no room.",
    }  # fmt: skip
