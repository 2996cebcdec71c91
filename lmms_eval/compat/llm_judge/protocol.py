"""Requests to a judge server and its replies (harness specification §9.1)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.judges.options import DEFAULT_JUDGE_MODEL


def default_model() -> str:
    """``MODEL_VERSION``, else the default judge."""
    return os.environ.get("MODEL_VERSION") or DEFAULT_JUDGE_MODEL


@dataclass
class ServerConfig:
    """Settings of a judge server. Times in seconds."""

    model_name: str = field(default_factory=default_model)
    temperature: float = 0.0
    max_tokens: int = 1024
    top_p: float | None = None
    timeout: float = 60
    num_retries: int = 5
    retry_delay: float = 10
    """The longest first pause before another attempt; pauses then grow, and ``Retry-After`` is honoured."""
    max_concurrent: int = 10
    system_prompt: str | None = None
    response_format: str | Mapping[str, Any] | None = None
    """``json`` asks for a JSON object."""
    judge_type: str = "general"
    output_format: str = "0/1"
    score_range: tuple[float, float] = (1, 10)
    evaluation_criteria: Mapping[str, Any] | None = None


@dataclass
class Request:
    """A question: ``messages`` in the form of chat completions, or the parts of a judge's prompt."""

    messages: Sequence[Mapping[str, Any]] = ()
    images: Sequence[Any] | None = None
    """PIL images, paths, or base64 texts; they follow the text of the last user message."""
    config: ServerConfig | None = None
    """Configuration in place of the server's own."""
    question: str | None = None
    answer: str | None = None
    prediction: str | None = None
    context: str | None = None
    options: Any = None
    response1: str | None = None
    response2: str | None = None
    custom_prompt: str | None = None
    prompt_kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Response:
    """A reply."""

    content: str
    model_used: str
    usage: Mapping[str, Any] | None = None
    raw_response: Any = None
    parsed_result: Any = None
    success: bool = True
    error_message: str | None = None
