"""Judging beside the generation: questions about finished documents go to the judge as they arise.

One thread asks the tasks for their questions, another drives the judge; a document goes on to the scorer when all its
verdicts are there. A judge that fails leaves its documents unscored, never the run broken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, replace

from loguru import logger

from lmms_eval.api.model import Model
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.api.request import Response
from lmms_eval.engine.ask_report import AskReport
from lmms_eval.engine.conversations import Conversations, Job
from lmms_eval.engine.drive import Drive, Driven
from lmms_eval.engine.failures import failure
from lmms_eval.engine.interviews import Case, Inquiry
from lmms_eval.engine.judgements import JudgementStore
from lmms_eval.engine.response_cache import ResponseCache
from lmms_eval.engine.stage import LOOK_S, Failure, Stage
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.errors import JournalError

QUEUE_LENGTH = 256
LEAST_OPEN = 64
"""Documents whose verdicts may be outstanding, at least."""
CLOSING_S = 5.0
ENDED = "the judge ended without answering this question"


@dataclass(frozen=True, slots=True)
class JudgingOptions:
    """Terms on which the judge is asked."""

    retries: int = 2
    stream: StreamLimits = field(default_factory=StreamLimits)
    cache: ResponseCache | None = None
    """Replies of earlier runs; who opened it closes it."""


@dataclass(frozen=True, slots=True)
class JudgeSetup:
    """A judge with its journal."""

    model: Model
    name: str
    """Name that verdicts and results state."""
    store: JudgementStore
    options: JudgingOptions = JudgingOptions()


class Judging:
    """Takes finished documents, hands them with their verdicts to ``deliver``.

    ``is_behind``: ``deliver`` would block, which must not stop the judge's event loop.
    """

    def __init__(
        self,
        setup: JudgeSetup,
        deliver: Callable[[Job], None],
        is_behind: Callable[[], bool],
        on_paid: Callable[[Response], None] = lambda _: None,
        again: Container[tuple[str, int]] = frozenset(),
    ) -> None:
        """``again``: as ``Inquiry`` has it."""
        self._name, self._store, self._deliver = setup.name, setup.store, deliver
        self._cache = setup.options.cache
        self._inquiry = Inquiry(setup.name, setup.options.retries, again, setup.store.recalled)
        self._conversations = Conversations(is_fed=True)
        driven = Driven(setup.model, setup.store, self._cache, on_paid)
        limits = replace(setup.options.stream, least_requests=8)
        self._drive = Drive(driven, self._conversations, limits, is_behind)
        self._room = threading.Semaphore(max(LEAST_OPEN, 4 * setup.model.concurrency))
        self._failure = Failure(on_error=self._drive.stop)
        self._jobs = Stage(self._put_questions, self._failure, "judge-questions", length=QUEUE_LENGTH)
        self._driver = self._failure.thread(self._ask, "judge")

    @property
    def report(self) -> AskReport:
        return self._drive.report

    def is_behind(self) -> bool:
        """``submit`` might block."""
        return self._jobs.is_full

    def submit(self, job: Job) -> None:
        """Queue a document, or hand it on where no judge is needed; blocks while the queue is full.

        Raises:
            JournalError: a reply could not be made durable.
        """
        self._failure.check()
        if not job.task.is_judged or job.reason:
            self._deliver(job)
        else:
            self._jobs.put(job)

    def stop(self) -> None:
        """Ask nothing more; what is open may finish. Documents that lack verdicts are left for another start."""
        self._jobs.stop()
        self._drive.stop()

    def drain(self) -> None:
        """Wait until every document is judged and handed on. Raises as ``submit``."""
        self._jobs.drain()
        if self._driver.ident is not None:
            self._driver.join()
        self._failure.check()

    def close(self) -> None:
        """End the threads without waiting for what is open; after ``drain`` there is nothing to end."""
        self.stop()
        deadline = time.monotonic() + CLOSING_S
        self._jobs.join(CLOSING_S)
        if self._driver.ident is not None:
            self._driver.join(timeout=max(0.0, deadline - time.monotonic()))
        self._drive.stream.close()
        self._store.sync()

    def cache_counts(self) -> dict[str, int]:
        return {} if self._cache is None else self._cache.counts()

    def _put_questions(self, jobs: Iterator[Job]) -> None:
        """Ask the tasks for their questions, document after document."""
        self._driver.start()
        try:
            for job in jobs:
                if not self._take_room():
                    return
                self._begin(job)
        finally:
            self._conversations.is_fed = False
            self._drive.stream.wake()

    def _take_room(self) -> bool:
        while not self._room.acquire(timeout=LOOK_S):
            if self._drive.is_stopped:
                return False
        return True

    def _begin(self, job: Job) -> None:
        try:
            questions = job.task.judge_questions(job.doc_id, job.answers)
            interviews = Case(job, questions, self._hand_on).interviews(self._inquiry)
        except NotEvaluated:  # scoring finds the same part missing, and says so
            interviews = []
        except Exception as error:  # noqa: BLE001 - the task's own functions may raise anything: one failed sample
            interviews = []
            job = replace(job, error=failure("asking for the judge's questions", error))
        if not interviews:
            self._hand_on(job)
            return
        self._drive.stream.push([request for one in interviews for request in self._conversations.begin(one)])

    def _hand_on(self, job: Job) -> None:
        self._room.release()
        self._deliver(job)

    def _ask(self) -> None:
        """Drive the judge until there is nothing more to ask, or it ends."""
        reason = ""
        try:
            self._drive.run()
        except JournalError:
            raise
        except Exception as error:  # noqa: BLE001 - a broken judge leaves documents unscored, it does not end the run
            logger.opt(exception=True).warning("the judge {} has failed", self._name)
            reason = f"the judge ended with {type(error).__name__}: {error}"
        self._drive.stream.stop()
        report = self._drive.report
        if self._drive.is_stopped and not report.give_up and not reason:
            return
        report.give_up = report.give_up or reason
        self._drive.fail_open(report.give_up or ENDED)
