"""The back end ``litellm``: any service that the package ``litellm`` knows, by one name (``provider/model``)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Literal

import orjson

from lmms_eval.api.request import Request
from lmms_eval.errors import ModelError
from lmms_eval.models.openai.arguments import ChatArguments, Endpoint
from lmms_eval.models.openai.body import BodyBuilder
from lmms_eval.models.openai.errors import AttemptError
from lmms_eval.models.openai.generation import local_stops
from lmms_eval.models.openai.reply import Reply, read_completion
from lmms_eval.models.remote.arguments import ANSWER_ARGUMENTS, read_arguments
from lmms_eval.models.remote.failures import Failures
from lmms_eval.models.remote.media import payload_size
from lmms_eval.models.remote.model import Complete, RemoteModel, import_sdk
from lmms_eval.models.remote.sdk import read_address

NO_STATUS = frozenset({"Timeout", "APIConnectionError"})
"""Errors of the package that carry a status although no answer came."""


class Arguments(ChatArguments):
    """See ``docs/models/litellm.md``."""

    backend: ClassVar[str] = "litellm"

    api: Literal["chat"] = "chat"
    drop_params: bool = False


class LiteLLM(RemoteModel):
    """Asks services through ``litellm``.

    Args:
        arguments: see ``docs/models/litellm.md``.

    Raises:
        ModelError: the package is absent, an unknown or wrong argument.
    """

    answer_arguments = (
        *ANSWER_ARGUMENTS,
        "reasoning_model",
        "pass_video_url",
        "message_format",
        "is_qwen3_vl",
        "enable_thinking_kwarg",
        "extra_body",
        "drop_params",
    )

    def __init__(self, **arguments: Any) -> None:
        parsed = self._arguments = read_arguments(Arguments, arguments, os.environ)
        # The package would fetch a price list from the network when it is imported.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        self._sdk = import_sdk("litellm", "litellm", "litellm")
        self._sdk.suppress_debug_info = True
        # Every error of the package is one of openai's, which it requires.
        self._error = import_sdk("openai", "litellm", "litellm").OpenAIError
        self._url, shown = None, f"litellm ({parsed.model})"
        if parsed.base_url:
            self._url, shown = read_address(parsed.base_url, "")
        endpoint = Endpoint("", "", (), shown, is_public=self._url is None, is_loopback=False)
        try:
            self._sdk.get_llm_provider(parsed.model, api_base=self._url)
        except self._error as error:
            raise ModelError(f"litellm knows no service for model={parsed.model}: write provider/model") from error
        secrets = (parsed.api_key,) if parsed.api_key and len(parsed.api_key) > 3 else ()
        self._failures = Failures(shown, "the provider's key", parsed.timeout, secrets)
        self._builder = BodyBuilder(parsed, endpoint)
        super().__init__(parsed, shown)

    def prepare(self, request: Request) -> Request:
        """Make the arguments of ``acompletion``.

        Raises:
            MediaError: a picture, video or sound cannot be read.
        """
        body = self._builder.body(request)
        return request.with_payload(body, payload_size(body))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Complete]:
        """The package's asynchronous call, without retries of its own."""
        sdk, arguments = self._sdk, self._arguments
        fixed = {
            "timeout": arguments.timeout,
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": arguments.drop_params,
            **({"api_base": self._url} if self._url else {}),
            **({"api_key": arguments.api_key} if arguments.api_key else {}),
        }

        async def complete(body: Mapping[str, Any]) -> Reply:
            try:
                answer = await sdk.acompletion(**body, **fixed)
            except (self._error, OSError, ValueError) as error:
                raise self._failure(error) from error
            decoded = answer.model_dump()
            try:
                return read_completion(decoded, orjson.dumps(decoded, default=str), self._failures.shown)
            except AttemptError as error:
                raise self._failures.redacted(error) from None

        yield complete

    def _failure(self, error: Exception) -> AttemptError:
        names = {kind.__name__ for kind in type(error).__mro__}
        status = getattr(error, "status_code", None)
        if not isinstance(status, int) or names & NO_STATUS:
            return self._failures.of_transport(error)
        if "ContentPolicyViolationError" in names:
            body: Any = {"error": {"message": str(error), "code": "content_policy_violation"}}
        else:
            body = {"error": {"message": str(error), "code": str(getattr(error, "code", "") or "")}}
        headers = getattr(error, "litellm_response_headers", None) or {}
        if not headers:
            headers = getattr(getattr(error, "response", None), "headers", None) or {}
        return self._failures.of_status(status, body, headers)

    def stops_here(self, request: Request) -> list[str]:
        """The stop strings beyond those that the protocol takes."""
        return local_stops(request.generation, self._builder.dialect)

    def ignored_options(self) -> list[str]:
        """Generation options of tasks that had no place in the protocol, so far."""
        return self._builder.ignored_options

    def identity(self) -> Mapping[str, Any]:
        """Service, model and all arguments that change a request."""
        return {**super().identity(), "system_prompt": self._builder.system_prompt}
