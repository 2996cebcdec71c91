"""Keeps requests open: a feeder takes from the stream whenever a slot is free, each request is a task of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from lmms_eval.api.model import RequestStream
from lmms_eval.api.request import Request, Response
from lmms_eval.models.openai.concurrency import Gate


class Dispatcher:
    """Runs ``ask`` for the requests of one stream. A slot is refilled whether or not the answer is read already.

    A refused key refuses every request, so after one nothing more is taken.
    """

    def __init__(self, gate: Gate, ask: Callable[[Request], Coroutine[Any, Any, Response]]) -> None:
        self._gate, self._ask = gate, ask
        self._tasks: set[asyncio.Task[Response]] = set()
        self._fed = self._is_refused = False
        self._done: asyncio.Queue[Response | BaseException | None] = asyncio.Queue()

    async def run(self, stream: RequestStream) -> AsyncGenerator[Response, None]:
        """Responses in the order in which they arrive. Closing it cancels what is open and waits for that."""
        feeder = asyncio.create_task(self._feed(stream))
        feeder.add_done_callback(self._feeder_ended)
        try:
            while (item := await self._done.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            await _cancel({feeder})
            await _cancel(self._tasks)

    async def _feed(self, stream: RequestStream) -> None:
        while True:
            room = await self._gate.room()
            if self._is_refused or not (batch := await stream.take_async(room)):
                return
            for request in batch:
                self._gate.opened()
                task = asyncio.create_task(self._ask(request))
                self._tasks.add(task)
                task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[Response]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            error = task.exception()
            item = task.result() if error is None else error
            self._is_refused |= isinstance(item, Response) and item.error is not None and item.error.kind == "auth"
            self._done.put_nowait(item)
        self._gate.closed()
        self._end_if_all_done()

    def _feeder_ended(self, feeder: asyncio.Task[None]) -> None:
        self._fed = True
        error = None if feeder.cancelled() else feeder.exception()
        if error is not None:
            self._done.put_nowait(error)
        self._end_if_all_done()

    def _end_if_all_done(self) -> None:
        if self._fed and not self._tasks:
            self._done.put_nowait(None)


async def _cancel(tasks: set[asyncio.Task[Response]] | set[asyncio.Task[None]]) -> None:
    pending = [task for task in tasks if not task.done()]
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
