"""Replies of servers within a bound. Imported only where a model is built (aiohttp takes a tenth of a second)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, ClassVar

import aiohttp

from lmms_eval.models.openai.errors import AttemptError


class BoundedResponse(aiohttp.ClientResponse):  # type: ignore[misc]  # aiohttp is not looked into
    """Holds an answer of which no more than ``max_bytes`` are read, counted after decompression.

    Raises:
        AttemptError: ``malformed``, by ``read`` and what goes through it; not retried.
    """

    max_bytes: ClassVar[int]
    _body: Any

    async def read(self) -> bytes:
        """Read the whole body."""
        told = None if "Content-Encoding" in self.headers else self.content_length
        if self._body is None and (told is None or told > self.max_bytes):
            with ExitStack() as unless_read:
                unless_read.callback(self.close)
                self._body = await read_whole(self.content, self.max_bytes, f"{self.url.origin()}{self.url.path}")
                unless_read.pop_all()
        body: bytes = await super().read()
        return body


async def read_whole(content: Any, max_bytes: int, address: str) -> bytes:
    """Read all of an ``aiohttp.StreamReader``.

    Raises:
        AttemptError: ``malformed``, more than ``max_bytes``; names ``address``.
    """
    if content.is_eof():  # all of it came with the head
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


def bounded_response(max_mb: int) -> type[BoundedResponse]:
    """Make the class of answers for ``aiohttp.ClientSession(response_class=...)``; ``max_mb`` in MiB."""
    return type("BoundedResponse", (BoundedResponse,), {"max_bytes": max_mb << 20})
