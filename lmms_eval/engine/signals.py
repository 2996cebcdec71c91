"""First SIGINT, SIGTERM or SIGHUP: stop taking, finish what is in flight in the grace time. A second one: end now."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import FrameType, TracebackType
from typing import Any, TypeVar


class EndNow(KeyboardInterrupt):
    """Ends the asking at once. No ``Exception``: neither the code of models and tasks nor an event loop swallows it."""


class Interrupts:
    """Context in which the signals are taken. Outside the main thread it does nothing.

    SIGHUP (the terminal or the connection is gone) is left alone where it is ignored, as by ``nohup``.

    Raises ``EndNow`` in the main thread at the second signal, or when the grace time after the first is over.

    Args:
        on_first: called at the first signal.
        grace_s: the grace time.
        what: is given the grace time.
        before: number of a signal that has come already: the next one is the second.
    """

    def __init__(
        self, on_first: Callable[[], None], grace_s: float, what: str = "what is in flight", before: int | None = None
    ) -> None:
        self._on_first, self._grace_s, self._what = on_first, grace_s, what
        self._previous: dict[int, object] = {}
        self._is_over = False
        self._timer = threading.Lock()
        self.signal_number = before

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                    continue
                self._previous[number] = signal.signal(number, self._handle)
            self._previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._expire)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._timer:
            self._is_over = True  # a signal that comes while the handlers are put back must not leave half of them here
        if self._previous:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in self._previous.items():
                # A handler that was not set from Python reads as None and cannot be put back.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)  # type: ignore[arg-type]

    def end_soon(self) -> None:
        """Begin the grace time for what is in flight, as a first signal does; from any thread."""
        with self._timer:
            if self._previous and not self._is_over:
                signal.setitimer(signal.ITIMER_REAL, max(self._grace_s, 0.001))

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._is_over:
            return
        if self.signal_number is not None:
            raise EndNow("stopped at once by a second signal; what was finished is kept")
        self.signal_number = number
        _tell(f"stopping: {self._what} has {self._grace_s:g} s to finish; a second signal ends at once\n")
        signal.setitimer(signal.ITIMER_REAL, max(self._grace_s, 0.001))
        self._on_first()

    def _expire(self, _number: int, _frame: FrameType | None) -> None:
        if not self._is_over:
            raise EndNow(f"{self._what} did not end within {self._grace_s:g} s; what was finished is kept")


def _tell(text: str) -> None:
    """Write straight to standard error: a handler may interrupt code that holds the lock of a stream or a logger."""
    with contextlib.suppress(OSError, ValueError):  # closed, or no file of the system behind it
        number = sys.stderr.fileno()
        # On a terminal the display of progress, or the ^C that was typed, stands on the line.
        os.write(number, (f"\n{text}" if os.isatty(number) else text).encode())


INTERRUPTED_S = 2.0
"""Of each part of the end, after ``EndNow``."""
Result = TypeVar("Result")


def run_coroutine(work: Coroutine[Any, Any, Result]) -> Result:
    """Run as ``asyncio.run`` does, but after ``EndNow`` no task is waited for longer than ``INTERRUPTED_S``.

    In a thread that runs an event loop already (a notebook) the work gets a thread of its own.

    Raises:
        EndNow: a signal handler raised it.
    """
    if _runs_loop():
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: run_coroutine(work)).result()
    loop = new_event_loop()
    limit: float | None = None
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(work)
    except EndNow:
        limit = INTERRUPTED_S
        loop.set_exception_handler(lambda _loop, _context: None)  # of tasks that never end: it is known
        raise
    finally:
        try:
            _end(loop, limit)
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _runs_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Make a loop: uvloop's where it is installed, else asyncio's."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _end(loop: asyncio.AbstractEventLoop, limit: float | None) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    _wait(loop, tasks, limit)
    _wait(loop, {loop.create_task(loop.shutdown_asyncgens())}, limit)
    _wait(loop, {loop.create_task(loop.shutdown_default_executor())}, limit)


def _wait(loop: asyncio.AbstractEventLoop, tasks: set[asyncio.Task[Any]], limit: float | None) -> None:
    if not tasks:
        return
    done, _ = loop.run_until_complete(asyncio.wait(tasks, timeout=limit))
    for task in done:
        if not task.cancelled():
            task.exception()  # what a cancelled task raises is nobody's
