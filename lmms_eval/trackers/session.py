"""The trackers of a run: starts them, sends them live numbers every few seconds, and sends the results."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from loguru import logger
from msgspec import Struct

from lmms_eval.config.tracking import HUB, OTLP, Destination
from lmms_eval.engine.live import MeanSoFar, ProgressLine
from lmms_eval.engine.signals import Interrupts
from lmms_eval.processes import Child, ChildError
from lmms_eval.trackers.content import live_step
from lmms_eval.trackers.contract import (
    Beginning,
    FinishedCalls,
    LiveNumbers,
    Message,
    ModelCall,
    RunEnding,
    TrackerError,
    TrackerPlace,
    line_of,
    read_reply,
)
from lmms_eval.utils.installed import package_version
from lmms_eval.utils.redaction import redact_text
from lmms_eval.utils.terminal import printable

WORKER = "lmms_eval.trackers.worker"
MOST_ERROR = 600
"""Most characters of an error."""
_LOOK_S, _KILLED_S = 0.5, 5.0

State = Literal["starting", "running", "finished", "failed"]


class TrackerTimeouts(Struct, frozen=True):
    """A tracker is given up after so many seconds."""

    start: float = 120.0
    """Seconds from the start of its process to its first reply. A package may wait about 90 s for its server."""
    answer: float = 60.0
    """Seconds for each later reply, and for the first one after the end of the run."""
    end: float = 600.0
    """Seconds from the end of the run until everything is sent."""


class TrackerReport(Struct, frozen=True):
    """The state of a tracker, for the results and the notes."""

    name: str
    state: State
    place: TrackerPlace
    error: str = ""
    """The first error, secrets masked."""


class TrackerProcess:
    """A tracker in its own process. A thread sends it the messages. Only ``wait`` blocks the caller.

    Args:
        name: the tracker's name.
        tracker: ``MODULE:CLASS`` of the tracker, which is made in its process.
        beginning: the first message.
        patience: how long the tracker may take before it is given up.
    """

    def __init__(self, name: str, tracker: str, beginning: Beginning, patience: TrackerTimeouts | None = None) -> None:
        self.name, self._tracker, self._beginning = name, tracker, beginning
        self._patience = patience or TrackerTimeouts()
        self._changed = threading.Condition()
        self._waiting: deque[Message] = deque()
        self._is_killed = False
        self._state: State = "starting"
        self._place, self._error = TrackerPlace(), ""
        self._process: Child | None = None
        self._thread = threading.Thread(target=self._send_all, name=f"tracker-{name}", daemon=True)
        self._thread.start()

    @property
    def longest_s(self) -> float:
        """Most seconds from the end of the run until everything is sent."""
        return self._patience.end

    def offer(self, step: LiveNumbers) -> None:
        """Queue live numbers for sending, merged with those that still wait."""
        with self._changed:
            if self._waiting and isinstance(last := self._waiting[-1], LiveNumbers):
                self._waiting[-1] = LiveNumbers(step.documents, {**last.values, **step.values})
            else:
                self._waiting.append(step)
            self._changed.notify()

    @property
    def is_behind(self) -> bool:
        """Whether requests that were queued earlier still wait, or nothing is sent any more."""
        with self._changed:
            waits = any(isinstance(message, FinishedCalls) for message in self._waiting)
        return waits or not self._thread.is_alive()

    def send(self, message: Message) -> None:
        """Queue a message after all others. ``RunEnding`` must be the last one. ``wait`` blocks until it is sent."""
        with self._changed:
            self._waiting.append(message)
            self._changed.notify()

    def wait(self, ended: float, most_s: float | None = None) -> TrackerReport:
        """Wait up to ``most_s`` after the end of the run, or as long as patience lasts. The process has ended then."""
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
        """Kill the process. Nothing more is sent."""
        with self._changed:
            self._is_killed = True
            if self._state != "finished":
                self._state, self._error = "failed", self._error or "the run broke off"
            self._waiting.clear()
            self._changed.notify()
        if self._process is not None:
            self._process.kill()

    def report(self) -> TrackerReport:
        """Return the tracker's present state."""
        with self._changed:
            return TrackerReport(self.name, self._state, self._place, self._error)

    def _send_all(self) -> None:
        """Start the process, then send one message after the other. This runs in the thread."""
        try:
            self._process = Child(WORKER, errors="discarded")
        except OSError as error:
            self.fail(f"its process cannot be started: {error.strerror or error}")
            return
        try:
            self._ask(self._beginning, self._patience.start)
            self._become("running")
            message: Message = self._beginning
            while not isinstance(message, RunEnding):
                with self._changed:
                    self._changed.wait_for(lambda: self._waiting or self._is_killed)
                    if not self._waiting:
                        break
                    message = self._waiting.popleft()
                try:
                    self._ask(message, self._patience.answer)
                except TrackerError as error:  # the next message may succeed
                    self.fail(str(error))
        except (TrackerError, ChildError) as error:
            self.fail(str(error))
        finally:
            if self.report().state == "failed":
                self._process.kill()
            self._process.close()
        self._become("finished")

    def _ask(self, message: Message, timeout_s: float) -> None:
        assert self._process is not None
        place = read_reply(self._process.ask(line_of(message, self._tracker), timeout_s))
        if place is not None:
            with self._changed:
                self._place = place

    def _become(self, state: State) -> None:
        with self._changed:
            if self._state != "failed":
                self._state = state

    def fail(self, error: str) -> None:
        """Record that a message could not be sent. Later messages are still sent."""
        with self._changed:
            is_first = not self._error
            self._state = "failed"
            self._error = self._error or printable(redact_text(" ".join(error.split())))[:MOST_ERROR]
        if is_first:
            logger.warning("{}: {}; the run does not depend on it", self.name, self._error)


STEP_S = 5.0
"""Seconds between live numbers."""
UPLOAD = TrackerTimeouts(answer=1_800.0, end=1_800.0)
"""Patience with the hub, which uploads files of any size between two replies."""
COLLECTOR = TrackerTimeouts(start=60.0, answer=60.0, end=10.0)
"""Patience with a collector: spans are worth less than the time of the user."""
PATIENCE = {HUB.name: UPLOAD, OTLP.name: COLLECTOR}
MODULES = {HUB.name: "hub", OTLP.name: "otlp"}
"""Modules of the destinations that are not in ``packages``."""
MOST_CALLS, MOST_BYTES = 50_000, 32 << 20
"""Most requests, and most bytes of them, that wait for a tracker. Further ones are counted, but not sent."""
CALLS_OF_MESSAGE = 2_000


class CallBuffer:
    """Requests that have ended and wait for a tracker; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[ModelCall] = []
        self._bytes = self._dropped = 0

    def add(self, call: ModelCall) -> None:
        """Keep a request, or count it as dropped if too many wait."""
        with self._lock:
            if len(self._calls) == MOST_CALLS or self._bytes > MOST_BYTES:
                self._dropped += 1
            else:
                self._calls.append(call)
                self._bytes += call.size

    def take(self, is_last: bool) -> list[FinishedCalls]:
        """Take everything out, as messages."""
        with self._lock:
            calls, dropped = self._calls, self._dropped
            self._calls, self._bytes, self._dropped = [], 0, 0
        parts = [calls[begin : begin + CALLS_OF_MESSAGE] for begin in range(0, len(calls), CALLS_OF_MESSAGE)]
        if dropped and not parts:
            parts = [[]]
        last = len(parts) - 1
        return [
            FinishedCalls(tuple(part), dropped if number == last else 0, is_last) for number, part in enumerate(parts)
        ]


def run_id(key: str, date: str) -> str:
    """Return a run's id for trackers: the same in each start that continues it, another when it begins anew."""
    return hashlib.sha256(f"{key} {date}".encode()).hexdigest()[:20]


class Session:
    """The trackers of a run. They get the same messages, and live numbers every ``step_s`` seconds."""

    def __init__(self, step_s: float = STEP_S, patience: TrackerTimeouts | None = None) -> None:
        self._step_s, self._patience = step_s, patience
        self._trackers: list[TrackerProcess] = []
        self._absent: list[TrackerReport] = []
        self._calls = CallBuffer()
        self._ended = threading.Event()
        self._follower: threading.Thread | None = None

    def begin(self, destination: Destination, beginning: Beginning) -> None:
        """Start a tracker, without waiting for it."""
        if package_version(destination.package) is None:
            error = f"the package {destination.package} is missing: pip install 'lmms_eval[{destination.name}]'"
            self._absent.append(TrackerReport(destination.name, "failed", TrackerPlace(), error))
            logger.warning("{}: {}; the run does not depend on it", destination.name, error)
            return
        module = MODULES.get(destination.name, "packages")
        tracker = f"{__package__}.{module}:{destination.name.capitalize()}"
        patience = self._patience or PATIENCE.get(destination.name, TrackerTimeouts())
        self._trackers.append(TrackerProcess(destination.name, tracker, beginning, patience))

    def follow(self, progress: ProgressLine) -> None:
        """Send live numbers from now on until the end."""
        self._follower = threading.Thread(target=self._steps, args=(progress,), name="tracker-steps", daemon=True)
        self._follower.start()

    def note_call(self, call: ModelCall) -> None:
        """Keep a request that has ended for the collector. This never waits."""
        self._calls.add(call)

    def send(self, message: Message, names: Collection[str]) -> None:
        """Queue a message for the trackers of these names, after all others."""
        for tracker in self._trackers:
            if tracker.name in names:
                tracker.send(message)

    def fail(self, error: str, names: Collection[str]) -> None:
        """Record that a message cannot be sent to the trackers of these names."""
        for tracker in self._trackers:
            if tracker.name in names:
                tracker.fail(error)

    def end(self, ending: RunEnding, grace_s: float, interrupted: int | None = None) -> tuple[TrackerReport, ...]:
        """Send the last message and wait until everything is sent or the patience with each tracker ends.

        After the signal ``interrupted``, sending may take ``grace_s`` seconds. A second signal gives the trackers up.
        """
        self.stop()
        ended, names = time.monotonic(), ", ".join(tracker.name for tracker in self._trackers)
        try:
            with Interrupts(lambda: None, grace_s, f"sending results ({names})", interrupted):
                for tracker in self._trackers:
                    tracker.send(ending)
                if self._trackers:
                    most = grace_s if interrupted is not None else max(tracker.longest_s for tracker in self._trackers)
                    logger.info("results are written; waiting up to {:g} s until they are sent: {}", most, names)
                most_s = None if interrupted is None else grace_s
                reports = [tracker.wait(ended, most_s) for tracker in self._trackers]
        except KeyboardInterrupt:  # the results are written, so the user does not have to wait
            self.fail("given up: interrupted while its results were sent", [one.name for one in self._trackers])
            self.close()
            reports = [tracker.report() for tracker in self._trackers]
        return (*reports, *self._absent)

    def close(self) -> None:
        """Kill the trackers that still run, as after a failure of the run."""
        self.stop()
        for tracker in self._trackers:
            tracker.kill()

    def stop(self) -> None:
        """Send the last live numbers."""
        self._ended.set()
        if self._follower is not None:
            self._follower.join()

    def _steps(self, progress: ProgressLine) -> None:
        sent: Mapping[str, MeanSoFar] = {}
        known = -1
        is_last = False
        while not is_last:
            is_last = self._ended.wait(self._step_s)
            self._hand_on_calls(is_last)
            look = progress.look()
            if look.done == known:
                continue
            step = live_step(look, sent)
            for tracker in self._trackers:
                tracker.offer(step)
            sent, known = look.scores, look.done

    def _hand_on_calls(self, is_last: bool) -> None:
        """Queue the requests that have ended, unless the collector still works on earlier ones."""
        for tracker in self._trackers:
            if tracker.name == OTLP.name and (is_last or not tracker.is_behind):
                for message in self._calls.take(is_last):
                    tracker.send(message)


def report_lines(reports: Sequence[TrackerReport]) -> list[str]:
    """Return a line about each tracker, for the notes below the table."""
    lines = []
    for one in reports:
        place = one.place
        where = place.url or (f"{place.folder} ({place.hint})" if place.folder else place.hint)
        if one.state == "failed":
            head = "what it received is at " if place.url or place.folder else ""
            received = f"; {head}{where}" if where else ""
            lines.append(f"{one.name} failed: {one.error.rstrip('.')}{received}; the results here are complete")
        elif where:
            lines.append(f"{one.name}: {where}")
    return lines


def report_part(reports: Sequence[TrackerReport]) -> dict[str, Any]:
    """Return the part ``trackers`` of the results document."""
    return {
        one.name: {"state": one.state, "url": one.place.url, "folder": one.place.folder, "error": one.error}
        for one in reports
    }
