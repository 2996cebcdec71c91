"""The back end's ``model_args``: names, defaults, checks, and where the server and the key come from."""

from __future__ import annotations

import base64
import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from lmms_eval.errors import ModelError

PUBLIC_BASE_URL = "https://api.openai.com/v1"
PATH = "/chat/completions"
ENVIRONMENT = {"LMMS_IMAGE_ENCODE_FORMAT": "image_format", "LMMS_IMAGE_JPEG_QUALITY": "image_quality"}
"""Defaults that the environment may set."""
SAME = {
    "model_version": "model",
    "pretrained": "model",
    "num_cpus": "num_concurrent",
    "nframes": "max_frames_num",
    "fps": "video_fps",
}
"""Other names of arguments, from the two interfaces that this back end unites."""
NOT_HERE = ("mcp_server_path",)
REASONING_MODEL = re.compile(r"(?:.*/)?(?:gpt-5|o1|o3|o4)(?:$|[-.:])", re.IGNORECASE)


class Arguments(BaseModel):
    """Every argument with its default; ``docs/models/openai.md`` says what they do."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True, hide_input_in_errors=True)

    model: str = ""
    base_url: str | None = None
    api_key: str | None = Field(default=None, repr=False)
    timeout: float = Field(default=600.0, gt=0)
    num_concurrent: int = Field(default=32, ge=1)
    max_retries: int = Field(default=5, ge=0)
    retry_backoff_s: float = Field(default=1.0, ge=0)
    max_new_tokens: int = Field(default=1024, ge=1)
    system_prompt: str | None = None
    max_frames_num: int = Field(default=10, ge=1)
    video_fps: float | None = Field(default=None, gt=0)
    max_pixels: int | None = Field(default=None, ge=1)
    max_image_bytes: int = Field(default=20_000_000, ge=1024)
    image_format: Literal["PNG", "JPEG", "WEBP"] = "PNG"
    image_quality: int = Field(default=85, ge=1, le=100)
    pass_video_url: bool = False
    message_format: Literal["openai", "qwen3_vl"] = "openai"
    is_qwen3_vl: bool = False
    enable_thinking_kwarg: bool | str | None = None
    extra_body: dict[str, Any] = Field(default_factory=dict)
    adaptive_concurrency: bool = False
    adaptive_min_concurrency: int = 1
    adaptive_max_concurrency: int = 128
    adaptive_target_latency_s: float | None = None
    adaptive_increase_step: float = 0.1
    adaptive_decrease_factor: float = 0.7
    adaptive_failure_threshold: float = 0.05
    prefix_aware_queue: bool = True
    prefix_hash_chars: int = 256
    azure_openai: bool = False
    batch_size: Any = None
    max_batch_size: Any = None
    device: Any = None

    @field_validator("image_format", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        return {"JPG": "JPEG"}.get(value.upper(), value.upper()) if isinstance(value, str) else value

    @field_validator("extra_body", mode="before")
    @classmethod
    def _read_json(cls, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    @property
    def timestamps(self) -> bool:
        """Every video frame is preceded by its time, as Qwen3-VL expects."""
        return self.is_qwen3_vl or self.message_format == "qwen3_vl"

    @property
    def ceiling(self) -> int:
        """Requests that are open at a time at most."""
        if not self.adaptive_concurrency:
            return self.num_concurrent
        return max(1, self.adaptive_min_concurrency, self.adaptive_max_concurrency)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go. ``shown`` is the address without user, password and query, for people and records."""

    url: str = field(repr=False)
    authorization: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    """Texts that must not appear in a message."""
    shown: str
    is_public: bool
    is_loopback: bool


def parse_arguments(given: Mapping[str, Any], environment: Mapping[str, str]) -> Arguments:
    """Check the arguments. Values are not shown in messages: one of them may be a key.

    ``environment`` gives defaults for some of them (``ENVIRONMENT``).

    Raises:
        ModelError: an unknown name, a wrong value, two names of one argument that disagree, no model.
    """
    merged = _merge(given)
    for variable, name in ENVIRONMENT.items():
        if environment.get(variable):
            merged.setdefault(name, environment[variable])
    try:
        arguments = Arguments(**merged)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}" for problem in error.errors()
        )
        raise ModelError(f"model arguments of the openai back end: {problems}") from None
    if not arguments.model:
        raise ModelError("the openai back end needs the model's name on the server: --model_args model=NAME")
    if arguments.azure_openai:
        raise ModelError("azure_openai=true is not in this version: use a base_url of the chat-completions form")
    return arguments


def _merge(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are set, each under its first name."""
    merged: dict[str, Any] = {}
    for name, value in given.items():
        if name in NOT_HERE:
            raise ModelError(f"model argument {name!r} of the openai back end is not in this version: leave it out")
        target = SAME.get(name, name)
        if target not in Arguments.model_fields:
            raise ModelError(_unknown(name))
        if value is None:
            continue
        if merged.get(target, value) != value:
            raise ModelError(f"model argument {target!r} is given twice with different values, once as {name!r}")
        merged[target] = value
    return merged


def find_endpoint(arguments: Arguments, environment: Mapping[str, str]) -> Endpoint:
    """Server and key: the argument, else ``OPENAI_API_BASE`` / ``OPENAI_BASE_URL``, else the public API.

    Raises:
        ModelError: the address is no http(s) URL, or the public API has no key.
    """
    base = arguments.base_url or environment.get("OPENAI_API_BASE") or environment.get("OPENAI_BASE_URL")
    base = (base or PUBLIC_BASE_URL).strip()
    try:
        parts = urlsplit(base)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ModelError(f"base_url of the openai back end is no URL ({error})") from error
    if parts.scheme not in ("http", "https") or not host:
        raise ModelError("base_url of the openai back end must begin with http:// or https:// and name a host")
    path = parts.path.rstrip("/")
    path = path if path.endswith(PATH) else path + PATH
    place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    is_public = host == urlsplit(PUBLIC_BASE_URL).hostname
    key = arguments.api_key or environment.get("OPENAI_API_KEY", "")
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
        is_loopback=host == "localhost" or host == "::1" or host.startswith("127."),
    )


def _unknown(name: str) -> str:
    known = sorted({*Arguments.model_fields, *SAME})
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    answer = f"did you mean {', '.join(close)}?" if close else f"it takes: {', '.join(known)}"
    return f"the openai back end has no model argument {name!r}; {answer}"
