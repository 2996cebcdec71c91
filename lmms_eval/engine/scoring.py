"""Scoring in the background: in a thread of this process or in worker processes, fed by bounded queues."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from loguru import logger
from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.api.task import PipelineScore, ScoredDoc, Task
from lmms_eval.engine.conversations import AnsweredDocument
from lmms_eval.engine.records import answer_from_record, answer_record, failure, scored_part
from lmms_eval.engine.stage import Failure, Handover, Stage
from lmms_eval.engine.watchdog import ScoringTimeout, ScoringWatch, hung_documents
from lmms_eval.processes import Child, ChildError, Parent, Pool
from lmms_eval.storage import codec
from lmms_eval.utils.logging import configure_logging
from lmms_eval.utils.redaction import redact_text


def score_document(job: AnsweredDocument, reason: str = "") -> dict[str, Any]:
    """Return the journal record of one document. If scoring raises, the document fails but the run continues.

    ``reason``: why the document has failed and is not scored.
    """
    answers = [answer_record(answer) for answer in job.answers]
    return {"task": job.task.name, "doc_id": job.doc_id, "answers": answers, **_scored(job, reason)}


def _scored(job: AnsweredDocument, reason: str = "") -> dict[str, Any]:
    """Return the part of a document's record that follows its answers: the scores, or the reason of the failure."""
    part: dict[str, Any] = {}
    try:
        if not reason:
            part = scored_part(job.task.score(job.doc_id, job.answers, job.verdicts))
    except NotEvaluated as absent:
        scores = tuple(PipelineScore(one, None, {}, "unscored", absent.reason) for one in job.task.pipelines)
        part = scored_part(ScoredDoc(target="", doc={}, doc_hash="", scores=scores))
    except (KeyboardInterrupt, ScoringTimeout):  # raised from outside the scoring code
        raise
    except BaseException as raised:  # noqa: BLE001 - a task's code may raise anything: this sample fails
        reason = failure("scoring", raised)
    if reason:
        part = {"failed": redact_text(reason)}
    if job.verdicts:
        part["judge"] = [verdict.as_record() for verdict in job.verdicts]
    return part


BUILD_TIMEOUT_S = 600.0
"""Time limit for starting the interpreter, building the task and opening its data."""


class ScoringProcess(Child):
    """A process ``python -m MODULE`` that scores documents and builds the tasks from their ``specs``."""

    def __init__(self, module: str, specs: Mapping[str, Mapping[str, Any]], verbosity: str = "INFO") -> None:
        first = codec.dumps({"specs": specs, "verbosity": verbosity})
        super().__init__(module, {"TOKENIZERS_PARALLELISM": "false"}, first=first, name="the scoring process")
        self._ready: set[tuple[str, bool]] = set()
        """The tasks that it has built, with whether it has opened their data."""

    def score(self, job: Mapping[str, Any], timeout_s: float) -> bytes:
        """Send a job and return the scored part of its record. Raises ``ChildError``.

        The job has the document unless the process opens the data itself. The time limit is for the scoring alone.
        """
        needs = (job["task"], job.get("document") is None)
        if needs in self._ready:
            self.send(codec.dumps(job))
        elif self.ask(codec.dumps({**job, "builds": True}), BUILD_TIMEOUT_S):  # it answers when the task is built
            self._ready.add(needs)
        return self.receive(timeout_s)


Builder = Callable[[Mapping[str, Any]], Task]
"""Function that builds a task from its ``spec``."""


def serve(build: Builder) -> None:
    """Serve jobs until standard input ends: the main function of a scoring process."""
    parent = Parent()
    if first := parent.receive():
        start = codec.loads(first)
        configure_logging(start["verbosity"])
        server = _JobServer(start["specs"], build, parent)
        for line in parent:
            parent.send(server.serve(codec.loads(line)))


class _JobServer:
    """The tasks of a worker process, which are built for their first job."""

    def __init__(self, specs: Mapping[str, Mapping[str, Any]], build: Builder, parent: Parent) -> None:
        self._specs, self._build, self._parent = specs, build, parent
        self._tasks: dict[str, Task] = {}

    def serve(self, job: Mapping[str, Any]) -> bytes:
        """Score a document; returns the encoded part of its record that follows the answers."""
        name, doc_id = job["task"], job["doc_id"]
        error = ""
        try:
            if name not in self._tasks:
                logger.disable("lmms_eval")  # the parent opened the same data and logged its warnings
                try:
                    task = self._build(self._specs[name])
                    task.load()
                finally:
                    logger.enable("lmms_eval")
                self._tasks[name] = task
            self._tasks[name].take_document(doc_id, job.get("document"))
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - opening the data runs code of the task
            error = f"in a scoring process: {failure('building the task', raised)}"
        if job.get("builds"):
            self._parent.send(b"" if error else b"built")
        if error:
            return codec.dumps({"failed": redact_text(error)})
        answers = tuple(answer_from_record(record) for record in job["answers"])
        verdicts = tuple(Verdict.from_record(record) for record in job.get("verdicts", ()))
        try:
            return codec.dumps(_scored(AnsweredDocument(self._tasks[name], doc_id, answers, verdicts)))
        except codec.VolatileValue as volatile:
            return codec.dumps({"failed": redact_text(f"scoring gave {volatile}")})


QUEUE_LENGTH = 512
JOB_TIMEOUT_S = 300.0
"""Time limit for scoring a document. If it is exceeded, the document fails, and its worker process is replaced."""
CLOSING_S = 5.0

Sink = Callable[[dict[str, Any]], None]


class WorkerOptions(Struct, frozen=True):
    """Worker processes for tasks with ``scoring: process``."""

    module: str
    """``python -m MODULE`` builds the tasks and serves jobs (``serve``)."""
    count: int | None = None
    """Number of processes; ``None``: by the number of cores."""
    verbosity: str = "INFO"
    """Log level of the processes."""


class Scorer:
    """Receives jobs, and passes their records to ``sink`` from several threads.

    Without ``workers`` every task is scored in this process. Documents that hung in earlier starts, as the run's
    ``folder`` records, fail without being scored.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        sink: Sink,
        workers: WorkerOptions | None = None,
        job_timeout_s: float = JOB_TIMEOUT_S,
        folder: Path | None = None,
    ) -> None:
        self._sink, self._job_timeout_s, self._folder = sink, job_timeout_s, folder
        self._hung = hung_documents(folder)
        self._specs = {task.name: task.spec() for task in tasks if task.scoring == "process"}
        self._options = workers or WorkerOptions("", count=0)
        count = self._options.count
        self._workers = count if count is not None else min(4, max(1, (os.cpu_count() or 2) - 1))
        self._pool = Pool()
        self._watch: ScoringWatch | None = None
        self._handover = Handover()
        self._is_quick = False
        """Scoring takes so little that event loops that submit documents score them themselves."""
        self._of_loops: dict[int, deque[AnsweredDocument]] = {}
        """By thread, the documents that its event loop scores when it has taken in the answers of its turn."""
        self._scores = threading.Lock()
        """Held by the thread that scores in this process."""
        self._failure = Failure(on_error=self._pool.kill)
        self._inline = Stage(self._run_inline, self._failure, "score-inline", length=QUEUE_LENGTH)
        self._process = Stage(self._run_process, self._failure, "score-process", self._workers, QUEUE_LENGTH)

    @property
    def has_failed(self) -> bool:
        """Whether an error has ended the work, which ``submit`` raises."""
        return self._failure.error is not None

    def is_behind(self) -> bool:
        """Return whether ``submit`` might block."""
        return self._inline.is_full or self._process.is_full

    def submit(self, job: AnsweredDocument) -> None:
        """Queue a document; blocks while the queue is full. Documents with failed answers are recorded at once."""
        if self._hung and (hung := self._hung.get((job.task.name, job.doc_id))):
            job = replace(job, error=hung)
        if reason := job.reason:
            self._failure.check()
            self._sink(score_document(job, reason))
        elif job.task.scoring == "process" and self._workers > 0:
            self._process.put(job)
        elif self._is_quick and job.task.is_scored_by_package and (loop := asyncio._get_running_loop()) is not None:
            self._failure.check()
            jobs = self._of_loops.setdefault(threading.get_ident(), deque())
            jobs.append(job)
            if len(jobs) == 1:
                loop.call_soon(self._score_here, jobs)
        else:
            self._inline.put(job)

    def drain(self) -> None:
        """Wait until every job is scored. Raises any error of the sink, such as a full disk."""
        for jobs in self._of_loops.values():
            while jobs:
                self._inline.put(jobs.popleft())
        self._inline.drain()
        self._process.drain()
        self._pool.close()

    def close(self) -> None:
        """End the threads and processes without waiting for queued jobs."""
        self._failure.carry(InterruptedError("scoring was closed"))
        deadline = time.monotonic() + CLOSING_S
        for stage in (self._inline, self._process):
            stage.join(max(0.0, deadline - time.monotonic()))
        self._pool.close()
        if self._watch is not None:
            self._watch.release()

    def _run_inline(self, jobs: Iterator[AnsweredDocument]) -> None:
        with ScoringWatch(self._job_timeout_s, self._folder) as watch:
            self._watch = watch
            try:
                for job in jobs:
                    with self._scores:
                        began = time.monotonic()
                        record = watch.call(job, score_document)
                        self._is_quick = self._handover.thread_did(time.monotonic() - began)
                    self._sink(record)
            finally:
                with self._scores:
                    self._is_quick = False

    def _score_here(self, jobs: deque[AnsweredDocument]) -> None:
        """Score the documents of one turn of the event loop, if that is still quick, or else leave them to the thread.

        Scoring them together takes less time than scoring each one between two answers.
        """
        try:
            while jobs:
                job = jobs.popleft()
                record = self._scored_here(job)
                if record is None:
                    self._inline.put(job)
                else:
                    self._failure.check()
                    self._sink(record)
        except Exception as error:  # noqa: BLE001 - raised in ``submit`` or ``drain``, as the errors of threads are
            self._failure.carry(error)

    def _scored_here(self, job: AnsweredDocument) -> dict[str, Any] | None:
        """Score a document in the event loop; ``None`` if it is left to the thread."""
        if not self._scores.acquire(blocking=False):
            return None
        try:
            if not self._is_quick or self._watch is None:
                return None
            began = time.monotonic()
            record = self._watch.call(job, score_document)
            self._is_quick = not self._handover.loop_did(time.monotonic() - began)
            return record
        finally:
            self._scores.release()

    def _run_process(self, jobs: Iterator[AnsweredDocument]) -> None:
        for job in jobs:
            record = self._score_in_worker(job)
            self._failure.check()  # the worker may have been killed because of it
            self._sink(record)

    def _score_in_worker(self, job: AnsweredDocument) -> dict[str, Any]:
        answers = [answer_record(answer) for answer in job.answers]
        has_pictures = any("parts" in answer for answer in answers)
        given = [answer_record(one, with_paths=True) for one in job.answers] if has_pictures else answers
        unread = {"media", "messages"}  # tasks that are built from a specification do not read them
        message = {
            "task": job.task.name,
            "doc_id": job.doc_id,
            "answers": [{name: value for name, value in one.items() if name not in unread} for one in given],
            "verdicts": [verdict.as_record() for verdict in job.verdicts],
            "document": job.task.carried_document(job.doc_id),
        }
        options = self._options
        try:
            with self._pool.lend(lambda: ScoringProcess(options.module, self._specs, options.verbosity)) as worker:
                part = codec.load_record(worker.score(message, self._job_timeout_s))
                if part is None:
                    raise ChildError("the scoring process sent something that is not a record")
        except ChildError as error:
            part = {"failed": redact_text(f"scoring did not come back: {error}")}
        return {"task": job.task.name, "doc_id": job.doc_id, "answers": answers, **part}
