"""Limits of size and time for requests over aiohttp. Imported when a model is built, as aiohttp is slow to import."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, TypeVar

import aiohttp

from lmms_eval.models.remote.errors import AttemptError

Result = TypeVar("Result")


async def read_whole(content: Any, max_bytes: int, address: str) -> bytes:
    """Read all of an ``aiohttp.StreamReader``, which counts bytes after decompression.

    Raises:
        AttemptError: ``malformed``, not retried, if there are more than ``max_bytes``. The message names ``address``.
    """
    if content.is_eof():  # the whole body arrived with the head
        pieces = [content.read_nowait()]
        size = len(pieces[0])
    else:
        pieces, size = [], 0
        async for piece in content.iter_any():
            size += len(piece)
            if size > max_bytes:
                break
            pieces.append(piece)
    if size > max_bytes:
        message = f"{address} sent a reply of more than {max_bytes >> 20} MiB (max_reply_mb=...)"
        raise AttemptError("malformed", message, retry=False)
    return b"".join(pieces)


class BoundedResponse(aiohttp.ClientResponse):  # type: ignore[misc]  # aiohttp has no types here
    """A response that reads at most ``max_bytes``, for packages that read it themselves.

    Raises:
        AttemptError: ``malformed``, from each method, if the body is larger.
    """

    max_bytes: ClassVar[int]
    _whole: bytes | None = None

    async def read(self) -> bytes:
        """Read the whole body."""
        if self._whole is None:
            try:
                self._whole = await read_whole(self.content, self.max_bytes, f"{self.url.origin()}{self.url.path}")
            except BaseException:
                self.close()
                raise
        return self._whole

    async def text(self, encoding: str | None = None, errors: str = "strict") -> str:
        """Decode the whole body. Without a declared encoding, it is UTF-8."""
        return (await self.read()).decode(encoding or self.charset or "utf-8", errors)

    async def json(
        self,
        *,
        encoding: str | None = None,
        loads: Callable[[str], Any] = json.loads,
        content_type: str | None = "application/json",
    ) -> Any:
        """Decode the whole body as JSON.

        Raises:
            aiohttp.ContentTypeError: the content type is neither ``content_type`` nor one that ends in ``+json``.
        """
        text = await self.text(encoding)
        if content_type and self.content_type != content_type and not self.content_type.endswith("+json"):
            message = f"the content type is {self.content_type}, not {content_type}"
            raise aiohttp.ContentTypeError(self.request_info, self.history, status=self.status, message=message)
        return loads(text)


def bounded_response(max_mb: int) -> type[BoundedResponse]:
    """Return the class for ``aiohttp.ClientSession(response_class=...)``. ``max_mb`` is in MiB."""
    return type("BoundedResponse", (BoundedResponse,), {"max_bytes": max_mb << 20})


class TimeLimit:
    """Limits waits in one event loop, each in its own task, to ``seconds``.

    This is ``asyncio.timeout`` with a single timer, that of the oldest wait: creating and cancelling a timer for every
    request takes longer than reading a short answer.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadlines: dict[asyncio.Task[Any], float] = {}
        """Deadlines by task, the oldest first, as all waits have the same length."""
        self._ended: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def wait_for(self, work: Awaitable[Result]) -> Result:
        """Await ``work`` in the current task.

        Raises:
            TimeoutError: ``work`` took too long and was cancelled.
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
            if task in self._ended and task.uncancel() <= cancelling:  # otherwise it was also cancelled from elsewhere
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
