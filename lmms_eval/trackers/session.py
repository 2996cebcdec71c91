"""The trackers of one run: started with it, told of it every few seconds, told of its results."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from loguru import logger

from lmms_eval.config.tracking import HUB, Destination
from lmms_eval.engine.live import Progress, RunningScore
from lmms_eval.engine.signals import Interrupts
from lmms_eval.trackers.content import live_step
from lmms_eval.trackers.contract import Beginning, Ending, Message, Place, Step, TrackerError, line_of, read_reply
from lmms_eval.utils.installed import package_version
from lmms_eval.utils.line_process import LineProcess, ProcessEnded
from lmms_eval.utils.redaction import redact_text
from lmms_eval.utils.terminal import printable

WORKER = "lmms_eval.trackers.worker"
MOST_ERROR = 600
"""Characters of an error that are told."""
_LOOK_S, _KILLED_S = 0.5, 5.0

State = Literal["starting", "running", "finished", "failed"]


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds after which a tracker is given up."""

    start: float = 120.0
    """From the start of its process to its first reply: a package waits some 90 s for its server."""
    answer: float = 60.0
    """For each reply after that, and for the first one once the run has ended."""
    end: float = 600.0
    """From the end of the run until everything is sent."""


@dataclass(frozen=True, slots=True)
class TrackerReport:
    """End of a tracker, as results and notes tell it."""

    name: str
    state: State
    place: Place
    error: str = ""
    """The first thing that went wrong, secrets masked."""


class TrackerProcess:
    """A tracker in its own process, told by a thread of its own: no call here waits for it, but for ``wait``.

    Args:
        name: the tracker's name.
        module: the module whose ``new`` makes it, in the process.
        beginning: what it is told first.
        patience: after what time it is given up.
    """

    def __init__(self, name: str, module: str, beginning: Beginning, patience: Patience | None = None) -> None:
        self.name, self._module, self._beginning = name, module, beginning
        self._patience = patience or Patience()
        self._changed = threading.Condition()
        self._step: Step | None = None
        self._last: deque[Message] = deque()
        self._is_killed = False
        self._state: State = "starting"
        self._place, self._error = Place(), ""
        self._process: LineProcess | None = None
        self._thread = threading.Thread(target=self._tell, name=f"tracker-{name}", daemon=True)
        self._thread.start()

    @property
    def longest_s(self) -> float:
        """Seconds after the end of the run in which everything must be sent."""
        return self._patience.end

    def offer(self, step: Step) -> None:
        """Have live numbers told, with those that still wait to be."""
        with self._changed:
            waiting = {} if self._step is None else self._step.values
            self._step = Step(step.documents, {**waiting, **step.values})
            self._changed.notify()

    def tell(self, message: Message) -> None:
        """Have a message told after all others; ``Ending`` is the last one. ``wait`` for it."""
        with self._changed:
            self._last.append(message)
            self._changed.notify()

    def wait(self, ended: float, most_s: float | None = None) -> TrackerReport:
        """Wait until everything is told, or the patience ends; the process is gone then.

        Args:
            ended: the end of the run, by ``time.monotonic``.
            most_s: seconds after it, where they are fewer than usual.
        """
        most = min(self._patience.end, most_s if most_s is not None else self._patience.end)
        while self._thread.is_alive():
            is_starting = self.report().state == "starting"
            limit = min(most, self._patience.answer) if is_starting else most
            left = ended + limit - time.monotonic()
            if left <= 0:
                what = "its start had no answer" if is_starting else "not everything was sent"
                self.fail(f"given up: {what} {limit:g} s after the end of the run")
                self.kill()
                self._thread.join(_KILLED_S)
                break
            self._thread.join(min(left, _LOOK_S))
        return self.report()

    def kill(self) -> None:
        """End the process at once; nothing is told any further."""
        with self._changed:
            self._is_killed = True
            if self._state != "finished":
                self._state, self._error = "failed", self._error or "the run broke off"
            self._last.clear()
            self._changed.notify()
        if self._process is not None:
            self._process.kill()

    def report(self) -> TrackerReport:
        """Tell what has become of it by now."""
        with self._changed:
            return TrackerReport(self.name, self._state, self._place, self._error)

    def _tell(self) -> None:
        """The thread: start the process, then send one message after the other."""
        try:
            self._process = LineProcess(WORKER, quiet=True)
        except OSError as error:
            self.fail(f"its process cannot be started: {error.strerror or error}")
            return
        try:
            self._ask(self._beginning, self._patience.start)
            self._become("running")
            while (message := self._next()) is not None:
                try:
                    self._ask(message, self._patience.answer)
                except TrackerError as error:  # the next message may do
                    self.fail(str(error))
                if isinstance(message, Ending):
                    break
        except (TrackerError, ProcessEnded) as error:
            self.fail(str(error))
        finally:
            if self.report().state == "failed":
                self._process.kill()
            self._process.close()
        self._become("finished")

    def _ask(self, message: Message, timeout_s: float) -> None:
        assert self._process is not None
        self._process.send(line_of(message, module=self._module))
        place = read_reply(self._process.receive(timeout_s))
        if place is not None:
            with self._changed:
                self._place = place

    def _next(self) -> Message | None:
        with self._changed:
            while True:
                if self._step is not None:
                    step, self._step = self._step, None
                    return step
                if self._last:
                    return self._last.popleft()
                if self._is_killed:
                    return None
                self._changed.wait()

    def _become(self, state: State) -> None:
        with self._changed:
            if self._state != "failed":
                self._state = state

    def fail(self, error: str) -> None:
        """Note that something could not be told; what follows may still be."""
        with self._changed:
            is_first = not self._error
            self._state = "failed"
            self._error = self._error or printable(redact_text(" ".join(error.split())))[:MOST_ERROR]
        if is_first:
            logger.warning("{}: {}; the run does not depend on it", self.name, self._error)


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
