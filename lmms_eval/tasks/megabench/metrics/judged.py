"""Metrics that read a judge's verdict: the rating of open answers, and the comparison of ASCII pictures.

The questions behind the verdicts are in ``lmms_eval.tasks.megabench.judge_questions``.
"""

from __future__ import annotations

import re
from typing import Any

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.megabench.metrics.values import DetailedScore

NO_JUDGE = "a judge model is needed: give --judge_model or --judge_base_url (docs/judges.md)"
_SCORE = re.compile(r"\*\*Score\*\*\s*:\s*(\d+)")
_EXPLANATION = re.compile(r"\*\*Score explanation\*\*\s*:\s*(.*)", re.DOTALL)


def read_rating(text: str) -> int | None:
    """The number behind the first ``**Score**``; ``None`` if it cannot be read. It is not clamped."""
    found = _SCORE.search(text)
    return int(found.group(1)) if found else None


def gpt_4o_as_judge(_response: object, _truth: object, verdict: Verdict | None) -> DetailedScore:
    """A tenth of the judge's rating; a reply without a readable rating scores 0.

    Raises ``NotEvaluated`` if there is no judge, or it gave no reply.
    """
    text = _said(verdict)
    rating = read_rating(text)
    if rating is None:
        return DetailedScore(0, f"Score is NULL: {text};")
    found = _EXPLANATION.search(text)
    explanation = found.group(1).strip() if found else ""
    return DetailedScore(rating / 10, f"Score: {rating}; Explanation: {explanation}")


def asks_about_art(response: Any, truth: Any) -> bool:
    """Return whether both pictures can be drawn; else there is no question, and the score is 0, or an error."""
    return isinstance(response, str) and isinstance(truth, str) and bool(response) and bool(truth)


def ascii_art_gpt4o_judge(response: Any, truth: Any, verdict: Verdict | None) -> int:
    """1 if the judge's reply holds ``yes`` anywhere.

    Raises:
        ValueError: the true answer is an empty picture.
        NotEvaluated: there is no judge, or it gave no reply.
    """
    if not isinstance(response, str) or not isinstance(truth, str) or not response:
        return 0
    if not truth:
        raise ValueError("the true answer is an empty picture")
    return int("yes" in _said(verdict).lower())


def _said(verdict: Verdict | None) -> str:
    if verdict is None:
        raise NotEvaluated(NO_JUDGE)
    if verdict.text is None:
        raise NotEvaluated(f"the judge {verdict.model} gave no reply: {verdict.error}")
    return verdict.text
