"""Records of MMIE in both shapes: as the data set has them, and with a model's answer (specification §2, §3).

Refused are only missing keys and values of a shape that says nothing; a null question, answer or reference is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval.errors import DataError

_CATEGORY_KEYS = ("catagory", "category")
_SUBFIELD_KEYS = ("subfield", "sub_field", "subcategory")
ABSENT = "not in data"
"""Field or subfield of a record that names none."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a question, answer or reference: a text, then a picture; either may be missing."""

    text: str | None
    image: Any = None
    """A path as the record has it, or whatever a picture is where the record comes from."""


@dataclass(frozen=True, slots=True)
class Question:
    """A record of the data set."""

    id: Any
    """A text, unless the file holds something else."""
    question: tuple[Segment, ...]
    reference: tuple[Segment, ...]
    category: str | None = None
    """As the record names it."""
    field: str = ABSENT
    subfield: str = ABSENT

    @property
    def reference_text(self) -> str | None:
        """The first segment's text: all that a judge may see of the reference."""
        return self.reference[0].text if self.reference else None


@dataclass(frozen=True, slots=True)
class Record:
    """A question with a model's answer: what a judge is asked about."""

    source: Question
    answer: tuple[Segment, ...]
    model: Any
    """Name of the model, copied through."""

    @property
    def id(self) -> Any:
        return self.source.id


@dataclass(frozen=True, slots=True)
class Problem:
    """A record that cannot be used."""

    position: int
    """In the file, from 0."""
    id: Any
    message: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A record and where it stands in its file, from 0."""

    position: int
    record: Record


def read_records(content: Any, where: str) -> tuple[list[Placed], list[Problem]]:
    """The records of a file of answers, and those that cannot be used.

    Raises:
        DataError: the top level is no list.
    """
    if not isinstance(content, list):
        raise DataError(f"{where}: a JSON list of records is needed, not {_kind(content)}")
    placed, problems = [], []
    for position, entry in enumerate(content):
        try:
            placed.append(Placed(position, read_record(entry)))
        except DataError as error:
            name = entry.get("id") if isinstance(entry, Mapping) else None
            problems.append(Problem(position, name, str(error)))
    return placed, problems


def read_record(entry: Any) -> Record:
    """A record with its answer; the question may have either shape.

    Raises:
        DataError: a key is missing, or the value is no record.
    """
    source = read_question(entry)
    return Record(source, read_segments(_needed(entry, "answer"), "answer"), _needed(entry, "model"))


def read_question(entry: Any) -> Question:
    """A record of the data set (``conversations``), or one to evaluate (``question`` and ``gt_answer``).

    Raises:
        DataError: a key is missing, or the value is no record.
    """
    if not isinstance(entry, Mapping):
        raise DataError(f"a record is needed, not {_kind(entry)}")
    identity = _needed(entry, "id")
    if "conversations" in entry and "question" not in entry:
        turns = _turns(entry["conversations"])
        question = read_segments(turns["human"], "the human turn", lenient=True)
        reference = read_segments(turns["gpt"], "the gpt turn", lenient=True)
    else:
        question = read_segments(_needed(entry, "question"), "question")
        reference = read_segments(_needed(entry, "gt_answer"), "gt_answer")
        if not reference and entry["gt_answer"] is not None:
            raise DataError("gt_answer has no segment")
    return Question(
        id=identity,
        question=question,
        reference=reference,
        category=_first(entry, _CATEGORY_KEYS),
        field=_first(entry, ("field",)) or ABSENT,
        subfield=_first(entry, _SUBFIELD_KEYS) or ABSENT,
    )


def read_segments(value: Any, where: str, lenient: bool = False) -> tuple[Segment, ...]:
    """A list of ``{text, image}``; a text alone is one segment without picture, null is none.

    Args:
        lenient: a key that is missing is null.

    Raises:
        DataError: a segment lacks a key, or something else stands there.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (Segment(value),)
    if not isinstance(value, Sequence):
        raise DataError(f"{where}: a list of segments or a text is needed, not {_kind(value)}")
    return tuple(_segment(part, f"{where}, segment {number}", lenient) for number, part in enumerate(value))


def _segment(part: Any, where: str, lenient: bool) -> Segment:
    if isinstance(part, str) or part is None:
        return Segment(part)
    if not isinstance(part, Mapping):
        raise DataError(f"{where}: a mapping with text and image is needed, not {_kind(part)}")
    text = part.get("text") if lenient else _needed(part, "text", where)
    image = part.get("image") if lenient else _needed(part, "image", where)
    return Segment(text if text is None else str(text), image)


def _turns(conversations: Any) -> dict[str, Any]:
    """Content by role; of several turns of a role the last one."""
    if not isinstance(conversations, Sequence) or isinstance(conversations, str):
        raise DataError(f"conversations: a list of turns is needed, not {_kind(conversations)}")
    found: dict[str, Any] = {}
    for number, turn in enumerate(conversations):
        if not isinstance(turn, Mapping):
            raise DataError(f"conversations, turn {number}: a mapping is needed, not {_kind(turn)}")
        found[str(turn.get("from"))] = turn.get("content")
    for role in ("human", "gpt"):
        if role not in found:
            raise DataError(f"conversations has no turn of {role!r}")
    return found


def _needed(entry: Mapping[str, Any], key: str, where: str = "the record") -> Any:
    if key not in entry:
        raise DataError(f"{where} lacks the key {key!r}")
    return entry[key]


def _first(entry: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """The first of the keys that is there and not empty."""
    return next((str(entry[key]) for key in keys if entry.get(key) not in (None, "")), None)


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"
