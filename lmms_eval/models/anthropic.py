"""The back end ``anthropic`` (``claude``): the Messages API through the official package."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from pydantic import Field

from lmms_eval.api.request import Request, Usage
from lmms_eval.errors import MediaError, ModelError
from lmms_eval.models.openai.reply import Reply
from lmms_eval.models.remote.arguments import ANSWER_ARGUMENTS, RemoteArguments, read_arguments
from lmms_eval.models.remote.failures import Failures
from lmms_eval.models.remote.generation import read_generation
from lmms_eval.models.remote.media import Part, Picture, Text
from lmms_eval.models.remote.model import Complete, import_sdk
from lmms_eval.models.remote.sdk import SdkModel, read_address

PUBLIC_BASE_URL = "https://api.anthropic.com"
MAX_SIDE, MAX_SIDE_OF_MANY, MANY = 8000, 2000, 20
"""Pixels of a picture's longer side: the service refuses larger ones, and smaller limits hold beyond 20 pictures."""
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


class Anthropic(SdkModel):
    """Asks Claude models.

    Args:
        arguments: see ``docs/models/anthropic.md``.

    Raises:
        ModelError: the package is absent, an unknown or wrong argument, no key.
    """

    answer_arguments = (*ANSWER_ARGUMENTS, "thinking_budget", "sampling_options")

    def __init__(self, **arguments: Any) -> None:
        from lmms_eval.media.encode import WireOptions

        parsed = self._arguments = read_arguments(Arguments, arguments, os.environ)
        self._sdk = import_sdk("anthropic", "anthropic", "anthropic")
        self._url, shown = read_address(parsed.base_url or os.environ.get("ANTHROPIC_BASE_URL"), PUBLIC_BASE_URL)
        self._key = parsed.api_key or os.environ.get("ANTHROPIC_API_KEY", "")
        if not self._key:
            raise ModelError(f"no key for {shown}: set ANTHROPIC_API_KEY or give api_key=...")
        super().__init__(parsed, Failures(shown, "ANTHROPIC_API_KEY", parsed.timeout, (self._key,)))
        self._images = WireOptions(
            max_bytes=parsed.max_image_bytes,
            max_pixels=parsed.max_pixels,
            image_format=parsed.image_format,
            quality=parsed.image_quality,
        )

    def build(self, request: Request) -> dict[str, Any]:
        """The arguments of ``messages.create``."""
        arguments = self._arguments
        wanted = read_generation(request.generation, request.seed, arguments.max_new_tokens, arguments.reasoning_effort)
        talk = self.conversation(request)
        side = MAX_SIDE if talk.pictures <= MANY else MAX_SIDE_OF_MANY
        budget = arguments.thinking_budget
        call: dict[str, Any] = {
            "model": arguments.model,
            "max_tokens": wanted.max_new_tokens + (budget or 0),
            "messages": [
                {"role": turn.role, "content": [self._block(part, side) for part in turn.parts if not _is_blank(part)]}
                for turn in talk.turns
            ],
        }
        if talk.system:
            call["system"] = talk.system
        if told := [stop for stop in wanted.stops if stop.strip()]:
            call["stop_sequences"] = told
        if wanted.effort:
            call["output_config"] = {"effort": wanted.effort}
        extra, ignored = wanted.pick({"top_k": "top_k"})
        if budget:
            call["thinking"] = {"type": "enabled", "budget_tokens": budget}
        elif arguments.sampling_options:
            # A request may set one of temperature and top_p only.
            if wanted.temperature is not None:
                extra["temperature"] = min(wanted.temperature, 1.0)
            elif wanted.top_p is not None:
                extra["top_p"] = wanted.top_p
            # The package accepts sampling options through the body whatever its version names.
            call["extra_body"] = extra
        self.note_ignored([*ignored, *(["seed"] if wanted.seed is not None else [])])
        return call

    def stops_here(self, request: Request) -> list[str]:
        """The service refuses stop strings of white space."""
        wanted = read_generation(request.generation, 0, 1)
        return [stop for stop in wanted.stops if not stop.strip()]

    def _block(self, part: Part, side: int) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        if isinstance(part, Picture):
            from lmms_eval.media.encode import wire_image

            image = wire_image(_within(part.value, side), options=self._images)
            source = {"type": "base64", "media_type": image.mime, "data": image.base64}
            return {"type": "image", "source": source}
        raise MediaError("the Messages API takes no sound: leave such tasks out, or ask another model")

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Complete]:
        """A client of the package, without retries of its own."""
        sdk, failures = self._sdk, self.failures
        client = sdk.AsyncAnthropic(
            api_key=self._key, base_url=self._url, timeout=self._arguments.timeout, max_retries=0
        )

        async def complete(call: Mapping[str, Any]) -> Reply:
            try:
                message = await client.messages.create(**call)
            except sdk.APIStatusError as error:
                raise failures.of_status(error.status_code, error.body or str(error), error.response.headers) from error
            except (sdk.AnthropicError, OSError, ValueError) as error:
                raise failures.of_transport(error) from error
            return read_message(message, failures)

        async with client:
            yield complete


def _is_blank(part: Part) -> bool:
    """The service refuses texts without a visible character."""
    return isinstance(part, Text) and not part.text.strip()


def _within(value: Any, side: int) -> Any:
    """The picture, made smaller where its longer side exceeds ``side``; else ``value`` as it is."""
    from lmms_eval.media.image import header, load_image, shrink

    facts = header(value)
    return value if max(facts.width, facts.height) <= side else shrink(load_image(value), max_side=side)


def read_message(message: Any, failures: Failures) -> Reply:
    """The answer's text blocks joined; blocks of thought are left out.

    Raises:
        AttemptError: ``malformed``.
    """
    content = getattr(message, "content", None)
    if not isinstance(content, list):
        raise failures.malformed("no message")
    texts = [getattr(block, "text", None) for block in content if getattr(block, "type", None) == "text"]
    reason = getattr(message, "stop_reason", None)
    finish = FINISH.get(reason, reason) if isinstance(reason, str) else None
    return Reply("".join(text for text in texts if isinstance(text, str)), finish, _usage(message))


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
