"""Prompts without a chat template, for base models: ``chat_template=none``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NO_TEMPLATE = "none"
"""Value of ``chat_template`` that asks for the plain context."""


def plain_context(turns: Sequence[Mapping[str, Any]], marks: Mapping[str, str]) -> str:
    """The texts of a conversation as they stand, a blank line between messages; nothing says who speaks.

    Args:
        turns: messages as chat templates get them: ``role``, and ``content`` as a list of parts.
        marks: what stands for a part that is no text, by its type.

    Raises:
        ValueError: the model has no mark for a part.
    """
    texts = []
    for turn in turns:
        text, follows_text = "", False
        for part in turn["content"]:
            is_text = part["type"] == "text"
            if not is_text and part["type"] not in marks:
                raise ValueError(f"chat_template=none: this model has no mark for {part['type']} in a plain text")
            text += ("\n" if is_text and follows_text else "") + (part["text"] if is_text else marks[part["type"]])
            follows_text = is_text
        texts.append(text)
    return "\n\n".join(texts)
