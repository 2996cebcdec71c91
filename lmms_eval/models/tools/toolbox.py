"""The tools of a run, and the rounds of tool calls before an answer."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from msgspec import Struct, structs

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


MOST_IMAGE_CALLS = 32
"""The maximum number of calls of the tools for pictures for one request, unless ``mcp_max_calls`` states another."""


class ToolLimits(Struct, frozen=True, kw_only=True):
    """Limits of the tools. After the last three are reached, the next reply must be the answer."""

    timeout_s: float = 60.0
    """The time limit of one call in seconds."""
    rounds: int = 10
    """The maximum number of replies with calls. The next reply must be the answer."""
    characters: int = 50_000
    """The limit of all texts of a result together."""
    calls: int | None = None
    """The maximum number of calls for one request."""
    tokens: int | None = None
    """Input and output tokens of all rounds of one request."""
    cost: float | None = None
    """Cost of all rounds of one request."""
    price: str | None = None
    """Prices of a million input and output tokens, ``INPUT:OUTPUT``."""

    def identity(self) -> dict[str, Any]:
        """Return the limits by the names of the arguments; those of later versions only if they are set."""
        later = {
            "mcp_max_calls": self.calls,
            "mcp_max_tokens": self.tokens,
            "mcp_max_cost": self.cost,
            "mcp_price": self.price,
        }
        return {
            "mcp_timeout": self.timeout_s,
            "mcp_max_rounds": self.rounds,
            "mcp_max_characters": self.characters,
            **{name: value for name, value in later.items() if value is not None},
        }

    def are_spent(self, usage: Sequence[Usage | None]) -> bool:
        """Return whether the tokens of the rounds so far, or their cost, have reached a limit.

        Raises:
            AttemptError: a round has no token counts, which a limit needs.
        """
        if self.tokens is None and self.cost is None:
            return False
        total = _sum(usage)
        if total is None or total.input_tokens is None or total.output_tokens is None:
            name = "mcp_max_tokens" if self.tokens is not None else "mcp_max_cost"
            raise AttemptError("tool", f"the server reports no tokens, which {name} needs: leave it out")
        if self.tokens is not None and total.input_tokens + total.output_tokens >= self.tokens:
            return True
        if self.cost is None or self.price is None:
            return False
        of_input, of_output = map(float, self.price.split(":"))
        return (total.input_tokens * of_input + total.output_tokens * of_output) / 1e6 >= self.cost


class ToolServer:
    """The tools of an MCP server.

    Args:
        server_path: the server's script.
        limits: the limits of calls and conversations.
        images: the encoding of pictures in results.

    Raises:
        ModelError: the script or the package mcp is missing, the server does not start, or it has no tools.
    """

    argument = "mcp_server_path"
    """The model argument that names the tools, for messages."""
    shows_numbers = False
    """Whether the model gets the numbers of the pictures in results."""

    def __init__(self, server_path: str, limits: ToolLimits, images: WireOptions) -> None:
        self.limits, self._images = limits, images
        path = Path(server_path)
        if not path.is_file():
            raise ModelError(f"mcp_server_path: there is no file {path}; give the Python script of an MCP server")
        if importlib.util.find_spec("mcp") is None:
            raise ModelError(f"{self.argument} needs the package mcp: pip install 'lmms_eval[mcp]'")
        self._script = hashlib.sha256(path.read_bytes()).hexdigest()
        self._session = ToolSession(str(path), limits.timeout_s, max(limits.timeout_s, _START_S))
        self.functions: list[dict[str, Any]] = [self._offered(one) for one in run_coroutine(self._session.functions())]
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
            **self.limits.identity(),
        }

    def describe(self) -> dict[str, Any]:
        """Return the counts so far: calls, errors, starts of the server, and conversations cut short."""
        return {"tools": sorted(self._names), **dict(sorted(self._counts.items())), "starts": self._session.starts}

    async def call(
        self, name: str, arguments: str, again: asyncio.Lock, pictures: Sequence[str | None] = ()
    ) -> ToolResult:
        """Call a tool with the arguments that the model wrote, which must be JSON.

        ``pictures`` are those of the conversation in base64, ``None`` for a picture at an address.

        Failures of the call itself are results for the model. ``again`` is held while a call that lost its server is
        repeated, so that a call that ends the server twice does not affect others. Raises ``ServerEndedError`` if the
        server ends again when the call is repeated, or does not start again.
        """
        self._counts["calls"] += 1
        if name not in self._names:
            result = failed(f"there is no tool {name!r}; there are: {', '.join(sorted(self._names))}")
        else:
            given = _read_arguments(arguments)
            if not isinstance(given, ToolResult):
                given = self._completed(given, pictures)
            result = given if isinstance(given, ToolResult) else await self._called(name, given, again)
        self._counts["errors"] += result.is_error
        return result

    def note_cut(self) -> None:
        """Count a conversation that reached the maximum number of rounds."""
        self._counts["cut_short"] += 1

    def close(self) -> None:
        """Stop the server."""
        self._session.close()

    def pictures_of(self, body: Mapping[str, Any]) -> list[str | None]:  # noqa: ARG002 - of the tools for pictures
        """Return the pictures of a conversation that calls may be about."""
        return []

    def _offered(self, function: dict[str, Any]) -> dict[str, Any]:
        """Return a function of the server as the model sees it."""
        return function

    def _completed(self, given: dict[str, Any], pictures: Sequence[str | None]) -> dict[str, Any] | ToolResult:  # noqa: ARG002
        """Return the arguments for the server, or the error for the model."""
        return given

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
            return failed(f"no answer within {self.limits.timeout_s:g} s")
        except ModelError as error:
            return failed(cut(str(error.__cause__ or error), _MAX_ERROR_CHARACTERS))
        return await asyncio.to_thread(read_result, result, self.limits.characters, self._images)


class ImageTools(ToolServer):
    """The tools for the pictures of a request, of the server ``images`` in this package (``tools=images``).

    The model names a picture by its number. The server gets the picture itself with the call, and has no other access
    to the request or to files.

    Args:
        limits: the limits of calls and conversations; by default 32 calls for one request.
        images: the encoding of pictures in results.
    """

    argument = "tools"
    shows_numbers = True

    def __init__(self, limits: ToolLimits, images: WireOptions) -> None:
        if limits.calls is None:
            limits = structs.replace(limits, calls=MOST_IMAGE_CALLS)
        super().__init__(str(Path(__file__).with_name("images.py")), limits, images)

    def pictures_of(self, body: Mapping[str, Any]) -> list[str | None]:
        """Return all pictures of the messages, also those of results, in order."""
        found: list[str | None] = []
        for message in body["messages"]:
            content = message.get("content")
            for part in content if isinstance(content, list) else ():
                if part.get("type") == "image_url":
                    head, comma, data = str(part["image_url"]["url"]).partition(",")
                    is_here = comma and head.startswith("data:image/") and head.endswith(";base64")
                    found.append(data if is_here else None)
        return found

    def _offered(self, function: dict[str, Any]) -> dict[str, Any]:
        schema = function["function"]["parameters"]
        number = {"type": "integer", "minimum": 1, "description": _NUMBER}
        others = {name: one for name, one in schema["properties"].items() if name != "image"}
        required = ["picture", *(name for name in schema.get("required", ()) if name != "image")]
        parameters = {**schema, "properties": {"picture": number, **others}, "required": required}
        return {**function, "function": {**function["function"], "parameters": parameters}}

    def _completed(self, given: dict[str, Any], pictures: Sequence[str | None]) -> dict[str, Any] | ToolResult:
        number = given.pop("picture", None)
        if "image" in given:
            return failed("there is no argument 'image': name a picture by its number, picture")
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= len(pictures):
            there = f"they have the numbers 1 to {len(pictures)}" if pictures else "this conversation has none"
            return failed(f"there is no picture {str(number)[:40]}: {there}")
        picture = pictures[number - 1]
        if picture is None:
            return failed(f"picture {number} is at an address, which tools do not open")
        return {**given, "image": picture}


_NUMBER = (
    "Number of the picture: pictures have numbers from 1 in the order of the conversation, and each picture that a "
    "tool returns has the next number."
)


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
        self._rounds = self._calls = 0
        self._is_last = False
        """The reply that is waited for must be the answer."""

    async def follow_up(self, payload: Any, reply: Reply) -> tuple[Any, int] | None:
        """Run the calls of a reply, and return the next body with its size. ``payload`` is the body of the last one.

        Raises:
            AttemptError: the tool server ends repeatedly, or tokens that are limited are not reported.
        """
        self._usage.append(reply.usage)
        if not reply.calls or not isinstance(payload, bytes | dict):
            return None
        limits = self._toolbox.limits
        if self._is_last:
            self._toolbox.note_cut()
            return None
        self._rounds += 1
        text = reply.message.get("content")
        said = [SentPart(text=text)] if isinstance(text, str) and text else []
        made = [SentPart(call=Call(call.id, call.name, call.arguments)) for call in reply.calls]
        self._messages.append(SentMessage("assistant", (*said, *made)))
        body: dict[str, Any] = orjson.loads(payload) if isinstance(payload, bytes) else dict(payload)
        pictures = self._toolbox.pictures_of(body)
        try:
            results = await self._results(reply.calls, pictures)
        except ServerEndedError as error:
            raise AttemptError("tool", str(error)) from error
        fields = {name: reply.message[name] for name in RETURNED_FIELDS if reply.message.get(name) is not None}
        called = {"role": "assistant", "content": None, **fields, "tool_calls": [_echo(call) for call in reply.calls]}
        messages = [called, *self._result_messages(reply.calls, results, len(pictures))]
        body["messages"] = [*body["messages"], *messages]
        has_called_all = limits.calls is not None and self._calls >= limits.calls
        self._is_last = self._rounds == limits.rounds or has_called_all or limits.are_spent(self._usage)
        if self._is_last:  # the model may not call tools again
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
        return structs.replace(response, usage=usage, tool_messages=tuple(self._messages))

    async def _results(self, calls: Sequence[ToolCall], pictures: Sequence[str | None]) -> list[ToolResult]:
        limit = self._toolbox.limits.calls
        room = MOST_CALLS if limit is None else min(MOST_CALLS, limit - self._calls)
        self._calls += len(calls[:room])
        run = [self._toolbox.call(call.name, call.arguments, self._again, pictures) for call in calls[:room]]
        found = await asyncio.gather(*run, return_exceptions=True)
        for result in found:
            if isinstance(result, BaseException):
                raise result
        at_a_time = f"at most {MOST_CALLS} calls are run at a time"
        left_out = failed(at_a_time if room == MOST_CALLS else f"at most {limit} calls are run for a question")
        return [result for result in found if isinstance(result, ToolResult)] + [left_out] * len(calls[room:])

    def _result_messages(
        self, calls: Sequence[ToolCall], results: Sequence[ToolResult], pictures: int
    ) -> list[dict[str, Any]]:
        """Return the messages of the results. Media follow in a user message, as not all servers accept them here.

        ``pictures`` is the number of pictures before them.
        """
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
                if self._toolbox.shows_numbers:  # each result of these tools has one picture
                    pictures += len(media)
                    text = f"From the tool {call.name}, picture {pictures}:"
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
