"""A judge's reply to a question, or the reason that a document is unscored without it."""

from __future__ import annotations

from collections.abc import Mapping

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Unscored

NO_JUDGE = Unscored("needs a judge: give --judge_model")


def reply_of(verdicts: Mapping[str, Verdict] | None, name: str) -> str | Unscored:
    """Return the judge's last reply to the question of that name; without one the document is unscored."""
    verdict = (verdicts or {}).get(name)
    if verdict is None:
        return NO_JUDGE
    return Unscored(f"the judge gave no reply: {verdict.error}") if verdict.text is None else verdict.text
