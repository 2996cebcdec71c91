"""Texts made safe for spreadsheets."""

from __future__ import annotations

import re

_FORMULA = re.compile(r'(?:^|(?<=[;\t\r\n]))(?=[ \t\r"]*[=+\-@]|[\t\r])')
"""Where a formula may begin: in front of a text, and where a spreadsheet may take its rest for a cell of its own. One
whose cells end with semicolons splits the lines of a CSV file there, whatever is quoted."""


def no_formula(text: str) -> str:
    """Return a text no part of which a spreadsheet takes for a formula: such a part gets an apostrophe in front."""
    return _FORMULA.sub("'", text)
