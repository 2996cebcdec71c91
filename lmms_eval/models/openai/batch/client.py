"""The client of a service's batch API: files, batches and their journal. Imported when a model is built."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import aiohttp
import orjson
from msgspec import Struct, field

from lmms_eval.errors import JournalError
from lmms_eval.models.openai.arguments import PATHS, Endpoint
from lmms_eval.models.openai.client import find_proxy
from lmms_eval.models.remote.arguments import RemoteArguments
from lmms_eval.models.remote.direct import read_whole
from lmms_eval.models.remote.errors import AttemptError, Failures
from lmms_eval.storage.atomic import replacing
from lmms_eval.storage.lines import JournalWriter, read_lines

JOURNAL = "batches.jsonl"
TRANSFER_S = 3600.0
"""The time limit of a file, if that of a request is shorter."""
WINDOW = "24h"
"""The only window that services offer."""
LISTED = 100
"""Batches per page of the list."""
MAX_BACKOFF_S = 60.0
T = TypeVar("T")


class BatchPart(Struct):
    """One batch, with its files and its state."""

    name: str
    """A unique name, which is the file's name at the service and is in the batch's metadata."""
    ids: tuple[str, ...]
    """The ids of its requests, in the order of the file's lines."""
    path: Path
    file_id: str = ""
    batch_id: str = ""
    status: str = ""
    """The last status that was logged."""
    batch: Mapping[str, Any] = field(default_factory=dict)
    """The last state that the service reported."""
    since: float = 0.0
    """When it was first polled, by ``time.monotonic``."""
    failed_looks: int = 0
    ended_before: int = 0
    """Batches that had ended before it was first polled."""
    error: AttemptError | None = None
    """The reason why it is given up."""

    @property
    def results(self) -> dict[str, Path]:
        """The files of its results while they are read, by the service's names of their ids."""
        return {name: self.path.with_suffix(f".{name}") for name in ("output_file_id", "error_file_id")}

    def lines(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the wanted requests with their lines. Raises ``JournalError`` if the file cannot be read."""
        try:
            with open(self.path, "rb") as file:
                for request_id, line in zip(self.ids, file, strict=True):
                    if request_id in wanted:
                        yield request_id, line
        except (OSError, ValueError) as error:
            raise JournalError(f"cannot read the batch file {self.path}: {error}") from error

    def remove(self) -> None:
        """Remove its files."""
        for path in (self.path, *self.results.values()):
            path.unlink(missing_ok=True)


class Draft:
    """A batch file that is being written. Requests go to disk as they arrive, and are not kept in memory."""

    def __init__(self, folder: Path, max_requests: int, max_bytes: int) -> None:
        self.name = f"lmms_eval-{uuid.uuid4().hex}"
        self.path = folder / f"{self.name}.jsonl"
        self.ids: list[str] = []
        self._max_requests, self._max_bytes, self._size = max_requests, max_bytes, 0
        try:
            self._file = open(self.path, "wb")  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise self._unwritable(error) from error

    def has_room(self, line: bytes) -> bool:
        """Return whether there is room for the line."""
        return len(self.ids) < self._max_requests and self._size + len(line) <= self._max_bytes

    def add(self, request_id: str, line: bytes) -> None:
        """Append a line. Raises ``JournalError`` if it cannot be written."""
        try:
            self._file.write(line)
        except OSError as error:
            raise self._unwritable(error) from error
        self.ids.append(request_id)
        self._size += len(line)

    def close(self) -> BatchPart:
        """Finish the file. Raises ``JournalError`` if it cannot be written."""
        try:
            self._file.close()
        except OSError as error:
            raise self._unwritable(error) from error
        return BatchPart(self.name, tuple(self.ids), self.path)

    def _unwritable(self, error: OSError) -> JournalError:
        return JournalError(f"cannot write the batch file {self.path}: {error.strerror or error}")


class Ledger:
    """The journal of the batches of one run; a context manager. Raises ``JournalError`` if the disk fails."""

    def __init__(self, folder: Path, max_requests: int, max_bytes: int) -> None:
        self._folder, self._max_requests, self._max_bytes = folder, max_requests, max_bytes
        self._parts: dict[str, BatchPart] = {}
        self.batch_ids: list[str] = []
        """The batches that were live at the start, or created since."""
        self._journal = JournalWriter(folder / JOURNAL)
        for _, record in read_lines(self._journal.path):
            self._apply(record)
        self.batch_ids += [part.batch_id for part in self._parts.values() if part.batch_id]
        for path in folder.glob("lmms_eval-*"):  # drafts, and files of closed batches
            if path.stem not in self._parts:
                path.unlink(missing_ok=True)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.close()

    def parts(self) -> list[BatchPart]:
        """Return the batches that are not closed."""
        return list(self._parts.values())

    def may_hold(self, line: bytes) -> bool:
        """Return whether the line alone fits into a batch file."""
        return len(line) <= self._max_bytes

    def draft(self) -> Draft:
        """Begin a batch file."""
        return Draft(self._folder, self._max_requests, self._max_bytes)

    def enter(self, part: BatchPart) -> None:
        """Record the requests of a batch, before it is sent."""
        self._parts[part.name] = part
        self._record(part, ids=list(part.ids))

    def uploaded(self, part: BatchPart, file_id: str) -> None:
        """Record the file's id, before the batch is created."""
        part.file_id = file_id
        self._record(part, file_id=file_id)

    def created(self, part: BatchPart, batch_id: str) -> None:
        """Record the batch's id."""
        part.batch_id = batch_id
        self.batch_ids.append(batch_id)
        self._record(part, batch_id=batch_id)

    def over(self, part: BatchPart) -> None:
        """Close a batch after its results are read, or if it was never created."""
        self._journal.append({"part": part.name, "over": True})
        self._parts.pop(part.name, None)
        part.remove()

    def _record(self, part: BatchPart, **facts: object) -> None:
        self._journal.append({"part": part.name, **facts})
        self._journal.sync()

    def _apply(self, record: dict[str, object]) -> None:
        name = str(record["part"])
        ids = record.get("ids")
        if isinstance(ids, list):
            self._parts[name] = BatchPart(name, tuple(map(str, ids)), self._folder / f"{name}.jsonl")
        part = self._parts.get(name)
        if part is None:
            return
        part.file_id = str(record.get("file_id", part.file_id))
        part.batch_id = str(record.get("batch_id", part.batch_id))
        if "over" in record:
            del self._parts[name]


def batch_line(request_id: str, address: str, body: bytes) -> bytes:
    """Return the line of a request. ``body`` is JSON in one line, and ``address`` is the path of a single request."""
    head = orjson.dumps({"custom_id": request_id, "method": "POST", "url": address})
    return b"".join((head[:-1], b',"body":', body, b"}\n"))


class BatchClient:
    """The files and batches of one service; an asynchronous context manager.

    Calls are retried after transient failures. For the creation of a batch see ``create``.

    Raises:
        AttemptError: the last failure of a call, with the service's address and without the key.
    """

    def __init__(self, endpoint: Endpoint, arguments: RemoteArguments, api: str) -> None:
        parts = urlsplit(endpoint.url)
        is_azure = endpoint.header == "api-key"
        path = parts.path.removesuffix(PATHS[api])
        if is_azure:  # files and batches belong to the resource, not to a deployment
            path = path.partition("/deployments/")[0]
        self.line_path = PATHS[api] if is_azure else f"/v1{PATHS[api]}"
        """The address in the lines of a batch file: that of a single request, without the host."""
        self._root = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        self._query = f"?{parts.query}" if parts.query else ""
        shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))
        self._failures = Failures(shown, endpoint.key_name, arguments.timeout, endpoint.secrets)
        self._headers = {endpoint.header: endpoint.authorization}
        self._proxy, self._timeout = find_proxy(endpoint), arguments.timeout
        self._max_bytes = arguments.max_reply_mb << 20
        self._max_retries, self._backoff_s = arguments.max_retries, arguments.retry_backoff_s
        self._session: Any = None

    @property
    def shown(self) -> str:
        """The address for messages."""
        return self._failures.shown

    async def __aenter__(self) -> BatchClient:
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), headers=self._headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def upload(self, part: BatchPart) -> str:
        """Send a batch file, and return its id. A file alone has no effect, so it may be sent twice."""

        async def send() -> str:
            with open(part.path, "rb") as file:
                form = aiohttp.FormData({"purpose": "batch"})
                form.add_field("file", file, filename=part.path.name, content_type="application/jsonl")
                return self._id(await self._ask("POST", "/files", data=form, total=max(self._timeout, TRANSFER_S)))

        return await self._tried(send)

    async def create(self, part: BatchPart) -> str:
        """Create the batch of an uploaded file, and return its id.

        If a failure does not show whether the batch was created, it is looked up before a retry.
        """
        body = {
            "input_file_id": part.file_id,
            "endpoint": self.line_path,
            "completion_window": WINDOW,
            "metadata": {"lmms_eval": part.name},
        }
        is_unknown = False

        async def create() -> str:
            nonlocal is_unknown
            if is_unknown and (found := await self._find(part)) is not None:
                return found
            try:
                return self._id(await self._ask("POST", "/batches", json=body))
            except AttemptError as error:
                is_unknown = is_unknown or (error.kind != "rate_limit" and not error.unreachable)
                raise

        return await self._tried(create)

    async def find(self, part: BatchPart) -> str | None:
        """Look up the batch of an uploaded file among all batches of the account, and return its id."""
        return await self._tried(lambda: self._find(part))

    async def look(self, batch_id: str) -> dict[str, Any]:
        """Return the current state of a batch, in one attempt."""
        return await self._ask("GET", f"/batches/{quote(batch_id, safe='')}")

    async def download(self, file_id: str, path: Path) -> None:
        """Download a file to disk, in pieces. Raises ``JournalError`` if it cannot be written."""

        async def fetch() -> None:
            limit = aiohttp.ClientTimeout(total=max(self._timeout, TRANSFER_S))
            target = f"/files/{quote(file_id, safe='')}/content"
            async with self._request("GET", target, timeout=limit) as answer:
                try:
                    with replacing(path, survives_power_loss=False) as file:
                        async for piece in answer.content.iter_any():
                            file.write(piece)
                except OSError as error:
                    if isinstance(error, aiohttp.ClientError | TimeoutError | ConnectionError):
                        raise
                    raise JournalError(f"cannot write {path}: {error.strerror or error}") from error

        await self._tried(fetch)

    async def _find(self, part: BatchPart) -> str | None:
        after = ""
        while True:
            page = await self._ask("GET", "/batches", {"limit": str(LISTED), **({"after": after} if after else {})})
            listed = [item for item in page.get("data") or [] if isinstance(item, dict) and item.get("id")]
            for item in listed:
                if item.get("input_file_id") == part.file_id:
                    return str(item["id"])
            if not page.get("has_more") or not listed or listed[-1]["id"] == after:
                return None
            after = listed[-1]["id"]

    def _id(self, answer: Mapping[str, Any]) -> str:
        if not isinstance(answer.get("id"), str) or not answer["id"]:
            raise self._failures.malformed("an object without id", retry=False)
        return str(answer["id"])

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
