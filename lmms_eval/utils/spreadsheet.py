"""Texts made safe for spreadsheets."""

from __future__ import annotations

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell of text that begins so is a formula for spreadsheets."""


def no_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: one that may be gets an apostrophe in front."""
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
