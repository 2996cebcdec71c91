"""The back end ``gemini``: the Gemini API through the official package ``google-genai``."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from msgspec.structs import replace
from pydantic import Field, field_validator, model_validator

from lmms_eval.api.generation import TakenOptions
from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.request import GeneratedImage, Request, RequestKind, Usage
from lmms_eval.errors import MediaError
from lmms_eval.models.remote.arguments import ANSWER_ARGUMENTS, RemoteArguments
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.models.remote.generation import Wanted, stop_strings, taken_options
from lmms_eval.models.remote.media import Part
from lmms_eval.models.remote.reply import Reply, thought_text
from lmms_eval.models.remote.sdk import Call, SdkModel

if TYPE_CHECKING:
    from lmms_eval.media.encode import WireOptions

MAX_IMAGE_BYTES = 7_000_000
"""The service's limit for a picture in a request."""
MAX_STOPS = 5
AUDIO_MIME = {"wav": "audio/wav", "mp3": "audio/mp3", "flac": "audio/flac"}
ROLES = {"assistant": "model"}
OTHERS = {"top_k": "top_k", "presence_penalty": "presence_penalty", "frequency_penalty": "frequency_penalty"}
HARMS = (
    "HARM_CATEGORY_HARASSMENT",
    "HARM_CATEGORY_HATE_SPEECH",
    "HARM_CATEGORY_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_DANGEROUS_CONTENT",
)
"""The categories that ``safety_threshold`` applies to."""
FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
REFUSED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"})
"""Finish reasons that mean a refusal; those of pictures begin with ``IMAGE_``."""


class Arguments(RemoteArguments):
    """See ``docs/models/gemini.md``."""

    backend: ClassVar[str] = "gemini"

    max_image_bytes: int = Field(default=MAX_IMAGE_BYTES, ge=1024)
    thinking_budget: int | None = Field(default=None, ge=-1)
    enable_thinking: bool | None = None
    safety_threshold: (
        Literal["BLOCK_NONE", "BLOCK_ONLY_HIGH", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_LOW_AND_ABOVE", "OFF"] | None
    ) = None
    pass_video: bool = False
    response_modalities: tuple[Literal["TEXT", "IMAGE"], ...] | None = None

    @field_validator("safety_threshold", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        wants, budget = self.enable_thinking, self.thinking_budget
        if wants is not None and budget is not None and wants != (budget != 0):
            raise ValueError("enable_thinking and thinking_budget contradict each other")
        return self

    @property
    def budget(self) -> int | None:
        """Tokens for thoughts: 0 for no thoughts, -1 for as many as the model chooses, ``None`` for its default."""
        if self.thinking_budget is not None or self.enable_thinking is None:
            return self.thinking_budget
        return -1 if self.enable_thinking else 0

    @field_validator("response_modalities", mode="before")
    @classmethod
    def _read_names(cls, value: Any) -> Any:
        """Accept ``[TEXT,IMAGE]``, ``TEXT+IMAGE`` or a list."""
        names = re.findall(r"\w+", value) if isinstance(value, str) else value
        return [str(name).upper() for name in names] if isinstance(names, list | tuple) else names


class Gemini(SdkModel[Arguments]):
    """Sends requests to Gemini models; for the arguments see ``docs/models/gemini.md``. Raises ``ModelError``."""

    answer_arguments = (*ANSWER_ARGUMENTS, "thinking_budget", "enable_thinking", "safety_threshold", "pass_video")
    kinds: frozenset[RequestKind] = frozenset({"generate_until", "generate_visual_cot"})
    arguments_kind = Arguments
    module = "google.genai"
    base_url = "https://generativelanguage.googleapis.com"
    base_url_variable = "GOOGLE_GEMINI_BASE_URL"
    key_variables = ("GEMINI_API_KEY", "GOOGLE_API_KEY")

    def build(self, request: Request) -> dict[str, Any]:
        """Return the arguments of ``generate_content``."""
        arguments = self._arguments
        system, turns = self.conversation(request, whole_videos=arguments.pass_video)
        images = self.form_of(request).images
        contents = [
            {"role": ROLES.get(role, role), "parts": [self._part(part, images) for part in parts]}
            for role, parts in turns
        ]
        config = self._config(self.wanted(request))
        if system:
            config["system_instruction"] = system
        return {"model": arguments.model, "contents": contents, "config": config}

    def generation_options(self) -> TakenOptions:
        """The common options, those of ``OTHERS`` and the reasoning effort."""
        return taken_options((*OTHERS, "reasoning_effort"))

    def sent_options(self, request: Request) -> dict[str, Any]:
        """Return the configuration of the request, without its derived seed."""
        config = self._config(self.wanted(request))
        if request.generation.get("seed") is None:
            config.pop("seed", None)
        return config

    def _config(self, wanted: Wanted) -> dict[str, Any]:
        config, ignored = wanted.pick(OTHERS)
        self.note_ignored(ignored)
        if wanted.max_new_tokens is not None:
            config["max_output_tokens"] = wanted.max_new_tokens
        given = {"temperature": wanted.temperature, "top_p": wanted.top_p, "seed": wanted.seed}
        config |= {name: value for name, value in given.items() if value is not None}
        if self._arguments.response_modalities:
            config["response_modalities"] = list(self._arguments.response_modalities)
        if threshold := self._arguments.safety_threshold:
            config["safety_settings"] = [{"category": name, "threshold": threshold} for name in HARMS]
        if wanted.stops:
            config["stop_sequences"] = list(wanted.stops[:MAX_STOPS])
        thinking: dict[str, Any] = {}
        if self._arguments.budget is not None:
            thinking["thinking_budget"] = self._arguments.budget
        if wanted.effort:
            thinking["thinking_level"] = wanted.effort.upper()
        if thinking and self._arguments.budget != 0:
            thinking["include_thoughts"] = True
        if thinking:
            config["thinking_config"] = thinking
        return config

    def identity(self) -> Mapping[str, Any]:
        """Return the server, the model, the prompt and all arguments that change a request."""
        wanted = self._arguments.response_modalities
        return {**super().identity(), **({"response_modalities": list(wanted)} if wanted else {})}

    def stops_here(self, request: Request) -> list[str]:
        """Return the stop strings beyond the maximum of the service."""
        return stop_strings(request.generation)[MAX_STOPS:]

    def _part(self, part: Part, images: WireOptions) -> dict[str, Any]:
        if part.kind == "text":
            return {"text": part.value}
        if part.kind == "picture":
            from lmms_eval.media.encode import wire_image

            image = wire_image(part.value, options=images)
            return _inline(image.mime, base64.b64decode(image.base64))
        if part.kind == "sound":
            from lmms_eval.media.audio import wire_audio

            sound = wire_audio(part.value, tuple(AUDIO_MIME))
            return _inline(AUDIO_MIME[sound.format], base64.b64decode(sound.base64))
        from lmms_eval.media.reference import resolve
        from lmms_eval.media.sent import note_file

        film = resolve(part.value)
        note_file(film, "video")
        if film.kind == "url":
            return {"file_data": {"file_uri": film.url}}
        return _inline(film.mime or "video/mp4", film.read_bytes())

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Call]:
        """Open a client of the package, without its retries."""
        import aiohttp

        from lmms_eval.models.remote.direct import bounded_response

        # Not the package's session: it has at most 100 connections and no limit on the size of replies.
        connector = aiohttp.TCPConnector(limit=self._arguments.ceiling)
        session = aiohttp.ClientSession(
            connector=connector,
            trust_env=not self.is_local,
            response_class=bounded_response(self._arguments.max_reply_mb),
        )
        options = {
            "base_url": self.url,
            "timeout": max(1, int(self._arguments.timeout * 1000)),
            "retry_options": {"attempts": 1},
            "aiohttp_client": session,
        }

        async with session:
            client = self.sdk.Client(api_key=self.key, vertexai=False, http_options=options)

            async def call(arguments: Mapping[str, Any]) -> Any:
                return await client.aio.models.generate_content(**arguments)

            try:
                yield call
            finally:
                await client.aio.aclose()

    def errors(self) -> tuple[type[Exception], ...]:
        """Return the exceptions that a call of the package raises."""
        import aiohttp

        return (self.sdk.errors.APIError, aiohttp.ClientError, OSError, TimeoutError, ValueError)

    def failure(self, error: Exception) -> AttemptError:
        """Classify an answer other than 200 by its status, and anything else as a failure of the transport."""
        if not isinstance(error, self.sdk.errors.APIError):
            return super().failure(error)
        details = error.details if isinstance(error.details, dict) else str(error)
        headers = getattr(error.response, "headers", None) or {}
        # This service reports a wrong key as a bad request.
        refused_key = error.code == 400 and "API_KEY_INVALID" in str(details)
        return self.failures.of_status(401 if refused_key else error.code, details, headers)

    def read(self, answer: Any) -> Reply:
        """Read the texts and pictures of the first candidate in order, and its thoughts separately.

        A blocked prompt is a refusal. Raises ``AttemptError`` (``malformed``).
        """
        usage = _usage(answer)
        candidates = getattr(answer, "candidates", None)
        if not candidates:
            block = getattr(getattr(answer, "prompt_feedback", None), "block_reason", None)
            if block is None:
                raise self.failures.malformed("no candidates")
            return Reply("", "content_filter", usage)
        content = candidates[0].content
        parts = (content.parts if content is not None else None) or []
        pieces: list[str | GeneratedImage] = []
        try:
            for part in parts:
                if part.thought:
                    continue
                if part.inline_data is not None:
                    pieces.append(generated_image(part.inline_data.data or b""))
                elif part.text:  # parts of other kinds (code, function calls) have no text
                    pieces.append(part.text)
        except MediaError as error:
            raise self.failures.malformed(str(error)) from error
        served = getattr(answer, "model_version", None)
        reply = Reply.of_parts(pieces, _finish(candidates[0].finish_reason), usage, served)
        return replace(reply, reasoning=thought_text([part.text for part in parts if part.thought]))


def _inline(mime: str, data: bytes) -> dict[str, Any]:
    return {"inline_data": {"mime_type": mime, "data": data}}


def _finish(reason: Any) -> str | None:
    if reason is None:
        return None
    name = str(getattr(reason, "value", reason))
    if name in REFUSED or name.startswith("IMAGE_"):
        return "content_filter"
    return FINISH.get(name, name.lower())


def _usage(answer: Any) -> Usage | None:
    """Return the token counts. Thoughts are part of the output, as with other services."""
    usage = getattr(answer, "usage_metadata", None)
    if usage is None:
        return None
    visible, thoughts = usage.candidates_token_count, usage.thoughts_token_count
    output = None if visible is None and thoughts is None else (visible or 0) + (thoughts or 0)
    return Usage(usage.prompt_token_count, output, thoughts)
