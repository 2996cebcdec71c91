"""Outcomes of a task's documents, and the decision whether its score may be given."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval import stats
from lmms_eval.api.judging import Verdict, has_unread
from lmms_eval.engine.records import is_blank, is_cut, is_filtered, last_thoughts

PER_DOCUMENT = ("pictures", "videos", "frames", "sounds", "tokens")
"""Counts of each document that has media."""
PER_MEDIUM = ("width", "height", "processed_width", "processed_height", "fps")
"""Of each picture and video."""


@dataclass(slots=True)
class SeenMedia:
    """Counts of the values over a task's documents; memory holds each different value once."""

    documents: int = 0
    """Documents with media, as far as back ends report them."""
    values: dict[str, Counter[float]] = field(default_factory=dict)

    def __add__(self, other: SeenMedia) -> SeenMedia:
        """Join the counts of two tasks."""
        both = dict.fromkeys((*self.values, *other.values))
        none: Counter[float] = Counter()
        return SeenMedia(
            self.documents + other.documents,
            {name: self.values.get(name, none) + other.values.get(name, none) for name in both},
        )

    def add(self, answers: Sequence[Mapping[str, Any]]) -> None:
        """Add a document: the media of its first answer that tells of any, in the form of the journal."""
        media = next((answer["media"] for answer in answers if answer.get("media")), None)
        if not media:
            return
        self.documents += 1
        for name, value in (*_of_document(media), *(pair for medium in media for pair in _of_medium(medium))):
            self.values.setdefault(name, Counter())[value] += 1

    def summary(self) -> dict[str, Any]:
        """Return minimum, median and maximum of each quantity; empty without media."""
        if not self.documents:
            return {}
        named = (name for name in (*PER_DOCUMENT, *PER_MEDIUM) if name in self.values)
        return {"documents": self.documents, **{name: spread(self.values[name]) for name in named}}


def spread(values: Counter[float]) -> dict[str, float]:
    """Return minimum, median and maximum of counted values."""
    ordered = sorted(values)
    middle = (values.total() - 1) / 2
    low, high = (_at(ordered, values, int(place)) for place in (middle, middle + 0.5))
    median = low if low == high else (low + high) / 2
    return {"min": ordered[0], "median": median, "max": ordered[-1]}


def _at(ordered: Sequence[float], values: Counter[float], place: int) -> float:
    """The value at a place of the sorted list of all values, from 0."""
    for value in ordered:
        place -= values[value]
        if place < 0:
            return value
    return ordered[-1]


def _of_document(media: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    kinds = Counter(medium["type"] for medium in media)
    for name, kind in (("pictures", "image"), ("videos", "video"), ("sounds", "audio")):
        if kinds[kind]:
            yield name, kinds[kind]
    if frames := sum(len(medium.get("frames", ())) for medium in media):
        yield "frames", frames
    visual = [medium for medium in media if medium["type"] != "audio"]
    if visual and all("tokens" in medium for medium in visual):
        yield "tokens", sum(medium["tokens"] for medium in visual)


def _of_medium(medium: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name in ("width", "height", "fps"):
        if medium.get(name) is not None:
            yield name, medium[name]
    for name, value in zip(("processed_width", "processed_height"), medium.get("processed", ()), strict=False):
        yield name, value


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


CORRECT_KEYS = ("score", "acc", "accuracy", "exact_match")


@dataclass(slots=True)
class StopTally:
    """Counts of answers that stop strings could end."""

    active: list[str] = field(default_factory=list)
    """The stop strings, as far as the back end names them."""
    answers: int = 0
    ended: int = 0
    """Answers that one of them ended."""
    untold: int = 0
    """Answers for which the server does not say."""

    def add(self, answer: Mapping[str, Any]) -> None:
        active, ended_by = answer.get("stops", ()), answer.get("ended_by", ())
        if not active and not ended_by:
            return
        names = (*active, *(stop for stop in ended_by if stop))
        self.active += [stop for stop in dict.fromkeys(names) if stop not in self.active]
        self.answers += 1
        if any(ended_by):
            self.ended += 1
        elif not ended_by or None in ended_by:
            self.untold += 1

    def __add__(self, other: StopTally) -> StopTally:
        return StopTally(
            list(dict.fromkeys((*self.active, *other.active))),
            self.answers + other.answers,
            self.ended + other.ended,
            self.untold + other.untold,
        )

    def described(self) -> str:
        """``stop strings "Q:" ended 3 of 9 answers``; empty where there were none."""
        if not self.answers:
            return ""
        names = "".join(f" {json.dumps(stop, ensure_ascii=False)}" for stop in self.active)
        if self.untold == self.answers:
            return f"stop strings{names} were sent; the server does not tell which of {self.answers} answers they ended"
        untold = f"; of {self.untold} the server does not tell" if self.untold else ""
        return f"stop strings{names} ended {self.ended} of {self.answers} answers{untold}"


@dataclass(slots=True)
class TaskTally:
    """Sums over a task's finished documents."""

    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    documents: int = 0
    documents_with_tokens: int = 0
    correct: float = 0.0
    """Sum of positive scores, by the first pipeline and the task's score key, else the first usual score name."""
    judge_questions: int = 0
    judge_answered: int = 0
    """Questions with a reply that can be read."""
    judge_unparsable: int = 0
    judge_failed: int = 0
    """Questions without any reply."""
    judge_unread: int = 0
    """Documents with a question that got no readable reply."""
    judge_replies: int = 0
    judge_input_tokens: int = 0
    judge_output_tokens: int = 0
    judge_reasoning_tokens: int = 0
    blank: int = 0
    in_thought: int = 0
    filtered: int = 0
    truncated: int = 0
    lost: int = 0
    """Answers that did not come: their requests were given up."""
    drew: int = 0
    """Documents whose scoring drew at random."""
    stops: StopTally = field(default_factory=StopTally)
    unopened: int = 0
    """Answers whose thoughts end with a closing tag that the model had not opened."""
    untagged: int = 0
    """Truncated answers without a tag of thoughts."""
    seen: SeenMedia = field(default_factory=SeenMedia)
    """Media of the documents."""
    served: Counter[str] = field(default_factory=Counter)
    """Answers by the model that the server says it served."""

    @property
    def answer_counts(self) -> AnswerCounts:
        return AnswerCounts(self.answers - self.lost, self.blank, self.filtered, self.truncated, self.in_thought)

    def add(self, record: Mapping[str, Any], score_key: str) -> None:
        self.documents += 1
        self.seen.add(record["answers"])
        told = False
        for answer in record["answers"]:
            self.answers += 1
            self._add_outcome(answer)
            for counts in answer.get("usage", ()):
                told = told or counts is not None
                tokens = [count or 0 for count in counts or (0, 0, 0)]
                self.input_tokens += tokens[0]
                self.output_tokens += tokens[1]
                self.reasoning_tokens += tokens[2]
        self.documents_with_tokens += told
        verdicts = [Verdict.from_record(verdict) for verdict in record.get("judge", ())]
        for verdict in verdicts:
            self._add_verdict(verdict)
        self.judge_unread += has_unread(verdicts)
        self.drew += any(score.get("drew") for score in record.get("scores", ()))
        if record.get("scores"):
            self.correct += _positive_score(record["scores"][0]["metrics"], score_key)

    def _add_outcome(self, answer: Mapping[str, Any]) -> None:
        if "error" in answer:
            self.lost += 1
            return
        if is_filtered(answer):
            self.filtered += 1
        elif is_blank(answer):
            self.blank += 1
            self.in_thought += last_thoughts(answer) is not None
        self.stops.add(answer)
        is_truncated, thoughts = is_cut(answer), last_thoughts(answer)
        self.truncated += is_truncated
        self.untagged += is_truncated and thoughts is None
        self.unopened += thoughts is not None and "closing" in thoughts and "opening" not in thoughts
        if "model" in answer:
            self.served[answer["model"]] += 1

    def _add_verdict(self, verdict: Verdict) -> None:
        self.judge_questions += 1
        self.judge_answered += verdict.accepted
        self.judge_unparsable += verdict.text is not None and not verdict.accepted
        self.judge_failed += verdict.text is None
        self.judge_replies += len(verdict.replies)
        if verdict.usage is not None:
            self.judge_input_tokens += verdict.usage.input_tokens or 0
            self.judge_output_tokens += verdict.usage.output_tokens or 0
            self.judge_reasoning_tokens += verdict.usage.reasoning_tokens or 0


def _positive_score(metrics: Mapping[str, Any], score_key: str) -> float:
    names = [score_key, *CORRECT_KEYS, *(name for name in metrics if name.endswith("_score"))]
    value = next((metrics[name] for name in names if name in metrics), None)
    number = stats.item_number(value, score_key)
    return max(0.0, float(number)) if number is not None else 0.0
