"""The stream of requests, which threads prepare ahead of the model within a budget of bytes.

The source is consumed lazily, so no picture is opened long before it is needed. Later rounds of conversations come
first, so that open conversations end before new ones begin.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from lmms_eval.api.request import Request
from lmms_eval.engine.stage import Handover
from lmms_eval.errors import JournalError, ModelError, UsageError

FIRST_GUESS_BYTES = 1 << 16
"""Assumed size of the first prepared request."""


class _TaskSizes(Struct):
    """Sizes of one task's prepared requests in bytes."""

    cost: float
    """Cost of the last request. Costs fall within a window, so a higher one begins a new window."""
    recent: int = FIRST_GUESS_BYTES
    """The largest recent size, reduced by a tenth for each later request."""
    largest: int = 0


class RequestSizes:
    """Estimates of the size of requests in bytes; not thread-safe."""

    def __init__(self) -> None:
        self._guess = FIRST_GUESS_BYTES
        self._tasks: dict[str, _TaskSizes] = {}

    def expected(self, request: Request | None) -> int:
        """Return the expected size of a request; ``None``: of the next one of the source."""
        known = None if request is None else self._tasks.get(request.task.name)
        if request is None or known is None:
            return self._guess
        return max(known.largest, known.recent) if request.cost > known.cost else known.recent

    def begin(self, request: Request) -> int | None:
        """Return the expected size of a request that is about to be prepared; ``None``: the first one of its task."""
        known = self._tasks.get(request.task.name)
        if known is None:
            return None
        known.recent, known.cost = self.expected(request), request.cost
        return known.recent

    def finish(self, request: Request, size: int | None) -> None:
        """Note the size of a prepared request; ``None``: it was answered otherwise, or failed."""
        known = self._tasks.setdefault(request.task.name, _TaskSizes(request.cost))
        if size is not None:
            known.recent = max(size, int(known.recent * 0.9), 1) if known.largest else max(size, 1)
            known.largest = max(known.largest, known.recent)
        self._guess = known.recent


_Waiter: TypeAlias = "tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]"
REFILL_SHARE = 0.75
"""Once the maximum is prepared, threads resume when only this share of it is left: to wake a thread for each request
that the model takes would cost more than preparing a text."""

HELP_FROM_CPU_S, HELP_FROM_WALL_S = 0.0003, 0.01
"""Minimum processor or wall time of preparing a request for another thread to help. A text takes a fifth of the first;
the second is longer than a wait for the interpreter's lock, so it means a wait for a file or a server."""
HELP_AFTER = 3
"""Number of consecutive slow requests: a single one may have imported a package."""
TOGETHER = 32
"""Maximum number of requests that are prepared in the event loop before those that are ready are sent."""


class StreamLimits(Struct, frozen=True):
    """Limits of preparation ahead of the model."""

    max_bytes: int = 512 << 20
    """Maximum size of the requests that are ready, in preparation, or held by the model."""
    max_requests: int = 256
    least_requests: int = 32
    """Lower bound of ``max_requests``, which is otherwise set by the number of open requests of the model."""
    threads: int = 2


class Brake(Protocol):
    """Holds back new requests of a source. Requests of later rounds are never held back."""

    def is_ahead(self) -> bool:
        """Return whether no new request may be taken from the source now. If that changes, the stream must be woken."""

    def is_settling(self) -> bool:
        """Return whether this may change without a further response of the model."""


class Stream:
    """A ``RequestStream`` (see ``lmms_eval.api.model``) over a lazy source of requests.

    Args:
        source: the requests; consumed by any thread, one at a time.
        prepare: prepares one request; ``None`` means that it is answered already, so the model does not receive it.
        on_failure: receives a request whose preparation raised.
        has_open: returns whether outstanding answers may cause further rounds.
        brake: holds new requests of the source back; ``None``: nothing does.
    """

    def __init__(
        self,
        source: Iterator[Request],
        prepare: Callable[[Request], Request | None],
        on_failure: Callable[[Request, Exception], None],
        has_open: Callable[[], bool],
        limits: StreamLimits,
        brake: Brake | None = None,
    ) -> None:
        self._source, self._prepare, self._on_failure, self._has_open = source, prepare, on_failure, has_open
        self._limits, self._brake = limits, brake
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        """Condition for waiting threads; the others use the lock itself, which takes half the time."""
        self._resumed = threading.Condition(self._lock)
        """Condition for threads that rest while the event loop prepares."""
        self._gate = threading.Lock()
        """Held by the thread that takes the next request and waits for room for it."""
        self._next: Request | None = None
        """The next request, which waits for room."""
        self._ready: deque[Request] = deque()
        """Prepared requests in the order of the source."""
        self._turns: dict[str, int] = {}
        """Position in that order of each request that is ready or in preparation, by id."""
        self._followups: deque[Request] = deque()
        self._held: dict[str, Request] = {}
        """Requests that the model has taken and not answered, by id."""
        self._ready_bytes = self._held_bytes = self._reserved_bytes = 0
        self._preparing = 0
        self._is_filled = False
        """The maximum is prepared, and few requests have been taken since."""
        self._blocked = 0
        """Number of model threads that wait in ``take``. They cannot answer requests, which would free room."""
        self._sizes = RequestSizes()
        self._firsts: set[str] = set()
        """Tasks whose first request is in preparation, so that the size of their requests is unknown."""
        self._exhausted = self._stopped = False
        self._error: BaseException | None = None
        self._waiters: set[_Waiter] = set()
        self._threads = [
            threading.Thread(target=self._work, name=f"prepare-{number}", daemon=True)
            for number in range(limits.threads)
        ]
        self._started = 1
        self._slow_in_a_row = 0
        self._handover = Handover()
        self._is_async = False
        """An event loop takes the requests."""
        self._is_inline = False
        """The event loop also prepares them, since that is quick; the threads rest."""
        self._claimed = 0
        self.forms_batches = False
        """The model has taken ``take_full`` batches."""
        self._was_short = False
        """A model that forms batches had to wait for requests while it held others."""
        self.is_fed: Callable[[], bool] = lambda: False
        """Returns whether ``take_full`` should wait for requests that ``push`` will add."""
        self.answering: int | None = None
        """The thread that alone takes requests and passes on answers, by its id; ``None``: there may be several."""
        self.peak_bytes = 0
        """Maximum size of the requests that were ready or held by the model at the same time."""

    def start(self) -> None:
        """Start the first thread; the others follow if preparation is slow (``_call_help``)."""
        self._threads[0].start()

    def push(self, requests: Sequence[Request]) -> None:
        """Add further rounds, which are asked before new conversations."""
        with self._lock:
            self._followups.extend(requests)
        self.wake()

    def answered(self, request_id: str, further: Sequence[Request] = (), frees: bool = True) -> None:
        """Release a request that was answered, and push the requests of the next round.

        ``frees``: drop the payload, even if other objects still refer to the request.
        """
        with self._lock:
            request = self._held.pop(request_id, None)
            if request is not None:
                self._held_bytes -= request.payload_bytes
                if frees:
                    request.free()
            self._followups.extend(further)
            # Wake other threads only if needed: there may be thousands of answers per second.
            concerns_others = bool(further) or self._next is not None or self._ended()
        if concerns_others:
            self.wake()

    @property
    def held(self) -> int:
        """Number of requests that the model has taken and not answered."""
        return len(self._held)

    def put_away(self, request: Request) -> None:
        """Drop the payload of a taken request, which the model keeps elsewhere."""
        with self._lock:
            if request.id in self._held:
                self._held_bytes -= self._held[request.id].payload_bytes
                self._held[request.id] = request.with_payload(None, 0)
            request.free()
            frees_room = self._next is not None
        if frees_room:
            self.wake()

    def stop(self) -> None:
        """Hand out no more requests: ``take`` returns empty lists from now on."""
        with self._lock:
            self._stopped = True
        self.wake()

    def close(self) -> None:
        self.stop()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=5)

    def wake(self) -> None:
        """Let waiting threads check again after a change outside of the stream, such as an answer."""
        with self._lock:
            self._changed.notify_all()
            if self._stopped or self._error is not None:
                self._resumed.notify_all()
            while self._waiters:
                loop, future = self._waiters.pop()
                with contextlib.suppress(RuntimeError):  # the loop has been closed: nobody waits there any more
                    loop.call_soon_threadsafe(_set, future)

    def take(self, max_n: int) -> list[Request]:
        """Return 1 to ``max_n`` prepared requests; blocks while none is ready; empty when the stream has ended."""
        with self._lock:
            self._is_async = False
            self._leave_to_threads()
            self._blocked += 1
            if not self._ready:
                self._changed.notify_all()
            try:
                while not self._ready and not self._ended():
                    if self._is_deadlock():
                        raise ModelError(
                            f"the model's respond took {len(self._held)} requests and waits for more without a "
                            "response to them: yield a Response for each request of a batch before the next take "
                            "(docs/model_guide.md)"
                        )
                    # ``has_open`` can change without a notification if a model dies: check again.
                    self._changed.wait(timeout=0.5)
                return self._pop(max_n)
            finally:
                self._blocked -= 1

    def take_full(self, max_n: int) -> list[Request] | None:
        """Return the next ``max_n`` requests of the source; ``None`` if the stream was stopped.

        There are fewer if no more become ready before open ones are answered, or if there is no room. While requests
        are held back, it waits until every answered document is scored: so batches do not depend on the time that
        scoring takes.
        """
        with self._lock:
            self._is_async = False
            self._leave_to_threads()
            self.forms_batches = True
            while not self._has_next(max_n) and self._more_may_come():
                self._was_short = self._was_short or bool(self._held)
                if self._is_filled:
                    self._is_filled = False
                    self._changed.notify_all()
                self._changed.wait(timeout=0.5)
            return None if self._stopped and self._error is None else self._pop(max_n)

    def _has_next(self, count: int) -> bool:
        """Return whether the next ``count`` requests are ready, without an earlier one still in preparation."""
        if count < 1:
            return True
        if len(self._ready) < count:
            return False
        last = self._turns[self._ready[count - 1].id]
        return sum(turn <= last for turn in self._turns.values()) == count

    @property
    def is_stopped(self) -> bool:
        """Whether the stream was stopped before its end."""
        return self._stopped

    async def take_async(self, max_n: int) -> list[Request]:
        """``take`` without blocking the event loop. If preparing is quick, it is done here instead of in a thread."""
        loop, self._is_async = asyncio.get_running_loop(), True
        while True:
            is_inline = self._is_inline
            if is_inline:
                await asyncio.sleep(0)  # what was taken before is sent first
                if self._prepare_here(min(max_n, TOGETHER)) and not self._ready:
                    continue  # these were answered already: let the loop do other work before the next ones
            with self._lock:
                if self._ready or self._ended():
                    return self._pop(max_n)
                if self._is_inline and not is_inline:
                    continue  # a thread has just left the work to this loop
                future: asyncio.Future[None] = loop.create_future()
                waiter = (loop, future)
                self._waiters.add(waiter)
            try:
                await future
            finally:
                with self._lock:
                    self._waiters.discard(waiter)

    def _pop(self, max_n: int) -> list[Request]:
        if self._error is not None:
            raise self._error
        if self._stopped:
            return []
        batch = [self._ready.popleft() for _ in range(min(max_n, len(self._ready)))]
        size = sum(request.payload_bytes for request in batch)
        for request in batch:
            del self._turns[request.id]
        self._ready_bytes -= size
        self._held_bytes += size
        self._held.update((request.id, request) for request in batch)
        if batch and (not self._is_filled or self._next is not None or self._may_pull()):
            self._changed.notify_all()
        return batch

    def _is_deadlock(self) -> bool:
        """Return whether the waiting thread is the only one that could answer what everything else waits for."""
        if self.answering != threading.get_ident() or not self._held or not self._exhausted:
            return False
        return not (self._ready or self._followups or self._next or self._preparing)

    def _ended(self) -> bool:
        if self._stopped or self._error is not None:
            return True
        idle = not (self._ready or self._followups or self._next or self._preparing)
        return idle and self._exhausted and not self._has_open()

    def _more_may_come(self) -> bool:
        if self._stopped or self._error is not None:
            return False
        is_waiting = bool(self._followups) or self._next is not None or self.is_fed()
        if not is_waiting and not self._exhausted:
            is_waiting = self._brake is None or not self._brake.is_ahead() or self._brake.is_settling()
        return self._preparing > 0 or (is_waiting and self._has_room())

    def _has_room(self) -> bool:
        if len(self._ready) + self._preparing >= self._limits.max_requests:
            return False
        if not self._ready and not self._preparing and (self._blocked or not self._held_bytes):
            return True  # prepare one request for a waiting model, whatever its size
        if self._next is not None and self._next.task.name in self._firsts:
            return False
        used = self._ready_bytes + self._held_bytes + self._reserved_bytes
        return used + self._sizes.expected(self._next) <= self._limits.max_bytes

    def _work(self) -> None:
        try:
            while self._has_work():
                if (claimed := self._claim()) is not None:
                    self._finish_timed(claimed)
                else:
                    self.wake()  # the event loop may have found the source taken by this thread
        except BaseException as error:  # noqa: BLE001 - a task's code may raise anything; ``take`` re-raises it
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._error = self._error or error
        self.wake()

    def _has_work(self) -> bool:
        """Wait while the event loop prepares; returns whether the stream has not ended."""
        with self._lock:
            while not (ended := self._ended()) and self._is_inline:
                self._resumed.wait(timeout=0.5)
            return not ended

    def _leave_to_threads(self) -> None:
        """End the preparation in an event loop, if there is one; the caller holds the lock."""
        if self._is_inline:
            self._is_inline = False
            self._resumed.notify_all()

    def _prepare_here(self, most: int) -> bool:
        """Prepare up to ``most`` requests in the event loop; returns whether there may be more."""
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)  # a task's functions may run a loop of their own
        try:
            for _ in range(most):
                if not self._is_inline or len(self._ready) >= most:
                    return True
                if (claimed := self._claim(waits=False)) is None:
                    return False
                self._finish_here(claimed)
            return True
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            asyncio._set_running_loop(loop)

    def _finish_here(self, claimed: tuple[Request, int]) -> None:
        """Prepare a request in the event loop, and leave the next ones to threads if that takes long."""
        began = time.monotonic()
        self._finish(*claimed)
        if self._handover.loop_did(time.monotonic() - began):
            with self._lock:
                self._leave_to_threads()

    def _finish_timed(self, claimed: tuple[Request, int]) -> None:
        # A thread's processor time takes a system call: measured only after a slow request.
        cpu = time.thread_time() if self._slow_in_a_row else 0.0
        began = time.monotonic()
        self._finish(*claimed)
        wall = time.monotonic() - began
        if self._slow_in_a_row or wall > HELP_FROM_CPU_S:
            self._call_help(time.thread_time() - cpu if cpu else wall, wall)
        if self._handover.thread_did(wall) and self._is_async:
            with self._lock:
                self._is_inline = self._is_async  # unless ``take`` or ``take_full`` has been called since
            self.wake()

    def _call_help(self, cpu_s: float, wall_s: float) -> None:
        """Start another thread if requests take long to prepare.

        For texts a second thread would only compete with the model's event loop for the interpreter's lock: on an idle
        machine the run would take a third longer, with a third more processor time. The same holds for the forward
        passes of a model that forms batches, as long as its next requests are ready in time.
        """
        is_slow = cpu_s > HELP_FROM_CPU_S or wall_s > HELP_FROM_WALL_S
        with self._lock:
            is_slow = is_slow and (self._was_short or not self.forms_batches)
            self._slow_in_a_row = self._slow_in_a_row + 1 if is_slow else 0
            if self._slow_in_a_row >= HELP_AFTER and self._started < len(self._threads) and not self._stopped:
                self._threads[self._started].start()
                self._started, self._slow_in_a_row = self._started + 1, 0

    def _claim(self, waits: bool = True) -> tuple[Request, int] | None:
        """Return the next request with the bytes that are reserved for it; ``None`` at the end.

        Without ``waits`` (in the event loop), and for a thread that is to rest, the result is also ``None`` if no
        request or no room for it is there now.
        """
        if not self._gate.acquire(blocking=waits):
            return None
        try:
            while True:
                with self._lock:
                    while not (ended := self._ended()) and self._next is None and not self._may_pull():
                        if self._is_inline or not waits:
                            return None
                        self._changed.wait(timeout=0.5)
                    if ended:
                        return None
                    if self._next is None and self._followups:
                        self._next = self._followups.popleft()
                request = self._next or next(self._source, None)
                with self._lock:
                    self._next = request
                    if request is not None:
                        break
                    self._exhausted = True
                self.wake()
            with self._lock:
                while not (ended := self._ended()) and not self._has_room():
                    if self._is_inline or not waits:
                        return None
                    self._changed.wait(timeout=0.5)
                return None if ended else self._reserved(request)
        finally:
            self._gate.release()

    def _reserved(self, request: Request) -> tuple[Request, int]:
        """Reserve room for the next request; the caller holds the lock."""
        self._next = None
        reserved = self._sizes.begin(request)
        if reserved is None:  # the first of its task, of unknown size: reserve all room
            self._firsts.add(request.task.name)
            used = self._ready_bytes + self._held_bytes + self._reserved_bytes
            reserved = max(self._sizes.expected(request), self._limits.max_bytes - used)
        self._preparing += 1
        self._turns[request.id] = self._claimed = self._claimed + 1
        self._reserved_bytes += reserved
        return request, reserved

    def _may_pull(self) -> bool:
        count, most = len(self._ready) + self._preparing, self._limits.max_requests
        self._is_filled = count >= most or (self._is_filled and count > most * REFILL_SHARE)
        if self._followups:
            return count < most
        return not (self._exhausted or self._is_filled or (self._brake is not None and self._brake.is_ahead()))

    def _finish(self, request: Request, reserved: int) -> None:
        prepared, failure = None, None
        try:
            prepared = self._prepare(request)
        except (UsageError, JournalError):
            raise  # a wrong media root, unusable data or a full disk affect every request, so the run ends
        except Exception as error:  # noqa: BLE001 - media and task functions may raise anything: this sample fails
            failure = error
        if failure is not None:
            self._on_failure(request, failure)
        with self._lock:
            self._preparing -= 1
            self._reserved_bytes -= reserved
            if prepared is None:
                del self._turns[request.id]
            else:
                turn, place = self._turns[prepared.id], len(self._ready)
                while place and self._turns[self._ready[place - 1].id] > turn:  # at or near the end
                    place -= 1
                self._ready.insert(place, prepared)
                self._ready_bytes += prepared.payload_bytes
                self.peak_bytes = max(self.peak_bytes, self._ready_bytes + self._held_bytes)
            self._firsts.discard(request.task.name)
            self._sizes.finish(request, None if prepared is None else prepared.payload_bytes)
            self.wake()


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
