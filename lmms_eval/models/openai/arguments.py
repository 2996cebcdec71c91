"""The back end's ``model_args``: names, defaults and checks, and the selection of the server and the key."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit, urlunsplit

from pydantic import Field, field_validator

from lmms_eval.errors import ModelError
from lmms_eval.models.registry import find_key
from lmms_eval.models.remote.arguments import SAME, RemoteArguments, ServiceArguments, read_arguments
from lmms_eval.utils.addresses import is_loopback

PUBLIC_BASE_URL = "https://api.openai.com/v1"
PATHS = {"chat": "/chat/completions", "completions": "/completions", "responses": "/responses"}
"""The end of the address by API."""
REASONING_MODEL = re.compile(r"(?:.*/)?(?:gpt-5|o1|o3|o4)(?:$|[-.:])", re.IGNORECASE)


class ChatArguments(RemoteArguments):
    """Arguments of back ends that send chat-completion bodies."""

    same: ClassVar[Mapping[str, str]] = {**SAME, "enable_thinking": "enable_thinking_kwarg"}

    api: Literal["chat", "completions", "responses"] = "chat"
    reasoning_model: bool | None = None
    pass_video_url: bool = False
    use_audio_in_video: bool = False
    message_format: Literal["openai", "qwen3_vl"] = "openai"
    is_qwen3_vl: bool = False
    enable_thinking_kwarg: bool | str | None = None
    extra_body: dict[str, Any] = Field(default_factory=dict)
    mcp_server_path: str | None = None
    tools: Literal["images"] | None = None
    mcp_timeout: float = Field(default=60.0, gt=0)
    mcp_max_rounds: int = Field(default=10, ge=1)
    mcp_max_characters: int = Field(default=50_000, ge=100)
    mcp_max_calls: int | None = Field(default=None, ge=1)
    mcp_max_tokens: int | None = Field(default=None, ge=1)
    mcp_max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    mcp_price: str | None = Field(default=None, pattern=r"^\d{1,9}(\.\d{1,9})?:\d{1,9}(\.\d{1,9})?$")

    @field_validator("extra_body", mode="before")
    @classmethod
    def _read_json(cls, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    @property
    def timestamps(self) -> bool:
        """Whether every video frame is preceded by its time, as Qwen3-VL expects."""
        return self.is_qwen3_vl or self.message_format == "qwen3_vl"

    @property
    def is_reasoning(self) -> bool:
        """Whether the model takes ``max_completion_tokens`` and no sampling options."""
        if self.reasoning_model is not None:
            return self.reasoning_model
        return REASONING_MODEL.match(self.model) is not None


class Arguments(ChatArguments, ServiceArguments):
    """All arguments with their defaults. ``docs/models/openai.md`` describes them."""

    backend: ClassVar[str] = "openai"

    azure_openai: bool = False
    api_version: str | None = None
    tokenizer: str | None = None
    max_length: int | None = Field(default=None, ge=3)
    prefix_aware_queue: bool = True
    prefix_hash_chars: int = 256


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of the server. ``shown`` is the address without user, password and query, for messages."""

    url: str = field(repr=False)
    authorization: str = field(repr=False)
    """The value of ``header``."""
    secrets: tuple[str, ...] = field(repr=False)
    """Texts that must not appear in a message."""
    shown: str
    is_public: bool
    """Whether the service rejects the options of open servers."""
    is_loopback: bool
    header: str = "Authorization"
    key_name: str = "OPENAI_API_KEY"
    """The environment variable that holds the key, for messages."""
    takes_webp: bool = False
    """Whether the service is known to accept WebP pictures."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers that the service requires."""


def parse_arguments(given: Mapping[str, Any], environment: Mapping[str, str]) -> Arguments:
    """Check the arguments as ``read_arguments`` does. Raises ``ModelError`` if they contradict each other."""
    arguments = read_arguments(Arguments, given, environment)
    if arguments.api == "responses" and arguments.pass_video_url:
        raise ModelError(
            "the Responses API does not support pass_video_url=true: leave out one of pass_video_url and api=responses"
        )
    if (arguments.mcp_server_path or arguments.tools) and (arguments.api != "chat" or arguments.batch):
        name = "mcp_server_path" if arguments.mcp_server_path else "tools"
        raise ModelError(f"{name} needs a conversation: leave it out, or api and batch")
    if arguments.api != "completions" and (arguments.tokenizer or arguments.max_length):
        raise ModelError("tokenizer and max_length apply to api=completions only: give api=completions, or neither")
    if arguments.api_version and not arguments.azure_openai:
        raise ModelError("api_version applies to azure_openai=true only: give both or neither")
    return arguments


def find_endpoint(arguments: Arguments, environment: Mapping[str, str]) -> Endpoint:
    """Find server and key: the argument, else ``OPENAI_API_BASE`` or ``OPENAI_BASE_URL``, else the public API.

    Services of ``KEY_VARIABLES`` have their own variable for the key. With ``azure_openai``, the server is the resource
    of ``base_url`` or ``AZURE_OPENAI_API_BASE``.

    Raises:
        ModelError: the address is not an http(s) URL, or there is no key for the public API; for Azure, the address,
            key or version is missing.
    """
    if arguments.azure_openai:
        return _azure_endpoint(arguments, environment)
    base = arguments.base_url or environment.get("OPENAI_API_BASE") or environment.get("OPENAI_BASE_URL")
    parts, place = split_address(base or PUBLIC_BASE_URL)
    path, end = parts.path.rstrip("/"), PATHS[arguments.api]
    path = path if path.endswith(end) else path + end
    is_public = parts.hostname == urlsplit(PUBLIC_BASE_URL).hostname
    found, key_name = find_key(parts.hostname, environment)
    key = arguments.api_key or found
    if is_public and not key:
        raise ModelError(
            f"no key for {place}: set OPENAI_API_KEY, or give base_url (or set OPENAI_API_BASE) for another server"
        )
    if parts.username and not arguments.api_key:
        user, key = unquote(parts.username), unquote(parts.password or "")
        authorization = "Basic " + base64.b64encode(f"{user}:{key}".encode()).decode("ascii")
    else:
        authorization = f"Bearer {key or 'EMPTY'}"
    return Endpoint(
        url=urlunsplit((parts.scheme, place, path, parts.query, "")),
        authorization=authorization,
        secrets=tuple(secret for secret in (key, parts.query) if len(secret) > 3),
        shown=urlunsplit((parts.scheme, place, path, "", "")),
        is_public=is_public,
        is_loopback=is_loopback_url(base or PUBLIC_BASE_URL),
        key_name=key_name,
        takes_webp=is_public,
    )


def _azure_endpoint(arguments: Arguments, environment: Mapping[str, str]) -> Endpoint:
    """Find the address of a deployment (named by ``model``), or of the Responses API of the resource."""
    wanted = {
        "base_url (AZURE_OPENAI_API_BASE)": arguments.base_url or environment.get("AZURE_OPENAI_API_BASE", ""),
        "api_key (AZURE_OPENAI_API_KEY)": arguments.api_key or environment.get("AZURE_OPENAI_API_KEY", ""),
        "api_version (AZURE_OPENAI_API_VERSION)": (
            arguments.api_version or environment.get("AZURE_OPENAI_API_VERSION", "")
        ),
    }
    missing = [name for name, value in wanted.items() if not value]
    if missing:
        raise ModelError(f"azure_openai=true needs {', '.join(missing)}: give the argument or set the variable")
    base, key, version = wanted.values()
    parts, place = split_address(base)
    root = parts.path.rstrip("/").removesuffix("/openai") + "/openai"
    if arguments.api != "responses":
        root += f"/deployments/{quote(arguments.model, safe='')}"
    path = root + PATHS[arguments.api]
    return Endpoint(
        url=urlunsplit((parts.scheme, place, path, urlencode({"api-version": version}), "")),
        authorization=key,
        secrets=(key,) if len(key) > 3 else (),
        shown=urlunsplit((parts.scheme, place, path, "", "")),
        is_public=True,
        is_loopback=is_loopback_url(base),
        header="api-key",
        key_name="AZURE_OPENAI_API_KEY",
        takes_webp=True,
    )


def split_address(base: str, name: str = "base_url of the openai back end") -> tuple[SplitResult, str]:
    """Split an address into its parts, and its host with the port. Raises ``ModelError``, beginning with ``name``."""
    try:
        parts = urlsplit(base.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ModelError(f"{name} is not a URL ({error})") from error
    if parts.scheme not in ("http", "https") or not host:
        raise ModelError(f"{name} must begin with http:// or https:// and name a host")
    return parts, (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")


def is_loopback_url(url: str) -> bool:
    """Return whether the server is on this machine's loopback, which needs no proxy."""
    return is_loopback(urlsplit(url.strip()).hostname or "")
