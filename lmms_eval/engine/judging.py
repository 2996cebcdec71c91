"""Judging beside the generation: questions about finished documents go to the judge as they arise.

A thread asks the tasks for their questions, another drives the judge over a stream of its own; a document goes on to
the scorer when all its verdicts are there. A judge that fails leaves its documents unscored, never the run broken.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

from loguru import logger

from lmms_eval.api.model import Model
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.api.request import Request, Response
from lmms_eval.engine.asking import AskReport
from lmms_eval.engine.conversations import Job
from lmms_eval.engine.failures import failure, not_sent
from lmms_eval.engine.interviews import Interviews, Step
from lmms_eval.engine.judgements import JudgementStore
from lmms_eval.engine.response_cache import ResponseCache
from lmms_eval.engine.stream import Stream, StreamLimits
from lmms_eval.errors import JournalError
from lmms_eval.utils.async_iteration import closed_on_error

QUEUE_LENGTH = 256
LEAST_OPEN = 64
"""Documents whose verdicts may be outstanding, at least."""
CLOSING_S = 5.0


@dataclass(frozen=True, slots=True)
class JudgingOptions:
    """How the judge is asked."""

    retries: int = 2
    stream: StreamLimits = field(default_factory=StreamLimits)
    cache: ResponseCache | None = None
    """Replies of earlier runs; who opened it closes it."""


@dataclass(frozen=True, slots=True)
class JudgeSetup:
    """A judge with its journal."""

    model: Model
    name: str
    """By it verdicts and results call the judge."""
    store: JudgementStore
    options: JudgingOptions = JudgingOptions()


class Judging:
    """Takes finished documents, hands them with their verdicts to ``deliver``.

    ``is_behind``: ``deliver`` would block, which must not stop the judge's event loop.
    """

    def __init__(self, setup: JudgeSetup, deliver: Callable[[Job], None], is_behind: Callable[[], bool]) -> None:
        self._model, self._name = setup.model, setup.name
        self._store, self._options = setup.store, setup.options
        self._deliver, self._is_delivery_behind = deliver, is_behind
        self._interviews = Interviews(setup.name, setup.options.retries)
        self._jobs: queue.Queue[Job | None] = queue.Queue(QUEUE_LENGTH)
        concurrency = setup.model.concurrency
        self._room = threading.Semaphore(max(LEAST_OPEN, 4 * concurrency))
        limits = replace(setup.options.stream, max_requests=max(2 * concurrency, 8))
        self._stream = Stream(iter(()), self._prepare, self._preparation_failed, self._has_open, limits)
        self._keys: dict[str, tuple[str, str | None]] = {}
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._is_complete = self._is_stopped = False
        self._error: BaseException | None = None
        self.report = AskReport()

    def is_behind(self) -> bool:
        """``submit`` might block."""
        return self._error is None and not self._is_stopped and self._jobs.full()

    def submit(self, job: Job) -> None:
        """Queue a document, or hand it on where no judge is needed; blocks while the queue is full.

        Raises:
            JournalError: a reply could not be made durable.
        """
        self._raise_error()
        if not job.task.is_judged or job.reason:
            self._deliver(job)
            return
        self._start()
        self._put(job)
        self._raise_error()

    def stop(self) -> None:
        """Ask nothing more; what is open may finish. Documents that lack verdicts are left for another start."""
        self._is_stopped = True
        self._stream.stop()

    def drain(self) -> None:
        """Wait until every document is judged and handed on. Raises as ``submit``."""
        if self._threads:
            self._put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []
        self._raise_error()

    def close(self) -> None:
        """End the threads without waiting for what is open; after ``drain`` there is nothing to end."""
        self.stop()
        deadline = time.monotonic() + CLOSING_S
        for thread in self._threads:
            thread.join(timeout=max(0.0, deadline - time.monotonic()))
        self._stream.close()
        self._store.sync()

    def cache_counts(self) -> dict[str, int]:
        return {} if self._options.cache is None else self._options.cache.counts()

    def _start(self) -> None:
        with self._lock:
            if self._threads:
                return
            self._threads = [
                threading.Thread(target=self._guard, args=(run,), name=name, daemon=True)
                for run, name in ((self._question, "judge-questions"), (self._ask, "judge"))
            ]
            self._stream.start()
            for thread in self._threads:
                thread.start()

    def _put(self, job: Job | None) -> None:
        while self._error is None and not self._is_stopped:
            try:
                self._jobs.put(job, timeout=0.5)
                return
            except queue.Full:
                continue

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _guard(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - carried to the main thread, which re-raises it
            self._error = self._error or error
            self._stream.stop()

    def _question(self) -> None:
        """Ask the tasks for their questions, document after document."""
        try:
            while (job := self._next()) is not None and self._take_room():
                self._begin(job)
        finally:
            self._is_complete = True
            self._stream.wake()

    def _next(self) -> Job | None:
        while self._error is None and not self._is_stopped:
            try:
                return self._jobs.get(timeout=0.5)
            except queue.Empty:
                continue
        return None

    def _take_room(self) -> bool:
        while not self._room.acquire(timeout=0.5):
            if self._error is not None or self._is_stopped:
                return False
        return True

    def _begin(self, job: Job) -> None:
        try:
            questions = job.task.judge_questions(job.doc_id, job.answers)
            step = self._interviews.begin(job, questions) if questions else Step(job=job)
        except NotEvaluated:  # scoring finds the same part missing, and says so
            step = Step(job=job)
        except Exception as error:  # noqa: BLE001 - the task's own functions may raise anything: one failed sample
            step = Step(job=replace(job, error=failure("asking for the judge's questions", error)))
        self._follow(step)

    def _ask(self) -> None:
        """Drive the judge until there is nothing more to ask, or it ends."""
        reason = ""
        try:
            responses = self._model.respond(self._stream)
            if isinstance(responses, AsyncIterator):
                asyncio.run(self._drain_async(responses))
            else:
                for response in responses:
                    self._take_in(response)
        except JournalError:
            raise
        except Exception as error:  # noqa: BLE001 - a broken judge leaves documents unscored, it does not end the run
            logger.opt(exception=True).warning("the judge {} has failed", self._name)
            reason = f"the judge ended with {type(error).__name__}: {error}"
        self._stream.stop()
        if self._is_stopped and not self.report.give_up and not reason:
            return
        self.report.give_up = self.report.give_up or reason
        for job in self._interviews.abandon(self.report.give_up or "the judge ended without answering this question"):
            self._follow(Step(job=job))

    async def _drain_async(self, responses: AsyncIterator[Response]) -> None:
        async with closed_on_error(responses):
            async for response in responses:
                while self._is_delivery_behind():
                    await asyncio.sleep(0.02)
                self._take_in(response)

    def _has_open(self) -> bool:
        return not self._is_complete or len(self._interviews) > 0

    def _prepare(self, request: Request) -> Request | None:
        interview = self._interviews.interview(request.id)
        messages = request.build_messages()
        key, cache = self._store.key(request, messages), self._options.cache
        known = self._store.known(request.id, key)
        if known is not None:
            self._follow(self._interviews.take_in(known))
            return None
        cache_key = None if cache is None else cache.key(request, lambda: messages)
        hit = None if cache is None or cache_key is None else cache.get(cache_key, request.id)
        if hit is not None:
            self._store.add(hit.response, interview.prompt, key)
            self._follow(self._interviews.take_in(hit.response))
            return None
        self._keys[request.id] = (key, cache_key)
        prepared = self._model.prepare(replace(request, build_messages=lambda: messages))
        return replace(prepared, build_messages=request.build_messages)

    def _preparation_failed(self, request: Request, error: Exception) -> None:
        given_up = not_sent(request.id, "preparing the question", error)
        self._follow(self._interviews.take_in(given_up))  # says nothing about the judge, so it is not counted

    def _take_in(self, response: Response) -> None:
        """One reply: durable first, then counted, then passed on."""
        interview = self._interviews.interview(response.request_id)
        key, cache_key = self._keys.pop(response.request_id, ("", None))
        self._store.add(response, interview.prompt, key)
        self.report.count(response, self._model.concurrency)
        cache = self._options.cache
        is_good = response.error is None and interview.accepts(response.text or "")
        if is_good and cache is not None and cache_key is not None:
            cache.put(cache_key, response, interview.prompt)
        step = self._interviews.take_in(response)
        self._stream.answered(response.request_id, step.requests)
        self._hand_on(step)
        if self.report.give_up:
            self._stream.stop()

    def _follow(self, step: Step) -> None:
        """After something that the judge was not asked for."""
        self._stream.push(step.requests)
        self._hand_on(step)

    def _hand_on(self, step: Step) -> None:
        if step.job is not None:
            self._room.release()
            self._deliver(step.job)
