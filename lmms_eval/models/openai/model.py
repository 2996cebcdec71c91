"""The back end ``openai``: any server with the chat-completions protocol or the Responses API."""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lmms_eval.api.model import RequestStream
from lmms_eval.api.request import Request, Response
from lmms_eval.errors import ModelError
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
from lmms_eval.models.remote.model import Complete
from lmms_eval.models.remote.reply import Reply, parse_reply
from lmms_eval.utils.redaction import public_query

log = logging.getLogger(__name__)
WITHOUT_EFFECT = ("prefix_aware_queue", "prefix_hash_chars")
"""Arguments that are accepted for existing scripts only: the engine determines the order."""

PARSERS: Mapping[str, Callable[[bytes, str], Reply]] = {
    "chat": parse_reply, "completions": parse_completion, "responses": parse_response,
}  # fmt: skip
"""The parser of answers by API."""


class OpenAI(ChatModel):
    """Sends requests to an OpenAI-compatible server; for the arguments see ``docs/models/openai.md``."""

    answer_arguments = (*CHAT_ANSWER_ARGUMENTS, "api", "azure_openai", "api_version")
    arguments_kind = Arguments
    _folder: Path | None = None
    """The folder of batches, below that of the run."""
    _batch_ids: Sequence[str] = ()
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
        if self._arguments.batch:
            self.kinds = frozenset({"generate_until"})
            if int(os.environ.get("WORLD_SIZE") or 1) > 1:
                raise ModelError("batch=true works with one process only: start a single process")
        # Importing aiohttp takes a tenth of a second, so it happens when a model is built, not at the look-up.
        importlib.import_module("lmms_eval.models.openai.client")
        super().__init__(self._arguments, self._endpoint)
        if self._arguments.batch:
            self.collects = self._arguments.batch_max_requests
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

    def describe(self) -> Mapping[str, Any]:
        """Return the description of a remote model, with the ids of its batches."""
        batches = {"batches": list(self._batch_ids)} if self._arguments.batch else {}
        return {**super().describe(), **batches}

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

    def attach_folder(self, folder: Path) -> None:
        """Set the folder for the records of batches and of stop strings."""
        super().attach_folder(folder)
        self._folder = folder

    def respond(self, stream: RequestStream) -> AsyncGenerator[Response, None]:
        """Answer requests as they arrive, or with ``batch`` as batches end. Every failure is a response.

        Raises:
            ModelError: with ``batch``, there is no folder for the batches' ids, or an earlier batch cannot be found.
        """
        return self._batches(stream) if self._arguments.batch else super().respond(stream)

    async def _batches(self, stream: RequestStream) -> AsyncGenerator[Response, None]:
        from lmms_eval.models.openai.batch.asker import BatchAsker, read_result
        from lmms_eval.models.openai.batch.client import BatchClient, Ledger

        if self._folder is None:
            raise ModelError("batch=true applies to the model under test of a run only, not to a judge: leave it out")
        arguments, endpoint = self._arguments, self._endpoint
        max_bytes = int(arguments.batch_max_mb * 1_000_000)
        read = partial(read_result, parse=PARSERS[arguments.api], shown=endpoint.shown, key_name=endpoint.key_name)
        async with BatchClient(endpoint, arguments, arguments.api) as client:
            with Ledger(self._folder, arguments.batch_max_requests, max_bytes) as ledger:
                self._batch_ids = ledger.batch_ids
                asker = BatchAsker(client, ledger, arguments, read, self.stops, self.tally)
                async with aclosing(asker.run(stream)) as responses:
                    async for response in responses:
                        yield response

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Complete]:
        """Open a pool of connections, and another one for likelihoods."""
        from lmms_eval.models.openai.client import Client

        endpoint, arguments = self._endpoint, self._arguments
        async with (
            Client(endpoint, arguments, PARSERS[arguments.api]) as client,
            Client(endpoint, arguments, parse_scores) as scores,
        ):
            scorer = LikelihoodScorer(client.complete, scores.complete)

            async def complete(payload: bytes | Probe | TextProbe) -> Reply:
                if isinstance(payload, TextProbe):
                    return await scorer.score_text(payload)
                return await (scorer.score(payload) if isinstance(payload, Probe) else client.complete(payload))

            try:
                yield complete
            finally:
                await scorer.close()
