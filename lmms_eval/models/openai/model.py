"""The back end ``openai``: any server that speaks the chat-completions protocol or the Responses form."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from lmms_eval.api.request import Request
from lmms_eval.models.openai.arguments import find_endpoint, parse_arguments
from lmms_eval.models.openai.body import BodyBuilder
from lmms_eval.models.remote.arguments import ANSWER_ARGUMENTS
from lmms_eval.models.remote.model import Complete, RemoteModel

log = logging.getLogger(__name__)
WITHOUT_EFFECT = ("prefix_aware_queue", "prefix_hash_chars")
"""Taken for the sake of existing scripts: the engine decides the order."""


class OpenAI(RemoteModel):
    """Asks an OpenAI-compatible server, with up to ``num_concurrent`` requests open at a time.

    Args:
        arguments: see ``docs/models/openai.md``.

    Raises:
        ModelError: an unknown or wrong argument, no model, no key for the public API.
    """

    answer_arguments = (
        *ANSWER_ARGUMENTS,
        "api",
        "azure_openai",
        "api_version",
        "reasoning_model",
        "pass_video_url",
        "message_format",
        "is_qwen3_vl",
        "enable_thinking_kwarg",
        "extra_body",
    )

    def __init__(self, **arguments: Any) -> None:
        self._arguments = parse_arguments(arguments, os.environ)
        self._endpoint = find_endpoint(self._arguments, os.environ)
        self._builder = BodyBuilder(self._arguments, self._endpoint)
        # aiohttp takes a tenth of a second to import: when a model is built, not when its class is looked up.
        importlib.import_module("lmms_eval.models.openai.client")
        super().__init__(self._arguments, self._endpoint.shown)
        ignored = sorted(name for name in arguments if name in WITHOUT_EFFECT)
        if ignored:
            log.info("%s: without effect, the order of requests is the engine's", ", ".join(ignored))

    def prepare(self, request: Request) -> Request:
        """Make the request's JSON body.

        Raises:
            MediaError: a picture, video or sound cannot be read.
        """
        body = self._builder.build(request)
        return request.with_payload(body, len(body))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Complete]:
        """A pool of connections."""
        from lmms_eval.models.openai.client import Client
        from lmms_eval.models.openai.reply import parse_reply
        from lmms_eval.models.openai.responses import parse_response

        arguments = self._arguments
        parse = parse_response if arguments.api == "responses" else parse_reply
        async with Client(self._endpoint, arguments.timeout, arguments.ceiling, parse) as client:
            yield client.complete

    def stops_here(self, request: Request) -> list[str]:
        """The stop strings beyond those that the protocol takes."""
        from lmms_eval.models.openai.generation import local_stops

        return local_stops(request.generation, self._builder.dialect)

    def ignored_options(self) -> list[str]:
        """Generation options of tasks that had no place in the protocol, so far."""
        return self._builder.ignored_options

    def identity(self) -> Mapping[str, Any]:
        """Server, model and all arguments that change a request."""
        return {**super().identity(), "system_prompt": self._builder.system_prompt}
