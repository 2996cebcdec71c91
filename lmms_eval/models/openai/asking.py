"""The one layer of retries: from a request to its response, however many attempts that takes."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Protocol

from lmms_eval.api.interleaved import cut_parts
from lmms_eval.api.request import ErrorKind, GeneratedImage, Request, Response, Thoughts, Usage
from lmms_eval.models.openai.concurrency import Gate
from lmms_eval.models.openai.errors import AttemptError
from lmms_eval.models.openai.reply import Reply
from lmms_eval.models.remote.stops import Stops, StopSending, ended_in_thoughts, without_stops
from lmms_eval.models.thoughts import Reading

MAX_BACKOFF_S: Mapping[ErrorKind, float] = {"rate_limit": 60.0}
"""Longest back-off by kind of error; ``OTHER_BACKOFF_S`` for the rest."""
OTHER_BACKOFF_S = 8.0
MAX_RETRY_AFTER_S = 300.0
"""A server that asks to wait longer is given up at once."""
RETRIES_UNSEEN = 2
"""Retries while no connection to the server has ever been opened: it is most likely not there."""
OVERLOAD: frozenset[ErrorKind] = frozenset({"rate_limit", "server_error", "timeout", "connection", "malformed"})
"""Failures that may come from asking too much at a time."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    max_retries: int
    """Further attempts after the first."""
    backoff_s: float
    """Bound of the first wait; it doubles with each attempt. The wait is drawn evenly from 0 to the bound."""


@dataclass(slots=True)
class Tally:
    """Counts of attempts and their errors so far, for ``describe``."""

    requests: int = 0
    attempts: int = 0
    bytes_sent: int = 0
    asked_without_stops: int = 0
    """Requests that were asked again because a stop string had ended the answer within its thoughts."""
    retries: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "attempts": self.attempts,
            "bytes_sent": self.bytes_sent,
            "asked_without_stops": self.asked_without_stops,
            "retries": dict(sorted(self.retries.items())),
            "failures": dict(sorted(self.failures.items())),
        }


@dataclass(frozen=True, slots=True)
class Further:
    """A request that follows a reply."""

    payload: Any
    nbytes: int


class Talk(Protocol):
    """Goes on with a request whose reply is not its answer yet."""

    async def further(self, payload: Any, reply: Reply) -> Further | None:
        """Return what is asked next; ``None``: the reply is the answer.

        Raises:
            AttemptError: it cannot go on.
        """

    def finish(self, response: Response) -> Response:
        """Return the response with what went before it."""


class _Plain:
    """One request, one reply."""

    async def further(self, payload: Any, reply: Reply) -> Further | None:  # noqa: ARG002 - the protocol's
        return None

    def finish(self, response: Response) -> Response:
        return response


PLAIN = _Plain()


class Asker:
    """Asks one server. ``complete`` makes one attempt; ``stops`` decides whether it is sent stop strings; ``talks``
    begins what may go on after a reply, for each request anew."""

    def __init__(
        self,
        complete: Callable[[Any], Awaitable[Reply]],
        gate: Gate,
        policy: RetryPolicy,
        stops: StopSending,
        tally: Tally,
        talks: Callable[[], Talk] = lambda: PLAIN,
    ) -> None:
        self._complete, self._gate, self._policy = complete, gate, policy
        self._stops, self._tally, self._talks = stops, tally, talks
        self._random = random.Random()
        self._seen = False

    async def ask(self, request: Request) -> Response:
        """The response to a prepared request; a failure is a response too."""
        started = perf_counter()
        self._tally.requests += 1
        talk = self._talks()
        stops, payload, nbytes, most = self._stops.of(request), request.payload, request.payload_bytes, 1
        if stops.active and not stops.are_told:  # perhaps it was prepared with them
            payload = without_stops(payload)
        while True:
            outcome, attempts = await self._answered(payload, nbytes)
            most = max(most, attempts)
            if isinstance(outcome, AttemptError):
                return talk.finish(Response.failure(request.id, outcome.kind, _explain(outcome), most))
            try:
                further = await talk.further(payload, outcome)
            except AttemptError as error:
                self._tally.failures[error.kind] += 1
                return talk.finish(Response.failure(request.id, error.kind, str(error), most))
            if further is None and ended_in_thoughts(request, outcome, stops):
                self._stops.switch_off(request, stops)
                self._tally.asked_without_stops += 1
                stops, payload = stops.told_nothing(), without_stops(payload)
                continue
            if further is None:
                seconds = perf_counter() - started
                return talk.finish(to_response(request, outcome, stops, most, seconds))
            payload, nbytes = further.payload, further.nbytes

    async def _answered(self, payload: Any, nbytes: int) -> tuple[Reply | AttemptError, int]:
        """Attempt until there is a reply, or none is to be had; the second value counts the attempts."""
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
                # A wait that this request does not make nobody else makes for it.
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
        return attempts <= (min(RETRIES_UNSEEN, self._policy.max_retries) if unseen else self._policy.max_retries)

    def _delay(self, error: AttemptError, attempts: int) -> float:
        """Seconds to wait before the next attempt: what the server asks for, else full jitter."""
        if error.retry_after:
            # After a 429 the gate holds everybody back for as long.
            return 0.0 if error.kind == "rate_limit" else error.retry_after
        bound = min(self._policy.backoff_s * 2 ** min(attempts - 1, 30), MAX_BACKOFF_S.get(error.kind, OTHER_BACKOFF_S))
        return self._random.uniform(0.0, bound)


def to_response(request: Request, reply: Reply, stops: Stops, attempts: int, latency: float | None) -> Response:
    """Make the response of a reply, cut at its stop strings behind the thoughts. ``latency`` in seconds."""
    if reply.likelihood is not None:
        return Response(
            request.id,
            loglikelihood=reply.likelihood.value,
            is_greedy=reply.likelihood.is_greedy,
            usage=Usage(reply.likelihood.input_tokens, 0),
            latency=latency,
            attempts=attempts,
            model=reply.model,
        )
    response = Response(
        request.id,
        reply.text,
        reply.parts,
        finish_reason=reply.finish_reason,
        usage=_usage(request, reply),
        latency=latency,
        attempts=attempts,
        model=reply.model,
        thoughts=_apart(reply) if reply.reasoning.strip() else None,
    )
    return _stopped(request, response, reply, stops) if stops.active else response


def _usage(request: Request, reply: Reply) -> Usage | None:
    """Return the token counts that the server tells.

    Servers tell 0 tokens of thoughts if they do not see where the thoughts begin or end: beside thoughts that means
    nothing.
    """
    if reply.usage is None or reply.usage.reasoning_tokens != 0:
        return reply.usage
    thoughts = _apart(reply) if reply.reasoning.strip() else Reading.of(request, "").read(reply.text).thoughts
    return replace(reply.usage, reasoning_tokens=None) if thoughts and thoughts.text.strip() else reply.usage


def _apart(reply: Reply) -> Thoughts:
    """Return the thoughts that the server returned apart. Without an answer they are unfinished."""
    return Thoughts(reply.reasoning, is_finished=bool(reply.text.strip() or reply.parts))


def _stopped(request: Request, response: Response, reply: Reply, stops: Stops) -> Response:
    """Cut a response behind its thoughts at stop strings that the server was not told or ignored."""
    reading = replace(Reading.of(request, "", stops.active), follows_thoughts=response.thoughts is not None)
    written = reading.read(reply.text)
    if not written.ended_by:
        told = "" if reply.finish_reason not in ("stop", None) or not stops.are_told else reply.ended_by
        return replace(response, stops=stops.active, ended_by="" if told and told not in stops.active else told)
    end = len(written.reasoning) + len(written.answer)
    parts = cut_parts(reply.parts, end)
    return replace(
        response,
        text=reply.text[:end],
        parts=parts if any(isinstance(part, GeneratedImage) for part in parts) else (),
        finish_reason="stop",
        stops=stops.active,
        ended_by=written.ended_by,
    )


def _explain(error: AttemptError) -> str:
    wait = error.retry_after or 0.0
    if wait > MAX_RETRY_AFTER_S:
        return f"{error}; the server asks to wait {wait:.0f} s, which is too long: start again later"
    return str(error)
