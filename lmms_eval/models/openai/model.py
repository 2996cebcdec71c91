"""The back end ``openai``: any server with the chat-completions protocol or the Responses API."""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from lmms_eval.api.request import Request
from lmms_eval.models.openai.arguments import Arguments, find_endpoint, parse_arguments
from lmms_eval.models.openai.body import CHAT_ANSWER_ARGUMENTS, ChatModel, parse_completion
from lmms_eval.models.openai.likelihood import (
    LikelihoodScorer,
    Probe,
    TextProbe,
    load_tokenizer,
    make_pair_probe,
    make_probe,
    make_text_probe,
    parse_scores,
)
from lmms_eval.models.openai.responses import parse_response
from lmms_eval.models.remote.model import BatchModel, Complete
from lmms_eval.models.remote.reply import Reply, parse_reply
from lmms_eval.models.remote.streams import ChatStream, ResponsesStream, with_stream
from lmms_eval.utils.redaction import public_query

if TYPE_CHECKING:
    from lmms_eval.models.remote.batch.service import BatchService

log = logging.getLogger(__name__)
WITHOUT_EFFECT = ("prefix_aware_queue", "prefix_hash_chars")
"""Arguments that are accepted for existing scripts only: the engine determines the order."""

PARSERS: Mapping[str, Callable[[bytes, str], Reply]] = {
    "chat": parse_reply, "completions": parse_completion, "responses": parse_response,
}  # fmt: skip
"""The parser of answers by API."""


class OpenAI(ChatModel, BatchModel):
    """Sends requests to an OpenAI-compatible server; for the arguments see ``docs/models/openai.md``."""

    answer_arguments = (*CHAT_ANSWER_ARGUMENTS, "api", "azure_openai", "api_version")
    arguments_kind = Arguments
    imported_ahead = "aiohttp"
    _tokenizer: Any = None
    """The model's tokenizer, for likelihoods of whole texts."""

    def __init__(self, **arguments: Any) -> None:
        self._arguments = parse_arguments(arguments, os.environ)
        self._endpoint = find_endpoint(self._arguments, os.environ)
        if self._arguments.api == "completions" or (self._arguments.api == "chat" and not self._endpoint.is_public):
            self.kinds = self.kinds | {"loglikelihood"}
        if self._arguments.api == "completions":
            self.kinds = self.kinds - {"generate_visual_cot"}  # their answers are texts only
        if self._arguments.tokenizer is not None:
            self._tokenizer = load_tokenizer(self._arguments.tokenizer)
            self.kinds = self.kinds | {"loglikelihood_rolling"}
        # Importing aiohttp takes a tenth of a second, so it happens when a model is built, not at the look-up.
        importlib.import_module("lmms_eval.models.openai.client")
        super().__init__(self._arguments, self._endpoint)
        ignored = sorted(name for name in arguments if name in WITHOUT_EFFECT)
        if ignored:
            log.info("%s: no effect, as the engine determines the order of requests", ", ".join(ignored))

    @property
    def has_template(self) -> bool:
        """Whether requests are conversations: all except plain completions."""
        return self._arguments.api != "completions"

    def identity(self) -> Mapping[str, Any]:
        """Return the identity of a remote model, with the tokenizer and a digest of the address's query.

        The query may name a deployment.
        """
        query = public_query(self._endpoint.url)
        digest = {"query": hashlib.sha256(query.encode()).hexdigest()[:16]} if query else {}
        scoring = {name: getattr(self._arguments, name) for name in ("tokenizer", "max_length")}
        given = {name: value for name, value in scoring.items() if value is not None}
        return {**super().identity(), **digest, **given}

    def prepare(self, request: Request) -> Request:
        """Build the JSON body, or the bodies of a likelihood. Raises ``MediaError`` if a medium cannot be read."""
        if request.kind == "loglikelihood_rolling":
            fields, text = self.builder.body(request), request.continuation or ""
            whole = make_text_probe(fields, text, self._tokenizer, self._arguments.max_length)
            return request.with_payload(whole, whole.nbytes)
        if request.kind == "loglikelihood":
            fields = self.builder.body(request)
            by_ids = self._tokenizer is not None
            probe = make_pair_probe(fields, request, self._tokenizer) if by_ids else make_probe(fields, request)
            return request.with_payload(probe, probe.nbytes)
        body = self.builder.build(request)
        return request.with_payload(body, len(body))

    def batches(self) -> BatchService:
        """Return a client of the batch interface of OpenAI, Azure, or a server with the same interface."""
        from lmms_eval.models.remote.batch.openai import OpenAIBatches

        parse, shown = PARSERS[self._arguments.api], self._endpoint.shown
        return OpenAIBatches(self._endpoint, self._arguments, lambda raw: parse(raw, shown))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Complete]:
        """Open a pool of connections, and another one for likelihoods."""
        from lmms_eval.models.openai.client import Client

        endpoint, arguments, parse = self._endpoint, self._arguments, PARSERS[self._arguments.api]
        async with AsyncExitStack() as opened:
            client = await opened.enter_async_context(Client(endpoint, arguments, parse))
            scores = await opened.enter_async_context(Client(endpoint, arguments, parse_scores))
            scorer, ask = LikelihoodScorer(client.complete, scores.complete), client.complete
            if arguments.stream:
                kind = ResponsesStream if arguments.api == "responses" else ChatStream
                streaming = await opened.enter_async_context(Client(endpoint, arguments, parse, kind))

                async def ask(body: bytes) -> Reply:
                    return await streaming.complete(with_stream(body, arguments.api != "responses"))

            async def complete(payload: bytes | Probe | TextProbe) -> Reply:
                if isinstance(payload, TextProbe):
                    return await scorer.score_text(payload)
                return await (scorer.score(payload) if isinstance(payload, Probe) else ask(payload))

            try:
                yield complete
            finally:
                await scorer.close()
