"""Account of how a reply was parsed: where the answer stood, what was taken from it, which fields it lacks.

It is told beside the scores and changes none of them. The prompts ask for a final ``Answer: ...``.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from lmms_eval.tasks.megabench.conversions.fences import extract_fence, extract_json_fence
from lmms_eval.tasks.megabench.conversions.structures import answer_part
from lmms_eval.tasks.megabench.scoring.parsers import STRING_PARSERS, Parsed, marked_answer

LONGEST = 160
"""Characters of an extracted value; the reply itself stands in the sample whole."""


@dataclass(frozen=True, slots=True)
class ReplyReading:
    """The way from a reply to the values of its fields."""

    rule: str
    """``marker`` (the answer followed ``Answer:``, as asked) or ``whole reply``, with ``code block`` and ``fields
    missing`` behind it; ``no answer`` of an empty reply; ``unparsed`` where no field could be read."""
    missing: tuple[str, ...]
    """Scored fields that the reply does not give."""
    extracted: dict[str, str]
    """Beginnings of the values that the metrics got."""

    def as_dict(self) -> dict[str, Any]:
        """Facts for the sample; lists and values only where there are some."""
        facts: dict[str, Any] = {"rule": self.rule}
        if self.missing:
            facts["missing"] = list(self.missing)
        return facts | ({"extracted": self.extracted} if self.extracted else {})


def read_reply(reply: str, parsed: Parsed, parser: str, fields: Collection[str]) -> ReplyReading:
    """Tell how a reply was parsed.

    Args:
        reply: the reply.
        parsed: what its parser made of it (``query.parse_reply``).
        parser: the parser's lower-case name.
        fields: the scored fields.
    """
    if not reply.strip():
        return ReplyReading("no answer", tuple(fields), {})
    if parser == "dummy":
        return ReplyReading("whole reply", (), {})
    found = parsed if isinstance(parsed, dict) else {}
    if parser == "json" and found and all(value is reply for value in found.values()):
        found = {}  # nothing could be read: the reply stands for every field
    given = {field: found[field] for field in fields if found.get(field) not in (None, "")}
    if not given and fields:
        return ReplyReading("unparsed", tuple(fields), {})
    missing = tuple(field for field in fields if field not in given)
    rule = ", ".join([*_place(reply, parser), *(["fields missing"] if missing else [])])
    return ReplyReading(rule, missing, {field: _beginning(value) for field, value in given.items()})


def _place(reply: str, parser: str) -> list[str]:
    """Name the part of the reply that was read."""
    if parser in STRING_PARSERS:
        part = marked_answer(reply)
        is_fenced = extract_fence(part.text).found
    else:
        part = answer_part(reply)
        is_fenced = extract_json_fence(part.text).found
    return ["marker" if part.is_marked else "whole reply", *(["code block"] if is_fenced else [])]


def _beginning(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that are no texts, numbers of thousands of digits
        return type(value).__name__
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
