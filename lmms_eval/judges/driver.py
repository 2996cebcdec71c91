"""Putting questions to a judge from a script: the engine's driver without a run around it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.engine.conversations import Conversations
from lmms_eval.engine.drive import Drive, Driven, Journal, NoJournal
from lmms_eval.engine.judging import ENDED, Inquiry, Interview
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.judges.providers import Judge

if TYPE_CHECKING:
    from lmms_eval.api.task import Task


class _NoTask:
    """No document of a run stands behind these questions; back ends that take messages do not look for one."""

    name = "questions"


def ask(
    judge: Judge,
    questions: Sequence[JudgeQuestion],
    retries: int = 0,
    on_verdict: Callable[[int, Verdict], None] | None = None,
    journal: Journal | None = None,
    places: Sequence[str] | None = None,
) -> list[Verdict]:
    """Ask all questions; returns verdicts in their order.

    A reply that cannot be read is asked again ``retries`` times. A judge that refuses the key, or fails at all of the
    first questions, is asked no more: the verdicts that are left say why.

    Args:
        on_verdict: gets each verdict with its position as soon as it is there, one at a time.
        journal: keeps replies, and finds those of earlier starts.
        places: names of what is judged, the same on every start: by them the journal finds replies. Else positions.

    Raises:
        JournalError: a reply could not be kept. Whatever the judge's back end raises passes through.
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

    conversations = Conversations(interviews())
    # One thread prepares, so that a judge that repeats recorded replies sees the questions in their order.
    drive = Drive(Driven(judge.model, journal or NoJournal()), conversations, StreamLimits(threads=1))
    try:
        drive.run()
    finally:
        drive.stream.close()
    drive.fail_open(drive.report.give_up or ENDED)
    deque(conversations.source(), maxlen=0)  # what was not begun ends with the same reason
    return [verdicts[number] for number in range(len(questions))]
