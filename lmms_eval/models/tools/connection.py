"""A session with a server of the Model Context Protocol over standard input and output, and reading its results."""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import contextlib
import json
import logging
import sys
import tempfile
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from loguru import logger as log
from msgspec import Struct

from lmms_eval.api.request import GeneratedImage, SentPart
from lmms_eval.errors import MediaError, ModelError

if TYPE_CHECKING:
    from lmms_eval.media.encode import WireOptions


_CLOSING_S = 10.0
_PING_S = 5.0
_TAIL_BYTES = 2000
"""The part of a server's standard error that is shown if it does not start."""
_LONGEST_NOTE = 200
Work = Callable[[Any], Awaitable[Any]]
ToolMedium = tuple[Mapping[str, Any], SentPart]
"""A picture or sound of a result, as a part of a message and in its recorded form."""
MOST_MEDIA = 8
"""The maximum number of pictures and sounds of one result that are sent."""
MOST_SOUND_BYTES = 16 * 2**20
AUDIO_FORMATS = ("wav", "mp3")


class ServerEndedError(ModelError):
    """The server does not start, or ended or stopped responding during a request."""


class NoAnswerError(ModelError):
    """A request was not answered in time."""


class ToolSession:
    """A tool server: a Python script in a child process, started at the first request and kept until ``close``.

    Requests may come from several threads and event loops, and share one session. If a server has ended or does not
    respond, the next request starts another one. The package mcp must be installed. Each request may take ``limit_s``
    seconds, and the start ``start_s`` seconds, by default the same.
    """

    def __init__(self, server_path: str, limit_s: float, start_s: float | None = None) -> None:
        self.server_path, self._limit_s = server_path, limit_s
        self._start_s = limit_s if start_s is None else start_s
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self.starts = 0
        """The number of starts of the server."""

    async def functions(self) -> list[dict[str, Any]]:
        """Return the tools in the form of ``tools`` in a chat completion request. Raises ``ModelError``."""
        found: list[dict[str, Any]] = await self._request("the list of tools", _functions)
        return found

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool and return its result, an object of the package mcp with a list of parts in ``content``.

        Raises:
            ServerEndedError: the server does not start, or has ended; the next request starts another one.
            NoAnswerError: there was no result in time.
            ModelError: the server rejects the call.
        """
        return await self._request(f"tool {name!r}", lambda session: session.call_tool(name, dict(arguments)))

    def close(self) -> None:
        """End the session and its server."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _request(self, name: str, work: Work) -> Any:
        connection = await asyncio.to_thread(self._connected)
        where = f"MCP server {self.server_path}: {name}"
        try:
            return await asyncio.wrap_future(connection.submit(work, self._limit_s))
        except TimeoutError as error:
            await self._is_alive(connection)
            raise NoAnswerError(f"{where}: no answer within {self._limit_s:g} s") from error
        except Exception as error:  # errors of tools, of the protocol and of pipes have no common class
            kind = ModelError if await self._is_alive(connection) else ServerEndedError
            raise kind(f"{where}: {type(error).__name__}: {error}") from error

    def _connected(self) -> _Connection:
        with self._lock:
            if self._connection is None:
                connection = _Connection(self.server_path, self._start_s)
                weakref.finalize(self, connection.close)
                self._connection = connection
                self.starts += 1
            return self._connection

    async def _is_alive(self, connection: _Connection) -> bool:
        """Return whether the server responds. If it does not, its connection is dropped."""
        try:
            await asyncio.wrap_future(connection.submit(lambda session: session.send_ping(), _PING_S))
        except Exception:  # noqa: BLE001 - after any error the session is not usable
            with self._lock:
                if self._connection is connection:
                    self._connection = None
            await asyncio.to_thread(connection.close)
            return False
        return True


class _StrayOutput(logging.Filter):
    """Replaces the tracebacks that the package mcp logs for stray lines on a server's standard output by a warning.

    Standard output is the channel to the client, and a tool that prints writes stray lines to it.
    """

    def __init__(self, server_path: str) -> None:
        super().__init__()
        self._server_path = server_path
        self._count = self._thread = 0

    @contextlib.contextmanager
    def filtered(self, *names: str) -> Iterator[None]:
        """Filter the loggers of these names, for records of the calling thread. Each session has its own thread."""
        self._thread = threading.get_ident()
        loggers = [logging.getLogger(name) for name in names]
        for one in loggers:
            one.addFilter(self)
        try:
            yield
        finally:
            for one in loggers:
                one.removeFilter(self)
            if self._count > 1:
                log.info("the MCP server {}: {} such lines were ignored", self._server_path, self._count)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or record.thread != self._thread:
            return True
        self._count += 1
        if self._count == 1:
            log.warning(
                "the MCP server {} writes lines to standard output that are no messages of the protocol ({}): they are "
                "ignored; let it print to standard error",
                self._server_path,
                record.getMessage()[:_LONGEST_NOTE],
            )
        return False


class _Connection:
    """One session with one server process. It is entered and left in one task of its own event loop."""

    def __init__(self, server_path: str, limit_s: float) -> None:
        self._server_path = server_path
        self._session: concurrent.futures.Future[Any] = concurrent.futures.Future()
        # The server's standard error would disturb the progress display on the terminal.
        self._stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - see ``close``
        self._stray_output = _StrayOutput(server_path)
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._lock = threading.Lock()
        self._is_open = True
        """Whether the loop accepts work."""
        self._thread = threading.Thread(target=self._run, name="mcp-session", daemon=True)
        self._thread.start()
        try:
            self._session.result(limit_s)
        except Exception as error:  # as above
            self._stderr.seek(0)
            tail = self._stderr.read()[-_TAIL_BYTES:].strip()
            tail = f"\nIts standard error:\n{tail}" if tail else ""
            self.close()
            raise ServerEndedError(
                f"the MCP server {server_path} does not start: {type(error).__name__}: {error}; "
                f"try {sys.executable} {server_path}{tail}"
            ) from error

    def submit(self, work: Work, limit_s: float) -> concurrent.futures.Future[Any]:
        """Run work with the session in its loop."""
        with self._lock:
            if not self._is_open:
                raise ConnectionError("the session has ended")
            return asyncio.run_coroutine_threadsafe(self._bounded(work, limit_s), self._loop)

    async def _bounded(self, work: Work, limit_s: float) -> Any:
        working = asyncio.ensure_future(work(self._session.result()))
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((working, ended), timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise ConnectionError("the session was ended") if ended.done() else TimeoutError
        finally:
            working.cancel()
            ended.cancel()

    def close(self) -> None:
        with self._lock:
            if self._is_open:
                self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(_CLOSING_S)
        with self._lock:  # several threads may notice the end of a server at the same time
            self._stderr.close()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        from mcp import ClientSession, StdioServerParameters, stdio_client

        server = StdioServerParameters(
            command=sys.executable, args=[self._server_path], encoding_error_handler="replace"
        )
        try:
            with self._stray_output.filtered(stdio_client.__module__, "client", ClientSession.__module__):
                async with (
                    stdio_client(server, errlog=self._stderr) as (reading, writing),
                    ClientSession(reading, writing) as session,
                ):
                    start = asyncio.ensure_future(session.initialize())
                    end = asyncio.ensure_future(self._ended.wait())
                    await asyncio.wait((start, end), return_when=asyncio.FIRST_COMPLETED)
                    if start.done():
                        start.result()
                        self._session.set_result(session)
                        await end
                    start.cancel()
        except Exception as error:  # noqa: BLE001 - of foreign code, passed to the caller that waits for the session
            if not self._session.done():
                self._session.set_exception(error)
        finally:
            with self._lock:
                self._is_open = False
            self._ended.set()
            # If the loop cancelled running work, it would look as if its caller was cancelled. So it ends by itself.
            await asyncio.sleep(0)
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others, timeout=1.0)


async def _functions(session: Any) -> list[dict[str, Any]]:
    from mcp.types import PaginatedRequestParams

    page = wire(await session.list_tools())
    tools = page["tools"]
    while (cursor := page.get("nextCursor")) is not None:
        page = wire(await session.list_tools(params=PaginatedRequestParams(cursor=cursor)))
        tools += page["tools"]
    described = (
        {"name": tool["name"], "description": tool.get("description") or "", "parameters": tool["inputSchema"]}
        for tool in tools
    )
    return [{"type": "function", "function": function} for function in described]


def wire(value: Any) -> dict[str, Any]:
    """Convert an object of the package to the names of the protocol, which are the same in all its releases."""
    named: dict[str, Any] = value.model_dump(by_alias=True, mode="json")
    return named


class ToolResult(Struct, frozen=True):
    """The texts and media of a tool's result. A failure is a text too, so that the model may react to it."""

    text: str
    media: tuple[ToolMedium, ...] = ()
    is_error: bool = False


def failed(reason: str) -> ToolResult:
    """Return the result of a failed call."""
    return ToolResult(f"error: {reason}", is_error=True)


def read_result(result: Any, characters: int, images: WireOptions) -> ToolResult:
    """Read and cut a result of the package mcp. This decodes pictures, so it must not run in an event loop."""
    fields = wire(result)
    texts: list[str] = []
    media: list[ToolMedium] = []
    makers = {"image": _picture, "audio": _sound}
    for part in fields.get("content") or ():
        make = makers.get(part.get("type", ""))
        if make is None:
            texts.append(_text(part))
        elif len(media) == MOST_MEDIA:
            texts.append(f"[a further part {part['type']!r} is left out: {MOST_MEDIA} are sent at most]")
        else:
            try:
                media.append(make(part, images))
            except (MediaError, ValueError) as error:
                texts.append(f"[a part {part['type']!r} cannot be sent: {error}]")
    if not texts and not media and fields.get("structuredContent") is not None:
        texts.append(json.dumps(fields["structuredContent"], ensure_ascii=False))
    text = cut("\n".join(texts), characters)
    is_error = bool(fields.get("isError"))
    return ToolResult(f"error: {text}" if is_error else text, tuple(media), is_error)


def cut(text: str, characters: int) -> str:
    """Shorten a text, and mark the cut in it."""
    if len(text) <= characters:
        return text
    return f"{text[:characters]}\n[cut: the first {characters} of {len(text)} characters]"


def _text(part: Mapping[str, Any]) -> str:
    kind = part.get("type")
    if kind == "text":
        return str(part.get("text", ""))
    if kind == "resource_link":
        return f"{part.get('name', '')}: {part.get('uri', '')}"
    resource = part.get("resource")
    if isinstance(resource, Mapping) and isinstance(resource.get("text"), str):
        return str(resource["text"])
    return f"[a part {kind!r} is left out: only texts, pictures and sounds are sent]"


def _picture(part: Mapping[str, Any], images: WireOptions) -> ToolMedium:
    from lmms_eval.media.encode import wire_image

    image = wire_image(base64.b64decode(part["data"], validate=True), options=images)
    sent = GeneratedImage.from_bytes(base64.b64decode(image.base64), image.mime)
    return {"type": "image_url", "image_url": {"url": image.data_url}}, SentPart(picture=sent)


def _sound(part: Mapping[str, Any], images: WireOptions) -> ToolMedium:  # noqa: ARG001 - as ``_picture``
    from lmms_eval.media.audio import wire_audio

    data = base64.b64decode(part["data"], validate=True)
    if len(data) > MOST_SOUND_BYTES:
        raise ValueError(f"{len(data)} bytes, more than {MOST_SOUND_BYTES}")
    return wire_audio(data, AUDIO_FORMATS).to_part(), SentPart(kind="audio")
