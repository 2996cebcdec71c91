"""The trackers of one run: started with it, told of it every few seconds, told of its results."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from loguru import logger

from lmms_eval.config.tracking import HUB, Destination
from lmms_eval.engine.progress import Progress, RunningScore
from lmms_eval.engine.signals import Interrupts
from lmms_eval.trackers.content import live_step
from lmms_eval.trackers.contract import Beginning, Ending, Message, Place
from lmms_eval.trackers.process import Patience, TrackerProcess, TrackerReport
from lmms_eval.utils.installed import package_version

STEP_S = 5.0
"""Seconds between live numbers."""
UPLOAD = Patience(answer=1_800.0, end=1_800.0)
"""Files of any size are pushed as a whole, between two replies."""


def run_id(key: str, date: str) -> str:
    """Return a run's id for trackers: the same in each start that goes on with it, another when it begins anew."""
    return hashlib.sha256(f"{key} {date}".encode()).hexdigest()[:20]


class Session:
    """Trackers that are told the same, none of which can hold up the run.

    Args:
        step_s: seconds between live numbers.
    """

    def __init__(self, step_s: float = STEP_S, patience: Patience | None = None) -> None:
        self._step_s, self._patience = step_s, patience
        self._trackers: list[TrackerProcess] = []
        self._absent: list[TrackerReport] = []
        self._ended = threading.Event()
        self._follower: threading.Thread | None = None

    def begin(self, destination: Destination, beginning: Beginning) -> None:
        """Start a tracker, without waiting for it."""
        if package_version(destination.package) is None:
            error = f"the package {destination.package} is missing: pip install 'lmms_eval[{destination.name}]'"
            self._absent.append(TrackerReport(destination.name, "failed", Place(), error))
            logger.warning("{}: {}; the run does not depend on it", destination.name, error)
            return
        module = f"{__package__}.{destination.name}"
        patience = self._patience or (UPLOAD if destination is HUB else Patience())
        self._trackers.append(TrackerProcess(destination.name, module, beginning, patience))

    def follow(self, progress: Progress) -> None:
        """Tell live numbers from now on until the end."""
        self._follower = threading.Thread(target=self._steps, args=(progress,), name="tracker-steps", daemon=True)
        self._follower.start()

    def tell(self, message: Message, names: Collection[str]) -> None:
        """Have a message told to the trackers of these names, after all others."""
        for tracker in self._trackers:
            if tracker.name in names:
                tracker.tell(message)

    def fail(self, error: str, names: Collection[str]) -> None:
        """Note that something cannot be told to the trackers of these names."""
        for tracker in self._trackers:
            if tracker.name in names:
                tracker.fail(error)

    def end(self, ending: Ending, grace_s: float, interrupted: int | None = None) -> tuple[TrackerReport, ...]:
        """Tell the end and wait until everything is sent, or the patience with each tracker ends.

        Args:
            ending: the end.
            grace_s: seconds that sending may take once a signal has come; a second one gives the trackers up.
            interrupted: number of the signal that has ended the run.
        """
        self.stop()
        for tracker in self._trackers:
            tracker.tell(ending)
        ended, names = time.monotonic(), ", ".join(tracker.name for tracker in self._trackers)
        if self._trackers:
            most = grace_s if interrupted is not None else max(tracker.longest_s for tracker in self._trackers)
            logger.info("results are written; waiting up to {:g} s until they are sent: {}", most, names)
        try:
            with Interrupts(lambda: None, grace_s, f"sending results ({names})", interrupted):
                most_s = None if interrupted is None else grace_s
                reports = [tracker.wait(ended, most_s) for tracker in self._trackers]
        except KeyboardInterrupt:  # whoever waits wants the results, which are written
            self.fail("given up: interrupted while its results were sent", [one.name for one in self._trackers])
            self.close()
            reports = [tracker.report() for tracker in self._trackers]
        return (*reports, *self._absent)

    def close(self) -> None:
        """End trackers that were not told the end, since the run has failed."""
        self.stop()
        for tracker in self._trackers:
            tracker.kill()

    def stop(self) -> None:
        """Tell the last live numbers."""
        self._ended.set()
        if self._follower is not None:
            self._follower.join()

    def _steps(self, progress: Progress) -> None:
        told: Mapping[str, RunningScore] = {}
        known = -1
        is_last = False
        while not is_last:
            is_last = self._ended.wait(self._step_s)
            look = progress.look()
            if look.done == known:
                continue
            step = live_step(look, told)
            for tracker in self._trackers:
                tracker.offer(step)
            told, known = look.scores, look.done


def report_lines(reports: Sequence[TrackerReport]) -> list[str]:
    """Return a line on each tracker, for the notes below the table."""
    lines = []
    for one in reports:
        place = one.place
        where = place.url or (f"{place.folder} ({place.hint})" if place.folder else place.hint)
        if one.state == "failed":
            told = f"; what it got is at {where}" if where else ""
            lines.append(f"{one.name} failed: {one.error.rstrip('.')}{told}; the results here are whole")
        elif where:
            lines.append(f"{one.name}: {where}")
    return lines


def report_part(reports: Sequence[TrackerReport]) -> dict[str, Any]:
    """Return the part ``trackers`` of the results document."""
    return {
        one.name: {"state": one.state, "url": one.place.url, "folder": one.place.folder, "error": one.error}
        for one in reports
    }
