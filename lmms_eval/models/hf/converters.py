"""Converters of model arguments: from what a command line or a caller gives to a value, or a ``ValueError``."""

from __future__ import annotations

from typing import Any


def positive_int(value: Any) -> int:
    """Converter of an argument: a whole number above 0."""
    if isinstance(value, bool) or float(value) != int(float(value)) or int(float(value)) < 1:
        raise ValueError("a whole number above 0 is needed")
    return int(float(value))


def flag(value: Any) -> bool:
    """Converter of an argument: true or false."""
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    text = str(value).strip().lower()
    if text not in known:
        raise ValueError("true or false is needed")
    return known[text]
