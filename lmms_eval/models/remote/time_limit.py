"""One time limit for many waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

Result = TypeVar("Result")


class TimeLimit:
    """Ends waits of one event loop that take more than ``seconds``, each in a task of its own.

    Does what ``asyncio.timeout`` does with one timer for all of them, that of the oldest: making and cancelling one for
    every request takes longer than reading a short answer.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadlines: dict[asyncio.Task[Any], float] = {}
        """By task, the oldest first, since all waits are equally long."""
        self._ended: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def wait_for(self, work: Awaitable[Result]) -> Result:
        """Await ``work`` in the current task.

        Raises:
            TimeoutError: it took too long, and was cancelled.
        """
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None  # coroutines run in tasks
        cancelling = task.cancelling()
        self._deadlines[task] = deadline = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_at(deadline, self._look)
        try:
            return await work
        except asyncio.CancelledError as error:
            if task in self._ended and task.uncancel() <= cancelling:  # else somebody else has cancelled it too
                raise TimeoutError from error
            raise
        finally:
            self._deadlines.pop(task, None)
            self._ended.discard(task)

    def _look(self) -> None:
        loop, self._timer = asyncio.get_running_loop(), None
        for task, deadline in list(self._deadlines.items()):
            if deadline > loop.time():
                self._timer = loop.call_at(deadline, self._look)
                return
            del self._deadlines[task]
            self._ended.add(task)
            task.cancel()
