"""The process of a tracker as the run sees it: told without waiting, and given up when it does not answer."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Literal

from loguru import logger

from lmms_eval.trackers.contract import Beginning, Ending, Message, Place, Step
from lmms_eval.trackers.messages import TrackerError, line_of, read_reply
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
