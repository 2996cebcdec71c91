"""The score that guessing gives on a task: from the number of choices, or by always giving the commonest answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loguru import logger

from lmms_eval.api.task import Task
from lmms_eval.models.task_access import offered_options, target_of


@dataclass(frozen=True, slots=True)
class Chance:
    """Shares of the documents that are right."""

    uniform: float | None
    """Expected of one choice at random: the mean of 1 / number of choices, a document without choices counting 0;
    ``None`` where no document has any."""
    majority: float | None
    """Of the commonest reference answer given to every document; ``None`` where the task tells none."""


def chance_of(task: Task, doc_ids: Sequence[int]) -> Chance:
    """Compute the chance level over documents of a task, whose data are open."""
    shares: list[float] = []
    answers: Counter[str] = Counter()
    for doc_id in doc_ids:
        try:
            count = _choices(task, doc_id)
            answer = target_of(task, doc_id)
        except Exception as error:  # noqa: BLE001 - a task's own functions may raise anything
            logger.debug("{}: no chance level of document {}: {!r}", task.name, doc_id, error)
            continue
        shares.append(1 / count if count > 1 else 0.0)
        answers[_text(answer)] += 1
    if not shares:
        return Chance(None, None)
    most = answers.most_common(1)[0][1] / len(shares)
    return Chance(math.fsum(shares) / len(shares) if any(shares) else None, most)


def _choices(task: Task, doc_id: int) -> int:
    """The number of a document's choices, as the task tells it or as its prompt lists them; 0 without choices."""
    told = getattr(task, "choice_texts", None)
    if callable(told) and (found := told(doc_id)):
        return len(found)
    if task.output_type == "loglikelihood":
        return 0
    return len(offered_options(task, doc_id, task.exchange(doc_id, 0).open()[0].context))


def _text(answer: Any) -> str:
    if isinstance(answer, list | tuple):
        return _text(answer[0]) if answer else ""
    return str(answer).strip()
