"""The back end ``litellm``: any service that the package ``litellm`` supports, by name (``provider/model``)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import field_validator

from lmms_eval.api.request import Request
from lmms_eval.errors import ModelError
from lmms_eval.models.openai.arguments import ChatArguments, Endpoint, is_loopback_url
from lmms_eval.models.openai.body import CHAT_ANSWER_ARGUMENTS, ChatModel
from lmms_eval.models.remote.arguments import read_arguments
from lmms_eval.models.remote.errors import AttemptError, Failures, error_names
from lmms_eval.models.remote.media import payload_size
from lmms_eval.models.remote.model import Complete, import_sdk
from lmms_eval.models.remote.reply import Reply
from lmms_eval.models.remote.sdk import attempts, read_address, read_object

NO_STATUS = frozenset({"Timeout", "APIConnectionError"})
"""Errors without an answer. The package gives them a status nevertheless."""


class Arguments(ChatArguments):
    """See ``docs/models/litellm.md``."""

    backend: ClassVar[str] = "litellm"

    api: Literal["chat"] = "chat"
    drop_params: bool = False

    @field_validator("max_reply_mb")
    @classmethod
    def _refuse(cls, _: int) -> int:
        raise ValueError("the package reads replies with its own clients: leave it out")


class LiteLLM(ChatModel):
    """Sends requests through ``litellm``; for the arguments see ``docs/models/litellm.md``. Raises ``ModelError``."""

    answer_arguments = (*CHAT_ANSWER_ARGUMENTS, "drop_params")
    arguments_kind = Arguments

    def __init__(self, **arguments: Any) -> None:
        parsed = self._arguments = read_arguments(Arguments, arguments, os.environ)
        # Otherwise the package fetches a price list from the network when it is imported.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        self._sdk = import_sdk("litellm", "litellm", "litellm")
        self._sdk.suppress_debug_info = True
        # All errors of the package are subclasses of openai's, which it requires.
        self._error = import_sdk("openai", "litellm", "litellm").OpenAIError
        self._url, shown = None, f"litellm ({parsed.model})"
        if parsed.base_url:
            self._url, shown = read_address(parsed.base_url, "")
            if is_loopback_url(self._url):
                # The package makes a client for each provider, and only the environment reaches them.
                host = urlsplit(self._url).hostname or ""
                for name in ("no_proxy", "NO_PROXY"):
                    hosts = [item.strip() for item in os.environ.get(name, "").split(",") if item.strip()]
                    if host not in hosts:
                        os.environ[name] = ",".join([*hosts, host])
        try:
            self._sdk.get_llm_provider(parsed.model, api_base=self._url)
        except self._error as error:
            raise ModelError(f"litellm knows no service for model={parsed.model}: write provider/model") from error
        secrets = (parsed.api_key,) if parsed.api_key and len(parsed.api_key) > 3 else ()
        self._failures = Failures(shown, "the provider's key", parsed.timeout, secrets)
        super().__init__(parsed, Endpoint("", "", (), shown, is_public=self._url is None, is_loopback=False))

    def prepare(self, request: Request) -> Request:
        """Build the arguments of ``acompletion``. Raises ``MediaError`` if a picture, video or sound cannot be read."""
        body = self.builder.body(request)
        return request.with_payload(body, payload_size(body))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Complete]:
        """Yield the package's asynchronous call, without its retries."""
        arguments = self._arguments
        fixed = {
            "timeout": arguments.timeout,
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": arguments.drop_params,
            **({"api_base": self._url} if self._url else {}),
            **({"api_key": arguments.api_key} if arguments.api_key else {}),
        }

        async def call(body: Mapping[str, Any]) -> Any:
            return await self._sdk.acompletion(**body, **fixed)

        def read(answer: Any) -> Reply:
            return read_object(answer.model_dump(), self._failures)

        yield attempts(call, (self._error, OSError, ValueError), self._failure, read)

    def _failure(self, error: Exception) -> AttemptError:
        names = error_names(error)
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
