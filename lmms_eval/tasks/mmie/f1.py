"""Token overlap with the reference: the metrics that lmms-eval computes under the benchmark's name (specification §10).

They do not measure what is published: order, repetition and pictures do not count, and a story has no one reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.tasks.mmie.view import PLACEHOLDER

_DROPPED = re.compile(r"[^\w\s<>]")
_SPACE = re.compile(r"\s+")


def segments_of(doc: Mapping[str, Any], role: str) -> Sequence[Mapping[str, Any]]:
    """The segments of a role (``human``, ``gpt``): the last turn of it wins; none where the record has no such turn."""
    own = {"human": "question", "gpt": "gt_answer"}[role]
    if doc.get(own) is not None:
        content: Any = doc[own]
    else:
        turns = [turn for turn in doc.get("conversations") or () if turn.get("from") == role]
        content = turns[-1].get("content") if turns else None
    return content or ()


def segments_text(segments: Sequence[Mapping[str, Any]]) -> str:
    """Trimmed texts and a line ``<image>`` for each picture, joined by line breaks; what is empty is left out."""
    lines: list[str] = []
    for segment in segments:
        if text := str(segment.get("text") or "").strip():
            lines.append(text)
        if segment.get("image"):
            lines.append(PLACEHOLDER)
    return "\n".join(lines)


def normalise(text: str | None) -> str:
    """Lower case, white space collapsed; only word characters, white space and angle brackets stay; null is empty."""
    return _DROPPED.sub("", _SPACE.sub(" ", (text or "").strip().lower()))


def token_f1(reference: str | None, prediction: str | None) -> float:
    """F1 of the two sets of tokens; 0 where either is empty, even if both are."""
    wanted, found = set(normalise(reference).split()), set(normalise(prediction).split())
    common = len(wanted & found)
    if not common:
        return 0.0
    precision, recall = common / len(found), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def exact_match(reference: str | None, prediction: str | None) -> float:
    """1 where the normalised texts are equal, both empty included."""
    return float(normalise(reference) == normalise(prediction))
