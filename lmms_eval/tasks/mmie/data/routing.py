"""The category of a sample, by its id or by its record (MMIE specification §1, §6)."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from lmms_eval.tasks.mmie.facts import CATEGORIES


class Route(Struct, frozen=True):
    """The category of a sample, with the facts for remarks."""

    category: str | None
    """Tag, or ``None`` if the sample belongs to no category and cannot be judged."""
    tags: tuple[str, ...] = ()
    """All tags that the id holds, in the order of the search."""
    warning: str | None = None


def route(sample_id: Any, named: str | None = None, by_name: bool = False) -> Route:
    """Find the category by the first tag in the id (in upper case, at any place).

    Args:
        sample_id: only texts hold a tag.
        named: the record's own category, if it has one; it decides where the id holds no tag.
        by_name: it also decides where the two disagree.
    """
    tags = tuple(tag for tag in CATEGORIES if isinstance(sample_id, str) and tag in sample_id)
    own = tag_of(named)
    if not tags:
        warning = f"id {sample_id!r} holds no tag: {own} by its category {named!r}" if own else None
        return Route(own, tags, warning)
    if own is None or own == tags[0]:
        note = f"id {sample_id!r} holds the tags {' and '.join(tags)}: {tags[0]}" if len(tags) > 1 and not own else None
        return Route(tags[0], tags, note)
    chosen = own if by_name else tags[0]
    return Route(chosen, tags, f"id {sample_id!r} says {tags[0]}, its category {named!r} says {own}: {chosen} is taken")


def tag_of(name: str | None) -> str | None:
    """Return the tag of a category's name: tag or full name, in any case, with or without hyphens."""
    letters = _letters(name or "")
    return next((tag for tag, full in CATEGORIES.items() if letters in (_letters(tag), _letters(full))), None)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())
