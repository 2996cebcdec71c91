"""Judge servers by the names and environment variables of the family (harness specification §9)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from lmms_eval.compat.llm_judge.protocol import ServerConfig
from lmms_eval.compat.llm_judge.server import DummyServer, JudgeServer, ServerInterface
from lmms_eval.errors import UnknownNameError
from lmms_eval.judges.options import JudgeOptions

LOCAL_URL = "http://localhost:8000/v1"


def _openai(config: ServerConfig) -> ServerInterface:
    arguments = _set({"api_key": os.environ.get("OPENAI_API_KEY")})
    url = os.environ.get("OPENAI_API_URL") or os.environ.get("OPENAI_API_BASE")
    return JudgeServer(config, JudgeOptions(f"openai:{config.model_name}", url, arguments))


def _azure(config: ServerConfig) -> ServerInterface:
    environ = os.environ
    arguments = _set(
        {
            "api_key": environ.get("AZURE_API_KEY"),
            "api_version": environ.get("API_VERSION"),
        }
    )
    return JudgeServer(config, JudgeOptions(f"azure:{config.model_name}", environ.get("AZURE_ENDPOINT"), arguments))


def _local(config: ServerConfig) -> ServerInterface:
    url = os.environ.get("LLM_JUDGE_URL") or LOCAL_URL
    return JudgeServer(config, JudgeOptions(f"openai:{config.model_name}", url, {"api_key": "EMPTY"}))


def _bedrock(config: ServerConfig) -> ServerInterface:
    return JudgeServer(config, JudgeOptions(f"litellm:bedrock/{config.model_name}"))


def _set(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


class ProviderFactory:
    """Names of providers to what builds them from a ``ServerConfig``."""

    _providers: ClassVar[dict[str, Callable[[ServerConfig], ServerInterface]]] = {
        "openai": _openai,
        "async_openai": _openai,
        "azure": _azure,
        "async_azure": _azure,
        "bedrock": _bedrock,
        "local": _local,
        "dummy": DummyServer,
    }

    @classmethod
    def create_provider(cls, api_type: str | None = None, config: ServerConfig | None = None) -> ServerInterface:
        """The server of that name; without one ``API_TYPE``, else ``openai``.

        Raises:
            UnknownNameError: no provider has this name.
        """
        name = (api_type or os.environ.get("API_TYPE") or "openai").lower()
        if name not in cls._providers:
            raise UnknownNameError("judge provider", name, cls._providers)
        return cls._providers[name](config or ServerConfig())

    @classmethod
    def register_provider(cls, name: str, provider: Callable[[ServerConfig], ServerInterface]) -> None:
        """Make a class (or function) that takes a ``ServerConfig`` known under a name."""
        cls._providers[name.lower()] = provider


def get_server(server_name: str | None = None, config: ServerConfig | None = None) -> ServerInterface:
    """``ProviderFactory.create_provider`` as a function."""
    return ProviderFactory.create_provider(server_name, config)
