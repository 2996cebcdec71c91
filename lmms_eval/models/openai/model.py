"""The back end ``openai``: any server that speaks the chat-completions protocol."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response
from lmms_eval.models.openai.arguments import find_endpoint, parse_arguments
from lmms_eval.models.openai.body import BodyBuilder

log = logging.getLogger(__name__)
IGNORED = ("batch_size", "max_batch_size", "device", "prefix_aware_queue", "prefix_hash_chars")
"""Taken for the sake of existing scripts: they have no meaning here, or the engine decides."""


class OpenAI(Model):
    """Asks an OpenAI-compatible server, with up to ``num_concurrent`` requests open at a time.

    Args:
        arguments: see ``docs/models/openai.md``.

    Raises:
        ModelError: an unknown or wrong argument, no model, no key for the public API.
    """

    def __init__(self, **arguments: Any) -> None:
        self._arguments = parse_arguments(arguments, os.environ)
        self._endpoint = find_endpoint(self._arguments, os.environ)
        self._builder = BodyBuilder(self._arguments, self._endpoint)
        self.concurrency = self._arguments.ceiling
        # aiohttp takes a tenth of a second to import: when a model is built, not when its class is looked up.
        importlib.import_module("lmms_eval.models.openai.client")
        from lmms_eval.models.openai.asking import Tally
        from lmms_eval.models.openai.concurrency import Gate

        self._tally = Tally()
        self._gate = Gate(self._arguments)
        ignored = sorted(name for name in arguments if name in IGNORED[3:])
        if ignored:
            log.info("%s: without effect, the order of requests is the engine's", ", ".join(ignored))

    def prepare(self, request: Request) -> Request:
        """Make the request's JSON body.

        Raises:
            MediaError: a picture, video or sound cannot be read.
        """
        body = self._builder.build(request)
        return request.with_payload(body, len(body))

    async def respond(self, stream: RequestStream) -> AsyncIterator[Response]:
        """Answer requests as they come; every failure is a response."""
        from lmms_eval.models.openai.asking import Asker, RetryPolicy
        from lmms_eval.models.openai.client import Client
        from lmms_eval.models.openai.concurrency import Gate
        from lmms_eval.models.openai.dispatch import Dispatcher

        arguments = self._arguments
        gate = self._gate = Gate(arguments)
        policy = RetryPolicy(arguments.max_retries, arguments.retry_backoff_s)
        async with Client(self._endpoint, arguments.timeout, arguments.ceiling) as client:
            asker = Asker(client.complete, gate, policy, self._builder.dialect, self._tally)
            async with aclosing(Dispatcher(gate, asker.ask).run(stream)) as responses:
                async for response in responses:
                    yield response

    def identity(self) -> Mapping[str, Any]:
        """Server, model and all arguments that change a request."""
        return {
            "base_url": self._endpoint.shown,
            "model": self._arguments.model,
            "system_prompt": self._builder.system_prompt,
            **self._arguments.model_dump(include=set(ANSWER_ARGUMENTS)),
        }

    def describe(self) -> Mapping[str, Any]:
        """Address, concurrency as used, retries by kind, bytes sent, and what tasks asked for in vain."""
        return {
            "base_url": self._endpoint.shown,
            "concurrency": self._gate.describe(),
            **self._tally.to_dict(),
            "ignored_generation_options": self._builder.ignored_options,
        }


ANSWER_ARGUMENTS = (
    "max_new_tokens",
    "max_frames_num",
    "video_fps",
    "max_pixels",
    "max_image_bytes",
    "image_format",
    "image_quality",
    "pass_video_url",
    "message_format",
    "is_qwen3_vl",
    "enable_thinking_kwarg",
    "extra_body",
)
"""Arguments that can change an answer."""
