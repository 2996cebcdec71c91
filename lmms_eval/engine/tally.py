"""Sums over a task's answers and verdicts: tokens, endings, models that were served."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmms_eval import stats
from lmms_eval.api.judging import Verdict, has_unread
from lmms_eval.engine.outcomes import AnswerCounts
from lmms_eval.engine.records import is_blank, is_cut, is_filtered, last_thoughts
from lmms_eval.engine.seen import SeenMedia

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
