"""Running a coroutine to its end, also where a signal handler raises in the middle of it.

``asyncio.run`` then waits without end: an exception that strikes between two steps of a task takes the next step with
it, so that the task never hears of its cancellation. Here cancelled tasks are waited for a moment only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from lmms_eval.engine.signals import EndNow

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
