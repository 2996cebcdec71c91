"""The tools of a run: listed once, called with limits, counted."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.engine.event_loop import run_coroutine
from lmms_eval.errors import ModelError
from lmms_eval.models.tools.connection import NoAnswerError, ServerEndedError, ToolSession
from lmms_eval.models.tools.results import ResultLimits, ToolResult, cut, failed, read_result

_START_S = 120.0
"""A server may load a lot before it answers."""
_TOLD_CHARACTERS = 2000
"""Of an error that the model gets."""


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """The server, and how far a conversation with its tools may go."""

    server_path: str
    limit_s: float
    """Seconds for one call."""
    max_rounds: int
    """Replies of the model with calls; the next one must be the answer."""
    limits: ResultLimits


class Toolbox:
    """The tools of an MCP server.

    Raises:
        ModelError: the script or the package mcp is absent, the server does not start, it has no tools.
    """

    def __init__(self, settings: ToolSettings) -> None:
        self.settings = settings
        path = Path(settings.server_path)
        if not path.is_file():
            raise ModelError(f"mcp_server_path: there is no file {path}; give the Python script of an MCP server")
        if importlib.util.find_spec("mcp") is None:
            raise ModelError("mcp_server_path needs the package mcp: pip install 'lmms_eval[mcp]'")
        self._script = hashlib.sha256(path.read_bytes()).hexdigest()
        self._session = ToolSession(str(path), settings.limit_s, max(settings.limit_s, _START_S))
        self.functions: list[dict[str, Any]] = run_coroutine(self._session.functions())
        """The tools as chat completion requests list them."""
        if not self.functions:
            self.close()
            raise ModelError(f"the MCP server {path} has no tools: nothing to offer to the model")
        self._names = frozenset(tool["function"]["name"] for tool in self.functions)
        self._counts: Counter[str] = Counter()

    def identity(self) -> dict[str, Any]:
        """All that can change what a model does with the tools."""
        listing = json.dumps(self.functions, sort_keys=True).encode()
        settings = self.settings
        return {
            "script": self._script,
            "listing": hashlib.sha256(listing).hexdigest(),
            "mcp_timeout": settings.limit_s,
            "mcp_max_rounds": settings.max_rounds,
            "mcp_max_characters": settings.limits.characters,
        }

    def describe(self) -> dict[str, Any]:
        """Counts so far: calls, errors that the model was told, starts of the server, conversations cut short."""
        return {"tools": sorted(self._names), **dict(sorted(self._counts.items())), "starts": self._session.starts}

    async def call(self, name: str, arguments: str, again: asyncio.Lock) -> ToolResult:
        """Call a tool with arguments as the model wrote them: JSON, and nothing else.

        Whatever goes wrong with the call itself is a result that the model is told. ``again`` is held while a call
        that lost its server is repeated: so one that ends the server twice does not take others with it.

        Raises:
            ServerEndedError: the server ended again when the call was repeated, or does not start any more.
        """
        self._counts["calls"] += 1
        if name not in self._names:
            result = failed(f"there is no tool {name!r}; there are: {', '.join(sorted(self._names))}")
        else:
            given = _read_arguments(arguments)
            result = given if isinstance(given, ToolResult) else await self._called(name, given, again)
        self._counts["errors"] += result.is_error
        return result

    def note_cut(self) -> None:
        """Count a conversation whose rounds were used up."""
        self._counts["cut_short"] += 1

    def close(self) -> None:
        """End the server."""
        self._session.close()

    async def _called(self, name: str, arguments: Mapping[str, Any], again: asyncio.Lock) -> ToolResult:
        try:
            return await self._once(name, arguments)
        except ServerEndedError:
            async with again:
                return await self._once(name, arguments)

    async def _once(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            result = await self._session.call(name, arguments)
        except ServerEndedError:
            raise
        except NoAnswerError:
            self._counts["timeouts"] += 1
            return failed(f"no answer within {self.settings.limit_s:g} s")
        except ModelError as error:
            return failed(cut(str(error.__cause__ or error), _TOLD_CHARACTERS))
        return await asyncio.to_thread(read_result, result, self.settings.limits)


def _read_arguments(text: str) -> dict[str, Any] | ToolResult:
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        return failed(f"the arguments are no JSON: {error}")
    return given if isinstance(given, dict) else failed("the arguments are no JSON object")
