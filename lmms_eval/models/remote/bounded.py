"""Replies of servers within a bound. Imported only where a model is built (aiohttp takes a tenth of a second)."""

from __future__ import annotations

from typing import Any, ClassVar

import aiohttp

from lmms_eval.models.openai.errors import AttemptError


class BoundedResponse(aiohttp.ClientResponse):  # type: ignore[misc]  # aiohttp is not looked into
    """An answer of which no more than ``max_bytes`` are read, counted after decompression.

    Raises:
        AttemptError: ``malformed``, by ``read`` and what goes through it; not retried.
    """

    max_bytes: ClassVar[int]
    _body: Any

    async def read(self) -> bytes:
        """The whole body."""
        told = None if "Content-Encoding" in self.headers else self.content_length
        if self._body is None and (told is None or told > self.max_bytes):
            pieces, size = [], 0
            try:
                async for piece in self.content.iter_any():
                    size += len(piece)
                    if size > self.max_bytes:
                        raise self._too_large()
                    pieces.append(piece)
            except BaseException:
                self.close()
                raise
            self._body = b"".join(pieces)
        body: bytes = await super().read()
        return body

    def _too_large(self) -> AttemptError:
        address = f"{self.url.origin()}{self.url.path}"
        return AttemptError(
            "malformed",
            f"{address} sent a reply of more than {self.max_bytes >> 20} MiB (max_reply_mb=...)",
            retry=False,
        )


def bounded_response(max_mb: int) -> type[BoundedResponse]:
    """The class of answers for ``aiohttp.ClientSession(response_class=...)``; ``max_mb`` in MiB."""
    return type("BoundedResponse", (BoundedResponse,), {"max_bytes": max_mb << 20})
