"""The back end ``gemini``: the Gemini API through the official package ``google-genai``."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from pydantic import Field

from lmms_eval.api.request import Request, Usage
from lmms_eval.errors import ModelError
from lmms_eval.models.openai.errors import AttemptError
from lmms_eval.models.openai.reply import Reply
from lmms_eval.models.remote.arguments import ANSWER_ARGUMENTS, RemoteArguments, read_arguments
from lmms_eval.models.remote.failures import Failures
from lmms_eval.models.remote.generation import Wanted, read_generation
from lmms_eval.models.remote.media import Part, Picture, Sound, Text
from lmms_eval.models.remote.model import Complete, import_sdk
from lmms_eval.models.remote.sdk import SdkModel, read_address

PUBLIC_BASE_URL = "https://generativelanguage.googleapis.com"
MAX_IMAGE_BYTES = 7_000_000
"""The service's limit for a picture within the request."""
MAX_STOPS = 5
AUDIO_MIME = {"wav": "audio/wav", "mp3": "audio/mp3", "flac": "audio/flac"}
ROLES = {"assistant": "model"}
OTHERS = {"top_k": "top_k", "presence_penalty": "presence_penalty", "frequency_penalty": "frequency_penalty"}
FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
REFUSED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"})
"""Finish reasons that stand for a refusal; those of pictures begin with ``IMAGE_``."""


class Arguments(RemoteArguments):
    """See ``docs/models/gemini.md``."""

    backend: ClassVar[str] = "gemini"

    max_image_bytes: int = Field(default=MAX_IMAGE_BYTES, ge=1024)
    thinking_budget: int | None = Field(default=None, ge=-1)
    pass_video: bool = False


class Gemini(SdkModel):
    """Asks Gemini models.

    Args:
        arguments: see ``docs/models/gemini.md``.

    Raises:
        ModelError: the package is absent, an unknown or wrong argument, no key.
    """

    answer_arguments = (*ANSWER_ARGUMENTS, "thinking_budget", "pass_video")

    def __init__(self, **arguments: Any) -> None:
        from lmms_eval.media.encode import WireOptions

        parsed = self._arguments = read_arguments(Arguments, arguments, os.environ)
        self._genai = import_sdk("google.genai", "gemini", "gemini")
        self._url, shown = read_address(parsed.base_url or os.environ.get("GOOGLE_GEMINI_BASE_URL"), PUBLIC_BASE_URL)
        self._key = parsed.api_key or os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY") or ""
        if not self._key:
            raise ModelError(f"no key for {shown}: set GEMINI_API_KEY or give api_key=...")
        super().__init__(parsed, Failures(shown, "GEMINI_API_KEY", parsed.timeout, (self._key,)))
        self._images = WireOptions(
            max_bytes=parsed.max_image_bytes,
            max_pixels=parsed.max_pixels,
            image_format=parsed.image_format,
            quality=parsed.image_quality,
        )

    def build(self, request: Request) -> dict[str, Any]:
        """The arguments of ``generate_content``."""
        arguments = self._arguments
        wanted = read_generation(request.generation, request.seed, arguments.max_new_tokens, arguments.reasoning_effort)
        talk = self.conversation(request, whole_videos=arguments.pass_video)
        contents = [
            {"role": ROLES.get(turn.role, turn.role), "parts": [self._part(part) for part in turn.parts]}
            for turn in talk.turns
        ]
        config = self._config(wanted)
        if talk.system:
            config["system_instruction"] = talk.system
        return {"model": arguments.model, "contents": contents, "config": config}

    def _config(self, wanted: Wanted) -> dict[str, Any]:
        config, ignored = wanted.pick(OTHERS)
        self.note_ignored(ignored)
        config["max_output_tokens"] = wanted.max_new_tokens
        given = {"temperature": wanted.temperature, "top_p": wanted.top_p, "seed": wanted.seed}
        config |= {name: value for name, value in given.items() if value is not None}
        if wanted.stops:
            config["stop_sequences"] = list(wanted.stops[:MAX_STOPS])
        thinking: dict[str, Any] = {}
        if self._arguments.thinking_budget is not None:
            thinking["thinking_budget"] = self._arguments.thinking_budget
        if wanted.effort:
            thinking["thinking_level"] = wanted.effort.upper()
        if thinking:
            config["thinking_config"] = thinking
        return config

    def stops_here(self, request: Request) -> list[str]:
        """The stop strings beyond those that the service takes."""
        return list(read_generation(request.generation, 0, 1).stops[MAX_STOPS:])

    def _part(self, part: Part) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"text": part.text}
        if isinstance(part, Picture):
            from lmms_eval.media.encode import wire_image

            image = wire_image(part.value, options=self._images)
            return _inline(image.mime, base64.b64decode(image.base64))
        if isinstance(part, Sound):
            from lmms_eval.media.audio import wire_audio

            sound = wire_audio(part.value, tuple(AUDIO_MIME))
            return _inline(AUDIO_MIME[sound.format], base64.b64decode(sound.base64))
        from lmms_eval.media.reference import resolve

        film = resolve(part.value)
        if film.kind == "url":
            return {"file_data": {"file_uri": film.url}}
        return _inline(film.mime or "video/mp4", film.read_bytes())

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Complete]:
        """A client of the package, without retries of its own."""
        import aiohttp

        genai, failures = self._genai, self.failures
        # A session of our own: the package's holds at most 100 connections.
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=self._arguments.ceiling), trust_env=True)
        options = {
            "base_url": self._url,
            "timeout": max(1, int(self._arguments.timeout * 1000)),
            "retry_options": {"attempts": 1},
            "aiohttp_client": session,
        }

        async def complete(call: Mapping[str, Any]) -> Reply:
            try:
                answer = await client.aio.models.generate_content(**call)
            except genai.errors.APIError as error:
                raise _status_failure(error, failures) from error
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                raise failures.of_transport(error) from error
            return read_answer(answer, failures)

        async with session:
            client = genai.Client(api_key=self._key, vertexai=False, http_options=options)
            try:
                yield complete
            finally:
                await client.aio.aclose()


def _inline(mime: str, data: bytes) -> dict[str, Any]:
    return {"inline_data": {"mime_type": mime, "data": data}}


def _status_failure(error: Any, failures: Failures) -> AttemptError:
    details = error.details if isinstance(error.details, dict) else str(error)
    headers = getattr(error.response, "headers", None) or {}
    # A wrong key is a bad request here.
    refused_key = error.code == 400 and "API_KEY_INVALID" in str(details)
    return failures.of_status(401 if refused_key else error.code, details, headers)


def read_answer(answer: Any, failures: Failures) -> Reply:
    """The text parts of the first candidate, thoughts left out; a blocked prompt is a refusal.

    Raises:
        AttemptError: ``malformed``.
    """
    usage = _usage(answer)
    candidates = getattr(answer, "candidates", None)
    if not candidates:
        block = getattr(getattr(answer, "prompt_feedback", None), "block_reason", None)
        if block is None:
            raise failures.malformed("no candidates")
        return Reply("", "content_filter", usage)
    content = candidates[0].content
    parts = (content.parts if content is not None else None) or []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    return Reply(text, _finish(candidates[0].finish_reason), usage)


def _finish(reason: Any) -> str | None:
    if reason is None:
        return None
    name = str(getattr(reason, "value", reason))
    if name in REFUSED or name.startswith("IMAGE_"):
        return "content_filter"
    return FINISH.get(name, name.lower())


def _usage(answer: Any) -> Usage | None:
    """Tokens; those of thoughts are part of the output, as with other services."""
    usage = getattr(answer, "usage_metadata", None)
    if usage is None:
        return None
    visible, thoughts = usage.candidates_token_count, usage.thoughts_token_count
    output = None if visible is None and thoughts is None else (visible or 0) + (thoughts or 0)
    return Usage(usage.prompt_token_count, output, thoughts)
