"""Text normalisation as in MileBench's evaluator, and without its faults."""

from __future__ import annotations

import re

MARKS = ';/[]"{}()=+\\_-><@`,?!'
"""The 21 marks that are deleted or replaced by a blank."""
OFFICIAL_STOPS = 32
"""The most full stops that the reference deletes (a flag lands in the place of the count)."""

_TOUCHED = re.compile(r"""[\n\t.;/\[\]"{}()=+\\_\-><@`,?!]""")
_THOUSANDS = re.compile(r"\d,\d")
_COMMA_OF_NUMBER = re.compile(r"(?<=\d),(?=\d)")
_STOP = re.compile(r"\.(?!\d)")


def normalise(text: str) -> str:
    """Normalise ``text`` as the reference does: remove marks and full stops, and lower the case.

    A mark is deleted wherever it occurs if it is next to a blank anywhere, or if the text holds a thousands
    separator anywhere; else it becomes a blank. Only the first 32 full stops that no digit follows are deleted.
    """
    if _TOUCHED.search(text) is None:
        return _trim(text.strip())
    text = text.replace("\n", " ").replace("\t", " ").strip()
    cleaned = text.translate(_replacements(text, deletes_all=_THOUSANDS.search(text) is not None))
    return _trim(_STOP.sub("", cleaned, count=OFFICIAL_STOPS))


def normalise_fixed(text: str) -> str:
    """Normalise as :func:`normalise`, but remove only the comma of a thousands separator, and all full stops."""
    text = _COMMA_OF_NUMBER.sub("", text.replace("\n", " ").replace("\t", " ").strip())
    return _trim(_STOP.sub("", text.translate(_replacements(text, deletes_all=False))))


def _replacements(text: str, deletes_all: bool) -> dict[int, str]:
    """Replacement of each mark that the text holds."""
    return {
        ord(mark): "" if deletes_all or f"{mark} " in text or f" {mark}" in text else " "
        for mark in MARKS
        if mark in text
    }


def _trim(text: str) -> str:
    return text.strip("'").strip('"').strip().lower()
