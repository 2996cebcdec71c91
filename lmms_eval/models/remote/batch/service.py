"""The base of clients of batch services: calls, retries, transfers, and the steps in the life of a batch."""

from __future__ import annotations

import abc
import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import orjson

from lmms_eval.api.request import ErrorKind
from lmms_eval.errors import JournalError
from lmms_eval.models.openai.arguments import Endpoint
from lmms_eval.models.openai.client import find_proxy
from lmms_eval.models.remote.arguments import RemoteArguments
from lmms_eval.models.remote.batch.ledger import BatchPart, BatchState
from lmms_eval.models.remote.direct import read_whole
from lmms_eval.models.remote.errors import AttemptError, Failures, shorten
from lmms_eval.models.remote.reply import Reply, decode_body
from lmms_eval.storage.atomic import replacing

TRANSFER_S = 3600.0
"""The time limit of a file, if that of a request is shorter."""
LISTED = 100
"""Batches per page of the list."""
MAX_BACKOFF_S = 60.0
UNANSWERED: Mapping[str, tuple[ErrorKind, bool]] = {
    "batch_expired": ("timeout", True),
    "expired": ("timeout", True),
    "batch_cancelled": ("server_error", False),
    "cancelled": ("server_error", False),
    "completed": ("malformed", True),
    "token_limit_exceeded": ("rate_limit", True),
    "rate_limit_exceeded": ("rate_limit", True),
    "server_error": ("server_error", True),
}
"""The kind of failure and whether to retry, by the error code of a line, or by the final state of a batch without a
line for a request. Requests of a batch that a user has cancelled are not retried."""
T = TypeVar("T")
Outcome = tuple[str, Reply | AttemptError]
"""A request's id, and its reply or failure."""


class BatchService(abc.ABC):
    """The batches of one account at a service; an asynchronous context manager.

    Calls are retried after transient failures. For the creation of a batch see ``create``.

    Args:
        endpoint: the address of the service, the key, and the header that carries it.
        arguments: the arguments of the back end.
        parse: reads the body of an answer to a single request. Raises ``AttemptError``.

    Raises:
        AttemptError: the last failure of a call, with the service's address and without the key.
    """

    overhead: ClassVar[int] = 0
    """Bytes of a batch besides its lines."""

    def __init__(self, endpoint: Endpoint, arguments: RemoteArguments, parse: Callable[[bytes], Reply]) -> None:
        parts = urlsplit(endpoint.url)
        path = self.root_path(parts.path)
        self._root = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        self._query = f"?{parts.query}" if parts.query else ""
        shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))
        self._parse = parse
        self._failures = Failures(shown, endpoint.key_name, arguments.timeout, endpoint.secrets)
        self._headers = {endpoint.header: endpoint.authorization, **endpoint.headers}
        self._proxy, self._timeout = find_proxy(endpoint), arguments.timeout
        self._max_bytes = arguments.max_reply_mb << 20
        self._max_retries, self._backoff_s = arguments.max_retries, arguments.retry_backoff_s
        self._session: Any = None

    @property
    def shown(self) -> str:
        """The address for messages."""
        return self._failures.shown

    async def __aenter__(self) -> BatchService:
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), headers=self._headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    def root_path(self, path: str) -> str:
        """Return the path of the service, from the path of single requests."""
        return path

    @abc.abstractmethod
    def line(self, request_id: str, payload: Any) -> bytes:
        """Return the line of a request: JSON and a newline."""

    def stamp(self, line: bytes, draft: str, number: int) -> bytes:  # noqa: ARG002 - of other services
        """Return a line, of the same length, for its place in the file named ``draft``."""
        return line

    @abc.abstractmethod
    async def upload(self, part: BatchPart) -> str:
        """Prepare the creation of a batch without creating it, and return how to look it up (``file_id``)."""

    @abc.abstractmethod
    async def _create(self, part: BatchPart) -> str:
        """Create a batch in one attempt, and return its id."""

    @abc.abstractmethod
    async def _find(self, part: BatchPart) -> str | None:
        """Look up a batch in one attempt, and return its id. Sets ``part.is_guess`` if only its results show it."""

    @abc.abstractmethod
    async def look(self, batch_id: str) -> BatchState:
        """Return the current state of a batch, in one attempt."""

    @abc.abstractmethod
    async def download(self, part: BatchPart, name: str, path: Path) -> None:
        """Download a result file to disk. Raises ``JournalError`` if it cannot be written."""

    @abc.abstractmethod
    def read(self, part: BatchPart, record: Mapping[str, Any]) -> Outcome | None:
        """Read the record of a line of the results; ``None`` if it does not name a request."""

    async def create(self, part: BatchPart) -> str:
        """Create the batch of a prepared part, and return its id.

        If a failure does not show whether the batch was created, it is looked up before a retry.
        """
        is_unknown = False

        async def create() -> str:
            nonlocal is_unknown
            if is_unknown and (found := await self._find(part)) is not None:
                return found
            try:
                return await self._create(part)
            except AttemptError as error:
                is_unknown = is_unknown or (error.kind != "rate_limit" and not error.unreachable)
                raise

        return await self._tried(create)

    async def find(self, part: BatchPart) -> str | None:
        """Look up the batch of a prepared part among all batches of the account, and return its id."""
        return await self._tried(lambda: self._find(part))

    def read_line(self, part: BatchPart, line: bytes) -> Outcome | None:
        """Read a line of the results; ``None`` if it is damaged, or does not name a request."""
        try:
            record = decode_body(line)
        except orjson.JSONDecodeError:
            return None
        return self.read(part, record) if isinstance(record, dict) else None

    def parsed(self, request_id: str, body: Any) -> Outcome:
        """Return the outcome of a request that the service has answered with a body."""
        try:
            return request_id, self._parse(orjson.dumps(body))
        except AttemptError as failure:
            return request_id, self._failures.redacted(failure)

    def of_status(self, request_id: str, status: int, body: Any) -> Outcome:
        """Return the outcome of a request that the service has answered with a status other than 200."""
        return request_id, self._failures.of_status(status, body, {})

    def unanswered(self, code: str, reason: str) -> AttemptError:
        """Return the failure of a request that a batch did not answer. ``code`` is a key of ``UNANSWERED``."""
        kind, retry = UNANSWERED.get(code, ("bad_request", False))
        message = f"a batch of {self.shown} gave no answer ({code}): {shorten(reason)}"
        return self._failures.redacted(AttemptError(kind, message, retry=retry))

    def _id(self, answer: Mapping[str, Any], name: str = "id") -> str:
        if not isinstance(answer.get(name), str) or not answer[name]:
            raise self._failures.malformed(f"an object without {name}", retry=False)
        return str(answer[name])

    async def _ask(
        self, method: str, path: str, query: Mapping[str, str] | None = None, *, total: float = 0.0, **sent: Any
    ) -> dict[str, Any]:
        """Make one attempt, and return the JSON object of the answer."""
        limit = aiohttp.ClientTimeout(total=total or self._timeout)
        async with self._request(method, path, query, timeout=limit, **sent) as answer:
            raw = await read_whole(answer.content, self._max_bytes, self.shown + path)
        try:
            found = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise self._failures.malformed(f"no JSON ({error})") from error
        if not isinstance(found, dict):
            raise self._failures.malformed("no JSON object")
        return found

    async def _fetch(self, target: str, path: Path, query: Mapping[str, str] | None = None) -> None:
        """Download a file to disk, in pieces. Raises ``JournalError`` if it cannot be written."""

        async def fetch() -> None:
            limit = aiohttp.ClientTimeout(total=max(self._timeout, TRANSFER_S))
            async with self._request("GET", target, query, timeout=limit) as answer:
                try:
                    with replacing(path, survives_power_loss=False) as file:
                        async for piece in answer.content.iter_any():
                            file.write(piece)
                except OSError as error:
                    if isinstance(error, aiohttp.ClientError | TimeoutError | ConnectionError):
                        raise
                    raise JournalError(f"cannot write {path}: {error.strerror or error}") from error

        await self._tried(fetch)

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, **sent: Any
    ) -> AsyncIterator[Any]:
        """Yield an answer of status 200 or 201, to be read within the block."""
        try:
            async with self._session.request(
                method, self._root + path + self._query, params=query, proxy=self._proxy, allow_redirects=False, **sent
            ) as answer:
                if answer.status not in (200, 201):
                    raw = await read_whole(answer.content, self._max_bytes, self.shown + path)
                    raise self._failures.of_status(answer.status, raw, answer.headers)
                yield answer
        except (aiohttp.ClientError, OSError) as error:  # includes timeouts and broken connections
            raise self._failures.of_transport(error) from error

    async def _tried(self, call: Callable[[], Awaitable[T]]) -> T:
        attempts = 0
        while True:
            attempts += 1
            try:
                return await call()
            except AttemptError as error:
                if not error.retry or attempts > self._max_retries:
                    raise
                bound = min(self._backoff_s * 2 ** min(attempts - 1, 30), MAX_BACKOFF_S)
                await asyncio.sleep(error.retry_after or random.uniform(0.0, bound))


def counted(status: str, done: Any, total: Any) -> str:
    """Return a state with the number of requests that are done, for the log."""
    if not isinstance(total, int) or not total or not isinstance(done, int):
        return status
    return f"{status}, {done} of {total} requests done"
