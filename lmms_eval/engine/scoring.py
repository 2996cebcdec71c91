"""Scoring in the background: in a thread of this process or in worker processes, fed by bounded queues."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from loguru import logger
from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.api.task import PipelineScore, ScoredDoc, Task
from lmms_eval.engine.conversations import AnsweredDocument
from lmms_eval.engine.records import answer_from_record, answer_record, failure, failure_record, score_record
from lmms_eval.engine.stage import Failure, Stage
from lmms_eval.engine.watchdog import ScoringTimeout, ScoringWatch, hung_documents
from lmms_eval.storage import codec
from lmms_eval.utils.line_process import ENDING_S, LineProcess, ProcessEnded, own_pipes
from lmms_eval.utils.logging import configure_logging


def score_document(job: AnsweredDocument) -> dict[str, Any]:
    """Return the journal record of one document. If scoring raises, the document fails but the run continues."""
    record = _scored(job)
    if job.verdicts:
        record["judge"] = [verdict.as_record() for verdict in job.verdicts]
    return record


def _scored(job: AnsweredDocument) -> dict[str, Any]:
    name, doc_id, answers = job.task.name, job.doc_id, job.answers
    if job.reason:
        return failure_record(name, doc_id, answers, job.reason)
    try:
        return score_record(name, doc_id, answers, job.task.score(doc_id, answers, job.verdicts))
    except NotEvaluated as absent:
        scores = tuple(PipelineScore(one, None, {}, "unscored", absent.reason) for one in job.task.pipelines)
        return score_record(name, doc_id, answers, ScoredDoc(target="", doc={}, doc_hash="", scores=scores))
    except (KeyboardInterrupt, ScoringTimeout):  # raised from outside the scoring code
        raise
    except BaseException as raised:  # noqa: BLE001 - a task's code may raise anything: this sample fails
        return failure_record(name, doc_id, answers, failure("scoring", raised))


BUILD_TIMEOUT_S = 600.0
"""Time limit for starting the interpreter, building the task and opening its data."""


class WorkerDied(RuntimeError):
    """A worker process ended, hung or sent an invalid answer."""


class WorkerProcess:
    """A child process ``python -m MODULE`` that scores documents; it builds the tasks from their ``specs``."""

    def __init__(self, module: str, specs: Mapping[str, Mapping[str, Any]], verbosity: str = "INFO") -> None:
        self._first = codec.dumps({"specs": specs, "verbosity": verbosity}) + b"\n"
        """Configuration, sent before the first job."""
        self._process = LineProcess(module, {"TOKENIZERS_PARALLELISM": "false"})

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, line: bytes, timeout_s: float) -> bytes:
        """Send a job and wait for its record; ``timeout_s`` limits only the scoring. Raises ``WorkerDied``."""
        try:
            self._process.send(self._first + line)
            self._first = b""
            self._process.receive(BUILD_TIMEOUT_S)
            return self._process.receive(timeout_s)
        except ProcessEnded as ended:
            how = str(ended) if ended.code is None else f"the scoring process ended with code {ended.code}"
            raise WorkerDied(how) from ended

    def kill(self) -> None:
        """End the process and its children at once, from any thread; ``close`` must still be called."""
        self._process.kill()

    def close(self) -> None:
        """End the process, by force if it does not end by itself."""
        self._process.close(patience_s=2 * ENDING_S)


Builder = Callable[[Mapping[str, Any]], Task]
"""Function that builds a task from its ``spec``."""


def serve(build: Builder) -> None:
    """Serve jobs until standard input ends: the main function of a scoring process."""
    lines, replies = own_pipes()
    first = lines.get()
    if first:
        start = codec.loads(first)
        configure_logging(start["verbosity"])
        server = _JobServer(start["specs"], build, replies)
        with contextlib.suppress(BrokenPipeError):  # the parent is gone
            while line := lines.get():
                server.serve(codec.loads(line))


class _JobServer:
    """The tasks of a worker process, which are built for their first job."""

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
        except (Exception, SystemExit) as error:  # noqa: BLE001 - opening the data runs code of the task
            reason = f"in a scoring process: {failure('building the task', error)}"
            self._reply(b"")
            self._reply(codec.dumps(failure_record(name, doc_id, answers, reason)))
            return
        self._reply(b"")
        record = score_document(AnsweredDocument(task, doc_id, answers, verdicts))
        try:
            line = codec.dumps(record)
        except codec.VolatileValue as error:
            line = codec.dumps(failure_record(name, doc_id, answers, f"scoring gave {error}"))
        self._reply(line)

    def _task(self, name: str) -> Task:
        if name not in self._tasks:
            logger.disable("lmms_eval")  # the parent opened the same data and logged its warnings
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

    Args:
        tasks: the tasks of the run.
        sink: receives the finished records.
        workers: worker processes; without them every task is scored in this process.
        job_timeout_s: time limit for scoring one document.
        folder: the run's folder. Documents fail without being scored if it records that they hung in earlier starts.
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
        self._running: set[WorkerProcess] = set()
        self._watch: ScoringWatch | None = None
        self._lock = threading.Lock()
        self._failure = Failure(on_error=self._kill_workers)
        self._inline = Stage(self._run_inline, self._failure, "score-inline", length=QUEUE_LENGTH)
        self._process = Stage(self._run_process, self._failure, "score-process", self._workers, QUEUE_LENGTH)

    def is_behind(self) -> bool:
        """Return whether ``submit`` might block."""
        return self._inline.is_full or self._process.is_full

    def submit(self, job: AnsweredDocument) -> None:
        """Queue a document; blocks while the queue is full. Documents with failed answers are recorded at once."""
        self._failure.check()
        if hung := self._hung.get((job.task.name, job.doc_id)):
            job = replace(job, error=hung)
        if job.reason:
            self._sink(score_document(job))
        elif job.task.scoring == "process" and self._workers > 0:
            self._process.put(job)
        else:
            self._inline.put(job)

    def drain(self) -> None:
        """Wait until every job is scored. Raises any error of the sink, such as a full disk."""
        self._inline.drain()
        self._process.drain()

    def close(self) -> None:
        """End the threads and processes without waiting for queued jobs."""
        self._failure.carry(InterruptedError("scoring was closed"))
        deadline = time.monotonic() + CLOSING_S
        for stage in (self._inline, self._process):
            stage.join(max(0.0, deadline - time.monotonic()))
        if self._watch is not None:
            self._watch.release()

    def _kill_workers(self) -> None:
        """End all worker processes because scoring failed or was closed."""
        with self._lock:
            running = list(self._running)
        for worker in running:
            worker.kill()

    def _run_inline(self, jobs: Iterator[AnsweredDocument]) -> None:
        with ScoringWatch(self._job_timeout_s, self._folder) as watch:
            self._watch = watch
            for job in jobs:
                self._sink(watch.call(job, score_document))

    def _run_process(self, jobs: Iterator[AnsweredDocument]) -> None:
        worker: WorkerProcess | None = None
        try:
            for job in jobs:
                worker, record = self._ask_worker(worker, job)
                self._failure.check()  # the worker may have been killed because of it
                self._sink(record)
        finally:
            if worker is not None:
                self._end(worker)

    def _ask_worker(
        self, worker: WorkerProcess | None, job: AnsweredDocument
    ) -> tuple[WorkerProcess | None, dict[str, Any]]:
        """Return the record of a job, with the worker for the next one: ``None`` if it died."""
        message = {
            "task": job.task.name,
            "doc_id": job.doc_id,
            "answers": [answer_record(answer, with_paths=True) for answer in job.answers],
            "verdicts": [verdict.as_record() for verdict in job.verdicts],
            "document": job.task.carried_document(job.doc_id),
        }
        if worker is None:
            worker = WorkerProcess(self._options.module, self._specs, self._options.verbosity)
            with self._lock:
                self._running.add(worker)
        try:
            record = codec.load_record(worker.call(codec.dumps(message), self._job_timeout_s))
            if record is None:
                raise WorkerDied("the scoring process sent something that is not a record")
            return worker, record
        except WorkerDied as died:
            worker.kill()
            self._end(worker)
            reason = f"scoring did not come back: {died}"
            return None, failure_record(job.task.name, job.doc_id, job.answers, reason)

    def _end(self, worker: WorkerProcess) -> None:
        with self._lock:
            self._running.discard(worker)
        worker.close()
