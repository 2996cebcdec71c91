"""Tools of a server that speaks the Model Context Protocol over standard input and output."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from lmms_eval.compat.imports import require_package
from lmms_eval.errors import ModelError

_CLOSING_S = 10.0
_PING_S = 5.0
Work = Callable[[Any], Awaitable[Any]]


class MCPClient:
    """A tool server: a Python script that this process runs, started at the first call and kept until ``close``.

    Calls may come from several threads and event loops; they share one session. A server that has ended is started
    anew by the next call.

    Args:
        server_path: the script.
        timeout: bound of each call, and of the start.

    Raises:
        MissingOptionalDependencyError: the package mcp is not installed; it is an ``ImportError``.
    """

    def __init__(self, server_path: str | Path, timeout: timedelta = timedelta(seconds=600)) -> None:
        require_package("mcp", "mcp", "the tools of an MCP server")
        self.server_path, self.timeout = str(server_path), timeout
        self._lock = threading.Lock()
        self._connection: _Connection | None = None

    async def get_function_list(self) -> list[dict[str, Any]]:
        """List the tools in the form of ``tools`` of a chat completion request.

        Raises:
            ModelError: the server does not start or does not answer.
        """
        functions: list[dict[str, Any]] = await self._asked("the list of tools", _functions)
        return functions

    async def run_tool(self, name: str, args: Mapping[str, Any]) -> Any:
        """Call a tool and return its result as the package mcp gives it: ``content`` is a list of parts.

        Raises:
            ModelError: the server does not start or does not answer, or has no such tool.
        """
        return await self._asked(f"tool {name!r}", lambda session: session.call_tool(name, dict(args)))

    def get_function_list_sync(self) -> list[dict[str, Any]]:
        """Do as :meth:`get_function_list` outside of an event loop."""
        return asyncio.run(self.get_function_list())

    def run_tool_sync(self, name: str, args: Mapping[str, Any]) -> Any:
        """Do as :meth:`run_tool` outside of an event loop."""
        return asyncio.run(self.run_tool(name, args))

    def convert_result_to_openai_format(self, result: Any) -> list[Any]:
        """Convert a part of a result to a list of one part of a chat message; of a list, each of its parts.

        Raises:
            ValueError: a part is neither text nor picture nor sound.
        """
        if isinstance(result, list):
            return [self.convert_result_to_openai_format(part) for part in result]
        kind = getattr(result, "type", None)
        if kind == "text":
            return [{"type": "text", "text": result.text}]
        if kind in ("image", "audio"):
            url = f"data:{_wire(result)['mimeType']};base64,{result.data}"
            return [{"type": f"{kind}_url", f"{kind}_url": {"url": url}}]
        raise ValueError(f"a part {kind or type(result).__name__!r} of a tool's result is no text, picture or sound")

    def close(self) -> None:
        """End the session and its server."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _asked(self, asked_for: str, work: Work) -> Any:
        connection = await asyncio.to_thread(self._connected)
        limit_s = self.timeout.total_seconds()
        try:
            return await asyncio.wrap_future(connection.submit(work, limit_s))
        except TimeoutError as error:
            raise ModelError(f"MCP server {self.server_path}: {asked_for}: no answer within {limit_s:g} s") from error
        except Exception as error:
            await self._drop_if_ended(connection)
            raise ModelError(f"MCP server {self.server_path}: {asked_for}: {type(error).__name__}: {error}") from error

    def _connected(self) -> _Connection:
        with self._lock:
            if self._connection is None:
                connection = _Connection(self.server_path, self.timeout.total_seconds())
                weakref.finalize(self, connection.close)
                self._connection = connection
            return self._connection

    async def _drop_if_ended(self, connection: _Connection) -> None:
        try:
            await asyncio.wrap_future(connection.submit(lambda session: session.send_ping(), _PING_S))
        except Exception:  # noqa: BLE001 - whatever it is, the session does not answer
            with self._lock:
                if self._connection is connection:
                    self._connection = None
            await asyncio.to_thread(connection.close)


class _Connection:
    """One session with one server process, in an event loop of its own: a session must be left where it was entered."""

    def __init__(self, server_path: str, limit_s: float) -> None:
        self._server_path = server_path
        self._session: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="mcp-session", daemon=True)
        self._thread.start()
        try:
            self._session.result(limit_s)
        except Exception as error:
            self.close()
            raise ModelError(
                f"the MCP server {server_path} does not start: {type(error).__name__}: {error}; "
                f"try {sys.executable} {server_path}"
            ) from error

    def submit(self, work: Work, limit_s: float) -> concurrent.futures.Future[Any]:
        """Do work with the session, in its loop."""
        if not self._thread.is_alive():
            raise RuntimeError("the session has ended")

        async def bounded() -> Any:
            return await asyncio.wait_for(work(self._session.result()), limit_s)

        return asyncio.run_coroutine_threadsafe(bounded(), self._loop)

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join(_CLOSING_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        from mcp import ClientSession, StdioServerParameters, stdio_client

        server = StdioServerParameters(command=sys.executable, args=[self._server_path])
        try:
            async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
                start = asyncio.ensure_future(session.initialize())
                end = asyncio.ensure_future(self._ended.wait())
                await asyncio.wait((start, end), return_when=asyncio.FIRST_COMPLETED)
                if start.done():
                    start.result()
                    self._session.set_result(session)
                    await end
                start.cancel()
        except Exception as error:  # noqa: BLE001 - of foreign code, told to whoever waits for the session
            if not self._session.done():
                self._session.set_exception(error)


async def _functions(session: Any) -> list[dict[str, Any]]:
    from mcp.types import PaginatedRequestParams

    page = _wire(await session.list_tools())
    tools = page["tools"]
    while (cursor := page.get("nextCursor")) is not None:
        page = _wire(await session.list_tools(params=PaginatedRequestParams(cursor=cursor)))
        tools += page["tools"]
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": tool["name"],
        "description": tool.get("description") or "",
        "parameters": tool["inputSchema"],
    }


def _wire(value: Any) -> dict[str, Any]:
    """The names of the protocol, which releases of the package do not change."""
    wire: dict[str, Any] = value.model_dump(by_alias=True, mode="json")
    return wire
