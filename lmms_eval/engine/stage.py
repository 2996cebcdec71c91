"""Threads that process the items of a bounded queue, and errors that end a group of threads."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

LENGTH = 512
LOOK_S = 0.5
"""Seconds between two checks of a waiting thread whether the work failed or was stopped."""
GATHER_S = 0.005
"""Pause of a stage's only thread after it waited for an item, so that several accumulate: waking up for each one takes
as long as scoring a text."""
FULL_S = 0.01
"""Seconds between two checks of a full queue."""

Item = TypeVar("Item")


class Failure:
    """The first error of a group of threads. It ends all of them, and is raised in the thread that submits work.

    ``on_error`` is called after every error, in the thread that raised it.
    """

    def __init__(self, on_error: Callable[[], None] = lambda: None) -> None:
        self.error: BaseException | None = None
        self._on_error = on_error
        self._lock = threading.Lock()

    def carry(self, error: BaseException) -> None:
        """Store an error unless there already is one."""
        with self._lock:
            self.error = self.error or error
        self._on_error()

    def check(self) -> None:
        """Raise the error, if there is one."""
        if self.error is not None:
            raise self.error

    def thread(self, run: Callable[[], None], name: str) -> threading.Thread:
        """Return an unstarted thread whose error is stored."""
        return threading.Thread(target=self._guarded, args=(run,), name=name, daemon=True)

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - stored for the thread that submits work, which re-raises it
            self.carry(error)


QUICK_S = 0.0003
"""Maximum wall time of a piece of work that an event loop does itself. Preparing a text takes a fifth of it."""
QUICK_AFTER = 16
"""Number of consecutive quick pieces after which the event loop does the work."""
SLOW_AFTER, BLOCKED_S = 3, 0.05
"""Number of consecutive slow pieces, and wall time of a single one, after which threads do the work again."""
QUICK_AGAIN, QUICK_AT_MOST = 4, 1024
"""Factor of ``QUICK_AFTER`` each time that threads do the work again, and its maximum: on a busy machine, any process
stops for longer than ``BLOCKED_S`` now and then."""


class Handover:
    """Decides whether an event loop does some work itself or leaves it to threads.

    Threads that alternate with the event loop, since both need the interpreter's lock, make each request of a text a
    fifth more expensive. Work that takes long would delay all open requests.
    """

    def __init__(self) -> None:
        self._quick = self._slow = 0
        self._quick_after = QUICK_AFTER

    def thread_did(self, seconds: float) -> bool:
        """Note a piece of work of a thread; returns whether the event loop should do the next ones."""
        self._quick = 0 if seconds > QUICK_S else self._quick + 1
        return self._quick >= self._quick_after

    def loop_did(self, seconds: float) -> bool:
        """Note a piece of work of the event loop; returns whether threads should do the next ones."""
        self._slow = 0 if seconds <= QUICK_S else self._slow + 1
        if self._slow < SLOW_AFTER and seconds <= BLOCKED_S:
            return False
        self._quick = self._slow = 0
        self._quick_after = min(self._quick_after * QUICK_AGAIN, QUICK_AT_MOST)
        return True


class Stage(Generic[Item]):
    """Threads that process a queue of items; the first item starts them.

    ``run`` is the body of a thread. It gets an iterator over items, which ends after ``drain``, ``stop`` or a failure.
    ``failure`` is shared with all work that must end together with this stage.
    """

    def __init__(
        self, run: Callable[[Iterator[Item]], None], failure: Failure, name: str, threads: int = 1, length: int = LENGTH
    ) -> None:
        self._run, self._failure, self._name, self._count = run, failure, name, threads
        self._queue: queue.SimpleQueue[tuple[Item] | None] = queue.SimpleQueue()  # a third of the time of a ``Queue``
        self._length = length
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_stopped = False

    @property
    def is_full(self) -> bool:
        """Whether ``put`` might block."""
        return self._queue.qsize() >= self._length and not self._is_over()

    def put(self, item: Item) -> None:
        """Add an item; blocks while the queue is full. Raises the error that ended the work."""
        with self._lock:
            if not self._threads:
                self._threads = [
                    self._failure.thread(lambda: self._run(self._items()), f"{self._name}-{number}")
                    for number in range(self._count)
                ]
                for thread in self._threads:
                    thread.start()
        self._enqueue((item,))
        self._failure.check()

    def drain(self) -> None:
        """Wait until every item is processed. Raises the error that ended the work."""
        for _ in self._threads:
            self._enqueue(None)
        for thread in self._threads:
            thread.join()
        self._threads = []
        self._failure.check()

    def stop(self) -> None:
        """Process no further items."""
        self._is_stopped = True

    def join(self, timeout_s: float) -> None:
        """Wait for all threads to end, at most ``timeout_s`` seconds in total."""
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(timeout=max(0.0, deadline - time.monotonic()))

    def _is_over(self) -> bool:
        return self._is_stopped or self._failure.error is not None

    def _enqueue(self, entry: tuple[Item] | None) -> None:
        while not self._is_over():
            if self._queue.qsize() < self._length:
                self._queue.put(entry)
                return
            time.sleep(FULL_S)

    def _items(self) -> Iterator[Item]:
        while not self._is_over():
            must_wait = self._queue.empty()
            try:
                entry = self._queue.get(timeout=LOOK_S)
            except queue.Empty:
                continue
            if must_wait and self._count == 1:
                time.sleep(GATHER_S)
            if entry is None:
                return
            yield entry[0]
