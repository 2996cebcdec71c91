"""Limits of connections and request bodies: their number, size, and the time that they may occupy the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
from typing import Any

import h11
import uvicorn
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_BYTES = 1 << 20
MOST_S = 20.0
"""The maximum seconds until a body has arrived."""
_READ_OVER = 16 << 20
"""Bytes of a too large body that are read and discarded, so that the client can read the answer."""
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
HEADER_S = 10.0
"""The maximum seconds until the head of a request has arrived."""
STALLED_S = 60.0
"""The maximum seconds in a row that a client reads nothing of an answer."""
MOST_CONNECTIONS = 1600
"""If so many connections are open, requests are answered with 503."""
_DROPPED_FROM = 2048
"""If so many connections are open, new ones are closed unread."""
HEADER_BYTES = 32 << 10
"""Bytes of a request's head. Browsers send every server on a machine the cookies of all of them."""
_FILES = 4096
_WAITING = 1024
"""The maximum number of connections that wait to be accepted."""


class _BodyError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class BoundedBody:
    """Application that receives whole bodies of a limited size."""

    def __init__(self, app: ASGIApp, most_bytes: int = MOST_BYTES, most_s: float = MOST_S) -> None:
        self._app, self._most_bytes, self._most_s = app, most_bytes, most_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in _WITH_BODY:
            await self._app(scope, receive, send)
            return
        try:
            body = await self._read(Headers(scope=scope).get("content-length", ""), receive)
        except _BodyError as error:
            answer = JSONResponse({"detail": str(error)}, error.status, {"connection": "close"})
            await answer(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _given(body, receive), send)

    async def _read(self, length: str, receive: Receive) -> bytes | None:
        """Read the body; ``None`` if the client has disconnected. Raises ``_BodyError``."""
        too_large = _BodyError(413, f"the body is larger than {self._most_bytes} bytes")
        if length.isascii() and length.isdigit() and (len(length) > 12 or int(length) > _READ_OVER):
            raise too_large
        kept, size = bytearray(), 0
        try:
            async with asyncio.timeout(self._most_s):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    piece, more = message.get("body", b""), message.get("more_body", False)
                    size += len(piece)
                    if size > _READ_OVER:
                        raise too_large
                    if size <= self._most_bytes:
                        kept += piece
        except TimeoutError:
            raise _BodyError(408, f"the body did not come within {self._most_s:g} seconds") from None
        if size > self._most_bytes:
            raise too_large
        return bytes(kept)


def _given(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that yields the body that was read, and then what the client sends."""
    is_given = False

    async def given() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return given


class BoundedConnection(H11Protocol):
    """Connection of uvicorn with the limits that uvicorn leaves to a proxy."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        if len(self.connections) > _DROPPED_FROM:
            transport.abort()
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end_waiting()
        self.resume_stalled()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.resume_stalled()

    def resume_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _await_head(self) -> None:
        """Limit the time until the next request has begun. A head that arrives byte by byte does not extend it."""
        has_begun = self.cycle is not None and not self.cycle.response_complete
        if has_begun or self.conn.our_state is h11.ERROR:
            self._end_waiting()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_S, self.transport.abort)

    def _end_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port of a host, or on any free port for 0.

    Raises:
        socket.gaierror: the host has no address.
        OSError: the port is in use or not permitted, or the address is not one of this machine.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    # If the protocol is named, asyncio sends small answers at once instead of waiting 40 ms for the client.
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # the port of a server that has just ended is still reserved
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_WAITING)
    except OSError:
        listener.close()
        raise
    return listener


def bounded_config(app: ASGIApp, **more: Any) -> uvicorn.Config:
    """Return uvicorn settings with limited connections, plus further settings of uvicorn.

    The limit of open files of this process is raised to the number of connections, as far as the system allows.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, ws="none", http=BoundedConnection,
        h11_max_incomplete_event_size=HEADER_BYTES, limit_concurrency=MOST_CONNECTIONS, proxy_headers=False, **more,
    )  # fmt: skip
