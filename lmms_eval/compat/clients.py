"""Clients that task files and plugins of the family build: Azure's OpenAI service, and tools of an MCP server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from lmms_eval.compat.helpers import require_package
from lmms_eval.errors import UsageError
from lmms_eval.models.tools.connection import ToolSession, wire

API_VERSION = "2024-10-21"
"""Default of ``AZURE_OPENAI_API_VERSION``."""


def _endpoint() -> str:
    return os.environ.get("AZURE_OPENAI_ENDPOINT") or os.environ.get("AZURE_OPENAI_API_BASE", "")


def has_endpoint_support() -> bool:
    """Return whether the environment names an Azure resource and a key."""
    return bool(_endpoint() and os.environ.get("AZURE_OPENAI_API_KEY"))


def build_client(model: str | None = None) -> tuple[Any, str]:
    """Make an ``openai.AzureOpenAI`` for the resource that the environment names. Returns it and the deployment's name.

    The deployment is by default ``AZURE_OPENAI_DEPLOYMENT``. Raises ``UsageError`` if the resource, its key or the
    deployment is not named.
    """
    deployment = model or os.environ.get("AZURE_OPENAI_DEPLOYMENT", "")
    needed = {
        "AZURE_OPENAI_ENDPOINT": _endpoint(),
        "AZURE_OPENAI_API_KEY": os.environ.get("AZURE_OPENAI_API_KEY"),
        "AZURE_OPENAI_DEPLOYMENT": deployment,
    }
    if missing := [name for name, value in needed.items() if not value]:
        raise UsageError(f"the Azure client of this task needs {', '.join(missing)}: set the environment variables")
    from openai import AzureOpenAI

    version = os.environ.get("AZURE_OPENAI_API_VERSION") or API_VERSION
    return AzureOpenAI(
        azure_endpoint=needed["AZURE_OPENAI_ENDPOINT"], api_key=needed["AZURE_OPENAI_API_KEY"], api_version=version
    ), deployment


class MCPClient:
    """A tool server: a Python script that this process starts at the first call and keeps until ``close``.

    Calls may come from several threads and event loops; they share one session. If the server has ended, the next call
    restarts it. ``timeout`` limits each call, and the start. Raises ``MissingOptionalDependencyError``, which is an
    ``ImportError``, if the package mcp is not installed.
    """

    def __init__(self, server_path: str | Path, timeout: timedelta = timedelta(seconds=600)) -> None:
        require_package("mcp", "mcp", "the tools of an MCP server")
        self.server_path, self.timeout = str(server_path), timeout
        self._session = ToolSession(self.server_path, timeout.total_seconds())

    async def get_function_list(self) -> list[dict[str, Any]]:
        """List the tools in the form of ``tools`` of a chat completion request.

        Raises ``ModelError`` if the server does not start or does not answer.
        """
        return await self._session.functions()

    async def run_tool(self, name: str, args: Mapping[str, Any]) -> Any:
        """Call a tool and return its result as the package mcp gives it: ``content`` is a list of parts.

        Raises ``ModelError`` if the server does not start, does not answer, or has no such tool.
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

        Raises ``ValueError`` if a part is not a text, picture or sound.
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
