"""The HTTP client for single attempts. Imported when a model is built, as aiohttp is slow to import."""

from __future__ import annotations

import io
import urllib.request
from collections.abc import AsyncIterator, Callable
from time import perf_counter
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
from msgspec.structs import replace

from lmms_eval.errors import ModelError
from lmms_eval.models.openai.arguments import Endpoint
from lmms_eval.models.remote.arguments import RemoteArguments
from lmms_eval.models.remote.direct import DirectAnswer, DirectPost, bounded_response, too_large
from lmms_eval.models.remote.errors import AttemptError, Failures, shorten
from lmms_eval.models.remote.reply import Reply, parse_reply
from lmms_eval.models.remote.streams import EventReader, StreamedAnswer

CONNECT_TIMEOUT_S = 30.0
WHOLE_BYTES = 1 << 20
"""Larger bodies are written in pieces, so that other answers can be read in between."""


class Client:
    """A pool of persistent connections to one server; an asynchronous context manager.

    ``parse`` reads the body of an answer. With ``stream``, which collects events, bodies must ask for a stream.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: RemoteArguments,
        parse: Callable[[bytes, str], Reply] = parse_reply,
        stream: Callable[[str], StreamedAnswer] | None = None,
    ) -> None:
        if len(endpoint.authorization.splitlines()) > 1:
            raise ModelError(
                f"the key ({endpoint.key_name} or the model argument api_key) holds a line break: give it in one line"
            )
        self._endpoint, self._connections, self._stream = endpoint, settings.ceiling, stream
        self._timeout: float = settings.timeout if stream is None else getattr(settings, "idle_timeout")  # noqa: B009
        self._max_reply_mb = settings.max_reply_mb
        self._parse = parse
        self._headers = {
            endpoint.header: endpoint.authorization, "Content-Type": "application/json", **endpoint.headers,
        }  # fmt: skip
        self._proxy = find_proxy(endpoint)
        self._failures = Failures(
            endpoint.shown, endpoint.key_name, self._timeout, endpoint.secrets, stream is not None
        )
        self._session: Any = None

    async def __aenter__(self) -> Client:
        limit = {"total": self._timeout} if self._stream is None else {"total": None, "sock_read": self._timeout}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, ttl_dns_cache=300),
            timeout=aiohttp.ClientTimeout(**limit, sock_connect=min(CONNECT_TIMEOUT_S, self._timeout)),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            response_class=bounded_response(self._max_reply_mb),
        )
        if self._stream is None:
            self._direct = DirectPost(self._session, self._endpoint.url, self._max_reply_mb << 20)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def complete(self, body: bytes) -> Reply:
        """Send a body and read the completion. Raises ``AttemptError`` for any failure, without the key."""
        shown, failures = self._endpoint.shown, self._failures
        try:
            if self._stream is not None:
                return await self._streamed(body, self._stream(shown))
            is_simple = self._proxy is None and len(body) <= WHOLE_BYTES
            status, headers, reply = await (self._direct.post(body) if is_simple else self._post(body))
            if status == 200:
                return self._parse(reply, shown)
            raise failures.of_status(status, reply, headers)
        except AttemptError as error:
            raise failures.redacted(error) from None
        except aiohttp.ClientResponseError as error:
            reason = shorten(str(error)) or type(error).__name__
            raise failures.redacted(AttemptError("malformed", f"{shown} sent no valid HTTP: {reason}")) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise failures.of_transport(error) from error

    async def _streamed(self, body: bytes, streamed: StreamedAnswer) -> Reply:
        """Read a stream to its end. Raises ``AttemptError`` if it ends in the middle of the answer."""
        began, first, last = perf_counter(), 0.0, 0.0
        data = body if len(body) <= WHOLE_BYTES else io.BytesIO(body)
        async with self._session.post(
            self._endpoint.url, data=data, proxy=self._proxy, allow_redirects=False
        ) as answer:
            if answer.status != 200:
                raise self._failures.of_status(answer.status, await answer.read(), answer.headers)
            if answer.content_type == "application/json":  # the server does not stream
                return self._parse(await answer.read(), streamed.shown)
            async for arrived, event in self._events(answer.content):
                if streamed.add(event):
                    first, last = first or arrived, arrived
        if not streamed.is_complete:
            raise AttemptError("connection", f"{streamed.shown} ended its stream in the middle of an answer")
        reply = self._parse(orjson.dumps(streamed.whole()), streamed.shown)
        return replace(reply, timing=(first - began, last - first)) if first else reply

    async def _events(self, content: Any) -> AsyncIterator[tuple[float, bytes]]:
        """Yield the events in a stream of at most ``max_reply_mb``: when they arrived, and their data."""
        reader, size, most = EventReader(), 0, self._max_reply_mb << 20
        async for piece in content.iter_any():
            size += len(piece)
            if size > most:
                raise AttemptError("malformed", f"{self._endpoint.shown} {too_large(most)}", retry=False)
            arrived = perf_counter()
            for event in reader.feed(piece):
                yield arrived, event
        for event in reader.close():
            yield perf_counter(), event

    async def _post(self, body: bytes) -> DirectAnswer:
        """Send through a proxy, or in pieces."""
        data = body if len(body) <= WHOLE_BYTES else io.BytesIO(body)
        async with self._session.post(
            self._endpoint.url, data=data, proxy=self._proxy, allow_redirects=False
        ) as answer:
            return answer.status, answer.headers, await answer.read()


def find_proxy(endpoint: Endpoint) -> str | None:
    """Find the proxy that the environment names for this server; none for loopback."""
    parts = urlsplit(endpoint.url)
    host = parts.hostname or ""
    if endpoint.is_loopback or urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
