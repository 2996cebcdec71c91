"""Sums over a task's answers and verdicts: tokens, endings, models that were served."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmms_eval import stats
from lmms_eval.api.judging import Verdict, has_unread
from lmms_eval.engine.outcomes import AnswerCounts
from lmms_eval.engine.records import is_blank, is_cut, is_filtered, last_thoughts

CORRECT_KEYS = ("score", "acc", "accuracy", "exact_match")


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
    served: Counter[str] = field(default_factory=Counter)
    """Answers by the model that the server says it served."""

    @property
    def answer_counts(self) -> AnswerCounts:
        return AnswerCounts(self.answers - self.lost, self.blank, self.filtered, self.truncated, self.in_thought)

    def add(self, record: Mapping[str, Any], score_key: str) -> None:
        self.documents += 1
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
        self.truncated += is_cut(answer)
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
