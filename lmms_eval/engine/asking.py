"""The run phase: drives the model under test until all is asked, or a signal or another process ends the run."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lmms_eval.api.task import Task
from lmms_eval.engine.conversations import Conversations
from lmms_eval.engine.drive import AskReport, Drive, Driven
from lmms_eval.engine.signals import EndNow, Interrupts
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.engine.team import Team

if TYPE_CHECKING:
    from lmms_eval.engine.lockstep import Lockstep

SWITCH_INTERVAL_S = 0.002


class Asking:
    """One pass over all unanswered requests."""

    def __init__(
        self,
        driven: Driven,
        conversations: Conversations,
        limits: StreamLimits,
        is_behind: Callable[[], bool] = lambda: False,
    ) -> None:
        """Prepare the asking.

        Args:
            driven: the model and its journal.
            conversations: source of the requests.
            limits: bounds of preparation.
            is_behind: returns whether scoring would block; an event loop then waits before it passes responses on.
        """
        self.driven = driven
        self.drive = Drive(driven, conversations, limits, is_behind)
        self._lockstep: Lockstep | None = None
        self._interrupts: Interrupts | None = None

    def run(self, grace_s: float, team: Team | None = None, tasks: Sequence[Task] = ()) -> AskReport:
        """Ask until nothing is left, the model ends, the asking is given up, or a signal arrives.

        Other exceptions of the model pass through.

        Args:
            grace_s: seconds that open requests have after a signal.
            team: the processes that take blocks in lockstep with this one.
            tasks: the tasks of the run, for lockstep.

        Raises:
            JournalError: a response could not be written.
            ModelError: the model broke its contract.
        """
        drive, report = self.drive, self.drive.report
        if team is not None:
            from lmms_eval.engine.lockstep import Lockstep

            self._lockstep = Lockstep(drive.stream, team, tasks, self.driven.model.prepare, self.stop)
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
        if self.driven.cache is not None:
            report.cache = self.driven.cache.counts()
        return report

    def stop(self) -> None:
        """Hand out no more requests; open ones may finish."""
        self.drive.stop()

    def give_up(self, reason: str) -> None:
        """Hand out no more requests because the budget is spent; open ones may finish."""
        self.drive.give_up(reason, "budget")

    def others_failed(self) -> None:
        """Stop because another process failed; a collective that waits for it is interrupted after the grace time."""
        self.stop()
        if self._lockstep is not None and self._interrupts is not None:
            self._interrupts.end_soon()


@contextmanager
def _tuned_interpreter() -> Iterator[None]:
    """Let threads switch every 2 ms, and exclude all objects that exist now from garbage collection.

    With the default of 5 ms a scoring thread would delay 32 open connections; 0.5 ms takes a tenth more processor time
    per text. A garbage collection over all imported modules would take 50 ms.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
        gc.unfreeze()
