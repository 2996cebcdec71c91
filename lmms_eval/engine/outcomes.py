"""Outcomes of a task's documents, and the decision whether its score may be given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_REASONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Conditions under which a task's score is given."""

    error_budget: float = 0.0
    """Share of a task's documents that may fail, of those that were to be asked."""
    judge_error_budget: float | None = None
    """Share of them that may lack a readable reply of the judge; ``None``: as ``error_budget``."""
    allow_blank: bool = False
    """A score may rest on blank or filtered answers alone."""
    truncation_budget: float = 0.05
    """Share of a task's answers that the limit of tokens may cut before its number carries a warning."""
    withholds_truncated: bool = False
    """Above ``truncation_budget`` the score is withheld."""

    @property
    def unread_budget(self) -> float:
        """The share of documents without a readable reply that holds."""
        return self.error_budget if self.judge_error_budget is None else self.judge_error_budget


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Counts of one task's answers by kind, each repeat of a document counted; failed requests have none."""

    total: int = 0
    blank: int = 0
    """Without a visible character or picture, though no filter is said to have ended them."""
    filtered: int = 0
    """Ended by a content filter or a refusal, with or without a text."""
    truncated: int = 0
    """Ended by the limit of length; they may be blank too."""
    in_thought: int = 0
    """Blank ones for which the model wrote thoughts and no answer behind them."""

    @property
    def are_none(self) -> bool:
        """Not one of them says anything that the model was free to say."""
        return 0 < self.total == self.blank + self.filtered

    def __add__(self, other: AnswerCounts) -> AnswerCounts:
        return AnswerCounts(
            self.total + other.total,
            self.blank + other.blank,
            self.filtered + other.filtered,
            self.truncated + other.truncated,
            self.in_thought + other.in_thought,
        )

    def as_dict(self) -> dict[str, int]:
        """The counts of those that need a word, by name."""
        return {
            "blank": self.blank,
            "filtered": self.filtered,
            "truncated": self.truncated,
            "in_thought": self.in_thought,
        }

    def shares(self) -> dict[str, float]:
        """The same as shares of all answers; empty without answers."""
        return {name: count / self.total for name, count in self.as_dict().items()} if self.total else {}

    def described(self) -> str:
        """``2 blank (3.3%), 1 truncated (1.7%)``; empty where there is nothing to say."""
        return described_counts(self.as_dict(), self.shares())


COUNT_WORDS = {"in_thought": "with thoughts only"}
"""Words for counts whose name is none."""


def described_counts(counts: Mapping[str, int], shares: Mapping[str, float]) -> str:
    """Describe counts that are not 0 with their shares, as ``AnswerCounts.described``."""
    return ", ".join(
        f"{counts[name]} {COUNT_WORDS.get(name, name)} ({share:.1%})" for name, share in shares.items() if share
    )


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """Counts of one task; ``requested`` = scored + unscored + failed + not asked."""

    requested: int
    scored: int
    unscored: int
    failed: int
    not_asked: int = 0
    """The run ended before these documents were asked or finished, or the score does without them."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Reasons for which documents are not scored, most frequent first (at most 20)."""
    answers: AnswerCounts = AnswerCounts()
    judge_unread: int = 0
    """Documents for which the judge gave no readable reply to some question; they may be scored, as the task has it."""
    over_truncation_budget: bool = False
    """More answers are truncated than the budget allows: what the model knows is not what the number says."""
    withheld: str = ""
    """Reason for which there is no headline score: too many failed for a budget, or no answer or reply of the judge
    says anything."""

    @property
    def coverage(self) -> float:
        """Share of the requested documents that are scored."""
        return self.scored / self.requested if self.requested else 0.0

    @property
    def is_empty(self) -> bool:
        """Something was asked for, and nothing of it could be scored."""
        return self.requested > 0 == self.scored


class OutcomeCounter:
    """Collects the endings of one task's documents."""

    def __init__(self, requested: int) -> None:
        self._requested = requested
        self._unscored = self._failed = self._not_asked = self._left = 0
        self._reasons: Counter[str] = Counter()

    def failed(self, reason: str, count: int = 1) -> None:
        if count:
            self._failed += count
            self._reasons[f"failed: {reason}"] += count

    def not_asked(self, reason: str, count: int) -> None:
        if count:
            self._not_asked += count
            self._reasons[f"not asked: {reason}"] += count

    def left(self, reason: str, count: int) -> None:
        """Documents that a score of the first ones does without: they were not to be asked."""
        if count:
            self._left += count
            self._reasons[f"not asked: {reason}"] += count

    def unscored(self, reason: str) -> None:
        self._unscored += 1
        self._reasons[f"unscored: {reason}"] += 1

    def _withheld(self, answers: AnswerCounts, terms: Terms, unread: int, is_mute: bool) -> str:
        asked = self._requested - self._left
        if self._not_asked:
            return f"{self._failed} failed and {self._not_asked} not asked of {self._requested}"
        if self._failed > terms.error_budget * asked:
            return f"{self._failed} of {asked} failed"
        if unread and (is_mute or unread > terms.unread_budget * asked):
            return f"{unread} of {asked} without a readable reply of the judge"
        if terms.withholds_truncated and answers.truncated > terms.truncation_budget * answers.total:
            return f"{answers.truncated} of {answers.total} answers are truncated"
        if answers.are_none and not terms.allow_blank:
            return f"all {answers.total} answers are blank or filtered"
        return ""

    def outcome(self, answers: AnswerCounts, terms: Terms, unread: int = 0, is_mute: bool = False) -> TaskOutcome:
        """Count up, and decide whether the task's score is given.

        Args:
            answers: the task's answers by kind.
            terms: the budgets.
            unread: documents of which the judge gave no readable reply to some question.
            is_mute: the judge was asked and gave no readable reply at all, which no budget allows.
        """
        return TaskOutcome(
            requested=self._requested,
            scored=self._requested - self._unscored - self._failed - self._not_asked - self._left,
            unscored=self._unscored,
            failed=self._failed,
            not_asked=self._not_asked + self._left,
            reasons=dict(self._reasons.most_common(MAX_REASONS)),
            answers=answers,
            judge_unread=unread,
            over_truncation_budget=answers.truncated > terms.truncation_budget * answers.total,
            withheld=self._withheld(answers, terms, unread, is_mute),
        )
