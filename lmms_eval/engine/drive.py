"""One driver for every model, the one under test and the judge.

Requests of open conversations are prepared ahead, looked up in the journal and the response cache, and handed to the
model; every response is made durable, counted, and then given to its conversation, which may ask on.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Protocol

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import ErrorKind, Request, Response, ResponseError, SentMedia, SentMessage
from lmms_eval.engine.conversations import Conversation, Conversations
from lmms_eval.engine.lockstep import Lockstep
from lmms_eval.engine.prompts import Outline, outline, text_fingerprint
from lmms_eval.engine.records import media_spent, not_sent
from lmms_eval.engine.response_cache import Hit, ResponseCache
from lmms_eval.engine.signals import run_coroutine
from lmms_eval.engine.stream import Stream, StreamLimits
from lmms_eval.media.sent import recording, unrecorded
from lmms_eval.utils.concurrency import closed_on_error
from lmms_eval.utils.prices import Spending

GIVE_UP_AT_LEAST = 16


@dataclass(slots=True)
class AskReport:
    """End of an asking, with counts of this start alone."""

    answered: int = 0
    failed: int = 0
    unsent: int = 0
    """Failures of documents and their media, before anything was sent."""
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    pictures: int = 0
    """Pictures and frames that went out with requests."""
    audio_seconds: float = 0.0
    untold: int = 0
    """Answers for which the back end did not report how many tokens they took."""
    unmeasured: int = 0
    """Sounds of unknown length, and videos that went out as a whole."""
    timed: int = 0
    """Answers whose latency the back end told."""
    latency: float = 0.0
    """Sum of those latencies in seconds."""
    give_up: str = ""
    """Reason for which the asking was given up early; empty if it was not."""
    give_up_kind: ErrorKind = "internal"
    """Kind of the error that decided it."""
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
    """Reason for which the judging was given up early."""
    judge_cache: dict[str, int] = field(default_factory=dict)
    """Counts of the response cache for the judge."""
    judge_spent: dict[str, float] = field(default_factory=dict)
    """Fields of ``Spending``, of the judge."""

    @property
    def sent(self) -> int:
        """Requests that reached the model."""
        return self.answered + self.failed - self.unsent

    @property
    def spent(self) -> Spending:
        """Sums of this start, the judge apart."""
        return Spending(*(getattr(self, one.name) for one in fields(Spending)))

    def count(self, response: Response, concurrency: int) -> None:
        """Count a response, and set ``give_up`` if nothing more is to be asked.

        ``concurrency``: requests that the model holds open at most.
        """
        if response.usage is not None:
            self.input_tokens += response.usage.input_tokens or 0
            self.output_tokens += response.usage.output_tokens or 0
            self.reasoning_tokens += response.usage.reasoning_tokens or 0
        if response.media:
            sent = media_spent(response.media)
            self.pictures += sent.pictures
            self.audio_seconds += sent.audio_seconds
            self.unmeasured += sent.unmeasured
        error = response.error
        if error is None:
            self.answered += 1
            self.untold += response.usage is None or not response.usage.is_known
            if response.latency is not None:
                self.timed += 1
                self.latency += response.latency
            return
        self.failed += 1
        self.unsent += error.kind in ("media", "document")  # says nothing about the model
        if self.give_up:
            return
        if error.kind == "auth":
            self.give_up, self.give_up_kind = error.message, error.kind
        elif self.answered == 0 and (refused := self.failed - self.unsent) >= max(GIVE_UP_AT_LEAST, 2 * concurrency):
            self.give_up = f"the first {refused} requests all failed, the last with {error.kind}: {error.message}"
            self.give_up_kind = error.kind


BEHIND_S = 0.02
"""An event loop whose responses cannot be passed on looks again after so many seconds."""


class Journal(Protocol):
    """Keeps responses; safe from several threads."""

    def recall(self, request: Request, build_messages: Callable[[], ChatMessages]) -> Response | None:
        """Find what an earlier start has kept for a request that is about to be prepared."""

    def keep(self, response: Response, prompt: str) -> Response:
        """Make a response durable; returns it as it is kept (its pictures on disk).

        Raises:
            JournalError: it cannot be written.
        """


class NoJournal:
    """Keeps nothing."""

    def recall(
        self,
        request: Request,  # noqa: ARG002 - the protocol's
        build_messages: Callable[[], ChatMessages],  # noqa: ARG002
    ) -> Response | None:
        return None

    def keep(self, response: Response, prompt: str) -> Response:  # noqa: ARG002
        return response


@dataclass(frozen=True, slots=True)
class Driven:
    """A model, and where its responses are kept."""

    model: Model
    journal: Journal
    cache: ResponseCache | None = None
    """Responses of earlier runs; who opened it closes it."""
    on_paid: Callable[[Response], None] = lambda _: None
    """Called with every response that was asked for, one at a time."""


class Drive:
    """Drives a model over conversations, once.

    Args:
        is_behind: what takes finished conversations would block, which must not stop an event loop.
        on_counted: is called with every response after it was counted, one at a time.
    """

    def __init__(
        self,
        driven: Driven,
        conversations: Conversations,
        limits: StreamLimits,
        is_behind: Callable[[], bool] = lambda: False,
        on_counted: Callable[[Response], None] = lambda _: None,
    ) -> None:
        self._model, self._journal, self._cache = driven.model, driven.journal, driven.cache
        self._conversations, self._is_behind, self._on_counted = conversations, is_behind, on_counted
        self._on_paid = driven.on_paid
        # Two rounds of what the model holds open are enough ahead of it; more would only cost memory.
        ahead = max(limits.least_requests, 2 * self._model.concurrency)
        limits = replace(limits, max_requests=ahead, threads=1 if self._model.ordered else limits.threads)
        self.stream = Stream(
            conversations.source(), self._prepare, self._preparation_failed, conversations.has_open, limits
        )
        self.report = AskReport()
        self.is_stopped = False
        """``stop`` was called."""
        self._lock = threading.Lock()
        self._prompts: dict[str, str] = {}
        self._sent: dict[str, tuple[SentMedia, ...]] = {}
        self._messages: dict[str, tuple[SentMessage, ...]] = {}
        self._keys: dict[str, str] = {}
        self._clock = _Clock()
        self._lockstep: Lockstep | None = None

    def run(self, lockstep: Lockstep | None = None) -> None:
        """Ask until nothing is left, the model ends, or the asking is given up or stopped.

        ``lockstep``: the blocks in which the requests reach the model.

        Raises:
            JournalError: a response could not be made durable.
            ModelError: the model broke its contract. Whatever else the model raises passes through.
        """
        self._lockstep = lockstep
        self.stream.start()
        try:
            responses = self._model.respond(_Timed(lockstep or self.stream, self._clock))
            if isinstance(responses, AsyncIterator):
                run_coroutine(self._drain(responses))
            else:
                for response in responses:
                    self._take_from_model(response)
        finally:
            self.report.seconds = self._clock.seconds()

    def stop(self) -> None:
        """Hand out no more requests; what is open may finish."""
        self.is_stopped = True
        self.stream.stop()

    def give_up(self, reason: str, kind: ErrorKind) -> None:
        """Ask nothing more, for a reason that the report states; what is open may finish."""
        if not self.report.give_up:
            self.report.give_up, self.report.give_up_kind = reason, kind
        self.stream.stop()

    def fail_open(self, reason: str) -> None:
        """End every open conversation, and any that begins later: the model has ended and will not answer.

        Requests count as failed unless the asking was given up, which nobody can blame on them.
        """
        error = ResponseError(self.report.give_up_kind, reason)
        take_in = self._pass_on if self.report.give_up else self.take_in
        for request in self._conversations.close(error):
            take_in(Response(request.id, error=error))

    def take_in(self, response: Response) -> None:
        """Take one response in: durable first, then counted, then passed on.

        Raises:
            ModelError: nobody waits for this response; it is not recorded.
        """
        conversation = self._conversations.of(response.request_id)
        response = self._conversations.read(response)
        if sent := self._sent.pop(response.request_id, None):
            response = replace(response, media=sent if response.sight is None else response.sight.of(sent), sight=None)
        if messages := self._messages.pop(response.request_id, None):
            response = replace(response, messages=messages)
        prompt = self._prompts.pop(response.request_id, "")
        kept = self._journal.keep(response, prompt)
        with self._lock:
            self._clock.tick()
            self.report.count(kept, self._model.concurrency)
            self._on_counted(kept)
        self._on_paid(kept)
        if self.report.give_up:
            self.stream.stop()
        key = self._keys.pop(kept.request_id, None)
        if self._cache is not None and key is not None and conversation.accepts(kept):
            self._cache.put(key, response, prompt)
        further = self._conversations.take_in(kept)
        self.stream.answered(kept.request_id, further, frees=self._lockstep is None)

    async def _drain(self, responses: AsyncIterator[Response]) -> None:
        async with closed_on_error(responses):
            async for response in responses:
                while self._is_behind():
                    await asyncio.sleep(BEHIND_S)
                self._take_from_model(response)

    def _take_from_model(self, response: Response) -> None:
        if self._lockstep is None or self._lockstep.keeps(response):
            self.take_in(response)

    def _prepare(self, request: Request) -> Request | None:
        rendering = _Rendering(request, self._conversations.of(request.id))
        known = self._journal.recall(request, rendering.ahead)
        if known is not None:
            self._pass_on(self._conversations.read(known))
            return None
        if self._cache is not None and (key := self._cache.key(request, rendering.ahead)) is not None:
            hit = self._cache.get(key, request.id)
            if hit is not None:
                # Durable like any other response, but not counted as asked.
                found = replace(self._conversations.read(hit.response), messages=rendering.added_by(hit))
                self._pass_on(self._journal.keep(found, rendering.prompt_of(hit)))
                return None
            self._keys[request.id] = key
        sent: Sequence[SentMedia] = ()
        try:
            with recording() as sent:
                prepared = self._model.prepare(request.with_messages(rendering.build))
        finally:
            if messages := rendering.added(sent):
                self._messages[request.id] = messages
        if sent:
            self._sent[request.id] = tuple(sent)
        self._prompts[request.id] = rendering.fingerprint or text_fingerprint(request.context)
        return prepared.with_messages(request.build_messages)

    def _pass_on(self, response: Response) -> None:
        """Take in what the model was not asked for."""
        self.stream.push(self._conversations.take_in(response))

    def _preparation_failed(self, request: Request, error: Exception) -> None:
        self.take_in(not_sent(request.id, "preparing the request", error))


class _Rendering:
    """One request's messages, built once for journal, cache and model together."""

    def __init__(self, request: Request, conversation: Conversation) -> None:
        self._request, self._conversation = request, conversation
        self.fingerprint = ""
        """Of what the model rendered; empty while it has not."""
        self._outline: Outline | None = None
        self._is_outlined = False
        self._ahead: ChatMessages | None = None

    def ahead(self) -> ChatMessages:
        """Build the messages before the model has asked for them."""
        if self._ahead is None:
            self._ahead = self._request.build_messages()
        return self._ahead

    def build(self) -> ChatMessages:
        """Build the messages for the model; each call gives objects of its own."""
        with unrecorded():
            messages, self._ahead = self._ahead or self._request.build_messages(), None
        if not self.fingerprint:
            self.fingerprint = self._conversation.fingerprint(messages)
            self._note(messages)
        return messages

    def added(self, sent: Sequence[SentMedia]) -> tuple[SentMessage, ...]:
        """Return the messages that the request adds to its conversation, as far as they were rendered."""
        if not self._is_outlined:
            return ()
        told = () if self._outline is None else self._outline.messages_with(sent)
        return self._conversation.added(self._request, told, sent)

    def prompt_of(self, hit: Hit) -> str:
        """Fingerprint of this request where the model need not render it."""
        return hit.prompt if self._is_own(hit) else self._conversation.fingerprint(self.ahead())

    def added_by(self, hit: Hit) -> tuple[SentMessage, ...]:
        """``added`` where the model need not render the request."""
        if not self._is_own(hit):
            self._note(self.ahead())
        return self.added(hit.response.media)

    def _note(self, messages: ChatMessages) -> None:
        self._outline, self._is_outlined = outline(messages, self._request.context), True

    def _is_own(self, hit: Hit) -> bool:
        """The model renders its own prompts, from the context."""
        return hit.prompt == text_fingerprint(self._request.context)


class _Clock:
    """First request taken to last response."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.last = 0.0

    def tick(self) -> None:
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

    def put_away(self, request: Request) -> None:
        self._stream.put_away(request)
