"""Names under which users know services: each is a back end of this package with an address, a key and a model.

A table, read by the registry; the back ends themselves are imported when one of them is built.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from lmms_eval.errors import ModelError

log = logging.getLogger(__name__)
MODEL_NAMES = ("model", "model_version", "pretrained")
OPENAI_KEY = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class NamedService:
    """A name of a service."""

    name: str
    backend: str
    model: str = ""
    """Asked where the arguments name none; empty: they must."""
    base_url: str = ""
    """Empty: that of the back end."""
    key_variable: str = ""
    """Environment variable of the key, where it is not the back end's."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that the name stands for."""

    def arguments(self, given: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
        """Complete the arguments for the back end.

        Raises:
            ModelError: the service has no key.
        """
        told = {name: value for name, value in given.items() if value is not None}
        if self.model and not any(told.get(name) for name in MODEL_NAMES):
            log.info("model %r: asks %s; model_version=... asks another one", self.name, self.model)
            told["model"] = self.model
        if self.key_variable and not told.get("api_key"):
            key = environment.get(self.key_variable)
            if key:
                told["api_key"] = key
            elif not told.get("base_url"):  # a key of another service must not go there
                raise ModelError(
                    f"no key for {self.base_url}: set {self.key_variable}, or give the model argument api_key"
                )
        if self.base_url and not told.get("base_url"):
            told["base_url"] = self.base_url
        return {**self.fixed, **told}


NAMED_SERVICES = {
    service.name: service
    for service in (
        NamedService("batch_gpt4", "openai", "gpt-4o", fixed={"batch": True}),
        NamedService("claude", "anthropic", "claude-sonnet-4-6"),
        NamedService("gemini", "gemini", "gemini-3.8-flash"),
        NamedService("gemini_api", "gemini", "gemini-3.8-flash"),
        NamedService("gpt4o_audio", "openai", "gpt-4o-audio-preview"),
        NamedService("gpt4v", "openai", "gpt-4o"),
        NamedService("openrouter", "openai", "", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        NamedService(
            "qwen_vl_api", "openai", "qwen-vl-max",
            "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY",
        ),
        NamedService("reka", "openai", "reka-flash", "https://api.reka.ai/v1", "REKA_API_KEY"),
        NamedService("xai", "openai", "grok-4", "https://api.x.ai/v1", "XAI_API_KEY"),
    )
}  # fmt: skip
"""By name."""
KEY_VARIABLES = {
    "api.reka.ai": "REKA_API_KEY",
    "api.x.ai": "XAI_API_KEY",
    "dashscope-intl.aliyuncs.com": "DASHSCOPE_API_KEY",
    "dashscope.aliyuncs.com": "DASHSCOPE_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""Environment variable of the key by the host of ``base_url``."""

VENDORS = (
    "openai.com", "openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com", "anthropic.com",
    "googleapis.com", "amazonaws.com", "x.ai", "mistral.ai", "deepseek.com", "cohere.com", "cohere.ai", "reka.ai",
    "moonshot.ai", "moonshot.cn", "aliyuncs.com",
)  # fmt: skip
"""Domains at which the makers of models serve them: their services refuse options that they do not know."""


def is_vendor(address: str | None) -> bool:
    """Return whether an address is a vendor's own service."""
    host = (urlsplit(address or "").hostname or "").lower()
    return any(host == domain or host.endswith(f".{domain}") for domain in VENDORS)


def aliases_of(backend: str) -> tuple[str, ...]:
    """Names of services that are other names of a back end."""
    return tuple(name for name, service in NAMED_SERVICES.items() if service.backend == backend != name)


def find_key(host: str | None, environment: Mapping[str, str]) -> tuple[str, str]:
    """Find the key for a host that speaks the protocol of ``openai``; returns it with the name of its variable.

    Where the host's own variable is not set ``OPENAI_API_KEY`` counts, as for a server that is not known.
    """
    variable = KEY_VARIABLES.get(host or "", OPENAI_KEY)
    return environment.get(variable) or environment.get(OPENAI_KEY, ""), variable
