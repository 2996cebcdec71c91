"""The loop of a scoring process: takes jobs as JSON lines, answers with journal records.

The process ends with its standard input, also in the middle of a job, so it does not outlive its parent. Each job is
answered by two lines: an empty one when its task is built and the scoring begins, and the record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import IO, Any

from loguru import logger

from lmms_eval.api.judging import Verdict
from lmms_eval.api.task import Task
from lmms_eval.engine.conversations import Job
from lmms_eval.engine.document_scoring import score_document
from lmms_eval.engine.failures import failure
from lmms_eval.engine.records import answer_from_record, failure_record
from lmms_eval.storage import codec
from lmms_eval.utils.line_server import own_pipes
from lmms_eval.utils.logging import configure_logging

Builder = Callable[[Mapping[str, Any]], Task]
"""Builds a task from its ``spec``."""


def serve(build: Builder) -> None:
    """Serve jobs until standard input ends: the main function of a scoring process."""
    lines, replies = own_pipes()
    first = lines.get()
    if first:
        start = codec.loads(first)
        configure_logging(start["verbosity"])
        desk = _Desk(start["specs"], build, replies)
        with contextlib.suppress(BrokenPipeError):  # the parent is gone
            while line := lines.get():
                desk.serve(codec.loads(line))


class _Desk:
    """The tasks of a worker, built when their first job comes."""

    def __init__(self, specs: Mapping[str, Mapping[str, Any]], build: Builder, replies: IO[bytes]) -> None:
        self._specs, self._build, self._replies = specs, build, replies
        self._tasks: dict[str, Task] = {}

    def serve(self, message: Mapping[str, Any]) -> None:
        name, doc_id = message["task"], message["doc_id"]
        answers = tuple(answer_from_record(record) for record in message["answers"])
        verdicts = tuple(Verdict.from_record(record) for record in message.get("verdicts", ()))
        try:
            task = self._task(name)
            task.take_document(doc_id, message.get("document"))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the task's own code runs when its data is opened
            reason = f"in a scoring process: {failure('building the task', error)}"
            self._reply(b"")
            self._reply(codec.dumps(failure_record(name, doc_id, answers, reason)))
            return
        self._reply(b"")
        record = score_document(Job(task, doc_id, answers, verdicts))
        try:
            line = codec.dumps(record)
        except codec.VolatileValue as error:
            line = codec.dumps(failure_record(name, doc_id, answers, f"scoring gave {error}"))
        self._reply(line)

    def _task(self, name: str) -> Task:
        if name not in self._tasks:
            logger.disable("lmms_eval")  # the parent, which opened the same data, has said what is to be said of them
            try:
                task = self._build(self._specs[name])
                task.load()
            finally:
                logger.enable("lmms_eval")
            self._tasks[name] = task
        return self._tasks[name]

    def _reply(self, line: bytes) -> None:
        self._replies.write(line + b"\n")
        self._replies.flush()
