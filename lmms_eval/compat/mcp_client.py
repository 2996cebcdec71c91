"""Tools of a server that speaks the Model Context Protocol over standard input and output."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from lmms_eval.compat.imports import require_package
from lmms_eval.models.tools.connection import ToolSession, wire


class MCPClient:
    """A tool server: a Python script that this process starts at the first call and keeps until ``close``.

    Calls may come from several threads and event loops; they share one session. If the server has ended, the next call
    restarts it.

    Args:
        server_path: the script.
        timeout: time limit of each call, and of the start.

    Raises:
        MissingOptionalDependencyError: the package mcp is not installed; it is an ``ImportError``.
    """

    def __init__(self, server_path: str | Path, timeout: timedelta = timedelta(seconds=600)) -> None:
        require_package("mcp", "mcp", "the tools of an MCP server")
        self.server_path, self.timeout = str(server_path), timeout
        self._session = ToolSession(self.server_path, timeout.total_seconds())

    async def get_function_list(self) -> list[dict[str, Any]]:
        """List the tools in the form of ``tools`` of a chat completion request.

        Raises:
            ModelError: the server does not start or does not answer.
        """
        return await self._session.functions()

    async def run_tool(self, name: str, args: Mapping[str, Any]) -> Any:
        """Call a tool and return its result as the package mcp gives it: ``content`` is a list of parts.

        Raises:
            ModelError: the server does not start or does not answer, or has no such tool.
        """
        return await self._session.call(name, args)

    def get_function_list_sync(self) -> list[dict[str, Any]]:
        """Call :meth:`get_function_list` outside an event loop."""
        return asyncio.run(self.get_function_list())

    def run_tool_sync(self, name: str, args: Mapping[str, Any]) -> Any:
        """Call :meth:`run_tool` outside an event loop."""
        return asyncio.run(self.run_tool(name, args))

    def convert_result_to_openai_format(self, result: Any) -> list[Any]:
        """Convert a part of a result to a list with one part of a chat message; convert each part of a list.

        Raises:
            ValueError: a part is not a text, picture or sound.
        """
        if isinstance(result, list):
            return [self.convert_result_to_openai_format(part) for part in result]
        kind = getattr(result, "type", None)
        if kind == "text":
            return [{"type": "text", "text": result.text}]
        if kind in ("image", "audio"):
            url = f"data:{wire(result)['mimeType']};base64,{result.data}"
            return [{"type": f"{kind}_url", f"{kind}_url": {"url": url}}]
        raise ValueError(f"a part {kind or type(result).__name__!r} of a tool's result is no text, picture or sound")

    def close(self) -> None:
        """End the session and its server."""
        self._session.close()
