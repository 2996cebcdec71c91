"""Records of the data set as typed questions, and their categories (MMIE specification §1, §2, §6).

Only missing keys and malformed values are errors. A null question or reference is empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError
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


_CATEGORY_KEYS = ("catagory", "category")
_SUBFIELD_KEYS = ("subfield", "sub_field", "subcategory")
ABSENT = "not in data"
"""Field or subfield of a record without one."""


class Segment(Struct, frozen=True):
    """A piece of a question, answer or reference: a text, then a picture. Either may be missing."""

    text: str | None
    image: Any = None
    """The record's path, or the picture itself in the form of the record's source."""


class QuestionRecord(Struct, frozen=True):
    """A record of the data set."""

    id: Any
    """A text, unless the file holds something else."""
    question: tuple[Segment, ...]
    reference: tuple[Segment, ...]
    category: str | None = None
    """The category in the record."""
    field: str = ABSENT
    subfield: str = ABSENT

    @property
    def reference_text(self) -> str | None:
        """The first segment's text, the only part of the reference that a judge may see."""
        return self.reference[0].text if self.reference else None


def read_question(entry: Any) -> QuestionRecord:
    """Read a record of the data set (``conversations``), or one to evaluate (``question`` and ``gt_answer``).

    Raises ``DataError`` if a key is missing, or the value is not a record.
    """
    if not isinstance(entry, Mapping):
        raise DataError(f"a record is needed, not {json_kind(entry)}")
    identity = needed(entry, "id")
    if "conversations" in entry and "question" not in entry:
        conversations = entry["conversations"]
        if not isinstance(conversations, Sequence) or isinstance(conversations, str):
            raise DataError(f"conversations: a list of turns is needed, not {json_kind(conversations)}")
        turns: dict[str, Any] = {}
        for number, turn in enumerate(conversations):
            if not isinstance(turn, Mapping):
                raise DataError(f"conversations, turn {number}: a mapping is needed, not {json_kind(turn)}")
            turns[str(turn.get("from"))] = turn.get("content")  # the last turn of a role counts
        for role in ("human", "gpt"):
            if role not in turns:
                raise DataError(f"conversations has no turn of {role!r}")
        question = read_segments(turns["human"], "the human turn", lenient=True)
        reference = read_segments(turns["gpt"], "the gpt turn", lenient=True)
    else:
        question = read_segments(needed(entry, "question"), "question")
        reference = read_segments(needed(entry, "gt_answer"), "gt_answer")
        if not reference and entry["gt_answer"] is not None:
            raise DataError("gt_answer has no segment")
    return QuestionRecord(
        id=identity,
        question=question,
        reference=reference,
        category=_first(entry, _CATEGORY_KEYS),
        field=_first(entry, ("field",)) or ABSENT,
        subfield=_first(entry, _SUBFIELD_KEYS) or ABSENT,
    )


def read_segments(value: Any, where: str, lenient: bool = False) -> tuple[Segment, ...]:
    """Read a list of ``{text, image}``. A text alone is one segment without a picture, and null is an empty list.

    ``where`` is the value's place in the record. If ``lenient``, a missing key is null. Raises ``DataError`` if a
    segment lacks a key, or the value has another form.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (Segment(value),)
    if not isinstance(value, Sequence):
        raise DataError(f"{where}: a list of segments or a text is needed, not {json_kind(value)}")
    segments: list[Segment] = []
    for number, part in enumerate(value):
        place = f"{where}, segment {number}"
        if isinstance(part, str) or part is None:
            segments.append(Segment(part))
            continue
        if not isinstance(part, Mapping):
            raise DataError(f"{place}: a mapping with text and image is needed, not {json_kind(part)}")
        text = part.get("text") if lenient else needed(part, "text", place)
        image = part.get("image") if lenient else needed(part, "image", place)
        segments.append(Segment(text if text is None else str(text), image))
    return tuple(segments)


def _first(entry: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """Return the value of the first key that exists and is not empty."""
    return next((str(entry[key]) for key in keys if entry.get(key) not in (None, "")), None)


def needed(entry: Mapping[str, Any], key: str, where: str = "the record") -> Any:
    """Return a key's value. Raises ``DataError`` if the key is missing."""
    if key not in entry:
        raise DataError(f"{where} lacks the key {key!r}")
    return entry[key]


def json_kind(value: Any) -> str:
    """Name the kind of a JSON value, for messages."""
    return "null" if value is None else f"a {type(value).__name__}"
