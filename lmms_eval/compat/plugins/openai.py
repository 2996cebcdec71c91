"""The base classes of plugins that use OpenAI-compatible servers, and a back end over a client of the plugin's own."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import unquote

from lmms_eval.api.model import Model
from lmms_eval.api.request import Request
from lmms_eval.compat.plugins.delegating import DelegatingModel, read_given, takes
from lmms_eval.models.openai.model import OpenAI
from lmms_eval.models.remote.errors import AttemptError, Failures
from lmms_eval.models.remote.media import payload_size
from lmms_eval.models.remote.model import Complete
from lmms_eval.models.remote.reply import Reply
from lmms_eval.models.remote.sdk import attempts, read_object
from lmms_eval.utils.concurrency import AdaptiveConfig

KEYWORDS = frozenset(
    {
        "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "stop", "n",
        "presence_penalty", "frequency_penalty", "logit_bias", "response_format", "reasoning_effort",
    }
)  # fmt: skip
"""Parameters of the package's ``create``; all other fields of a body go into its ``extra_body``."""
TRANSPORTS = frozenset({"openai", "httpx", "httpx2", "httpcore", "aiohttp", "requests", "urllib3"})
"""Packages whose errors without a status are connection errors."""
PLACEHOLDER_KEY = "unused"
"""Key of the back end if only the client has one."""
DEFAULT_MAX_NEW_TOKENS = 1024
REASONING_MARKS = ("o1", "o3", "o4", "gpt-5")
"""Parts of a model's name. The family takes them as a sign that the model takes no sampling options."""
ADAPTIVE = (
    "adaptive_concurrency",
    "adaptive_min_concurrency",
    "adaptive_max_concurrency",
    "adaptive_target_latency_s",
    "adaptive_increase_step",
    "adaptive_decrease_factor",
    "adaptive_failure_threshold",
)
BYTES_PER_MB = 1_000_000
log = logging.getLogger(__name__)


class ClientModel(OpenAI):
    """Sends requests through ``client.chat.completions.create``, with the arguments of ``OpenAI``.

    The client is one of the package ``openai``, or one like it; an asynchronous client is awaited.
    """

    def __init__(self, client: Any, **arguments: Any) -> None:
        super().__init__(**{**arguments, "api_key": arguments.get("api_key") or PLACEHOLDER_KEY})
        self.kinds = frozenset({"generate_until"})
        self._client = client
        secrets = (key,) if len(key := str(arguments.get("api_key") or "")) > 3 else ()
        shown = f"{type(client).__module__}.{type(client).__qualname__}"
        self._failures = Failures(shown, "the client's key", self._arguments.timeout, secrets)

    def prepare(self, request: Request) -> Request:
        """Build the keywords of ``create``. Raises ``MediaError`` if a picture, video or sound cannot be read."""
        body = self.builder.body(request)
        payload = {name: value for name, value in body.items() if name in KEYWORDS}
        if further := {name: value for name, value in body.items() if name not in KEYWORDS}:
            payload["extra_body"] = further
        return request.with_payload(payload, payload_size(payload))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Complete]:
        """Run each open request in a thread of its own."""
        create = self._client.chat.completions.create
        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="client")

        async def call(payload: Mapping[str, Any]) -> Any:
            answer = await loop.run_in_executor(pool, lambda: create(**payload))
            return await answer if inspect.isawaitable(answer) else answer

        try:
            # A plugin's client may raise anything; that is the failure of one attempt.
            yield attempts(call, (Exception,), self._failure, self._read)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _read(self, answer: Any) -> Reply:
        return read_object(as_data(answer), self._failures)

    def _failure(self, error: Exception) -> AttemptError:
        status = getattr(error, "status_code", None)
        if not isinstance(status, int):
            if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in TRANSPORTS:
                return self._failures.of_transport(error)
            # An exception class of the plugin's own: its cause is unknown, so the request is retried.
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


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    """Arguments of ``OpenAICompatible`` in the family's order."""

    model_version: str = "grok-2-latest"
    model: str | None = None
    """Takes precedence over ``model_version``."""
    base_url: str | None = None
    api_key: str | None = None
    timeout: float = 10
    """Seconds; used only if given, since the family's client never used its default."""
    retry_backoff_s: float = 1.0
    max_retries: int = 5
    max_size_in_mb: float = 20
    azure_openai: bool = False
    max_frames_num: int = 10
    video_fps: float | None = None
    httpx_trust_env: bool = True
    batch_size: int = 64
    num_concurrent: int = 32
    adaptive_concurrency: bool = False
    adaptive_min_concurrency: int = 1
    adaptive_max_concurrency: int = 128
    adaptive_target_latency_s: float = 15.0
    adaptive_increase_step: float = 0.1
    adaptive_decrease_factor: float = 0.7
    adaptive_failure_threshold: float = 0.05
    prefix_aware_queue: bool = True
    prefix_hash_chars: int = 256


def _get_max_new_tokens(gen_kwargs: Mapping[str, Any]) -> int:
    return int(gen_kwargs.get("max_new_tokens") or DEFAULT_MAX_NEW_TOKENS)


class OpenAICompatible(DelegatingModel):
    """Sends requests to an OpenAI-compatible server through the back end ``openai``.

    A subclass may replace ``client`` after ``super().__init__()``: requests then go to its ``chat.completions.create``.
    Attributes that it changes there (``model_version``, ``num_concurrent``, ...) take effect. The arguments are the
    fields of ``OpenAISettings``; other keywords cause a warning. Raises ``ModelError`` if a value is invalid, or the
    key for the public service is missing.
    """

    is_simple = True
    _settings_kind: ClassVar[type[OpenAISettings]] = OpenAISettings

    @takes(OpenAISettings, any_other=True)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__()
        settings, self._given, others = read_given(self._settings_kind, positional, keywords)
        self._settings = settings
        if others:
            log.warning("%s: arguments without effect: %s", type(self).__name__, ", ".join(sorted(others)))
        if not settings.httpx_trust_env:
            log.warning("httpx_trust_env=false holds for `client`; to reach a server past a proxy set NO_PROXY")
        self._client: Any = None
        self._is_replaced = False
        self.model_version = settings.model or settings.model_version
        address = "AZURE_OPENAI_API_BASE" if settings.azure_openai else "OPENAI_API_BASE"
        base_url = settings.base_url or os.environ.get(address)
        self.base_url = unquote(base_url).rstrip("/") if base_url else None
        self.timeout = settings.timeout
        self.retry_backoff_s, self.max_retries = settings.retry_backoff_s, settings.max_retries
        self.max_size_in_mb, self.max_frames_num = settings.max_size_in_mb, settings.max_frames_num
        self.video_fps, self.azure_openai = settings.video_fps, settings.azure_openai
        self.batch_size = self.batch_size_per_gpu = settings.batch_size
        self.num_concurrent = settings.num_concurrent
        self.prefix_aware_queue = settings.prefix_aware_queue
        self.prefix_hash_chars = settings.prefix_hash_chars
        self.adaptive_concurrency = settings.adaptive_concurrency
        self.adaptive_config = AdaptiveConfig.from_raw(*(getattr(settings, name) for name in ADAPTIVE[1:]))
        OpenAI(**self._arguments()).close()  # reports wrong arguments now, not at the first request

    @property
    def client(self) -> Any:
        """The client that a subclass has set, else one of the package ``openai`` for the subclass's own use."""
        if self._client is None:
            import openai

            settings = self._settings
            common = {
                "api_key": settings.api_key,
                "http_client": openai.DefaultHttpxClient(trust_env=settings.httpx_trust_env),
                **({"timeout": self._given["timeout"]} if "timeout" in self._given else {}),
            }
            if self.azure_openai:
                common["api_key"] = settings.api_key or os.environ.get("AZURE_OPENAI_API_KEY")
                version = os.environ.get("AZURE_OPENAI_API_VERSION")
                self._client = openai.AzureOpenAI(azure_endpoint=self.base_url, api_version=version, **common)
            else:
                self._client = openai.OpenAI(base_url=self.base_url, **common)
        return self._client

    @client.setter
    def client(self, value: Any) -> None:
        self._client, self._is_replaced = value, True

    def _get_max_new_tokens(self, gen_kwargs: Mapping[str, Any]) -> int:
        """Return the longest answer in tokens: the task's limit, or 1024."""
        return _get_max_new_tokens(gen_kwargs)

    def _generation(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**options, "max_new_tokens": self._get_max_new_tokens(options)}

    def _open_model(self) -> Model:
        arguments = self._arguments()
        return ClientModel(self._client, **arguments) if self._is_replaced else OpenAI(**arguments)

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the back end from the present attributes."""
        is_reasoning = any(mark in self.model_version for mark in REASONING_MARKS)
        return {
            "model": self.model_version,
            "base_url": self.base_url,
            "max_retries": self.max_retries,
            "retry_backoff_s": self.retry_backoff_s,
            "max_image_bytes": int(float(self.max_size_in_mb) * BYTES_PER_MB),
            "max_frames_num": self.max_frames_num,
            "video_fps": self.video_fps if self.video_fps and self.video_fps > 0 else None,
            "num_concurrent": self.num_concurrent,
            "azure_openai": self.azure_openai,
            "reasoning_model": is_reasoning,
            "extra_body": {"response_format": {"type": "text"}} if is_reasoning else {},
            **{name: self._given[name] for name in ("api_key", "timeout", *ADAPTIVE) if name in self._given},
        }


@dataclass(frozen=True, slots=True)
class ChatSettings(OpenAISettings):
    """Arguments of ``ChatOpenAICompatible``, including those of the chat form."""

    pass_video_url: bool = False
    enable_thinking_kwarg: bool | None = None


class ChatOpenAICompatible(OpenAICompatible):
    """The chat form. Its arguments are the fields of ``ChatSettings``; other keywords cause a warning."""

    is_simple = False
    _settings_kind = ChatSettings

    @takes(ChatSettings, any_other=True)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__(*positional, **keywords)

    def _arguments(self) -> dict[str, Any]:
        arguments, settings = super()._arguments(), self._settings
        if not isinstance(settings, ChatSettings):
            raise TypeError("the chat form has settings of its own")
        if settings.pass_video_url:
            arguments["pass_video_url"] = True
            video = {"video": {"num_frames": self.max_frames_num}}
            arguments["extra_body"] = {**arguments["extra_body"], "media_io_kwargs": video}
        if settings.enable_thinking_kwarg is not None:
            arguments["enable_thinking_kwarg"] = settings.enable_thinking_kwarg
        return arguments
