"""The back end ``openai`` over a client object that a plugin brings: its calls in threads, our retries around them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import orjson

from lmms_eval.api.request import Request
from lmms_eval.models.openai.model import OpenAI
from lmms_eval.models.remote.errors import AttemptError, Failures
from lmms_eval.models.remote.media import payload_size
from lmms_eval.models.remote.model import Complete
from lmms_eval.models.remote.reply import Reply, read_completion
from lmms_eval.models.remote.sdk import attempts

KEYWORDS = frozenset(
    {
        "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "stop", "n",
        "presence_penalty", "frequency_penalty", "logit_bias", "response_format", "reasoning_effort",
    }
)  # fmt: skip
"""Parameters of the package's ``create``; any other field of a body goes into its ``extra_body``."""
TRANSPORTS = frozenset({"openai", "httpx", "httpx2", "httpcore", "aiohttp", "requests", "urllib3"})
"""Packages whose errors without a status are those of connections."""
PLACEHOLDER_KEY = "unused"
"""The client has its own key."""


class ClientModel(OpenAI):
    """Asks through ``client.chat.completions.create``.

    Args:
        client: of the package ``openai`` or like one of it; an asynchronous one is awaited.
        arguments: as of ``OpenAI``.
    """

    def __init__(self, client: Any, **arguments: Any) -> None:
        super().__init__(**{**arguments, "api_key": arguments.get("api_key") or PLACEHOLDER_KEY})
        self.kinds = frozenset({"generate_until"})
        self._client = client
        secrets = (key,) if len(key := str(arguments.get("api_key") or "")) > 3 else ()
        shown = f"{type(client).__module__}.{type(client).__qualname__}"
        self._failures = Failures(shown, "the client's key", self._arguments.timeout, secrets)

    def prepare(self, request: Request) -> Request:
        """Make the keywords of ``create``.

        Raises:
            MediaError: a picture, video or sound cannot be read.
        """
        body = self.builder.body(request)
        payload = {name: value for name, value in body.items() if name in KEYWORDS}
        if further := {name: value for name, value in body.items() if name not in KEYWORDS}:
            payload["extra_body"] = further
        return request.with_payload(payload, payload_size(payload))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Complete]:
        """A thread for each request that may be open."""
        create = self._client.chat.completions.create
        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="client")

        async def call(payload: Mapping[str, Any]) -> Any:
            answer = await loop.run_in_executor(pool, lambda: create(**payload))
            return await answer if inspect.isawaitable(answer) else answer

        try:
            # A client of a plugin may raise anything: it is the failure of one attempt.
            yield attempts(call, (Exception,), self._failure, self._read)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _read(self, answer: Any) -> Reply:
        decoded = as_data(answer)
        try:
            return read_completion(decoded, orjson.dumps(decoded, default=str), self._failures.shown)
        except AttemptError as error:
            raise self._failures.redacted(error) from None

    def _failure(self, error: Exception) -> AttemptError:
        status = getattr(error, "status_code", None)
        if not isinstance(status, int):
            if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in TRANSPORTS:
                return self._failures.of_transport(error)
            # A class of the plugin's own: nobody knows what may help, so it is tried again like the rest.
            message = f"{self._failures.shown} raised {type(error).__name__}: {error}"
            return self._failures.redacted(AttemptError("internal", message, retry=True))
        body = {"error": {"message": str(error), "code": str(getattr(error, "code", None) or "")}}
        return self._failures.of_status(status, body, getattr(getattr(error, "response", None), "headers", None) or {})


def as_data(value: Any) -> Any:
    """Return a client's answer, an object with attributes, as mappings and lists."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {name: as_data(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [as_data(item) for item in value]
    return {name: as_data(item) for name, item in vars(value).items()} if hasattr(value, "__dict__") else value
