"""The only layer of retries, from a request to its response; and the control of concurrency."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from time import perf_counter
from typing import Any

from msgspec import Struct, field, structs

from lmms_eval.api.interleaved import cut_parts
from lmms_eval.api.model import RequestStream
from lmms_eval.api.request import ErrorKind, GeneratedImage, Request, Response, Thoughts, Usage
from lmms_eval.models.remote.arguments import RemoteArguments
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.models.remote.reply import Reply
from lmms_eval.models.remote.stops import Stops, StopSending, ended_in_thoughts, without_stops
from lmms_eval.models.thoughts import ReadingRules
from lmms_eval.utils.concurrency import AdaptiveConfig, LatencyWindow, decide, requests_before_decision

DEFAULT_TARGET_LATENCY_S = 15.0
BURST_SHARE = 4
"""A burst of status 429 reduces the limit to no less than a quarter."""
RESUME_JITTER_S = 1.0
"""After a pause, requests resume over a tenth of its length, but at most over this time."""
MAX_BACKOFF_S: Mapping[ErrorKind, float] = {"rate_limit": 60.0}
"""The maximum back-off by kind of error; ``OTHER_BACKOFF_S`` for all others."""
OTHER_BACKOFF_S = 8.0
MAX_RETRY_AFTER_S = 300.0
"""If a server asks to wait longer, the request fails at once."""
RETRIES_UNSEEN = 2
"""Retries before the first connection to the server: it most likely does not exist."""
OVERLOAD: frozenset[ErrorKind] = frozenset({"rate_limit", "server_error", "timeout", "connection", "malformed"})
"""Failures that may be caused by too many concurrent requests."""


class Gate:
    """Slots for open requests, and admission of single attempts.

    ``limit`` starts at ``num_concurrent`` and never exceeds the ceiling. Two rules change it:

    * ``decide`` (the adaptive rule of the family) after each window of completions. Its latency rule applies only with
      ``adaptive_concurrency`` or an explicit target: a model that thinks for a minute is not overloaded. Until the
      first success the limit does not change, as a dead server is not overloaded either.
    * A status 429 reduces it at once, by the decrease factor and by at least one for each rejected request of the same
      burst (the requests in flight when the first was rejected). ``Retry-After`` pauses all requests.
    """

    def __init__(self, arguments: RemoteArguments) -> None:
        self.config = AdaptiveConfig(
            min_concurrency=arguments.adaptive_min_concurrency if arguments.adaptive_concurrency else 1,
            max_concurrency=arguments.ceiling,
            target_latency_s=arguments.adaptive_target_latency_s or DEFAULT_TARGET_LATENCY_S,
            increase_step=arguments.adaptive_increase_step,
            decrease_factor=arguments.adaptive_decrease_factor,
            failure_threshold=arguments.adaptive_failure_threshold,
        ).sanitized()
        self._uses_latency = arguments.adaptive_concurrency or arguments.adaptive_target_latency_s is not None
        self.limit = min(max(arguments.num_concurrent, self.config.min_concurrency), self.config.max_concurrency)
        self.lowest = self.highest = self.limit
        self.open = self.active = self.peak_open = 0
        self._burst = 0
        self._burst_limit = self.limit
        self._burst_rejected = 0
        self._succeeded = False
        self._total = self._failed = self._rate_limited = 0
        self._latencies: list[float] = []
        self._paused_until = 0.0
        self._pause_jitter = 0.0
        self._random = random.Random()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._room_wanted: asyncio.Future[None] | None = None

    async def room(self) -> int:
        """Wait until a slot is free, and return the number of free slots."""
        while self.open >= self.limit:
            self._room_wanted = asyncio.get_running_loop().create_future()
            await self._room_wanted
        return self.limit - self.open

    def opened(self) -> None:
        """Record that a request was taken."""
        self.open += 1
        self.peak_open = max(self.peak_open, self.open)

    def closed(self) -> None:
        """Record that a request ended."""
        self.open -= 1
        self._wake()

    async def admit(self) -> int:
        """Wait until an attempt may start, and return a ticket for ``rate_limited``. ``release`` ends the attempt."""
        loop = asyncio.get_running_loop()
        while True:
            if (wait := self._paused_until - loop.time()) > 0:
                await asyncio.sleep(wait + self._random.uniform(0.0, self._pause_jitter))
            elif self.active >= self.limit:
                future = loop.create_future()
                self._waiting.append(future)
                await future
            else:
                self.active += 1
                return self._burst

    def release(self) -> None:
        """Record that an attempt ended."""
        self.active -= 1
        self._wake()

    def rate_limited(self, ticket: int, pause_s: float) -> None:
        """Record a status 429 for the attempt with this ticket, with the requested pause in seconds (0: none)."""
        if pause_s > 0:
            until = asyncio.get_running_loop().time() + pause_s
            if until > self._paused_until:
                self._paused_until, self._pause_jitter = until, min(RESUME_JITTER_S, pause_s / 10)
        if ticket == self._burst:
            self._burst += 1
            self._burst_limit, self._burst_rejected = self.limit, 0
        elif ticket < self._burst - 1:
            return
        self._burst_rejected += 1
        by_factor = int(self._burst_limit * self.config.decrease_factor)
        narrowed = min(by_factor, self._burst_limit - self._burst_rejected)
        self._set_limit(min(self.limit, max(narrowed, self._burst_limit // BURST_SHARE)))
        self._take_window()

    def completed(self, latency: float | None, *, failed: bool = False, rate_limited: bool = False) -> None:
        """Record the final end of a request, with the latency of its last attempt in seconds (``None``: no answer)."""
        self._total += 1
        self._failed += failed
        self._rate_limited += rate_limited
        self._succeeded = self._succeeded or latency is not None
        if latency is not None and self._uses_latency:
            self._latencies.append(latency)
        if self._total < requests_before_decision(self.limit):
            return
        window = self._take_window()
        if self._succeeded or window.rate_limited_requests:
            self._set_limit(decide(self.limit, window, self.config).next_concurrency)

    def describe(self) -> dict[str, Any]:
        """Return the concurrency that was used."""
        return {
            "ceiling": self.config.max_concurrency,
            "lowest": self.lowest,
            "highest": self.highest,
            "last": self.limit,
            "peak_open": self.peak_open,
        }

    def _take_window(self) -> LatencyWindow:
        """Return the completions since the last decision, and reset the counts."""
        window = LatencyWindow(self._total, self._failed, self._rate_limited, self._latencies)
        self._total = self._failed = self._rate_limited = 0
        self._latencies = []
        return window

    def _set_limit(self, limit: int) -> None:
        self.limit = min(max(limit, self.config.min_concurrency), self.config.max_concurrency)
        self.lowest, self.highest = min(self.lowest, self.limit), max(self.highest, self.limit)
        self._wake()

    def _wake(self) -> None:
        if self._room_wanted is not None and self.open < self.limit:
            if not self._room_wanted.done():
                self._room_wanted.set_result(None)
            self._room_wanted = None
        free = self.limit - self.active
        while free > 0 and self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                free -= 1


class Dispatcher:
    """Runs ``ask`` for the requests of one stream. Slots are refilled even if the answers are not consumed yet.

    After a refused key no more requests are taken, as every request would be refused.
    """

    def __init__(self, gate: Gate, ask: Callable[[Request], Coroutine[Any, Any, Response]]) -> None:
        self._gate, self._ask = gate, ask
        self._tasks: set[asyncio.Task[Response]] = set()
        self._fed = self._is_refused = False
        self._done: asyncio.Queue[Response | BaseException | None] = asyncio.Queue()

    async def run(self, stream: RequestStream) -> AsyncGenerator[Response, None]:
        """Yield responses as they arrive. Closing the generator cancels open requests and waits for them."""
        feeder = asyncio.create_task(self._feed(stream))
        feeder.add_done_callback(self._feeder_ended)
        try:
            while (item := await self._done.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            await _cancel({feeder})
            await _cancel(self._tasks)

    async def _feed(self, stream: RequestStream) -> None:
        while True:
            room = await self._gate.room()
            if self._is_refused or not (batch := await stream.take_async(room)):
                return
            for request in batch:
                self._gate.opened()
                task = asyncio.create_task(self._ask(request))
                self._tasks.add(task)
                task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[Response]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            error = task.exception()
            item = task.result() if error is None else error
            self._is_refused |= isinstance(item, Response) and item.error is not None and item.error.kind == "auth"
            self._done.put_nowait(item)
        self._gate.closed()
        self._end_if_all_done()

    def _feeder_ended(self, feeder: asyncio.Task[None]) -> None:
        self._fed = True
        error = None if feeder.cancelled() else feeder.exception()
        if error is not None:
            self._done.put_nowait(error)
        self._end_if_all_done()

    def _end_if_all_done(self) -> None:
        if self._fed and not self._tasks:
            self._done.put_nowait(None)


async def _cancel(tasks: set[asyncio.Task[Response]] | set[asyncio.Task[None]]) -> None:
    pending = [task for task in tasks if not task.done()]
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


class Tally(Struct):
    """Counts of attempts and errors so far, for ``describe``."""

    requests: int = 0
    attempts: int = 0
    bytes_sent: int = 0
    asked_without_stops: int = 0
    """Requests that were repeated because a stop string had ended the answer in its thoughts."""
    retries: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        kinds = {"retries": dict(sorted(self.retries.items())), "failures": dict(sorted(self.failures.items()))}
        return {**structs.asdict(self), **kinds}


class RequestExchange:
    """The requests and replies that lead to the answer of one request. Here, the first reply is the answer."""

    async def follow_up(self, payload: Any, reply: Reply) -> tuple[Any, int] | None:  # noqa: ARG002 - for other exchanges
        """Return the next payload and its size; ``None`` if the reply is the answer. Raises ``AttemptError``."""
        return None

    def finish(self, response: Response) -> Response:
        """Return the response with the messages that preceded it."""
        return response


class Asker:
    """Sends requests to one server, with retries after waits that double.

    ``complete`` makes one attempt, ``stops`` decides whether stop strings are sent, and ``exchanges`` makes the
    exchange of each request.
    """

    def __init__(
        self,
        complete: Callable[[Any], Awaitable[Reply]],
        gate: Gate,
        settings: RemoteArguments,
        stops: StopSending,
        tally: Tally,
        exchanges: Callable[[], RequestExchange] = RequestExchange,
    ) -> None:
        self._complete, self._gate, self._settings = complete, gate, settings
        self._stops, self._tally, self._exchanges = stops, tally, exchanges
        self._random = random.Random()
        self._seen = False

    async def ask(self, request: Request) -> Response:
        """Return the response to a prepared request. A failure is a response too."""
        started = perf_counter()
        self._tally.requests += 1
        exchange = self._exchanges()
        stops, payload, nbytes, most = self._stops.of(request), request.payload, request.payload_bytes, 1
        if stops.active and not stops.any_sent:  # the request may have been prepared with them
            payload = without_stops(payload)
        while True:
            outcome, attempts = await self._answered(payload, nbytes)
            most = max(most, attempts)
            if isinstance(outcome, AttemptError):
                wait = outcome.retry_after or 0.0
                too_long = f"; the server asks to wait {wait:.0f} s, which is too long: start again later"
                message = f"{outcome}{too_long if wait > MAX_RETRY_AFTER_S else ''}"
                return exchange.finish(Response.failure(request.id, outcome.kind, message, most))
            try:
                follow_up = await exchange.follow_up(payload, outcome)
            except AttemptError as error:
                self._tally.failures[error.kind] += 1
                return exchange.finish(Response.failure(request.id, error.kind, str(error), most))
            if follow_up is None and ended_in_thoughts(request, outcome, stops):
                self._stops.switch_off(request, stops)
                self._tally.asked_without_stops += 1
                stops, payload = stops.unsent(), without_stops(payload)
                continue
            if follow_up is None:
                seconds = perf_counter() - started
                return exchange.finish(to_response(request, outcome, stops, most, seconds))
            payload, nbytes = follow_up

    async def _answered(self, payload: Any, nbytes: int) -> tuple[Reply | AttemptError, int]:
        """Make attempts until a reply or a final failure. The second value counts the attempts."""
        attempts = 0
        while True:
            attempts += 1
            outcome = await self._attempt(payload, nbytes)
            if isinstance(outcome, Reply):
                return outcome, attempts
            if not self._may_retry(outcome, attempts):
                self._tally.failures[outcome.kind] += 1
                self._gate.completed(None, failed=outcome.kind in OVERLOAD, rate_limited=outcome.kind == "rate_limit")
                return outcome, attempts
            self._tally.retries[outcome.kind] += 1
            await asyncio.sleep(self._delay(outcome, attempts))

    async def _attempt(self, payload: Any, nbytes: int) -> Reply | AttemptError:
        ticket = await self._gate.admit()
        self._tally.attempts += 1
        self._tally.bytes_sent += nbytes
        started = perf_counter()
        try:
            reply = await self._complete(payload)
        except AttemptError as error:
            self._seen = self._seen or not error.unreachable
            if error.kind == "rate_limit" and error.retry:
                pause = error.retry_after or 0.0
                # If this request does not wait, the others do not either.
                self._gate.rate_limited(ticket, pause if pause <= MAX_RETRY_AFTER_S else 0.0)
            return error
        finally:
            self._gate.release()
        self._seen = True
        self._gate.completed(perf_counter() - started)
        return reply

    def _may_retry(self, error: AttemptError, attempts: int) -> bool:
        if not error.retry or (error.retry_after or 0.0) > MAX_RETRY_AFTER_S:
            return False
        unseen = error.unreachable and not self._seen
        most = self._settings.max_retries
        return attempts <= (min(RETRIES_UNSEEN, most) if unseen else most)

    def _delay(self, error: AttemptError, attempts: int) -> float:
        """Return the seconds to wait before the next attempt: as the server asks, or else with full jitter."""
        if error.retry_after:
            # After a status 429, the gate pauses all requests for this time.
            return 0.0 if error.kind == "rate_limit" else error.retry_after
        bound = self._settings.retry_backoff_s * 2 ** min(attempts - 1, 30)
        return self._random.uniform(0.0, min(bound, MAX_BACKOFF_S.get(error.kind, OTHER_BACKOFF_S)))


def to_response(request: Request, reply: Reply, stops: Stops, attempts: int, latency: float | None) -> Response:
    """Convert a reply to a response, cut at the stop strings after its thoughts. ``latency`` is in seconds."""
    if reply.likelihood is not None:
        return Response(
            request.id,
            loglikelihood=reply.likelihood[0],
            is_greedy=reply.likelihood[1],
            usage=reply.usage,
            latency=latency,
            attempts=attempts,
            model=reply.model,
        )
    thoughts = None
    if reply.reasoning.strip():  # thoughts without an answer are unfinished
        thoughts = Thoughts(reply.reasoning, is_finished=bool(reply.text.strip() or reply.parts))
    ttft, speed = _speed(reply)
    response = Response(
        request.id,
        reply.text,
        reply.parts,
        finish_reason=reply.finish_reason,
        usage=_usage(request, reply),
        latency=latency,
        attempts=attempts,
        model=reply.model,
        thoughts=thoughts,
        ttft=ttft,
        tokens_per_second=speed,
    )
    return _stopped(request, response, reply, stops) if stops.active else response


def _speed(reply: Reply) -> tuple[float | None, float | None]:
    """Return the seconds to the first piece of a streamed reply, and its tokens per second from there."""
    if reply.timing is None:
        return None, None
    ttft, rest = reply.timing
    count = (reply.usage.output_tokens if reply.usage is not None else None) or 0
    return ttft, (count - 1) / rest if count > 1 and rest > 0 else None


def _usage(request: Request, reply: Reply) -> Usage | None:
    """Return the token counts of a reply.

    Servers that do not recognise thoughts report 0 tokens of thoughts. If there are thoughts, that means unknown.
    """
    if reply.usage is None or reply.usage.reasoning_tokens != 0:
        return reply.usage
    thoughts = ReadingRules.of(request, "").read(reply.text).thoughts
    has_thoughts = bool(reply.reasoning.strip() or (thoughts is not None and thoughts.text.strip()))
    return structs.replace(reply.usage, reasoning_tokens=None) if has_thoughts else reply.usage


def _stopped(request: Request, response: Response, reply: Reply, stops: Stops) -> Response:
    """Cut a response after its thoughts at stop strings that were not sent to the server, or that it ignored."""
    reading = structs.replace(
        ReadingRules.of(request, "", stops.active), follows_thoughts=response.thoughts is not None
    )
    written = reading.read(reply.text)
    if not written.ended_by:
        ended_by = "" if reply.finish_reason not in ("stop", None) or not stops.any_sent else reply.ended_by
        ended_by = "" if ended_by and ended_by not in stops.active else ended_by
        return structs.replace(response, stops=stops.active, ended_by=ended_by)
    end = len(written.reasoning) + len(written.answer)
    parts = cut_parts(reply.parts, end)
    return structs.replace(
        response,
        text=reply.text[:end],
        parts=parts if any(isinstance(part, GeneratedImage) for part in parts) else (),
        finish_reason="stop",
        stops=stops.active,
        ended_by=written.ended_by,
    )
