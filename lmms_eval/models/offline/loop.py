"""An event loop for an engine alone, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
ABORT_S = 5.0
"""Longest wait for the end of a call that was cancelled."""


class EngineLoop:
    """Runs the calls of an engine as long as it lives.

    Engines tie their tasks and sockets to the loop in which they are first called, whereas every stream of requests
    (a run, its check of batches, the next run) is driven by a loop of its own.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine", daemon=True)
        self._thread.start()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a call to its end. One that is cancelled here is cancelled there, and its end is waited for."""
        caller = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = caller.create_future()
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(ended)

        def ended(task: asyncio.Task[T]) -> None:
            with contextlib.suppress(RuntimeError):  # the caller's loop is closed: nobody waits any more
                caller.call_soon_threadsafe(_pass_on, task, outcome)

        self._loop.call_soon_threadsafe(begin)
        try:
            return await asyncio.shield(outcome)
        except asyncio.CancelledError:
            self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
            await asyncio.wait([outcome], timeout=ABORT_S)
            if outcome.done() and not outcome.cancelled():
                outcome.exception()  # nobody's any more
            raise

    def close(self, last: Callable[[], None]) -> None:
        """Call the engine's ``last`` function among its tasks, then end the loop, whatever runs in it."""

        async def end() -> None:
            last()

        def stop() -> None:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.call_soon(self._loop.stop)

        try:
            asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(stop)
            self._thread.join(ABORT_S)
            if not self._thread.is_alive():
                self._loop.close()


def _pass_on(task: asyncio.Task[T], outcome: asyncio.Future[T]) -> None:
    if outcome.done():
        return
    if task.cancelled():
        outcome.cancel()
    elif (error := task.exception()) is not None:
        outcome.set_exception(error)
    else:
        outcome.set_result(task.result())
