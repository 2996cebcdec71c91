"""Counts of the outcomes of a task's documents, and the decision whether to report its score."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, structs

from lmms_eval import stats
from lmms_eval.api.judging import Verdict, has_unread
from lmms_eval.api.task import Task
from lmms_eval.engine.records import is_blank, is_cut, is_filtered, last_thoughts
from lmms_eval.utils.records import to_dict

if TYPE_CHECKING:
    from lmms_eval.engine.clusters import Clusters
    from lmms_eval.engine.headline import Anchors

PER_DOCUMENT = ("pictures", "videos", "frames", "sounds", "tokens")
"""Quantities per document with media."""
PER_MEDIUM = ("width", "height", "processed_width", "processed_height", "fps")
"""Quantities per picture and video."""


class SeenMedia(Struct):
    """Distributions of media quantities over a task's documents."""

    documents: int = 0
    """Number of documents with known media."""
    values: dict[str, Counter[float]] = field(default_factory=dict)
    """Number of times that each value occurred, by quantity."""

    def __add__(self, other: SeenMedia) -> SeenMedia:
        """Add the counts of two tasks."""
        both = dict.fromkeys((*self.values, *other.values))
        none: Counter[float] = Counter()
        return SeenMedia(
            self.documents + other.documents,
            {name: self.values.get(name, none) + other.values.get(name, none) for name in both},
        )

    def add(self, answers: Sequence[Mapping[str, Any]]) -> None:
        """Add a document: the media of its first answer that has any, as journal records."""
        media = next((answer["media"] for answer in answers if answer.get("media")), None)
        if not media or media[0].get("origin"):
            return
        self.documents += 1
        kinds = Counter(medium["type"] for medium in media)
        visual = [medium for medium in media if medium["type"] != "audio"]
        found: list[tuple[str, Any]] = [
            ("pictures", kinds["image"] or None),
            ("videos", kinds["video"] or None),
            ("sounds", kinds["audio"] or None),
            ("frames", sum(len(medium.get("frames", ())) for medium in media) or None),
        ]
        if visual and all("tokens" in medium for medium in visual):
            found.append(("tokens", sum(medium["tokens"] for medium in visual)))
        for medium in media:
            found += [(name, medium.get(name)) for name in ("width", "height", "fps")]
            found += zip(("processed_width", "processed_height"), medium.get("processed", ()), strict=False)
        for name, value in found:
            if value is not None:
                self.values.setdefault(name, Counter())[value] += 1

    def summary(self) -> dict[str, Any]:
        """Return minimum, median and maximum of each quantity; empty without media."""
        if not self.documents:
            return {}
        named = (name for name in (*PER_DOCUMENT, *PER_MEDIUM) if name in self.values)
        return {"documents": self.documents, **{name: spread(self.values[name]) for name in named}}


def spread(values: Counter[float]) -> dict[str, float]:
    """Return minimum, median and maximum of counted values."""
    ordered = sorted(values.elements())
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return {"min": ordered[0], "median": low if low == high else (low + high) / 2, "max": ordered[-1]}


MAX_REASONS = 20


class AggregateOptions(Struct, frozen=True, kw_only=True):
    """Settings of the aggregation, including the conditions for reporting a score."""

    error_budget: float = 0.0
    """Share of the requested documents that may fail."""
    judge_error_budget: float | None = None
    """Share of them that may lack a parsable reply of the judge; ``None``: ``error_budget``."""
    allow_blank: bool = False
    """Report a score even if all answers are blank or filtered."""
    truncation_budget: float = 0.05
    """Share of a task's answers that may be truncated before its score gets a warning."""
    withholds_truncated: bool = False
    """Withhold the score above ``truncation_budget``."""
    bootstrap_iters: int = 100_000
    arguments: Any = None
    """The parsed command line, for aggregations with a parameter ``args``."""
    interrupted: bool = False
    anchors: Mapping[str, Anchors] = field(default_factory=dict)
    """By ``HeadlinePart.key``."""
    clusters: Mapping[str, Clusters] = field(default_factory=dict)
    """Clusters of the tasks that were aggregated before, by name. Those of a task are also those of its controls."""
    read: Callable[[Task, Sequence[int]], Iterator[Mapping[str, Any]]] | None = None
    """Reads the finished documents of a task, and writes its samples meanwhile; ``None``: only the journal is read."""

    @property
    def unread_budget(self) -> float:
        """Share of documents that may lack a parsable reply of the judge."""
        return self.error_budget if self.judge_error_budget is None else self.judge_error_budget


class AnswerCounts(Struct, frozen=True):
    """Counts of one task's answers by kind. Each repeat of a document counts; failed requests do not."""

    total: int = 0
    blank: int = 0
    """Answers without a visible character or picture that were not filtered."""
    filtered: int = 0
    """Answers ended by a content filter or a refusal, with or without a text."""
    truncated: int = 0
    """Answers ended by the token limit; they may also be blank."""
    in_thought: int = 0
    """Blank answers that consist only of thoughts."""

    @property
    def are_empty(self) -> bool:
        """Whether all answers are blank or filtered."""
        return 0 < self.total == self.blank + self.filtered

    def __add__(self, other: AnswerCounts) -> AnswerCounts:
        return AnswerCounts(
            *(mine + its for mine, its in zip(structs.astuple(self), structs.astuple(other), strict=True))
        )

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name, without the total."""
        return {name: count for name, count in to_dict(self).items() if name != "total"}

    def shares(self) -> dict[str, float]:
        """Return the counts as shares of all answers; empty without answers."""
        return {name: count / self.total for name, count in self.as_dict().items()} if self.total else {}

    def described(self) -> str:
        """Return a text such as ``2 blank (3.3%), 1 truncated (1.7%)``; empty if all counts are 0."""
        return described_counts(self.as_dict(), self.shares())


COUNT_WORDS = {"in_thought": "with thoughts only"}
"""Words for counts, if they differ from the name."""


def described_counts(counts: Mapping[str, int], shares: Mapping[str, float]) -> str:
    """Return a text with the counts that are not 0 and their shares (``AnswerCounts.described``)."""
    return ", ".join(
        f"{counts[name]} {COUNT_WORDS.get(name, name)} ({share:.1%})" for name, share in shares.items() if share
    )


class TaskOutcome(Struct, frozen=True):
    """Counts of one task's documents: ``requested`` = scored + unscored + failed + not asked."""

    requested: int
    scored: int
    unscored: int
    failed: int
    not_asked: int = 0
    """Documents that were not asked or finished, since the run ended or the task stopped early."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Reasons why documents are not scored, most frequent first (at most 20)."""
    answers: AnswerCounts = AnswerCounts()
    judge_unread: int = 0
    """Documents with a question that got no parsable reply of the judge; the task decides whether they are scored."""
    over_truncation_budget: bool = False
    """More answers are truncated than the budget allows, so the score may underestimate the model."""
    withheld: str = ""
    """Reason why there is no score: too many failures, or no usable answer or reply of the judge."""

    @property
    def coverage(self) -> float:
        """Share of the requested documents that are scored."""
        return self.scored / self.requested if self.requested else 0.0

    @property
    def is_empty(self) -> bool:
        """Whether documents were requested, but not one could be scored."""
        return self.requested > 0 == self.scored


class OutcomeCounter:
    """Counts the outcomes of one task's documents."""

    def __init__(self, requested: int) -> None:
        self._requested = requested
        self._unscored = self._failed = self._not_asked = self._left = 0
        self._reasons: Counter[str] = Counter()

    def failed(self, reason: str, count: int = 1) -> None:
        self._failed += count
        self._reasons[f"failed: {reason}"] += count

    def not_asked(self, reason: str, count: int) -> None:
        self._not_asked += count
        self._reasons[f"not asked: {reason}"] += count

    def left(self, reason: str, count: int) -> None:
        """Count documents that were not asked because the task stopped early."""
        self._left += count
        self._reasons[f"not asked: {reason}"] += count

    def unscored(self, reason: str) -> None:
        self._unscored += 1
        self._reasons[f"unscored: {reason}"] += 1

    def _withheld(self, answers: AnswerCounts, options: AggregateOptions, unread: int, is_mute: bool) -> str:
        asked = self._requested - self._left
        if self._not_asked:
            return f"{self._failed} failed and {self._not_asked} not asked of {self._requested}"
        if self._failed > options.error_budget * asked:
            return f"{self._failed} of {asked} failed"
        if unread and (is_mute or unread > options.unread_budget * asked):
            return f"{unread} of {asked} without a readable reply of the judge"
        if options.withholds_truncated and answers.truncated > options.truncation_budget * answers.total:
            return f"{answers.truncated} of {answers.total} answers are truncated"
        if answers.are_empty and not options.allow_blank:
            return f"all {answers.total} answers are blank or filtered"
        return ""

    def outcome(
        self, answers: AnswerCounts, options: AggregateOptions, unread: int = 0, is_mute: bool = False
    ) -> TaskOutcome:
        """Return the counts, and decide whether to report the score.

        ``unread``: documents with a question that got no parsable reply of the judge. ``is_mute``: the judge gave no
        parsable reply at all, which no budget allows.
        """
        return TaskOutcome(
            requested=self._requested,
            scored=self._requested - self._unscored - self._failed - self._not_asked - self._left,
            unscored=self._unscored,
            failed=self._failed,
            not_asked=self._not_asked + self._left,
            reasons=dict((+self._reasons).most_common(MAX_REASONS)),
            answers=answers,
            judge_unread=unread,
            over_truncation_budget=answers.truncated > options.truncation_budget * answers.total,
            withheld=self._withheld(answers, options, unread, is_mute),
        )


CORRECT_KEYS = ("score", "acc", "accuracy", "exact_match")


class StopCounts(Struct):
    """Counts of a task's answers that stop strings could end."""

    active: list[str]
    """The stop strings."""
    answers: int
    """Answers that they could end."""
    ended: int
    """Answers that one of them ended."""
    untold: int
    """Answers whose server does not report it."""

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

    def __add__(self, other: StopCounts) -> StopCounts:
        return StopCounts(
            list(dict.fromkeys((*self.active, *other.active))),
            self.answers + other.answers,
            self.ended + other.ended,
            self.untold + other.untold,
        )

    def described(self) -> str:
        """Return a text such as ``stop strings "Q:" ended 3 of 9 answers``; empty without stop strings."""
        if not self.answers:
            return ""
        names = "".join(f" {json.dumps(stop, ensure_ascii=False)}" for stop in self.active)
        if self.untold == self.answers:
            return f"stop strings{names}: the server does not report which of {self.answers} answers they ended"
        unknown = f"; for {self.untold} the server does not report it" if self.untold else ""
        return f"stop strings{names} ended {self.ended} of {self.answers} answers{unknown}"


class TaskTally(Struct):
    """Sums over a task's finished documents."""

    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    documents: int = 0
    documents_with_tokens: int = 0
    correct: float = 0.0
    """Sum of the positive scores of the first pipeline, under the task's score key or else a usual score name."""
    judge_questions: int = 0
    judge_answered: int = 0
    """Questions with a parsable reply."""
    judge_unparsable: int = 0
    judge_failed: int = 0
    """Questions without any reply."""
    judge_unread: int = 0
    """Documents with a question that got no parsable reply."""
    judge_replies: int = 0
    judge_input_tokens: int = 0
    judge_output_tokens: int = 0
    judge_reasoning_tokens: int = 0
    blank: int = 0
    in_thought: int = 0
    filtered: int = 0
    truncated: int = 0
    lost: int = 0
    """Answers that are missing because their requests were given up."""
    drew: int = 0
    """Documents whose scoring used a random choice."""
    stops: StopCounts = field(default_factory=lambda: StopCounts([], 0, 0, 0))
    unopened: int = 0
    """Answers whose thoughts have a closing tag but no opening tag."""
    untagged: int = 0
    """Truncated answers without a tag of thoughts."""
    seen: SeenMedia = field(default_factory=SeenMedia)
    """Media of the documents."""
    served: Counter[str] = field(default_factory=Counter)
    """Number of answers by the model name that the server reported."""

    @property
    def answer_counts(self) -> AnswerCounts:
        return AnswerCounts(self.answers - self.lost, self.blank, self.filtered, self.truncated, self.in_thought)

    def add(self, record: Mapping[str, Any], score_key: str) -> None:
        self.documents += 1
        self.seen.add(record["answers"])
        has_usage = False
        for answer in record["answers"]:
            self.answers += 1
            self._add_outcome(answer)
            for counts in answer.get("usage", ()):
                has_usage = has_usage or counts is not None
                tokens = [count or 0 for count in counts or (0, 0, 0)]
                self.input_tokens += tokens[0]
                self.output_tokens += tokens[1]
                self.reasoning_tokens += tokens[2]
        self.documents_with_tokens += has_usage
        if record.get("judge"):
            self._add_verdicts([Verdict.from_record(verdict) for verdict in record["judge"]])
        if scores := record.get("scores"):
            self.drew += any(score.get("drew") for score in scores)
            metrics = scores[0]["metrics"]
            names = [score_key, *CORRECT_KEYS, *(name for name in metrics if name.endswith("_score"))]
            number = stats.item_number(next((metrics[name] for name in names if name in metrics), None), score_key)
            self.correct += max(0.0, float(number)) if number is not None else 0.0

    def _add_outcome(self, answer: Mapping[str, Any]) -> None:
        if "error" in answer:
            self.lost += 1
            return
        is_truncated, thoughts = is_cut(answer), last_thoughts(answer)
        if is_filtered(answer):
            self.filtered += 1
        elif is_blank(answer):
            self.blank += 1
            self.in_thought += thoughts is not None
        if "stops" in answer or "ended_by" in answer:
            self.stops.add(answer)
        self.truncated += is_truncated
        self.untagged += is_truncated and thoughts is None
        self.unopened += thoughts is not None and "closing" in thoughts and "opening" not in thoughts
        if "model" in answer:
            self.served[answer["model"]] += 1

    def _add_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        self.judge_unread += has_unread(verdicts)
        for verdict in verdicts:
            self.judge_questions += 1
            self.judge_answered += verdict.accepted
            self.judge_unparsable += verdict.text is not None and not verdict.accepted
            self.judge_failed += verdict.text is None
            self.judge_replies += len(verdict.replies)
            if verdict.usage is not None:
                self.judge_input_tokens += verdict.usage.input_tokens or 0
                self.judge_output_tokens += verdict.usage.output_tokens or 0
                self.judge_reasoning_tokens += verdict.usage.reasoning_tokens or 0
