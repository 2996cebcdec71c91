"""Documents of one task that are finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.api.outcome import Status


@dataclass(frozen=True, slots=True)
class Ending:
    """The way in which a document has ended."""

    status: Status
    reason: str = ""
    tokens_in: int = 0
    tokens_out: int = 0

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Ending:
        """Take it from a record of the journal.

        Raises:
            KeyError, TypeError, AttributeError, IndexError: it is no record of a document.
        """
        counts = [usage for answer in record["answers"] for usage in answer.get("usage", ()) if usage]
        tokens = [sum(count[place] or 0 for count in counts) for place in (0, 1)]
        if "failed" in record:
            return cls("failed", str(record["failed"]), *tokens)
        lacking = [score for score in record["scores"] if score.get("status", "scored") != "scored"]
        if lacking and len(lacking) == len(record["scores"]):
            return cls("unscored", str(lacking[0].get("reason", "")), *tokens)
        return cls("scored", "", *tokens)


@dataclass(slots=True)
class TaskProgress:
    """Counts of a task's documents by the way in which they have ended."""

    endings: dict[int, Ending] = field(default_factory=dict)
    """By document."""
    counts: Counter[Status] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    tokens_in: int = 0
    tokens_out: int = 0
    version: int = 0
    """Rises with every change."""

    @property
    def done(self) -> int:
        return len(self.endings)

    def takes(self, doc_id: int, ending: Ending) -> bool:
        """Tell whether an ending counts: a failure does not take the place of another one."""
        before = self.endings.get(doc_id)
        return before is None or before.status == "failed" or ending.status != "failed"

    def end(self, doc_id: int, ending: Ending) -> None:
        """Count a document that is finished, or finished once more."""
        before = self.endings.get(doc_id)
        for one, sign in ((before, -1), (ending, 1)):
            if one is None:
                continue
            self.counts[one.status] += sign
            self.tokens_in += sign * one.tokens_in
            self.tokens_out += sign * one.tokens_out
            if one.reason:
                self.reasons[one.reason] += sign
        self.endings[doc_id] = ending
        self.version += 1
