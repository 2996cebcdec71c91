"""Questions about a text."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def is_json(string: str) -> bool:
    """Tell whether a text is JSON; ``NaN`` counts.

    Raises:
        TypeError: it is no text.
    """
    try:
        json.loads(string)
    except (ValueError, RecursionError):
        return False
    return True


def hash_string(string: str) -> str:
    """Return the SHA-256 hash of a text in UTF-8, as hexadecimal digits."""
    return hashlib.sha256(string.encode("utf-8")).hexdigest()


def handle_non_serializable(value: Any) -> int | str | list[Any]:
    """Make JSON of what ``json.dumps`` refuses (``default=``): whole numbers of NumPy, lists of sets, else the text."""
    if isinstance(value, set):
        return list(value)
    kind = type(value)
    if kind.__module__ == "numpy" and kind.__name__ in ("int32", "int64"):
        return int(value)
    return str(value)
