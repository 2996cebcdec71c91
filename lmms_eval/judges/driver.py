"""Asking a judge from a script: the engine's driver without a run around it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.engine.drive import Driven, Journal, NoJournal, drive_all
from lmms_eval.engine.judging import ENDED, Inquiry, Interview
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.judges.providers import Judge

if TYPE_CHECKING:
    from lmms_eval.api.task import Task


class _NoTask:
    """A stand-in for the task: these questions belong to no document, and back ends that take messages need none."""

    name = "questions"


def ask(
    judge: Judge,
    questions: Sequence[JudgeQuestion],
    retries: int = 0,
    on_verdict: Callable[[int, Verdict], None] | None = None,
    journal: Journal | None = None,
    places: Sequence[str] | None = None,
) -> list[Verdict]:
    """Ask all questions, and return the verdicts in the order of the questions.

    If a reply cannot be parsed, the question is asked again up to ``retries`` times. If the judge refuses the key, or
    fails on all of the first questions, the remaining questions are not asked, and their verdicts state the reason.

    Args:
        on_verdict: called with the position and the verdict as soon as there is one, never concurrently.
        journal: keeps replies, and finds those of earlier runs of the script.
        places: names of what is judged. The journal finds replies by them: they must be the same in every run of the
            script. Without them, the positions are used.

    Raises:
        JournalError: a reply could not be kept. Exceptions of the judge's back end pass through.
    """
    verdicts: dict[int, Verdict] = {}
    lock = threading.Lock()

    def finish(number: int, verdict: Verdict) -> None:
        with lock:
            verdicts[number] = verdict
            if on_verdict is not None:
                on_verdict(number, verdict)

    def interviews() -> Iterator[Interview]:
        inquiry, task = Inquiry(judge.name, retries), cast("Task", _NoTask())
        for number, question in enumerate(questions):
            place = str(number) if places is None else places[number]
            yield Interview(question, place, task, number, inquiry, partial(finish, number))

    # One thread prepares, so that a judge that repeats recorded replies sees the questions in order.
    drive_all(Driven(judge.model, journal or NoJournal()), interviews(), StreamLimits(threads=1), ENDED)
    return [verdicts[number] for number in range(len(questions))]
