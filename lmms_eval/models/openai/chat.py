"""Back ends whose payloads are bodies of chat completions: what ``openai`` and ``litellm`` share."""

from __future__ import annotations

from lmms_eval.api.request import Request, RequestKind
from lmms_eval.models.openai.arguments import ChatArguments, Endpoint
from lmms_eval.models.openai.body import BodyBuilder
from lmms_eval.models.openai.generation import local_stops
from lmms_eval.models.remote.arguments import ANSWER_ARGUMENTS
from lmms_eval.models.remote.model import RemoteModel

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

    def stops_here(self, request: Request) -> list[str]:
        """The stop strings beyond those that the protocol takes."""
        return local_stops(request.generation, self.builder.dialect)

    def ignored_options(self) -> list[str]:
        """Generation options of tasks that had no place in the protocol, so far."""
        return self.builder.ignored_options
