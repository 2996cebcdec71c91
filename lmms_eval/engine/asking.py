"""The run phase: the model under test is driven until nothing is left, or a signal or another process ends it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lmms_eval.api.request import Response
from lmms_eval.api.task import Task
from lmms_eval.engine.conversations import Conversations
from lmms_eval.engine.drive import AskReport, Drive, Driven
from lmms_eval.engine.live import Progress
from lmms_eval.engine.lockstep import Lockstep
from lmms_eval.engine.signals import EndNow, Interrupts
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.engine.team import Team

SWITCH_INTERVAL_S = 0.002


@dataclass(frozen=True, slots=True)
class Others:
    """The processes with which blocks are taken in lockstep, and the tasks of the run."""

    team: Team
    tasks: Sequence[Task]


class Asking:
    """One pass over everything that is not answered yet."""

    def __init__(
        self,
        driven: Driven,
        conversations: Conversations,
        limits: StreamLimits,
        progress: Progress,
        is_behind: Callable[[], bool] = lambda: False,
    ) -> None:
        """``is_behind``: a finished document would have to wait for the scoring, which must not stop an event loop."""
        self._driven, self._progress = driven, progress
        self._drive = Drive(driven, conversations, limits, is_behind, self._add_tokens)
        self._lockstep: Lockstep | None = None
        self._interrupts: Interrupts | None = None

    def run(self, grace_s: float, with_others: Others | None = None) -> AskReport:
        """Ask until nothing is left, the model ends, the asking is given up, or a signal comes.

        ``with_others``: the processes with which blocks are taken in lockstep.

        Raises:
            JournalError: a response could not be made durable.
            ModelError: the model broke its contract. Whatever else the model raises passes through.
        """
        drive, report = self._drive, self._drive.report
        if with_others is not None:
            prepare = self._driven.model.prepare
            self._lockstep = Lockstep(drive.stream, with_others.team, with_others.tasks, prepare, self.stop)
        interrupts = self._interrupts = Interrupts(self.stop, grace_s)
        try:
            with interrupts, _tuned_interpreter():
                drive.run(self._lockstep)
        except EndNow:
            report.cut_short = True
        finally:
            drive.stream.close()
        if self._lockstep is not None:
            self._lockstep.leave()
        report.interrupted = interrupts.signal_number
        if report.interrupted is None and not report.give_up and not drive.is_stopped:
            drive.fail_open("the model ended without answering this request")
        if self._driven.cache is not None:
            report.cache = self._driven.cache.counts()
        return report

    @property
    def report(self) -> AskReport:
        return self._drive.report

    @property
    def peak_bytes(self) -> int:
        return self._drive.stream.peak_bytes

    @property
    def in_flight(self) -> int:
        """Requests that the model has taken and not answered."""
        return self._drive.stream.held

    def stop(self) -> None:
        """Hand out no more requests; what is open may finish."""
        self._drive.stop()

    def give_up(self, reason: str) -> None:
        """Hand out no more requests, since the budget is spent; what is open may finish."""
        self._drive.give_up(reason, "budget")

    def others_failed(self) -> None:
        """Another process has failed: end, and if a collective waits for that process, without its end."""
        self.stop()
        if self._lockstep is not None and self._interrupts is not None:
            self._interrupts.end_soon()

    def _add_tokens(self, response: Response) -> None:
        if response.usage is not None:
            self._progress.add_tokens(response.usage.output_tokens or 0)


@contextmanager
def _tuned_interpreter() -> Iterator[None]:
    """Let threads take turns every 2 ms, and keep the search for garbage away from all that is loaded by now.

    The usual 5 ms of a scoring thread would hold up 32 open connections; with 0.5 ms a text takes a tenth more
    processor time on two idle cores. A search through every module that has been imported costs 50 ms.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
        gc.unfreeze()
