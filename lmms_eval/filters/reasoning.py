"""Reasoning tags: cutting the thoughts of a reasoning model out of its answer (harness specification §12.3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lmms_eval.errors import UsageError

DEFAULT_TAGS: tuple[tuple[str, str], ...] = (("<think>", "</think>"), ("<analysis>", "</analysis>"))
TagPairs = Sequence[Sequence[str]]


def _strip_pair(text: str, opening: str, closing: str) -> str:
    if closing not in text:
        return text
    kept: list[str] = []  # single characters, so that a tag which a removal joins together can be taken back
    at, reach = 0, len(opening) - 1
    while True:
        tail = "".join(kept[-reach:]) if reach else ""
        joined = (tail + text[at : at + reach]).find(opening)
        known = len(tail) - joined if joined >= 0 else 0
        start = at if known else text.find(opening, at)
        end = text.find(closing, start + len(opening) - known) if start >= 0 else -1
        if end < 0:
            break
        kept.extend(text[at:start])
        del kept[len(kept) - known :]
        at = end + len(closing)
    rest = "".join(kept) + text[at:]
    return rest.rpartition(closing)[2] if start < 0 else rest


def strip_reasoning_tags(text: str, tag_pairs: TagPairs = DEFAULT_TAGS) -> str:
    """Remove what stands between tags, pair after pair, then trim white space.

    Per pair: from the first opening tag to the first closing tag after it, as long as there is one; if then only
    closing tags are left, what follows the last one stays. An opening tag that is never closed stays. Upper and
    lower case are told apart.

    Raises:
        UsageError: an empty tag, or a pair that is none.
    """
    return strip_pairs(text, _checked(tag_pairs))


def strip_pairs(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Do as ``strip_reasoning_tags`` with pairs that have been checked."""
    for opening, closing in pairs:
        text = _strip_pair(text, opening, closing)
    return text.strip()


def _checked(value: Any) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise UsageError(f"reasoning tags: {value!r}; give a list of [open, close] pairs, or none")
    for pair in value:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise UsageError(f"reasoning tags: {pair!r} is no [open, close] pair")
        opening, closing = pair
        if not (isinstance(opening, str) and opening and isinstance(closing, str) and closing):
            raise UsageError(f"reasoning tags: {pair!r}: both tags must be texts that are not empty")
        pairs.append((opening, closing))
    return pairs


def parse_reasoning_tags_config(
    cli_value: str | None = None, task_value: str | bool | TagPairs | None = None
) -> list[tuple[str, str]] | None:
    """The tag pairs that hold for a task; ``None`` where nothing is to be stripped.

    The task's value beats the command line's. Each is a list of pairs, JSON text of one, or ``none`` (``False``).

    Raises:
        UsageError: the text is no JSON, or no list of pairs.
    """
    value: Any = cli_value if task_value is None else task_value
    if isinstance(value, str):
        if value.strip().lower() in {"", "none", "null", "false"}:
            return None
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"reasoning tags: {value[:200]!r} is neither 'none' nor JSON: {error}") from error
    if value is None or value is False:
        return None
    return _checked(value) or None
