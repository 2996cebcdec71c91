"""The run phase: drive the model over the stream, make every response durable, hand finished documents on."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response, SentMedia
from lmms_eval.api.task import Task
from lmms_eval.engine.conversations import Conversations
from lmms_eval.engine.event_loop import run_coroutine
from lmms_eval.engine.failures import not_sent
from lmms_eval.engine.fingerprints import message_fingerprint, text_fingerprint
from lmms_eval.engine.lockstep import Lockstep
from lmms_eval.engine.progress import Progress
from lmms_eval.engine.response_cache import Hit, ResponseCache
from lmms_eval.engine.signals import EndNow, Interrupts
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.stream import Stream, StreamLimits
from lmms_eval.engine.team import Team
from lmms_eval.media.sent import recording, unrecorded
from lmms_eval.utils.async_iteration import closed_on_error

GIVE_UP_AT_LEAST = 16
SWITCH_INTERVAL_S = 0.0005


@dataclass(slots=True)
class AskReport:
    """How the asking ended, with counts of this start alone."""

    answered: int = 0
    failed: int = 0
    unsent: int = 0
    """Failures of documents and their media, before anything was sent."""
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    give_up: str = ""
    """Why the asking was given up early; empty if it was not."""
    interrupted: int | None = None
    """Number of the signal that ended it."""
    cut_short: bool = False
    """A second signal, or the end of the grace time, ended it with requests in flight."""
    seconds: float = 0.0
    """From the first request taken to the last response."""
    cache: dict[str, int] = field(default_factory=dict)
    """Counts of the response cache, where one is used; its hits are not among ``answered`` and the tokens."""
    judge_asked: int = 0
    """Requests to the judge."""
    judge_give_up: str = ""
    """Why the judging was given up early."""
    judge_cache: dict[str, int] = field(default_factory=dict)
    """Counts of the response cache for the judge."""

    def count(self, response: Response, concurrency: int) -> None:
        """Count a response, and set ``give_up`` if nothing more is to be asked.

        ``concurrency``: requests that the model holds open at most.
        """
        if response.usage is not None:
            self.input_tokens += response.usage.input_tokens or 0
            self.output_tokens += response.usage.output_tokens or 0
            self.reasoning_tokens += response.usage.reasoning_tokens or 0
        error = response.error
        if error is None:
            self.answered += 1
            return
        self.failed += 1
        self.unsent += error.kind in ("media", "document")  # says nothing about the model
        if self.give_up:
            return
        if error.kind == "auth":
            self.give_up = error.message
        elif self.answered == 0 and (refused := self.failed - self.unsent) >= max(GIVE_UP_AT_LEAST, 2 * concurrency):
            self.give_up = f"the first {refused} requests all failed, the last with {error.kind}: {error.message}"


@dataclass(frozen=True, slots=True)
class Others:
    """The processes with which blocks are taken in lockstep, and the tasks of the run."""

    team: Team
    tasks: Sequence[Task]


class Asking:
    """One pass over everything that is not answered yet."""

    def __init__(
        self,
        model: Model,
        store: RunStore,
        conversations: Conversations,
        progress: Progress,
        is_behind: Callable[[], bool] = lambda: False,
        cache: ResponseCache | None = None,
    ) -> None:
        """``is_behind``: a finished document would have to wait for the scoring, which must not stop an event loop."""
        self._model, self._store, self._progress = model, store, progress
        self._conversations, self._is_behind = conversations, is_behind
        self._lock = threading.Lock()
        self._prompts: dict[str, str] = {}
        self._sent: dict[str, tuple[SentMedia, ...]] = {}
        self._cache = cache
        self._keys: dict[str, str] = {}
        self._clock = _Clock()
        self.report = AskReport()
        self._stream: Stream | None = None
        self._lockstep: Lockstep | None = None
        self._interrupts: Interrupts | None = None
        self._is_stopped = False

    def run(self, limits: StreamLimits, grace_s: float, with_others: Others | None = None) -> AskReport:
        """Ask until nothing is left, the model ends, the asking is given up, or a signal comes.

        ``with_others``: the processes with which blocks are taken in lockstep.

        Raises:
            JournalError: a response could not be made durable.
            ModelError: the model broke its contract. Whatever else the model raises passes through.
        """
        # Two rounds of what the model holds open are enough ahead of it; more would only cost memory.
        ahead = max(limits.least_requests, 2 * self._model.concurrency)
        limits = replace(limits, max_requests=ahead, threads=1 if self._model.ordered else limits.threads)
        self._stream = Stream(
            self._conversations.source(), self._prepare, self._preparation_failed, self._conversations.has_open, limits
        )
        if self._is_stopped:
            self._stream.stop()
        if with_others is not None:
            self._lockstep = Lockstep(self._stream, with_others.team, with_others.tasks, self._model.prepare, self.stop)
        interrupts = self._interrupts = Interrupts(self.stop, grace_s)
        try:
            with interrupts, _quick_switching():
                self.stream.start()
                self._drive()
        except EndNow:
            self.report.cut_short = True
        finally:
            self.stream.close()
        if self._lockstep is not None:
            self._lockstep.leave()
        self.report.interrupted = interrupts.signal_number
        self.report.seconds = self._clock.seconds()
        if self.report.interrupted is None and not self.report.give_up and not self._is_stopped:
            self._fail_unanswered()
        if self._cache is not None:
            self.report.cache = self._cache.counts()
        return self.report

    @property
    def stream(self) -> Stream:
        assert self._stream is not None, "run() makes the stream"
        return self._stream

    @property
    def peak_bytes(self) -> int:
        return self.stream.peak_bytes

    def stop(self) -> None:
        """Hand out no more requests; what is open may finish."""
        self._is_stopped = True
        if self._stream is not None:
            self._stream.stop()

    def others_failed(self) -> None:
        """Another process has failed: end, and if a collective waits for that process, without its end."""
        self.stop()
        if self._lockstep is not None and self._interrupts is not None:
            self._interrupts.end_soon()

    def take_in(self, response: Response) -> None:
        """One response: durable first, then counted, then passed on.

        Raises:
            ModelError: nobody waits for this response; it is not recorded.
        """
        self._conversations.expect(response.request_id)
        if sent := self._sent.pop(response.request_id, None):
            response = replace(response, media=sent)
        kept = self._store.keep_images(response)
        with self._lock:
            self._clock.tick()
            prompt = self._prompts.pop(kept.request_id, "")
            self._store.add_response(kept, prompt)
            self._count(kept)
        key = self._keys.pop(kept.request_id, None)
        if self._cache is not None and key is not None and kept.error is None:
            self._cache.put(key, response, prompt)
        further = self._conversations.take_in(kept)
        self.stream.answered(kept.request_id, further, frees=self._lockstep is None)

    def _drive(self) -> None:
        responses = self._model.respond(_Timed(self._lockstep or self.stream, self._clock))
        if isinstance(responses, AsyncIterator):
            run_coroutine(self._drain(responses))
            return
        for response in responses:
            self._take_from_model(response)

    async def _drain(self, responses: AsyncIterator[Response]) -> None:
        async with closed_on_error(responses):
            async for response in responses:
                while self._is_behind():
                    await asyncio.sleep(0.02)
                self._take_from_model(response)

    def _take_from_model(self, response: Response) -> None:
        if self._lockstep is None or self._lockstep.keeps(response):
            self.take_in(response)

    def _prepare(self, request: Request) -> Request | None:
        rendering = _Rendering(request)
        if self._cache is not None and (key := self._cache.key(request, rendering.ahead)) is not None:
            hit = self._cache.get(key, request.id)
            if hit is not None:
                self._take_in_hit(hit, rendering)
                return None
            self._keys[request.id] = key
        with recording() as sent:
            prepared = self._model.prepare(replace(request, build_messages=rendering.build))
        if sent:
            self._sent[request.id] = tuple(sent)
        self._prompts[request.id] = rendering.fingerprint or text_fingerprint(request.context)
        return replace(prepared, build_messages=request.build_messages)

    def _take_in_hit(self, hit: Hit, rendering: _Rendering) -> None:
        """A response of an earlier run: durable like any other, but not counted as asked."""
        of_context = text_fingerprint(rendering.request.context)  # of a model that renders its own prompts
        prompt = of_context if hit.prompt == of_context else message_fingerprint(rendering.ahead())
        self._conversations.expect(hit.response.request_id)
        response = self._store.keep_images(hit.response)
        with self._lock:
            self._store.add_response(response, prompt)
        self.stream.push(self._conversations.take_in(response))

    def _preparation_failed(self, request: Request, error: Exception) -> None:
        self.take_in(not_sent(request.id, "preparing the request", error))

    def _count(self, response: Response) -> None:
        self.report.count(response, self._model.concurrency)
        if self.report.give_up:
            self.stream.stop()
        if response.usage is not None:
            self._progress.add_tokens(response.usage.output_tokens or 0)

    def _fail_unanswered(self) -> None:
        """The model has ended; what it took and never answered has failed."""
        for request in self._conversations.open_requests():
            self.take_in(Response.failure(request.id, "internal", "the model ended without answering this request"))


class _Rendering:
    """One request's messages, built once for the cache and the model together."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.fingerprint = ""
        """Of what the model rendered; empty while it has not."""
        self._ahead: ChatMessages | None = None

    def ahead(self) -> ChatMessages:
        """The messages before the model has asked for them."""
        if self._ahead is None:
            self._ahead = self.request.build_messages()
        return self._ahead

    def build(self) -> ChatMessages:
        """The messages for the model; each call gives objects of its own."""
        with unrecorded():
            messages, self._ahead = self._ahead or self.request.build_messages(), None
        self.fingerprint = self.fingerprint or message_fingerprint(messages)
        return messages


@contextmanager
def _quick_switching() -> Iterator[None]:
    """Threads take turns every 0.5 ms: the usual 5 ms of a scoring thread would hold up 32 open connections."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


class _Clock:
    """First request taken to last response."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.last = 0.0

    def tick(self) -> None:
        import time

        self.last = time.monotonic()
        if self.first is None:
            self.first = self.last

    def seconds(self) -> float:
        return self.last - self.first if self.first is not None else 0.0


class _Timed:
    """The stream as the model sees it, noting when the first request is taken."""

    def __init__(self, stream: RequestStream, clock: _Clock) -> None:
        self._stream, self._clock = stream, clock

    def take(self, max_n: int) -> list[Request]:
        batch = self._stream.take(max_n)
        if self._clock.first is None:
            self._clock.tick()
        return batch

    def take_full(self, max_n: int) -> list[Request] | None:
        batch = self._stream.take_full(max_n)
        if batch and self._clock.first is None:
            self._clock.tick()
        return batch

    async def take_async(self, max_n: int) -> list[Request]:
        batch = await self._stream.take_async(max_n)
        if self._clock.first is None:
            self._clock.tick()
        return batch
