"""Small requests to one address over aiohttp's connections. Imported only where a model is built.

``ClientSession.post`` makes URL, headers, cookies, timers and an answer object anew for each request, which takes more
time than all the rest. To one address everything but the body is the same: request line and headers are made once here.
Connections (their pool, names, TLS) and the reading of answers (chunks, compression) are aiohttp's as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp.http import HttpProcessingError
from yarl import URL

from lmms_eval.models.remote.bounded import read_whole
from lmms_eval.models.remote.time_limit import TimeLimit

CONTINUES = range(100, 200)
"""Statuses before that of the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer, its body read and decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class DirectPost:
    """Posts bodies to ``url`` by the connections, headers and time limits of ``session``; no proxy stands between.

    Raises:
        ValueError: a header of the session holds a line break.
    """

    def __init__(self, session: aiohttp.ClientSession, url: str, max_bytes: int) -> None:
        self._connector, self._timeout, self._max_bytes = session.connector, session.timeout, max_bytes
        self._limit = TimeLimit(self._timeout.total)
        address = URL(url)
        self._address = f"{address.origin()}{address.path}"
        # Names the connections in the pool, and has the headers that aiohttp adds; it is never sent itself.
        self._like = aiohttp.ClientRequest("POST", address, headers=session.headers, loop=asyncio.get_running_loop())
        lines = [f"{name}: {value}" for name, value in self._like.headers.items() if name.lower() != "content-length"]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a header holds a line break")
        head = "\r\n".join((f"POST {self._like.url.raw_path_qs} HTTP/1.1", *lines, "Content-Length: "))
        self._head = head.encode("utf-8")

    async def post(self, body: bytes) -> Answer:
        """Send a body and read the answer, whatever its status.

        Raises:
            aiohttp.ClientError: no connection, or one that broke; no HTTP.
            TimeoutError: no answer within the session's time limit.
            AttemptError: an answer that is too large.
        """
        return await self._limit.wait_for(self._post(body))

    async def _post(self, body: bytes) -> Answer:
        connection = await self._connect()
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
            return Answer(message.code, message.headers, whole)
        finally:
            connection.close()  # nothing is left to close of one that was released

    async def _connect(self) -> Any:
        try:
            return await self._connector.connect(self._like, [], self._timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {self._address}") from error
