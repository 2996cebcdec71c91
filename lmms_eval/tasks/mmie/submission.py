"""What the benchmark's own temporary file knows already: feedback by id and position (specification §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FEEDBACK = "gpt_feedback"
_CONTENT = ("model", "question", "answer", "gt_answer", "images")


@dataclass(frozen=True, slots=True)
class Taken:
    """What could be taken over."""

    feedback: Mapping[int, str]
    """Position in the list of records -> feedback; an empty text is feedback too."""
    mismatches: int = 0
    """Judged entries that are not the record at their position (another id, other content, no such position)."""


def feedback_from_temporary(entries: Any, records: Sequence[Mapping[str, Any]]) -> Taken:
    """Feedback of the judged entries at the start of a temporary file, for the records at the same positions.

    Reading ends at the first entry without feedback. An entry counts for a record of the same id only, and, as far as
    it says what was judged, of the same content.
    """
    found: dict[int, str] = {}
    mismatches = 0
    for position, entry in enumerate(entries if isinstance(entries, Sequence) else ()):
        if not isinstance(entry, Mapping) or not isinstance(entry.get(FEEDBACK), str):
            break
        if position < len(records) and _is_same(entry, records[position]):
            found[position] = entry[FEEDBACK]
        else:
            mismatches += 1
    return Taken(found, mismatches)


def _is_same(entry: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    return entry.get("id") == record["id"] and all(entry[key] == record[key] for key in _CONTENT if key in entry)
