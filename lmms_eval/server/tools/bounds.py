"""Bounds of answers: assistants read little, and nothing of this machine or its secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lmms_eval.server.policy import without_paths
from lmms_eval.utils.redaction import redact_text

LONGEST_TEXT, MOST_ITEMS, DEEPEST = 2_000, 50, 8
"""Characters of a text, entries of a list or mapping, and depth, in a sample."""
LONGEST_ERROR = 4_000
MOST_BYTES = 200_000
"""Of the samples in one answer."""


def told(text: str) -> str:
    """Return a text without secrets and without this machine's paths; of a long one beginning and end."""
    text = without_paths(redact_text(text))
    if len(text) <= LONGEST_ERROR:
        return text
    half = LONGEST_ERROR // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def cut(value: Any, depth: int = 0) -> Any:
    """Cut what a sample holds, with a note where something is left out."""
    if isinstance(value, str):
        return _shortened(value, LONGEST_TEXT)
    if isinstance(value, Mapping | list | tuple) and depth >= DEEPEST:
        return "[left out: nested too deeply]"
    if isinstance(value, Mapping):
        kept = {_shortened(str(key), 200): cut(item, depth + 1) for key, item in [*value.items()][:MOST_ITEMS]}
        return kept if len(value) <= MOST_ITEMS else {**kept, "…": f"[{len(value) - MOST_ITEMS} more entries]"}
    if isinstance(value, list | tuple):
        items = [cut(item, depth + 1) for item in value[:MOST_ITEMS]]
        return items if len(value) <= MOST_ITEMS else [*items, f"[{len(value) - MOST_ITEMS} more entries]"]
    return value


def size(value: Any) -> int:
    """Return the bytes of a value as it is sent."""
    return len(json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace"))


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… [{len(text) - longest} more characters]"
