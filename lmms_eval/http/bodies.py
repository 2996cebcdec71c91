"""Middleware that bounds the bodies of requests, in size and in time, before anything reads them."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 1 << 20
MOST_S = 20.0
"""Seconds in which a body has to come."""
_READ_OVER = 16 << 20
"""Bytes that are read, and thrown away, so that who has sent too much may read why."""
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class _BodyError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class BoundedBody:
    """An application that is given whole bodies, of a bounded size."""

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
        """Read the body; ``None``: the client has gone. Raises ``_BodyError``."""
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
    """Give a body that was read to an application, and from then on what comes."""
    is_given = False

    async def given() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return given
