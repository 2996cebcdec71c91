"""Answering a stream of requests in batches: collecting them on disk, sending them, and reading the results."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from time import monotonic

from lmms_eval.api.model import RequestStream
from lmms_eval.api.request import ErrorKind, Request, Response
from lmms_eval.errors import ModelError
from lmms_eval.models.remote.arguments import ServiceArguments
from lmms_eval.models.remote.asking import Tally, to_response
from lmms_eval.models.remote.batch.ledger import BatchPart, Draft, Ledger
from lmms_eval.models.remote.batch.service import BatchService
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.models.remote.reply import Reply
from lmms_eval.models.remote.stops import StopSending, ended_in_thoughts, without_stops

log = logging.getLogger(__name__)
TAKEN = 256
"""Requests that are taken from the stream at a time."""
FIRST_POLL_S, POLL_GROWTH = 1.0, 1.5
NOT_CREATED: frozenset[ErrorKind] = frozenset({"bad_request", "auth", "refused", "rate_limit"})
"""Failures that show that the service has not created a batch."""
ENDED = ("completed", "failed", "expired", "cancelled")
"""Final states of a batch."""


def batch_failure(part: BatchPart, service: BatchService) -> AttemptError:
    """Return the failure of all requests that have no line in the results of an ended batch."""
    state = part.state
    reason = state.reason or f"batch {part.batch_id} is {state.status} and has no line of this request"
    code = state.code or state.status if state.status == "failed" else state.status
    return service.unanswered(code, reason)


class BatchAsker:
    """Answers the requests of a run in batches. The ledger holds the batches of earlier starts."""

    def __init__(
        self, client: BatchService, ledger: Ledger, arguments: ServiceArguments, stops: StopSending, tally: Tally
    ) -> None:
        self._client, self._ledger, self._arguments = client, ledger, arguments
        self._stops, self._tally = stops, tally
        self._open: dict[str, Request] = {}
        """Requests without an answer, by id."""
        self._tries: Counter[str] = Counter()
        self._place: dict[str, BatchPart] = {}
        """The batch of each request, by the request's id."""
        self._watched: list[BatchPart] = []
        self._draft: Draft | None = None
        self._full: list[BatchPart] = []
        """Files to send."""
        self._most_live = sys.maxsize
        """The number of batches that the service's queue accepts at a time, as far as known."""
        self._without_stops: set[str] = set()
        """Requests that were sent without their stop strings."""
        self._ended = 0
        self._pause = 0.0

    async def run(self, stream: RequestStream) -> AsyncGenerator[Response, None]:
        """Yield responses as batches end. If the stream is stopped, live batches continue at the service.

        Raises:
            ModelError: an earlier start may have created a batch, and the service does not list its batches.
            JournalError: a file in the run's folder cannot be read or written.
        """
        await self._recover()
        try:
            async for response in self._answers(stream):
                yield response
        finally:
            for unsent in (*self._full, *([self._draft.close()] if self._draft is not None else [])):
                self._ledger.over(unsent)
            for part in self._wanted():
                log.warning(
                    "batch %s continues at %s: start the same command again to get its answers",
                    part.batch_id,
                    self._client.shown,
                )

    async def _answers(self, stream: RequestStream) -> AsyncGenerator[Response, None]:
        while (taken := await asyncio.to_thread(stream.take_full, TAKEN)) is not None:
            if not taken:  # no more requests without further answers: send what is there
                for response in await self._submit():
                    yield response
                if not self._open:
                    taken = await stream.take_async(TAKEN)
                    if not taken:
                        await self._end(stream)
                        return
                else:
                    taken, ended = await self._wait(stream)
                    if not taken and not ended:  # stopped
                        return
                    for each in ended:
                        async for response in self._take_in(each):
                            yield response
            for response in await self._collect(stream, taken):
                yield response

    async def _end(self, stream: RequestStream) -> None:
        """Close the batches of earlier starts that no request belongs to, unless the stream was only stopped."""
        if not await _is_stopped(stream):
            for part in self._watched:
                self._ledger.over(part)
            self._watched = []

    async def _recover(self) -> None:
        """Find the batches that earlier starts have created. Others are forgotten, so their requests are sent again."""
        for part in self._ledger.parts():
            if part.file_id and not part.batch_id:
                try:
                    found = await self._client.find(part)
                except AttemptError as error:
                    raise ModelError(
                        f"an earlier start was killed while it created a batch (of {part.file_id}, {part.name}); "
                        f"{self._client.shown} does not list its batches ({error}). Start again later; or, if that "
                        f"batch does not exist, delete {part.path.parent}"
                    ) from error
                if found is not None:
                    self._ledger.created(part, found)
            if part.batch_id:
                self._tries.update(part.ids)
                self._watch(part)
                log.info("batch %s of an earlier start: waiting for its answers", part.batch_id)
            else:
                self._ledger.over(part)

    def _watch(self, part: BatchPart) -> None:
        part.since, part.ended_before = monotonic(), self._ended
        self._watched.append(part)
        self._place.update(dict.fromkeys(part.ids, part))
        self._pause = min(FIRST_POLL_S, self._arguments.batch_poll_s)

    async def _collect(self, stream: RequestStream, taken: list[Request]) -> list[Response]:
        """Write requests into the current file, except those of live batches. Returns failures."""
        failed: list[Response] = []
        for request in taken:
            self._open[request.id] = request
            if request.id not in self._place:
                line = self._line_to_send(request.id, self._client.line(request.id, request.payload))
                failed += await self._add(request.id, line)
            stream.put_away(request)
        self._tally.requests += len(taken)
        return failed

    def _line_to_send(self, request_id: str, line: bytes) -> bytes:
        """Remove the stop strings from a line if they are no longer sent."""
        if not self._stops.is_off:
            return line
        self._without_stops.add(request_id)
        sent: bytes = without_stops(line)
        return sent

    async def _add(self, request_id: str, line: bytes) -> list[Response]:
        """Write a line, into another file if this one is full. Returns the failures of sending the full one."""
        if not self._ledger.may_hold(line):
            message = f"a request of {len(line):,} bytes is larger than a batch file may be (batch_max_mb=...)"
            return [self._failed(request_id, AttemptError("bad_request", message))]
        found: list[Response] = []
        if self._draft is not None and not self._draft.has_room(line):
            found = await self._submit()
        self._draft = self._draft or self._ledger.draft()
        self._draft.add(request_id, self._client.stamp(line, self._draft.name, len(self._draft.ids)))
        return found

    async def _submit(self) -> list[Response]:
        """Send the collected files, as far as the service's queue accepts them. Returns the failures."""
        if self._draft is not None:
            self._full.append(self._draft.close())
            self._draft = None
        failed: list[Response] = []
        while self._full and len(self._wanted()) < self._most_live:
            failed += await self._send(self._full.pop(0))
        return failed

    async def _send(self, part: BatchPart) -> list[Response]:
        """Send a file and create its batch. Returns the failures."""
        self._ledger.enter(part)
        try:
            self._ledger.uploaded(part, await self._client.upload(part))
            self._ledger.created(part, await self._client.create(part))
        except AttemptError as error:
            if error.kind == "rate_limit" and error.retry and self._wanted():  # there is room when another has ended
                self._most_live = len(self._wanted())
                self._full.insert(0, part)
                return []
            if not part.file_id or error.kind in NOT_CREATED:
                self._ledger.over(part)
            return [self._failed(request_id, error) for request_id in part.ids]
        log.info("batch %s: %d requests sent to %s", part.batch_id, len(part.ids), self._client.shown)
        self._tally.attempts += len(part.ids)
        self._tally.bytes_sent += part.path.stat().st_size
        self._tries.update(part.ids)
        self._watch(part)
        return []

    async def _wait(self, stream: RequestStream) -> tuple[list[Request], list[BatchPart]]:
        """Wait until batches end or requests arrive. If both are empty, the stream was stopped."""
        taking = asyncio.ensure_future(self._next(stream))
        ended: list[BatchPart] = []
        try:
            while not ended and not taking.done():
                await asyncio.wait({taking}, timeout=self._pause)
                self._pause = min(self._pause * POLL_GROWTH, self._arguments.batch_poll_s)
                if not taking.done():
                    # Returns those that have ended or are given up.
                    ended = [part for part in self._wanted() if await self._is_over(part)]
        finally:
            taking.cancel()
            await asyncio.wait({taking})  # it returns its requests in its last step, so no request is lost
        return ([] if taking.cancelled() else taking.result()), ended

    async def _next(self, stream: RequestStream) -> list[Request]:
        """Take requests as they arrive; empty if the stream was stopped. For an ended stream, wait forever."""
        taken = await stream.take_async(TAKEN)
        if not taken and not await _is_stopped(stream):
            await asyncio.get_running_loop().create_future()
        return taken

    async def _is_over(self, part: BatchPart) -> bool:
        try:
            part.state = await self._client.look(part.batch_id)
        except AttemptError as error:
            part.failed_looks += 1
            if not error.retry or part.failed_looks > self._arguments.max_retries:
                part.error = error
            return part.error is not None
        part.failed_looks = 0
        if part.state.status != part.status:
            part.status = part.state.status
            log.info("batch %s: %s", part.batch_id, part.state.progress or part.status)
        if part.status not in ENDED and monotonic() - part.since > self._arguments.batch_timeout:
            limit = f"{self._arguments.batch_timeout:g} s (batch_timeout=...)"
            part.error = AttemptError("timeout", f"{self._client.shown} has not finished it within {limit}")
        return part.status in ENDED or part.error is not None

    async def _take_in(self, part: BatchPart) -> AsyncGenerator[Response, None]:
        """Yield the answers and failures of a batch. Requests to retry go into the next batch."""
        self._watched.remove(part)
        if part.error is None:
            await self._fetch(part)
        is_other = part.error is None and part.is_guess and not self._is_confirmed(part)
        if is_other and await self._guess_again(part):
            return
        if (error := part.error) is not None:
            reason = f"batch {part.batch_id}: {error}; it is kept at the service: start the same command again"
            for request_id in self._expected(part):
                yield self._failed(request_id, AttemptError(error.kind, reason))
            return
        again = set(self._expected(part) if is_other else ())
        for response in () if is_other else self._settle_all(part, again):
            yield response
        for request_id in self._expected(part):
            del self._place[request_id]
        for request_id, line in part.lines(again) if again else ():
            for response in await self._add(request_id, self._line_to_send(request_id, line)):
                yield response
        self._ledger.over(part)

    async def _fetch(self, part: BatchPart) -> None:
        """Fetch the files of results. After a failure, the batch is given up."""
        try:
            for name, path in zip(part.state.results, part.results, strict=False):
                await self._client.download(part, name, path)
        except AttemptError as error:
            part.error = error

    def _is_confirmed(self, part: BatchPart) -> bool:
        """Return whether the results of a guessed batch name a request of the part."""
        return any(self._client.read_line(part, line) is not None for line in _lines_of(part))

    async def _guess_again(self, part: BatchPart) -> bool:
        """Look for another batch of a part, as the guessed one is not it. Returns whether there is one to wait for.

        If there is not, the requests were never sent. If the service does not list its batches, ``part.error`` is set.
        """
        log.info("batch %s has no request of this run: looking for the right one", part.batch_id)
        self._ledger.refute(part)
        self._tries.subtract(self._expected(part))
        try:
            found = await self._client.find(part)
        except AttemptError as error:
            part.error = error
            return False
        if found is None:
            return False
        self._ledger.created(part, found)
        self._tries.update(part.ids)
        self._watch(part)
        return True

    def _results(self, part: BatchPart) -> Iterator[tuple[str, Reply | AttemptError]]:
        """Yield one result for each open request from the fetched files. Requests without a line have failed."""
        seen = set[str]()
        for line in _lines_of(part):
            result = self._client.read_line(part, line)
            if result is not None and result[0] not in seen and self._expects(part, result[0]):
                seen.add(result[0])
                yield result
        for request_id in self._expected(part):
            if request_id not in seen:
                yield request_id, batch_failure(part, self._client)

    def _note_limit(self, part: BatchPart) -> None:
        """Send fewer batches at a time if the service's queue was full. This is not a try while other batches end."""
        if part.state.status != "failed" or batch_failure(part, self._client).kind != "rate_limit":
            self._ended += 1
            return
        others = len(self._wanted())
        self._most_live = max(1, others)
        if others or self._ended > part.ended_before:
            self._tries.subtract(self._expected(part))

    def _settle_all(self, part: BatchPart, again: set[str]) -> Iterator[Response]:
        """Yield the responses of an ended batch. Requests to retry are added to ``again``."""
        self._note_limit(part)
        for request_id, outcome in self._results(part):
            response = self._settle(request_id, outcome)
            if response is None:
                again.add(request_id)
            else:
                yield response

    def _settle(self, request_id: str, outcome: Reply | AttemptError) -> Response | None:
        """Return the response to a request; ``None`` if it is to be retried."""
        tries = self._tries[request_id]
        if isinstance(outcome, AttemptError):
            if outcome.retry and tries <= self._arguments.max_retries:
                self._tally.retries[outcome.kind] += 1
                return None
            return self._failed(request_id, outcome)
        request = self._open[request_id]
        stops = self._stops.of(request, were_sent=request_id not in self._without_stops)
        if ended_in_thoughts(request, outcome, stops):
            self._stops.switch_off(request, stops)
            self._tally.asked_without_stops += 1
            return None
        del self._open[request_id]
        return to_response(request, outcome, stops, tries, None)

    def _failed(self, request_id: str, error: AttemptError) -> Response:
        del self._open[request_id]
        self._tally.failures[error.kind] += 1
        return Response.failure(request_id, error.kind, str(error), max(1, self._tries[request_id]))

    def _expects(self, part: BatchPart, request_id: str) -> bool:
        return request_id in self._open and self._place.get(request_id) is part

    def _expected(self, part: BatchPart) -> list[str]:
        """Return the open requests of a batch."""
        return [request_id for request_id in part.ids if self._expects(part, request_id)]

    def _wanted(self) -> list[BatchPart]:
        """Return the batches with open requests."""
        return [part for part in self._watched if any(name in self._open for name in part.ids)]


async def _is_stopped(stream: RequestStream) -> bool:
    """Return whether a stream without further requests was stopped, and has not just ended."""
    return await asyncio.to_thread(stream.take_full, 1) is None


def _lines_of(part: BatchPart) -> Iterator[bytes]:
    """Yield the lines of the fetched results."""
    for _, path in zip(part.state.results, part.results, strict=False):
        with open(path, "rb") as lines:
            yield from lines
