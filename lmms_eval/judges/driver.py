"""Putting questions to a judge from a script, without a run around it."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.request import Request, Response
from lmms_eval.engine.interviews import Interview
from lmms_eval.errors import MediaError
from lmms_eval.judges.providers import Judge
from lmms_eval.utils.async_iteration import closed_on_error

if TYPE_CHECKING:
    from lmms_eval.api.task import Task

GIVE_UP_AT_LEAST = 16


def ask(
    judge: Judge,
    questions: Sequence[JudgeQuestion],
    retries: int = 0,
    on_verdict: Callable[[int, Verdict], None] | None = None,
) -> list[Verdict]:
    """Verdicts in the order of the questions. ``on_verdict`` gets each with its position as soon as it is there.

    A reply that cannot be read is asked again ``retries`` times. A judge that refuses the key, or fails at all of the
    first questions, is asked no more: the verdicts that are left say why.
    """
    stream = _Questions(judge, questions, retries, on_verdict)
    if not questions:
        return []
    responses = judge.model.respond(stream)
    if isinstance(responses, AsyncIterator):
        _run(stream.drain(responses))
    else:
        for response in responses:
            stream.take_in(response)
    return stream.verdicts()


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, in a thread of its own where this one has an event loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


class _Questions:
    """A ``RequestStream`` over a list of questions."""

    def __init__(
        self,
        judge: Judge,
        questions: Sequence[JudgeQuestion],
        retries: int,
        on_verdict: Callable[[int, Verdict], None] | None,
    ) -> None:
        self._judge, self._on_verdict = judge, on_verdict
        # No document of a run stands behind these requests; back ends that take messages do not look for one.
        task = cast("Task", None)
        self._interviews = [
            Interview(question, str(number), task, number, retries) for number, question in enumerate(questions)
        ]
        self._waiting = deque(enumerate(self._interviews))
        self._open: dict[str, int] = {}
        self._verdicts: dict[int, Verdict] = {}
        self._changed = threading.Condition()
        self._answered = self._failed = 0
        self._give_up = ""

    def verdicts(self) -> list[Verdict]:
        """One for each question; what was never answered says why."""
        reason = self._give_up or "the judge ended without answering this question"
        for number, interview in enumerate(self._interviews):
            if number not in self._verdicts:
                interview.error = interview.error or reason
                self._close(number)
        return [self._verdicts[number] for number in range(len(self._interviews))]

    def take(self, max_n: int) -> list[Request]:
        with self._changed:
            while not self._waiting and self._open and not self._give_up:
                self._changed.wait(timeout=0.5)
        return self.take_full(max_n) or []

    def take_full(self, max_n: int) -> list[Request] | None:
        if self._give_up:
            return None
        batch: list[Request] = []
        while len(batch) < max_n and (prepared := self._next()) is not None:
            batch.append(prepared)
        return batch

    async def take_async(self, max_n: int) -> list[Request]:
        while not (batch := await asyncio.to_thread(self.take_full, max_n) or []):
            if self._give_up or not (self._waiting or self._open):
                return []
            await asyncio.sleep(0.005)
        return batch

    async def drain(self, responses: AsyncIterator[Response]) -> None:
        async with closed_on_error(responses):
            async for response in responses:
                self.take_in(response)

    def take_in(self, response: Response) -> None:
        with self._changed:
            number = self._open.pop(response.request_id)
            interview = self._interviews[number]
            self._count(response)
            if interview.is_over(response):
                self._close(number)
            else:
                self._waiting.appendleft((number, interview))
            self._changed.notify_all()

    def _next(self) -> Request | None:
        """The next request, prepared; a question that cannot be rendered is answered by its error."""
        while True:
            with self._changed:
                if not self._waiting:
                    return None
                number, interview = self._waiting.popleft()
                request = interview.request()
                self._open[request.id] = number
            try:
                prepared = self._judge.model.prepare(request)
            except (MediaError, OSError) as error:
                self.take_in(Response.failure(request.id, "media", str(error)))
                continue
            return replace(prepared, build_messages=request.build_messages)

    def _count(self, response: Response) -> None:
        if response.error is None:
            self._answered += 1
            return
        if response.error.kind == "media":  # says nothing about the judge
            return
        self._failed += 1
        if response.error.kind == "auth":
            self._give_up = response.error.message
        elif not self._answered and self._failed >= max(GIVE_UP_AT_LEAST, 2 * self._judge.model.concurrency):
            self._give_up = f"the first {self._failed} questions all failed, the last: {response.error.message}"

    def _close(self, number: int) -> None:
        verdict = self._verdicts[number] = self._interviews[number].verdict(self._judge.name)
        if self._on_verdict is not None:
            self._on_verdict(number, verdict)
