"""Finding the option letter in an answer to a multiple-choice question."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CHOICES = ("A", "B", "C", "D", "E")
# From the clearest sign to the weakest: in parentheses, before a mark, standing alone, anywhere.
_SIGNS = (r"\({}\)", r"(?<![A-Za-z]){}[.):]", r"(?<![A-Za-z]){}(?![A-Za-z])", r"{}")


def extract_mcq_answer(text: str, choices: Sequence[str] | None = None) -> str:
    """The option that an answer names, or empty text; of several equally clear ones the first in ``choices``.

    Upper and lower case are told apart. ``choices`` are letters, by default A to E.
    """
    options = [choice for choice in (_CHOICES if choices is None else choices) if choice]
    for sign in _SIGNS:
        for option in options:
            if re.search(sign.format(re.escape(option)), text):
                return option
    return ""
