"""Small requests to one address over aiohttp's connections. Imported when a model is built.

``ClientSession.post`` creates the URL, headers, cookies, timers and an answer object for each request, which takes more
time than everything else. Requests to one address only differ in their bodies, so the request line and the headers are
created once here. Connections (pool, name resolution, TLS) and the reading of answers (chunks, compression) are left to
aiohttp.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, TypeVar

import aiohttp
from aiohttp.http import HttpProcessingError
from yarl import URL

from lmms_eval.models.remote.errors import AttemptError

Result = TypeVar("Result")
CONTINUES = range(100, 200)
"""Statuses that precede that of the answer."""


class BoundedResponse(aiohttp.ClientResponse):  # type: ignore[misc]  # aiohttp has no types here
    """An answer that is read up to ``max_bytes``, counted after decompression.

    Raises:
        AttemptError: ``malformed``, from ``read`` and methods that use it; not retried.
    """

    max_bytes: ClassVar[int]
    _body: Any

    async def read(self) -> bytes:
        """Read the whole body."""
        length = None if "Content-Encoding" in self.headers else self.content_length
        if self._body is None and (length is None or length > self.max_bytes):
            with ExitStack() as unless_read:
                unless_read.callback(self.close)
                self._body = await read_whole(self.content, self.max_bytes, f"{self.url.origin()}{self.url.path}")
                unless_read.pop_all()
        body: bytes = await super().read()
        return body


async def read_whole(content: Any, max_bytes: int, address: str) -> bytes:
    """Read a whole stream. Raises ``AttemptError``, naming ``address``, if it has more than ``max_bytes``."""
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
        raise AttemptError("malformed", f"{address} {too_large(max_bytes)}", retry=False)
    return b"".join(pieces)


def too_large(max_bytes: int) -> str:
    """Return the end of the message about a reply that is too large."""
    return f"sent a reply of more than {max_bytes >> 20} MiB (max_reply_mb=...)"


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
        """Await ``work`` in the current task. Raises ``TimeoutError`` if ``work`` took too long and was cancelled."""
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


DirectAnswer = tuple[int, Mapping[str, str], bytes]
"""The status, headers and decompressed body of a server's answer."""


class DirectPost:
    """Posts bodies to ``url`` with the connections, headers and time limits of ``session``, without a proxy.

    Raises:
        ValueError: a header of the session contains a line break.
    """

    def __init__(self, session: aiohttp.ClientSession, url: str, max_bytes: int) -> None:
        self._connector, self._timeout, self._max_bytes = session.connector, session.timeout, max_bytes
        self._limit = TimeLimit(self._timeout.total)
        address = URL(url)
        self._address = f"{address.origin()}{address.path}"
        # Identifies the connections in the pool, and has the headers that aiohttp adds. It is never sent.
        self._like = aiohttp.ClientRequest("POST", address, headers=session.headers, loop=asyncio.get_running_loop())
        lines = [f"{name}: {value}" for name, value in self._like.headers.items() if name.lower() != "content-length"]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a header holds a line break")
        head = "\r\n".join((f"POST {self._like.url.raw_path_qs} HTTP/1.1", *lines, "Content-Length: "))
        self._head = head.encode("utf-8")

    async def post(self, body: bytes) -> DirectAnswer:
        """Send a body and read the answer, whatever its status.

        Raises:
            aiohttp.ClientError: the connection failed or broke, or the answer is not HTTP.
            TimeoutError: there was no answer within the session's time limit.
            AttemptError: the answer is too large.
        """
        return await self._limit.wait_for(self._post(body))

    async def _post(self, body: bytes) -> DirectAnswer:
        try:
            connection = await self._connector.connect(self._like, [], self._timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {self._address}") from error
        try:
            protocol = connection.protocol
            protocol.set_response_params(read_until_eof=True)
            connection.transport.write(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
            try:
                message, content = await protocol.read()
                while message.code in CONTINUES:
                    message, content = await protocol.read()
            except HttpProcessingError as error:
                raise aiohttp.ClientResponseError(
                    self._like.request_info, (), status=error.code, message=error.message
                ) from error
            whole = await read_whole(content, self._max_bytes, self._address)
            connection.release()
            return message.code, message.headers, whole
        finally:
            connection.close()  # no effect after the release
