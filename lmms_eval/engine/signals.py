"""Signals: after the first SIGINT, SIGTERM or SIGHUP open requests may finish; a second one ends the run at once."""

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
    """Ends the asking at once. Not an ``Exception``, so that code of models and tasks does not catch it."""


class Interrupts:
    """Context that handles the signals. Outside the main thread it does nothing.

    SIGHUP (the terminal or the connection is gone) stays ignored if it is ignored already, as under ``nohup``.

    ``EndNow`` is raised in the main thread at the second signal, or when the grace time after the first is over.

    Args:
        on_first: called at the first signal.
        grace_s: the grace time in seconds.
        what: description of the work that may finish in the grace time.
        before: number of a signal that arrived earlier: the next one counts as the second.
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
            self._is_over = True  # ignore signals that arrive while the handlers are being restored
        if self._previous:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in self._previous.items():
                # A handler that was not set from Python is None and cannot be restored.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)  # type: ignore[arg-type]

    def end_soon(self) -> None:
        """Begin the grace time as a first signal does; from any thread."""
        with self._timer:
            if self._previous and not self._is_over:
                signal.setitimer(signal.ITIMER_REAL, max(self._grace_s, 0.001))

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._is_over:
            return
        if self.signal_number is not None:
            raise EndNow("stopped at once by a second signal; what was finished is kept")
        self.signal_number = number
        _write_stderr(f"stopping: {self._what} has {self._grace_s:g} s to finish; a second signal ends at once\n")
        signal.setitimer(signal.ITIMER_REAL, max(self._grace_s, 0.001))
        self._on_first()

    def _expire(self, _number: int, _frame: FrameType | None) -> None:
        if not self._is_over:
            raise EndNow(f"{self._what} did not end within {self._grace_s:g} s; what was finished is kept")


def _write_stderr(text: str) -> None:
    """Write directly to standard error: a handler may interrupt code that holds the lock of a stream or a logger."""
    with contextlib.suppress(OSError, ValueError):  # it is closed, or not a file of the system
        number = sys.stderr.fileno()
        # On a terminal the line already shows the progress bar or a typed ^C.
        os.write(number, (f"\n{text}" if os.isatty(number) else text).encode())


INTERRUPTED_S = 2.0
"""Seconds for each step of closing an event loop after ``EndNow``."""
Result = TypeVar("Result")


def run_coroutine(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine like ``asyncio.run``, but after ``EndNow`` wait for each step at most ``INTERRUPTED_S``.

    In a thread that already runs an event loop (a notebook) the coroutine runs in another thread. Raises ``EndNow`` if
    a signal handler raised it.
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
        loop.set_exception_handler(lambda _loop, _context: None)  # do not log tasks that never end
        raise
    finally:
        try:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            _wait(loop, tasks, limit)
            _wait(loop, {loop.create_task(loop.shutdown_asyncgens())}, limit)
            _wait(loop, {loop.create_task(loop.shutdown_default_executor())}, limit)
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
    """Return a new event loop: uvloop's if it is installed, else asyncio's."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _wait(loop: asyncio.AbstractEventLoop, tasks: set[asyncio.Task[Any]], limit: float | None) -> None:
    if not tasks:
        return
    done, _ = loop.run_until_complete(asyncio.wait(tasks, timeout=limit))
    for task in done:
        if not task.cancelled():
            task.exception()  # marks the exception of a cancelled task as retrieved
