"""Selection of the judge's model and server by options and environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

DEFAULT_JUDGE_MODEL = "gpt-4o-2024-11-20"
"""The model that is asked if only a server is given."""
MODEL_VARIABLE, URL_VARIABLE, KEY_VARIABLE = (
    "MEGABENCH_OPEN_API_MODEL",
    "MEGABENCH_OPEN_API_URL",
    "MEGABENCH_OPEN_API_KEY",
)
PROVIDERS = (
    "anthropic", "azure", "gemini", "hf", "internvl", "litellm", "openai", "replay", "scripted", "sglang", "vllm",
)  # fmt: skip
REMEDY = (
    "name one with --judge_model NAME (its key in OPENAI_API_KEY), or with --judge_base_url URL for a server of "
    "your own"
)


class JudgeOptions(Struct, frozen=True):
    """The judge to open: ``model`` is a name on an OpenAI-compatible server, or ``PROVIDER:NAME`` (``PROVIDERS``)."""

    model: str | None = None
    base_url: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the judge's back end. They override the other options."""
    device: str | None = None
    """The device of a local judge."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> JudgeOptions:
        """Read MEGA-Bench's variables, for scripts without options; ``OPENAI_API_KEY`` alone: the default model."""
        model = environ.get(MODEL_VARIABLE) or None
        url = environ.get(URL_VARIABLE) or None
        if model is None and url is None and environ.get("OPENAI_API_KEY"):
            model = DEFAULT_JUDGE_MODEL
        return cls(model, url)

    @property
    def is_given(self) -> bool:
        """Whether a judge is given. Without one, judged metrics are not evaluated."""
        return bool(self.model or self.base_url)

    @property
    def provider(self) -> str:
        head, found, _ = (self.model or "").partition(":")
        return head if found and head in PROVIDERS else "openai"

    @property
    def name(self) -> str:
        """The model's name without the provider."""
        model = self.model or DEFAULT_JUDGE_MODEL
        head, found, rest = model.partition(":")
        return rest if found and head in PROVIDERS else model
