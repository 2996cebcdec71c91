"""A judge that decides whether an answer is right: one question, a reply of 1 or 0 (for reasoning benchmarks)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Unscored
from lmms_eval.judges.prompts import parse_binary
from lmms_eval.tasks._task_utils.judge_texts import JudgeText
from lmms_eval.tasks._task_utils.verdicts import reply_of
from lmms_eval.utils.answer_reading import NOTHING, note_reading

NAME = "binary"
_RIGHT, _WRONG = "1", "0"
_STANDALONE = re.compile(r"(?<![A-Za-z0-9_.-])[01](?![A-Za-z0-9_]|\.\d)")

TEXT = JudgeText(
    "binary_judge",
    """You check answers. Reply {positive} if the answer below is entirely right, and {negative} in every other case.

The question:
<<<
{question}
>>>
The right answer:
<<<
{answer}
>>>
The answer to check:
<<<
{prediction}
>>>

How to decide:
1. The answer to check may show its reasoning. Find the final answer in it and judge that alone.
2. Multiple choice: naming the right option is enough, whether by its letter or by its content.
3. Open questions: compare meanings, not words. An answer that is right only in part, or that adds something wrong, is \
{negative}, however good its reasoning is.
4. Spelling, capitals, spaces and layout do not matter.
5. Numbers must agree within sensible rounding; where a unit is asked for, the unit must be right as well.

Reply with {positive} or {negative} and nothing else.""",
    "182fc41a9ea411bb",
)


def question(
    asked: str, answer: str, prediction: str, settings: Mapping[str, Any] | None, name: str = NAME
) -> dict[str, Any]:
    """Return the question to the judge, for the list that ``doc_to_judge`` returns.

    Args:
        asked: the benchmark's question.
        answer: the reference answer.
        prediction: the answer to judge.
        settings: the task's settings, with ``judge_prompts`` where the user gives a file.
        name: unique among the document's questions.

    Raises:
        DataError: the user's file of texts cannot be used.
    """
    prompt = TEXT.used(settings).filled(
        question=asked, answer=answer, prediction=prediction, positive=_RIGHT, negative=_WRONG
    )
    return {"name": name, "prompt": prompt, "reader": "binary", "generation": {"max_new_tokens": 1024}}


def scores(verdicts: Mapping[str, Verdict] | None, metric: str) -> dict[str, int | Unscored]:
    """Return the scores by the official reading of the judge's reply (``METRIC``) and by the fixed one.

    Without a reply there is no score; a reply with neither 0 nor 1 means wrong.
    """
    reply = reply_of(verdicts, NAME)
    official, fixed = (reply, reply) if isinstance(reply, Unscored) else read(reply)
    return {metric: official, f"{metric}_fixed": fixed}


def read(reply: str) -> tuple[int, int]:
    """Read a reply by the official rule and by the fixed one.

    Officially it is 1 if the character 1 occurs anywhere (``10`` and ``0 (not 1)`` count as right); the fixed rule
    takes the first separate 0 or 1, and 0 without one.
    """
    found = _STANDALONE.search(reply)
    if found is None:
        note_reading(NOTHING)
    else:
        note_reading("judge's reply alone" if found[0] == reply.strip() else "first 0 or 1 of the judge's reply")
    return int(parse_binary(reply)), int(found is not None and found.group() == _RIGHT)
