"""The tools of a run, and the rounds of tool calls before an answer."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from lmms_eval.api.request import Call, Response, SentMessage, SentPart, Usage
from lmms_eval.engine.signals import run_coroutine
from lmms_eval.errors import ModelError
from lmms_eval.models.remote.asking import RequestExchange
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.models.remote.media import payload_size
from lmms_eval.models.remote.reply import Reply, ToolCall
from lmms_eval.models.tools.connection import (
    NoAnswerError,
    ServerEndedError,
    ToolMedium,
    ToolResult,
    ToolSession,
    cut,
    failed,
    read_result,
)

if TYPE_CHECKING:
    from lmms_eval.media.encode import WireOptions

_START_S = 120.0
"""The minimum time limit of the start, as a server may have to load a lot."""
_MAX_ERROR_CHARACTERS = 2000
"""The maximum length of an error that the model gets."""
MOST_CALLS = 16
"""The maximum number of calls of one reply that are run."""
RETURNED_FIELDS = ("content", "reasoning_content", "reasoning")
"""Fields of a reply that are sent back to the server: models that think between calls need their thoughts."""


class ToolServer:
    """The tools of an MCP server.

    Args:
        server_path: the server's script.
        limit_s: the time limit of one call in seconds.
        max_rounds: the maximum number of replies with calls. The next reply must be the answer.
        max_characters: the limit of all texts of a result together.
        images: the encoding of pictures in results.

    Raises:
        ModelError: the script or the package mcp is missing, the server does not start, or it has no tools.
    """

    def __init__(
        self, server_path: str, limit_s: float, max_rounds: int, max_characters: int, images: WireOptions
    ) -> None:
        self._limit_s, self.max_rounds = limit_s, max_rounds
        self._max_characters, self._images = max_characters, images
        path = Path(server_path)
        if not path.is_file():
            raise ModelError(f"mcp_server_path: there is no file {path}; give the Python script of an MCP server")
        if importlib.util.find_spec("mcp") is None:
            raise ModelError("mcp_server_path needs the package mcp: pip install 'lmms_eval[mcp]'")
        self._script = hashlib.sha256(path.read_bytes()).hexdigest()
        self._session = ToolSession(str(path), limit_s, max(limit_s, _START_S))
        self.functions: list[dict[str, Any]] = run_coroutine(self._session.functions())
        """The tools in the form for chat completion requests."""
        if not self.functions:
            self.close()
            raise ModelError(f"the MCP server {path} has no tools: give another script")
        self._names = frozenset(tool["function"]["name"] for tool in self.functions)
        self._counts: Counter[str] = Counter()

    def identity(self) -> dict[str, Any]:
        """Return everything that can change how a model uses the tools."""
        listing = json.dumps(self.functions, sort_keys=True).encode()
        return {
            "script": self._script,
            "listing": hashlib.sha256(listing).hexdigest(),
            "mcp_timeout": self._limit_s,
            "mcp_max_rounds": self.max_rounds,
            "mcp_max_characters": self._max_characters,
        }

    def describe(self) -> dict[str, Any]:
        """Return the counts so far: calls, errors, starts of the server, and conversations cut short."""
        return {"tools": sorted(self._names), **dict(sorted(self._counts.items())), "starts": self._session.starts}

    async def call(self, name: str, arguments: str, again: asyncio.Lock) -> ToolResult:
        """Call a tool with the arguments that the model wrote, which must be JSON.

        Failures of the call itself are results for the model. ``again`` is held while a call that lost its server is
        repeated, so that a call that ends the server twice does not affect others. Raises ``ServerEndedError`` if the
        server ends again when the call is repeated, or does not start again.
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
        """Count a conversation that reached the maximum number of rounds."""
        self._counts["cut_short"] += 1

    def close(self) -> None:
        """Stop the server."""
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
            return failed(f"no answer within {self._limit_s:g} s")
        except ModelError as error:
            return failed(cut(str(error.__cause__ or error), _MAX_ERROR_CHARACTERS))
        return await asyncio.to_thread(read_result, result, self._max_characters, self._images)


def _read_arguments(text: str) -> dict[str, Any] | ToolResult:
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        return failed(f"the arguments are not JSON: {error}")
    return given if isinstance(given, dict) else failed("the arguments are not a JSON object")


class ToolRounds(RequestExchange):
    """The exchange between a model and its tools before the answer to one request."""

    def __init__(self, toolbox: ToolServer, again: asyncio.Lock) -> None:
        self._toolbox, self._again = toolbox, again
        self._messages: list[SentMessage] = []
        self._usage: list[Usage | None] = []
        self._rounds = 0

    async def follow_up(self, payload: Any, reply: Reply) -> tuple[Any, int] | None:
        """Run the calls of a reply, and return the next body with its size. ``payload`` is the body of the last one.

        Raises:
            AttemptError: the tool server ends repeatedly.
        """
        self._usage.append(reply.usage)
        if not reply.calls or not isinstance(payload, bytes | dict):
            return None
        most = self._toolbox.max_rounds
        if self._rounds == most:
            self._toolbox.note_cut()
            return None
        self._rounds += 1
        text = reply.message.get("content")
        said = [SentPart(text=text)] if isinstance(text, str) and text else []
        made = [SentPart(call=Call(call.id, call.name, call.arguments)) for call in reply.calls]
        self._messages.append(SentMessage("assistant", (*said, *made)))
        try:
            results = await self._results(reply.calls)
        except ServerEndedError as error:
            raise AttemptError("tool", str(error)) from error
        fields = {name: reply.message[name] for name in RETURNED_FIELDS if reply.message.get(name) is not None}
        called = {"role": "assistant", "content": None, **fields, "tool_calls": [_echo(call) for call in reply.calls]}
        messages = [called, *self._result_messages(reply.calls, results)]
        body: dict[str, Any] = orjson.loads(payload) if isinstance(payload, bytes) else dict(payload)
        body["messages"] = [*body["messages"], *messages]
        if self._rounds == most:  # the model may not call tools again
            body["tool_choice"] = "none"
        if not isinstance(payload, bytes):
            return body, payload_size(body)
        written = orjson.dumps(body)
        return written, len(written)

    def finish(self, response: Response) -> Response:
        """Return the response with the preceding rounds, and the sum of all their tokens."""
        if not self._messages:
            return response
        usage = response.usage if response.error is not None else _sum(self._usage)
        return replace(response, usage=usage, tool_messages=tuple(self._messages))

    async def _results(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        run = [self._toolbox.call(call.name, call.arguments, self._again) for call in calls[:MOST_CALLS]]
        found = await asyncio.gather(*run, return_exceptions=True)
        for result in found:
            if isinstance(result, BaseException):
                raise result
        left_out = failed(f"at most {MOST_CALLS} calls are run at a time")
        return [result for result in found if isinstance(result, ToolResult)] + [left_out] * len(calls[MOST_CALLS:])

    def _result_messages(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[dict[str, Any]]:
        """Return the messages of the results. Media follow in a user message, as not all servers accept them here."""
        messages: list[dict[str, Any]] = []
        shown: list[tuple[ToolCall, tuple[ToolMedium, ...]]] = []
        for call, result in zip(calls, results, strict=True):
            text = result.text
            if result.media:
                shown.append((call, result.media))
                text = f"{text}\n[{len(result.media)} picture or sound below]" if text else "[see below]"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
            self._messages.append(SentMessage("tool", (SentPart(text=text),), call=call.id))
        if shown:
            content: list[dict[str, Any]] = []
            sent: list[SentPart] = []
            for call, media in shown:
                text = f"From the tool {call.name}:"
                content += [{"type": "text", "text": text}, *(dict(part) for part, _ in media)]
                sent += [SentPart(text=text), *(recorded for _, recorded in media)]
            self._messages.append(SentMessage("user", tuple(sent)))
            messages.append({"role": "user", "content": content})
        return messages


def _echo(call: ToolCall) -> dict[str, Any]:
    """Return the call as sent by the server, with valid arguments, as servers parse them again."""
    function = {**call.function, "name": call.name, "arguments": call.arguments if _is_object(call.arguments) else "{}"}
    return {**call.fields, "id": call.id, "type": "function", "function": function}


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _sum(usages: Sequence[Usage | None]) -> Usage | None:
    """Return the sum of all tokens; ``None`` if a round has no usage."""
    if any(usage is None for usage in usages):
        return None

    def total(name: str) -> int | None:
        counts = [getattr(usage, name) for usage in usages]
        return None if None in counts else sum(counts)

    return Usage(total("input_tokens"), total("output_tokens"), total("reasoning_tokens"))
