"""The back ends over vendors' packages, as a table: what the shared tests need to know of each."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.models.registry import ModelRegistry
from tests.models.openai.support import ask, make_request
from tests.servers.stub import StubServer

KEY = "sk-secret-0123456789"


@dataclass(frozen=True, slots=True)
class Failing:
    """A fault of the server, and how the response to it ends."""

    settings: Mapping[str, Any]
    kind: str
    attempts: int
    words: str


@dataclass(frozen=True, slots=True)
class Ending:
    """An odd answer of the server, and what is made of it."""

    fault: str
    text: str
    finish_reason: str
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Dialect:
    """One back end and what is its own in tests that hold for all."""

    name: str
    module: str
    """The vendor's package."""
    alias: str
    target: str
    """Part of the request line."""
    greedy: Mapping[str, Any]
    """What the body holds for a greedy request of 16 tokens."""
    model: str = "m-x"
    path: str = ""
    """What follows the server's address in ``base_url``."""
    keys: tuple[str, ...] = ()
    """Environment variables of the key; empty where the back end asks for none."""
    key_words: str = "key"
    """What the message about a refused key names."""
    failing: tuple[Failing, ...] = ()
    """Beyond ``FAILING``."""
    endings: tuple[Ending, ...] = field(default=())
    """Beyond ``ENDINGS``."""
    leaves_tasks: bool = False
    """The package leaves tasks of its own behind."""

    def build(self, server: StubServer | None = None, **arguments: Any) -> Any:
        """A model that asks ``server``, or a port where nobody listens."""
        given = {
            "model": self.model,
            "base_url": f"http://127.0.0.1:{server.port if server else 1}{self.path}",
            "api_key": KEY,
            "retry_backoff_s": 0.01,
            "max_retries": 2,
        }
        return ModelRegistry().build(self.alias, {**given, **arguments})[0]

    def ask(self, model: Any, requests: list[Request]) -> dict[str, Response]:
        return ask(model, requests, leaves_tasks=self.leaves_tasks)

    def ask_one(self, server: StubServer | None, request: Request | None = None, **arguments: Any) -> Response:
        return self.ask(self.build(server, **arguments), [request or make_request("one")])[
            request.id if request else "one"
        ]

    def need(self) -> None:
        """Skip where the package is not installed."""
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("ignore")
            patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            pytest.importorskip(self.module, reason=f"the extra {self.name!r} is not installed")


FAILING = (
    Failing({"fault": "500"}, "server_error", 3, "HTTP 500"),
    Failing({"fault": "429", "retry_after": "0.02"}, "rate_limit", 3, "HTTP 429"),
    Failing({"fault": "400"}, "bad_request", 1, "HTTP 400"),
    Failing({"fault": "context_length"}, "bad_request", 1, "context length"),
    Failing({"fault": "slow", "slow": 5}, "timeout", 3, "within 0.2 s"),
    Failing({"fault": "echo_key"}, "bad_request", 1, "REDACTED"),
)
"""Faults that every back end must tell apart."""
BROKEN = (
    Failing({"fault": "malformed"}, "malformed", 3, "no valid answer"),
    Failing({"fault": "reset"}, "connection", 3, "broke"),
    Failing({"fault": "half_closed"}, "connection", 3, "broke"),
)
"""Those that litellm hides behind a status."""
ENDINGS = (Ending("truncated", "cut o", "length"), Ending("empty", "", "stop"))
OWN_ENDINGS = (
    Ending("refusal", "", "content_filter"),
    Ending("parts", "parts", "stop"),
    Ending("reasoning", "", "stop", 7),
)
"""Of forms that keep thoughts and refusals apart from the answer."""

ANTHROPIC = Dialect(
    "anthropic",
    "anthropic",
    "claude",
    "POST /v1/messages ",
    {"max_tokens": 16, "temperature": 0},
    keys=("ANTHROPIC_API_KEY",),
    key_words="ANTHROPIC_API_KEY",
    failing=(
        *BROKEN,
        Failing({"fault": "529"}, "server_error", 3, "HTTP 529"),
        Failing({"fault": "413"}, "bad_request", 1, "max_image_bytes"),
    ),
    endings=OWN_ENDINGS,
)
GEMINI = Dialect(
    "gemini",
    "google.genai",
    "gemini_api",
    "/models/m-x:generateContent ",
    {"generationConfig": {"maxOutputTokens": 16, "temperature": 0}},
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    key_words="GEMINI_API_KEY",
    failing=(
        *BROKEN,
        Failing({"fault": "503"}, "server_error", 3, "HTTP 503"),
        Failing({"fault": "no_choices"}, "malformed", 3, "no candidates"),
    ),
    endings=(*OWN_ENDINGS, Ending("content_filter", "", "content_filter")),
)
LITELLM = Dialect(
    "litellm",
    "litellm",
    "litellm_chat",
    "POST /v1/chat/completions ",
    {"model": "m", "max_tokens": 16, "temperature": 0},
    model="openai/m",
    path="/v1",
    leaves_tasks=True,
)
DIALECTS = (ANTHROPIC, GEMINI, LITELLM)
