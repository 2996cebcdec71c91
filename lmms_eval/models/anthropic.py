"""The back end ``anthropic`` (``claude``): the Messages API through the official package."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import Field

from lmms_eval.api.generation import SAMPLING, TakenOptions
from lmms_eval.api.request import Request, Usage
from lmms_eval.errors import MediaError
from lmms_eval.models.remote.arguments import ANSWER_ARGUMENTS, RemoteArguments
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.models.remote.generation import extra_body, stop_strings, taken_options
from lmms_eval.models.remote.media import Part
from lmms_eval.models.remote.reply import Reply, thought_text
from lmms_eval.models.remote.sdk import Call, SdkModel

if TYPE_CHECKING:
    from lmms_eval.media.encode import WireOptions

MAX_SIDE, MAX_SIDE_OF_MANY, MANY = 8000, 2000, 20
"""Limits of the service in pixels for the longer side of a picture: up to 20 pictures, and for more."""
MAX_IMAGE_BYTES = 3_932_160
"""The service takes 5 MiB of base64 for each picture."""
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class Arguments(RemoteArguments):
    """See ``docs/models/anthropic.md``."""

    backend: ClassVar[str] = "anthropic"

    max_image_bytes: int = Field(default=MAX_IMAGE_BYTES, ge=1024)
    thinking_budget: int | None = Field(default=None, ge=1024)
    sampling_options: bool = True


class Anthropic(SdkModel[Arguments]):
    """Sends requests to Claude models; for the arguments see ``docs/models/anthropic.md``. Raises ``ModelError``."""

    answer_arguments = (*ANSWER_ARGUMENTS, "thinking_budget", "sampling_options")
    arguments_kind = Arguments
    module = "anthropic"
    base_url = "https://api.anthropic.com"
    base_url_variable = "ANTHROPIC_BASE_URL"
    key_variables = ("ANTHROPIC_API_KEY",)

    def build(self, request: Request) -> dict[str, Any]:
        """Return the arguments of ``messages.create``."""
        system, turns = self.conversation(request)
        pictures = sum(part.kind == "picture" for _, parts in turns for part in parts)  # frames included
        side, images = MAX_SIDE if pictures <= MANY else MAX_SIDE_OF_MANY, self.form_of(request).images
        call: dict[str, Any] = {
            "model": self._arguments.model,
            "messages": [
                {
                    "role": role,
                    "content": [
                        self._block(part, side, images)
                        for part in parts
                        if part.kind != "text" or part.value.strip()  # the service rejects blank texts
                    ],
                }
                for role, parts in turns
            ],
        }
        if system:
            call["system"] = system
        return {**call, **self.sent_options(request)}

    def generation_options(self) -> TakenOptions:
        """The common options, ``top_k`` and the effort; no sampling options with a budget for thoughts."""
        without = {"seed": "the Messages API has no seed"}
        if self._arguments.thinking_budget or not self._arguments.sampling_options:
            reason = "a model that thinks takes no sampling options (thinking_budget, sampling_options)"
            without |= dict.fromkeys((*SAMPLING, "top_k"), reason)
        return taken_options(
            ("top_k", "reasoning_effort", "extra_body"),
            without,
            needs_length="the Messages API requires a number of tokens",
        )

    def sent_options(self, request: Request) -> dict[str, Any]:
        """Return the arguments of ``messages.create`` except model, system prompt and messages."""
        arguments, wanted = self._arguments, self.wanted(request)
        budget = arguments.thinking_budget
        call: dict[str, Any] = {"max_tokens": (wanted.max_new_tokens or arguments.max_new_tokens) + (budget or 0)}
        if stops := [stop for stop in wanted.stops if stop.strip()]:
            call["stop_sequences"] = stops
        if wanted.effort:
            call["output_config"] = {"effort": wanted.effort}
        extra, ignored = wanted.pick({"top_k": "top_k"}, ("extra_body",))
        if budget:
            call["thinking"] = {"type": "enabled", "budget_tokens": budget}
        elif arguments.sampling_options:
            # A request may set only one of temperature and top_p.
            if wanted.temperature is not None:
                extra["temperature"] = min(wanted.temperature, 1.0)
            elif wanted.top_p is not None:
                extra["top_p"] = wanted.top_p
        else:
            extra = {}
        # The package accepts sampling options in the body, whatever its version supports.
        if body := {**({} if budget else extra), **extra_body(request.generation)}:
            call["extra_body"] = body
        self.note_ignored([*ignored, *(["seed"] if wanted.seed is not None else [])])
        return call

    def stops_here(self, request: Request) -> list[str]:
        """Return the stop strings of white space, which the service rejects."""
        return [stop for stop in stop_strings(request.generation) if not stop.strip()]

    def _block(self, part: Part, side: int, images: WireOptions) -> dict[str, Any]:
        if part.kind == "text":
            return {"type": "text", "text": part.value}
        if part.kind == "picture":
            from lmms_eval.media.encode import wire_image
            from lmms_eval.media.image import header, load_image, shrink

            value, facts = part.value, header(part.value)
            if max(facts.width, facts.height) > side:
                value = shrink(load_image(value), max_side=side)
            image = wire_image(value, options=images)
            source = {"type": "base64", "media_type": image.mime, "data": image.base64}
            return {"type": "image", "source": source}
        raise MediaError("the Messages API takes no sound: leave out such tasks, or choose another model")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Call]:
        """Open a client of the package, without its retries."""
        sdk = self.sdk
        # A mount without transport selects the package's own one, whatever proxies the environment names.
        direct = {f"all://{urlsplit(self.url).hostname}": None} if self.is_local else {}
        client = sdk.AsyncAnthropic(
            api_key=self.key,
            base_url=self.url,
            timeout=self._arguments.timeout,
            max_retries=0,
            http_client=sdk.DefaultAsyncHttpxClient(
                mounts=direct, headers={"Accept-Encoding": "identity"}, event_hooks={"response": [self._bound_reply()]}
            ),
        )

        async def call(arguments: Mapping[str, Any]) -> Any:
            return await client.messages.create(**arguments)

        async with client:
            yield call

    def _bound_reply(self) -> Callable[[Any], Awaitable[None]]:
        """Return a hook of the package's HTTP client that reads at most ``max_reply_mb`` of a reply."""
        http: Any = importlib.import_module(self.sdk.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])
        most = self._arguments.max_reply_mb << 20
        refused = self.failures.malformed
        too_large = f"a reply of more than {most >> 20} MiB (max_reply_mb=...)"

        class Bounded(http.AsyncByteStream):  # type: ignore[misc]  # the package supports two HTTP libraries
            def __init__(self, stream: Any) -> None:
                self._stream = stream

            async def __aiter__(self) -> AsyncIterator[bytes]:
                size = 0
                async for piece in self._stream:
                    size += len(piece)
                    if size > most:
                        await self.aclose()
                        raise refused(too_large, retry=False)
                    yield piece

            async def aclose(self) -> None:
                await self._stream.aclose()

        async def bound(response: Any) -> None:
            encoding = response.headers.get("Content-Encoding", "identity")
            if encoding != "identity":
                raise refused(f"a reply encoded as {encoding}, which was not requested", retry=False)
            response.stream = Bounded(response.stream)

        return bound

    def errors(self) -> tuple[type[Exception], ...]:
        """Return the exceptions that a call of the package raises."""
        return (self.sdk.AnthropicError, OSError, ValueError)

    def failure(self, error: Exception) -> AttemptError:
        """Classify an answer other than 200 by its status, and anything else as a failure of the transport."""
        if not isinstance(error, self.sdk.APIStatusError):
            return super().failure(error)
        return self.failures.of_status(error.status_code, error.body or str(error), error.response.headers)

    def read(self, answer: Any) -> Reply:
        """Join the text blocks of the answer. Thinking blocks are kept separately; hidden ones are left out.

        Raises:
            AttemptError: ``malformed``.
        """
        content = getattr(answer, "content", None)
        if not isinstance(content, list):
            raise self.failures.malformed("no message")
        texts = [getattr(block, "text", None) for block in content if getattr(block, "type", None) == "text"]
        reason = getattr(answer, "stop_reason", None)
        finish = FINISH.get(reason, reason) if isinstance(reason, str) else None
        text = "".join(text for text in texts if isinstance(text, str))
        thoughts = [getattr(block, "thinking", None) for block in content if getattr(block, "type", None) == "thinking"]
        stopped = getattr(answer, "stop_sequence", None)
        return Reply(
            text,
            finish,
            _usage(answer),
            reasoning=thought_text(thoughts),
            ended_by=stopped if reason == "stop_sequence" and isinstance(stopped, str) else "",
            model=getattr(answer, "model", None),
        )


def _usage(message: Any) -> Usage | None:
    usage = getattr(message, "usage", None)
    if usage is None:
        return None
    inputs = [getattr(usage, f"{part}input_tokens", None) for part in ("", "cache_creation_", "cache_read_")]
    details = getattr(usage, "output_tokens_details", None)
    return Usage(
        sum(count or 0 for count in inputs) if inputs[0] is not None else None,
        getattr(usage, "output_tokens", None),
        getattr(details, "thinking_tokens", None),
    )
