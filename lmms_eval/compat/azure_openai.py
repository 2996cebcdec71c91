"""Clients of Azure's OpenAI service for task files of the family that call a judge themselves."""

from __future__ import annotations

import os
from typing import Any

from lmms_eval.errors import UsageError

API_VERSION = "2024-10-21"
"""Default of ``AZURE_OPENAI_API_VERSION``."""


def _endpoint() -> str:
    return os.environ.get("AZURE_OPENAI_ENDPOINT") or os.environ.get("AZURE_OPENAI_API_BASE", "")


def has_endpoint_support() -> bool:
    """Return whether the environment names an Azure resource and a key."""
    return bool(_endpoint() and os.environ.get("AZURE_OPENAI_API_KEY"))


def build_client(model: str | None = None) -> tuple[Any, str]:
    """Make a client for the resource that the environment names.

    Args:
        model: the deployment's name, by default ``AZURE_OPENAI_DEPLOYMENT``.

    Returns:
        An ``openai.AzureOpenAI`` and the deployment's name.

    Raises:
        UsageError: the resource, its key or the deployment is not named.
    """
    deployment = model or os.environ.get("AZURE_OPENAI_DEPLOYMENT", "")
    needed = {
        "AZURE_OPENAI_ENDPOINT": _endpoint(),
        "AZURE_OPENAI_API_KEY": os.environ.get("AZURE_OPENAI_API_KEY"),
        "AZURE_OPENAI_DEPLOYMENT": deployment,
    }
    if missing := [name for name, value in needed.items() if not value]:
        raise UsageError(f"the Azure client of this task needs {', '.join(missing)}: set the environment variables")
    from openai import AzureOpenAI

    version = os.environ.get("AZURE_OPENAI_API_VERSION") or API_VERSION
    return AzureOpenAI(
        azure_endpoint=needed["AZURE_OPENAI_ENDPOINT"], api_key=needed["AZURE_OPENAI_API_KEY"], api_version=version
    ), deployment
