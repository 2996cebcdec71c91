"""Back ends whose payloads are bodies of chat completions: what ``openai`` and ``litellm`` share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.api.generation import TakenOptions
from lmms_eval.api.request import Request, RequestKind
from lmms_eval.models.openai.arguments import ChatArguments, Endpoint
from lmms_eval.models.openai.body import BodyBuilder
from lmms_eval.models.openai.generation import local_stops, taken_by
from lmms_eval.models.remote.arguments import ANSWER_ARGUMENTS
from lmms_eval.models.remote.model import RemoteModel

if TYPE_CHECKING:
    from lmms_eval.models.openai.asking import Talk
    from lmms_eval.models.tools.toolbox import Toolbox

CHAT_ANSWER_ARGUMENTS = (
    *ANSWER_ARGUMENTS,
    "reasoning_model",
    "pass_video_url",
    "message_format",
    "is_qwen3_vl",
    "enable_thinking_kwarg",
    "extra_body",
)
"""Arguments of chat completions that can change an answer."""


class ChatModel(RemoteModel):
    """A ``RemoteModel`` whose requests a ``BodyBuilder`` renders."""

    answer_arguments: tuple[str, ...] = CHAT_ANSWER_ARGUMENTS
    kinds: frozenset[RequestKind] = frozenset({"generate_until", "generate_visual_cot"})

    def __init__(self, arguments: ChatArguments, endpoint: Endpoint) -> None:
        self.builder = BodyBuilder(arguments, endpoint)
        super().__init__(arguments, endpoint.shown, self.builder.system_prompt)
        self.builder.leaves_stops_out = lambda: self.stops.is_off
        self._toolbox = _toolbox(arguments, endpoint)
        if self._toolbox is not None:
            self.builder.tools = self._toolbox.functions

    def identity(self) -> Mapping[str, Any]:
        """As of all remote models, and the tools that it may call."""
        tools = {} if self._toolbox is None else {"tools": self._toolbox.identity()}
        return {**super().identity(), **tools}

    def describe(self) -> Mapping[str, Any]:
        """As of all remote models, and the calls of tools."""
        tools = {} if self._toolbox is None else {"tools": self._toolbox.describe()}
        return {**super().describe(), **tools}

    def talks(self) -> Callable[[], Talk]:
        """Return what runs the tools that a reply asks for."""
        toolbox = self._toolbox
        if toolbox is None:
            return super().talks()
        from lmms_eval.models.tools.rounds import ToolRounds

        again = asyncio.Lock()
        return lambda: ToolRounds(toolbox, again)

    def close(self) -> None:
        """End the server of the tools."""
        if self._toolbox is not None:
            self._toolbox.close()

    def stops_here(self, request: Request) -> list[str]:
        """The stop strings beyond those that the protocol takes."""
        return local_stops(request.generation_after(self.has_template), self.builder.dialect)

    def generation_options(self) -> TakenOptions:
        """Those of chat completions, and where the server is no vendor's own all others."""
        return taken_by(self.builder.dialect)

    def sent_options(self, request: Request) -> Mapping[str, Any]:
        """The fields of a request's body."""
        tools = {} if self._toolbox is None else {"tools": [one["function"]["name"] for one in self._toolbox.functions]}
        return {**self.builder.options(request), **tools}

    def ignored_options(self) -> list[str]:
        """Generation options of tasks that had no place in the protocol, so far."""
        return self.builder.ignored_options


def _toolbox(arguments: ChatArguments, endpoint: Endpoint) -> Toolbox | None:
    """The tools of ``mcp_server_path``: their server starts here, so that one that does not ends the run at once."""
    if arguments.mcp_server_path is None:
        return None
    from lmms_eval.models.tools.results import ResultLimits
    from lmms_eval.models.tools.toolbox import Toolbox, ToolSettings

    limits = ResultLimits(arguments.mcp_max_characters, arguments.wire_options(endpoint.takes_webp))
    return Toolbox(ToolSettings(arguments.mcp_server_path, arguments.mcp_timeout, arguments.mcp_max_rounds, limits))
