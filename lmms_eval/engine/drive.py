"""The driver of a model, used for the model under test and for the judge.

It prepares the requests of open conversations ahead, looks them up in the journal and the response cache, and passes
the others to the model. Every response is written to the journal and counted, and then continues its conversation.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from loguru import logger
from msgspec import Struct, field, structs

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import ErrorKind, Request, Response, ResponseError, SentMedia, SentMessage
from lmms_eval.engine.conversations import Conversation, Conversations
from lmms_eval.engine.prompts import Outline, messages_with, outline, text_fingerprint
from lmms_eval.engine.records import media_spent, not_sent, well_typed
from lmms_eval.engine.signals import run_coroutine
from lmms_eval.engine.stream import Brake, Stream, StreamLimits
from lmms_eval.errors import ModelError
from lmms_eval.filters.reasoning import thoughts_apart
from lmms_eval.media.sent import recording, unrecorded
from lmms_eval.utils.concurrency import closed_on_error
from lmms_eval.utils.prices import Spending

if TYPE_CHECKING:
    from lmms_eval.engine.lockstep import Lockstep
    from lmms_eval.engine.response_cache import ResponseCache
    from lmms_eval.media.keeper import MediaKeeper

GIVE_UP_AT_LEAST = 16


class AskReport(Struct):
    """Counts and outcome of the asking of one start."""

    answered: int = 0
    failed: int = 0
    unsent: int = 0
    """Failures before anything was sent, due to documents or their media."""
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    pictures: int = 0
    """Pictures and frames that were sent."""
    audio_seconds: float = 0.0
    untold: int = 0
    """Answers without token counts from the back end."""
    unmeasured: int = 0
    """Sounds of unknown length, and videos that were sent as a whole."""
    timed: int = 0
    """Answers with a known latency."""
    latency: float = 0.0
    """Sum of the known latencies in seconds."""
    streams: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict)
    """Of streamed answers, by task: the seconds to their first pieces, and the known numbers of tokens per second."""
    give_up: str = ""
    """Reason why the asking was given up; empty if it was not."""
    give_up_kind: ErrorKind = "internal"
    """Kind of the error that made it give up."""
    interrupted: int | None = None
    """Number of the signal that ended the asking."""
    cut_short: bool = False
    """A second signal, or the end of the grace time, ended it with open requests."""
    seconds: float = 0.0
    """Time from the first request to the last response."""
    cache: dict[str, int] = field(default_factory=dict)
    """Counts of the response cache, if one is used; ``answered`` and the tokens exclude its hits."""
    judge_asked: int = 0
    """Requests to the judge."""
    judge_give_up: str = ""
    """Reason why the judging was given up."""
    judge_cache: dict[str, int] = field(default_factory=dict)
    """Counts of the response cache for the judge."""
    judge_spent: dict[str, float] = field(default_factory=dict)
    """``Spending`` of the judge as a mapping."""

    @property
    def sent(self) -> int:
        """Number of requests that reached the model."""
        return self.answered + self.failed - self.unsent

    @property
    def spent(self) -> Spending:
        """Spending of this start, without the judge."""
        return Spending(*(getattr(self, name) for name in Spending.__struct_fields__))

    def count(self, response: Response, concurrency: int) -> None:
        """Count a response, and set ``give_up`` if nothing more should be asked.

        ``concurrency``: maximum number of open requests of the model.
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
            if response.ttft is not None:
                self._count_stream(response)
            return
        self.failed += 1
        self.unsent += error.kind in ("media", "document")  # not a failure of the model
        if self.give_up:
            return
        if error.kind == "auth":
            self.give_up, self.give_up_kind = error.message, error.kind
        elif self.answered == 0 and (refused := self.failed - self.unsent) >= max(GIVE_UP_AT_LEAST, 2 * concurrency):
            self.give_up = f"the first {refused} requests all failed, the last with {error.kind}: {error.message}"
            self.give_up_kind = error.kind

    def _count_stream(self, response: Response) -> None:
        task = response.request_id.rsplit("/", 4)[0]
        firsts, speeds = self.streams.setdefault(task, ([], []))
        firsts.append(response.ttft or 0.0)
        if response.tokens_per_second is not None:
            speeds.append(response.tokens_per_second)


BEHIND_S = 0.02
"""Seconds until an event loop checks again whether its responses can be passed on."""


class Journal(Protocol):
    """Stores responses; thread-safe."""

    @property
    def recall(self) -> Callable[[Request, Callable[[], ChatMessages]], Response | None] | None:
        """A function that returns the response of an earlier start to a request, given the function that builds its
        messages. ``None`` if the journal finds no responses by their messages."""

    def keep(self, response: Response, prompt: str) -> Response:
        """Write a response; returns it as stored (with its pictures on disk). Raises ``JournalError``."""


class NoJournal:
    """A journal that stores nothing."""

    recall = None

    def keep(self, response: Response, prompt: str) -> Response:  # noqa: ARG002
        return response


class Driven(Struct, frozen=True):
    """A model with the stores of its responses."""

    model: Model
    journal: Journal
    cache: ResponseCache | None = None
    """Responses of earlier runs. Its owner closes it."""
    on_paid: Callable[[Response], None] | None = None
    """Called with every response from the model, after it is stored and counted."""
    on_call: Callable[[Request, Response], None] | None = None
    """Called with every request and its response, after ``on_paid``."""
    keeper: MediaKeeper | None = None
    """Keeps media that have no file of their own. Its owner closes it."""


class Drive:
    """Drives a model over conversations, once.

    ``is_behind`` returns whether delivering a finished conversation would block, which must not stop an event loop;
    ``brake`` holds new conversations back.
    """

    def __init__(
        self,
        driven: Driven,
        conversations: Conversations,
        limits: StreamLimits,
        is_behind: Callable[[], bool] = lambda: False,
        brake: Brake | None = None,
    ) -> None:
        self._model, self._journal, self._cache = driven.model, driven.journal, driven.cache
        self._conversations, self._is_behind = conversations, is_behind
        self._on_paid, self._on_call, self._keeper = driven.on_paid, driven.on_call, driven.keeper
        # Twice the number of open requests is enough to prepare ahead; more would only take memory.
        ahead = max(limits.least_requests, 2 * self._model.concurrency)
        limits = structs.replace(limits, max_requests=ahead, threads=1 if self._model.ordered else limits.threads)
        self.stream = Stream(
            conversations.source(), self._prepare, self._preparation_failed, conversations.has_open, limits, brake
        )
        self.report = AskReport()
        self.is_stopped = False
        """``stop`` was called."""
        self._lock = threading.Lock()
        self._prompts: dict[str, str] = {}
        self._sent: dict[str, tuple[SentMedia, ...]] = {}
        self._messages: dict[str, tuple[SentMessage, ...]] = {}
        self._keys: dict[str, str] = {}
        self._timed = _TimedStream(self.stream)
        self._lockstep: Lockstep | None = None

    def run(self, lockstep: Lockstep | None = None) -> None:
        """Ask until nothing is left, the model ends, or the asking is given up or stopped.

        ``lockstep`` is the source of the blocks of requests that reach the model. Raises ``JournalError`` if a response
        could not be written, ``ModelError`` if the model broke its contract, and other exceptions of the model.
        """
        self._lockstep = lockstep
        self._timed.stream = lockstep or self.stream
        self.stream.start()
        if lockstep is None and not self._conversations.is_fed:
            self.stream.answering = threading.get_ident()
        try:
            responses = self._model.respond(self._timed)
            if not isinstance(responses, AsyncIterator | Iterable):
                raise ModelError(
                    f"the model's respond must yield a Response for each request, but it returned {responses!r} "
                    "(docs/model_guide.md)"
                )
            if isinstance(responses, AsyncIterator):
                self.stream.answering = None  # tasks of the event loop may answer while one of them waits
                run_coroutine(self._drain(responses))
            else:
                take_in = self.take_in if lockstep is None else self._take_from_lockstep
                for response in responses:
                    take_in(response)
        finally:
            self.report.seconds = self._timed.seconds()

    def stop(self) -> None:
        """Hand out no more requests; open ones may finish."""
        self.is_stopped = True
        self.stream.stop()

    def give_up(self, reason: str, kind: ErrorKind) -> None:
        """Hand out no more requests and report the reason; open ones may finish."""
        if not self.report.give_up:
            self.report.give_up, self.report.give_up_kind = reason, kind
        self.stream.stop()

    def fail_open(self, reason: str) -> None:
        """End all open and later conversations, since the model has ended.

        Their requests count as failed, unless the asking was given up.
        """
        error = ResponseError(self.report.give_up_kind, reason)
        take_in = self._pass_on if self.report.give_up else self.take_in
        for request in self._conversations.close(error):
            take_in(Response(request.id, error=error))

    def take_in(self, response: Response) -> None:
        """Process one response: write it to the journal, count it, and continue its conversation.

        Raises ``ModelError`` if no request waits for this response, which is not recorded.
        """
        conversation = self._conversations.of(response.request_id)
        response = thoughts_apart(well_typed(response), conversation.thought_tags)
        if sent := self._sent.pop(response.request_id, None):
            response = structs.replace(
                response, media=sent if response.sight is None else response.sight.of(sent), sight=None
            )
        if messages := self._messages.pop(response.request_id, None):
            response = structs.replace(response, messages=messages)
        prompt = self._prompts.pop(response.request_id, "")
        kept = self._journal.keep(response, prompt)
        with self._lock:
            self._timed.tick()
            self.report.count(kept, self._model.concurrency)
        if self._on_paid is not None:
            self._on_paid(kept)
        if self._on_call is not None:
            self._on_call(self._conversations.request(kept.request_id), kept)
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
                if self._lockstep is None:
                    self.take_in(response)
                else:
                    self._take_from_lockstep(response)

    def _take_from_lockstep(self, response: Response) -> None:
        assert self._lockstep is not None
        if self._lockstep.keeps(response):
            self.take_in(response)

    def _prepare(self, request: Request) -> Request | None:
        conversation, recall = self._conversations.of(request.id), self._journal.recall
        rendering = _Rendering(request, conversation)
        known = None if recall is None else recall(request, rendering.ahead)
        if known is not None:
            self._pass_on(thoughts_apart(known, conversation.thought_tags))
            return None
        if self._cache is not None and (key := self._cache.key(request, rendering.ahead)) is not None:
            if (hit := self._cache.get(key, request.id)) is not None:
                # Recorded like any other response, but not counted as asked.
                cached, prompt = hit
                if self._keeper is not None:
                    cached = structs.replace(cached, media=self._kept_of_cached(cached, rendering, self._keeper))
                messages, fingerprint = rendering.of_cached(cached, prompt)
                cached = structs.replace(thoughts_apart(cached, conversation.thought_tags), messages=messages)
                self._pass_on(self._journal.keep(cached, fingerprint))
                return None
            self._keys[request.id] = key
        sent: Sequence[SentMedia] = ()
        try:
            with recording(self._keeper) as sent:
                prepared = self._model.prepare(request.with_messages(rendering.build))
            if not sent and self._keeper is not None and not rendering.is_one_text:
                sent = self._given(request, rendering, self._keeper)
        finally:
            if messages := rendering.added(sent):
                self._messages[request.id] = messages
        if sent:
            self._sent[request.id] = tuple(sent)
        self._prompts[request.id] = rendering.fingerprint or text_fingerprint(request.context)
        structs.force_setattr(prepared, "build_messages", request.build_messages)  # of our own copy, not a further one
        return prepared

    def _given(self, request: Request, rendering: _Rendering, keeper: MediaKeeper) -> Sequence[SentMedia]:
        """Return the media that a model which does not report them receives, and keep them."""
        messages = rendering.built
        if messages is None and self._model.calls_tasks:
            try:
                messages = request.build_messages()
            except Exception as error:  # noqa: BLE001 - a task's functions may raise anything; the model meets it too
                logger.debug("{}: its media are not recorded: {}", request.id, error)
        if messages is None:
            return ()
        from lmms_eval.media.given import given_media

        return given_media(messages, keeper)

    def _kept_of_cached(self, cached: Response, rendering: _Rendering, keeper: MediaKeeper) -> tuple[SentMedia, ...]:
        """Return the media of a cached response with the files that this run keeps of the same sources."""
        if not cached.media or all(medium.path for medium in cached.media):
            return cached.media
        from lmms_eval.media.given import given_media

        here = {medium.sha256: medium for medium in given_media(rendering.ahead(), keeper) if medium.sha256}
        pairs = ((medium, here.get(medium.sha256, medium)) for medium in cached.media)
        return tuple(replace(medium, stored=one.stored, not_stored=one.not_stored) for medium, one in pairs)

    def _pass_on(self, response: Response) -> None:
        """Continue a conversation with a response that the model was not asked for."""
        self.stream.push(self._conversations.take_in(response))

    def _preparation_failed(self, request: Request, error: Exception) -> None:
        self.take_in(not_sent(request.id, "preparing the request", error))


def drive_all(driven: Driven, conversations: Iterable[Conversation], limits: StreamLimits, ended: str) -> None:
    """Drive all conversations to their end without a run. Those without an answer fail with ``ended`` or its cause."""
    opened = Conversations(conversations)
    drive = Drive(driven, opened, limits)
    try:
        drive.run()
    finally:
        drive.stream.close()
    drive.fail_open(drive.report.give_up or ended)
    deque(opened.source(), maxlen=0)  # conversations that were not started end with the same reason


class _Rendering(Struct):
    """The messages of one request, built once for the journal, the cache and the model."""

    request: Request
    conversation: Conversation
    fingerprint: str = ""
    """Fingerprint of the messages that the model rendered; empty before that."""
    outline: Outline | None = None
    is_outlined: bool = False
    early: ChatMessages | None = None
    """Messages that were built before the model needs them."""
    built: ChatMessages | None = None
    """Messages that the model has received."""

    @property
    def is_one_text(self) -> bool:
        """Whether the messages were rendered, and are one text of the user."""
        return self.is_outlined and self.outline is None

    def ahead(self) -> ChatMessages:
        """Build the messages before the model needs them."""
        if self.early is None:
            self.early = self.request.build_messages()
        return self.early

    def build(self) -> ChatMessages:
        """Build the messages for the model; each call returns new objects."""
        with unrecorded():
            messages, self.early = self.early or self.request.build_messages(), None
        if not self.fingerprint:
            self.fingerprint = self.conversation.fingerprint(messages)
            self.outline, self.is_outlined = outline(messages, self.request.context), True
        self.built = messages
        return messages

    def added(self, sent: Sequence[SentMedia]) -> tuple[SentMessage, ...]:
        """Return the messages that the request adds to its conversation; empty if they were not rendered."""
        if not self.is_outlined:
            return ()
        messages = () if self.outline is None else messages_with(self.outline, sent)
        return self.conversation.added(self.request, messages, sent)

    def of_cached(self, cached: Response, prompt: str) -> tuple[tuple[SentMessage, ...], str]:
        """Return the added messages and the fingerprint of this request for a cached response.

        If its ``prompt`` is the fingerprint of the context, the model renders its prompts itself.
        """
        if prompt != text_fingerprint(self.request.context):
            messages = self.ahead()
            self.outline, self.is_outlined = outline(messages, self.request.context), True
            prompt = self.conversation.fingerprint(messages)
        return self.added(cached.media), prompt


class _TimedStream:
    """The stream that the model receives. It measures the time from the first request to the last response."""

    def __init__(self, stream: RequestStream) -> None:
        self.stream = stream
        self._first: float | None = None
        self._last = 0.0

    def tick(self) -> None:
        """Note the current time as that of the last response."""
        self._last = time.monotonic()
        if self._first is None:
            self._first = self._last

    def seconds(self) -> float:
        return self._last - self._first if self._first is not None else 0.0

    def take(self, max_n: int) -> list[Request]:
        batch = self.stream.take(max_n)
        self._begin()
        return batch

    def take_full(self, max_n: int) -> list[Request] | None:
        batch = self.stream.take_full(max_n)
        if batch:
            self._begin()
        return batch

    async def take_async(self, max_n: int) -> list[Request]:
        batch = await self.stream.take_async(max_n)
        self._begin()
        return batch

    def put_away(self, request: Request) -> None:
        self.stream.put_away(request)

    def _begin(self) -> None:
        if self._first is None:
            self.tick()
