"""The stream of prepared requests: rendered ahead of the model by threads, within a budget of bytes.

The source is pulled lazily, so no picture is opened before it is about to be needed. Later rounds of a conversation
go in front, so that open conversations end before new ones begin.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lmms_eval.api.request import Request
from lmms_eval.errors import UsageError

FIRST_GUESS_BYTES = 1 << 16
"""Assumed size of a prepared request until one has been seen."""


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How far preparation may run ahead of the model."""

    max_bytes: int = 512 << 20
    max_requests: int = 256
    least_requests: int = 32
    """``max_requests`` is not set below this, however few requests the model holds open."""
    threads: int = 2


class Stream:
    """A ``RequestStream`` (see ``lmms_eval.api.model``) over a lazy source of requests.

    ``source`` yields requests; it may be pulled from any thread, one at a time. ``prepare`` renders one request;
    ``None`` means that it has been answered already, so the model never sees it.
    ``on_failure`` gets a request whose preparation raised. ``has_open`` tells whether answers are outstanding that may
    bring further rounds.
    """

    def __init__(
        self,
        source: Iterator[Request],
        prepare: Callable[[Request], Request | None],
        on_failure: Callable[[Request, Exception], None],
        has_open: Callable[[], bool],
        limits: StreamLimits,
    ) -> None:
        self._source, self._prepare, self._on_failure, self._has_open = source, prepare, on_failure, has_open
        self._limits = limits
        self._changed = threading.Condition()
        self._source_lock = threading.Lock()
        self._ready: deque[Request] = deque()
        self._followups: deque[Request] = deque()
        self._ready_bytes = 0
        self._reserved_bytes = 0
        self._preparing = 0
        self._guess = FIRST_GUESS_BYTES
        self._exhausted = self._stopped = False
        self._error: BaseException | None = None
        self._waiters: set[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = set()
        self._threads = [
            threading.Thread(target=self._work, name=f"prepare-{number}", daemon=True)
            for number in range(limits.threads)
        ]
        self.taken = 0
        self.peak_bytes = 0

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def push(self, requests: Sequence[Request]) -> None:
        """Further rounds, to be asked before anything new."""
        with self._changed:
            self._followups.extend(requests)
        self.wake()

    def stop(self) -> None:
        """Hand out nothing more: ``take`` returns empty lists from now on."""
        with self._changed:
            self._stopped = True
        self.wake()

    def close(self) -> None:
        self.stop()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=5)

    def wake(self) -> None:
        """The state outside has changed (an answer was taken in): let waiting takers look again."""
        with self._changed:
            self._changed.notify_all()
            waiters, self._waiters = self._waiters, set()
        for loop, future in waiters:
            with contextlib.suppress(RuntimeError):  # the loop has been closed: nobody waits there any more
                loop.call_soon_threadsafe(_resolve, future)

    def take(self, max_n: int) -> list[Request]:
        """1 ... ``max_n`` prepared requests; blocks while none is ready; empty when the stream has ended."""
        with self._changed:
            while not self._ready and not self._ended():
                # The outside state (has_open) can change without a notification when a model dies: look again.
                self._changed.wait(timeout=0.5)
            return self._pop(max_n)

    def take_ready(self, max_n: int) -> list[Request] | None:
        """0 ... ``max_n`` requests that are prepared already; ``None`` when the asking was stopped. Never waits."""
        with self._changed:
            return None if self._stopped and self._error is None else self._pop(max_n)

    async def take_async(self, max_n: int) -> list[Request]:
        """``take`` without blocking the event loop."""
        loop = asyncio.get_running_loop()
        while True:
            with self._changed:
                if self._ready or self._ended():
                    return self._pop(max_n)
                future: asyncio.Future[None] = loop.create_future()
                waiter = (loop, future)
                self._waiters.add(waiter)
            try:
                await future
            finally:
                with self._changed:
                    self._waiters.discard(waiter)

    def _pop(self, max_n: int) -> list[Request]:
        if self._error is not None:
            raise self._error
        if self._stopped:
            return []
        batch = [self._ready.popleft() for _ in range(min(max_n, len(self._ready)))]
        self._ready_bytes -= sum(request.payload_bytes for request in batch)
        self.taken += len(batch)
        if batch:
            self._changed.notify_all()
        return batch

    def _ended(self) -> bool:
        if self._stopped or self._error is not None:
            return True
        idle = not (self._ready or self._followups or self._preparing)
        return idle and self._exhausted and not self._has_open()

    def _has_room(self) -> bool:
        if len(self._ready) + self._preparing >= self._limits.max_requests:
            return False
        used = self._ready_bytes + self._reserved_bytes
        # A request larger than the whole budget is prepared alone, when nothing else waits.
        return used == 0 or used + self._guess <= self._limits.max_bytes

    def _work(self) -> None:
        try:
            while (claimed := self._claim()) is not None:
                request, reserved = claimed.request, claimed.reserved
                self._finish(request, reserved)
        except BaseException as error:  # noqa: BLE001 - a task's own code may raise anything; the taker re-raises it
            with self._changed:
                self._error = self._error or error
            self.wake()

    def _claim(self) -> _Claim | None:
        """Wait for room, then for the next request; ``None`` at the end."""
        with self._changed:
            while not self._stopped and not ((self._followups or not self._exhausted) and self._has_room()):
                if self._exhausted and self._ended():
                    return None
                self._changed.wait(timeout=0.5)
            if self._stopped or self._error is not None:
                return None
            reserved = self._guess
            self._preparing += 1
            self._reserved_bytes += reserved
            if self._followups:
                return _Claim(self._followups.popleft(), reserved)
        with self._source_lock:
            request = None if self._exhausted else next(self._source, None)
            if request is None:
                self._exhausted = True
        if request is not None:
            return _Claim(request, reserved)
        with self._changed:
            self._preparing -= 1
            self._reserved_bytes -= reserved
        self.wake()
        return self._claim()

    def _finish(self, request: Request, reserved: int) -> None:
        prepared, failure = None, None
        try:
            prepared = self._prepare(request)
        except UsageError:
            raise  # wrong media root, unusable data: the same for every request, so the run ends here
        except Exception as error:  # noqa: BLE001 - media and task functions may raise anything: one failed sample
            failure = error
        if failure is not None:
            self._on_failure(request, failure)
        with self._changed:
            self._preparing -= 1
            self._reserved_bytes -= reserved
            if prepared is not None:
                self._ready.append(prepared)
                self._ready_bytes += prepared.payload_bytes
                self._guess = max(prepared.payload_bytes, int(self._guess * 0.9), 1)
                self.peak_bytes = max(self.peak_bytes, self._ready_bytes)
        self.wake()


@dataclass(frozen=True, slots=True)
class _Claim:
    request: Request
    reserved: int


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
