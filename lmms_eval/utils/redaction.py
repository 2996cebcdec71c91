"""Keeping secrets out of whatever is written (harness specification §5.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

REDACTED = "[REDACTED]"
_KEYS = frozenset(
    {"api_key", "client_secret", "hf_token", "huggingface_hub_token", "huggingfacehub_api_token", "token"}
)
_ENDINGS = ("api_key", "_token", "_secret", "password")
_ASSIGNMENT = re.compile(
    r"""(?i)([\w-]*(?:api_key|token|secret|password))(=)("[^"]*"|'[^']*'|[^,\s]+)""",
)
_FREE_TOKEN = re.compile(r"hf_[A-Za-z0-9]{20,}|\bsk-[A-Za-z0-9_-]{20,}")
_USER = re.compile(r"(?<=://)[^/@\s:,]+:[^/@\s,]+(?=@)")
"""User and password in an address."""
_BEARER = re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}")


def is_secret_key(key: str) -> bool:
    """Whether a mapping key names a secret."""
    lowered = key.lower().replace("-", "_")
    return lowered in _KEYS or lowered.endswith(_ENDINGS)


def redact_text(text: str) -> str:
    """Replace the value of ``…token=…``, ``…api_key=…`` and their like, and anything that looks like a key."""
    text = _USER.sub(REDACTED, text)
    text = _ASSIGNMENT.sub(rf"\1\2{REDACTED}", text)
    return _FREE_TOKEN.sub(REDACTED, _BEARER.sub(rf"\1{REDACTED}", text))


def redact(value: Any) -> Any:
    """A copy of nested mappings, lists and tuples without secrets; other values as they are."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {
            key: REDACTED if isinstance(key, str) and is_secret_key(key) else redact(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [redact(item) for item in value]
    if type(value) is tuple:
        return tuple(redact(item) for item in value)
    return value
