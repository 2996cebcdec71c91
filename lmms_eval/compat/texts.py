"""Questions about a text."""

from __future__ import annotations

import hashlib
import json


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
