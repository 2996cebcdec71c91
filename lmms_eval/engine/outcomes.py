"""How the documents of a task ended, and whether its score may be given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_REASONS = 20


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """Counts of one task; ``requested`` = scored + unscored + failed."""

    requested: int
    scored: int
    unscored: int
    failed: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Why documents are unscored or failed, most frequent first (at most 20)."""
    withheld: bool = False
    """More failed than the error budget allows: no headline score."""

    @property
    def coverage(self) -> float:
        """Share of the requested documents that are scored."""
        return self.scored / self.requested if self.requested else 0.0


class OutcomeCounter:
    """Collects the endings of one task's documents."""

    def __init__(self, requested: int) -> None:
        self._requested = requested
        self._unscored = self._failed = 0
        self._reasons: Counter[str] = Counter()

    def failed(self, reason: str, count: int = 1) -> None:
        if count:
            self._failed += count
            self._reasons[f"failed: {reason}"] += count

    def unscored(self, reason: str) -> None:
        self._unscored += 1
        self._reasons[f"unscored: {reason}"] += 1

    def outcome(self, error_budget: float) -> TaskOutcome:
        """``error_budget``: the share of a task's documents that may fail before its score is withheld."""
        scored = self._requested - self._unscored - self._failed
        return TaskOutcome(
            requested=self._requested,
            scored=scored,
            unscored=self._unscored,
            failed=self._failed,
            reasons=dict(self._reasons.most_common(MAX_REASONS)),
            withheld=self._failed > error_budget * self._requested,
        )
