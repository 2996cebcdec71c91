"""Scoring behind the model: in a thread of this process, or in worker processes, both behind bounded queues."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmms_eval.api.task import Task
from lmms_eval.engine.conversations import Job
from lmms_eval.engine.document_scoring import score_document
from lmms_eval.engine.records import answer_record, failure_record
from lmms_eval.engine.stage import Failure, Stage
from lmms_eval.engine.watchdog import ScoringWatch, hung_documents
from lmms_eval.engine.worker_process import WorkerDied, WorkerProcess
from lmms_eval.storage import codec

QUEUE_LENGTH = 512
JOB_TIMEOUT_S = 300.0
"""A document whose scoring takes longer than this is failed; a worker process that scores it is replaced."""
CLOSING_S = 5.0

Sink = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Processes that score the tasks which ask for one."""

    module: str
    """``python -m MODULE`` builds the tasks and serves jobs (``worker_loop.serve``)."""
    count: int | None = None
    """``None``: by the number of cores."""
    verbosity: str = "INFO"
    """Level from which on they log."""


class Scorer:
    """Takes jobs, hands finished records to ``sink`` (called from several threads).

    Without ``workers`` every task is scored in this process.

    ``job_timeout_s`` bounds the scoring of one document, in a worker process and in this one (``watchdog``). What hung
    here in earlier starts, as the run's ``folder`` tells, is failed without being scored.
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
        """``submit`` might block."""
        return self._inline.is_full or self._process.is_full

    def submit(self, job: Job) -> None:
        """Queue a document; blocks while the queue is full. Failed answers are recorded without scoring."""
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
        """Wait until every job is scored. Raises what the sink raised (a full disk)."""
        self._inline.drain()
        self._process.drain()

    def close(self) -> None:
        """End the threads and processes without waiting for queued jobs; after ``drain`` there is nothing to end."""
        self._failure.carry(InterruptedError("scoring was closed"))
        deadline = time.monotonic() + CLOSING_S
        for stage in (self._inline, self._process):
            stage.join(max(0.0, deadline - time.monotonic()))
        if self._watch is not None:
            self._watch.release()

    def _kill_workers(self) -> None:
        """Nobody waits for a worker process any more."""
        with self._lock:
            running = list(self._running)
        for worker in running:
            worker.kill()

    def _run_inline(self, jobs: Iterator[Job]) -> None:
        with ScoringWatch(self._job_timeout_s, self._folder) as watch:
            self._watch = watch
            for job in jobs:
                self._sink(watch.call(job, score_document))

    def _run_process(self, jobs: Iterator[Job]) -> None:
        worker: WorkerProcess | None = None
        try:
            for job in jobs:
                worker, record = self._ask_worker(worker, job)
                self._failure.check()  # a worker that was killed because of it has scored nothing
                self._sink(record)
        finally:
            if worker is not None:
                self._end(worker)

    def _ask_worker(self, worker: WorkerProcess | None, job: Job) -> tuple[WorkerProcess | None, dict[str, Any]]:
        """The record of a job; a worker that died over it is replaced at the next one."""
        message = {
            "task": job.task.name,
            "doc_id": job.doc_id,
            "answers": [answer_record(answer, with_paths=True) for answer in job.answers],
            "verdicts": [verdict.as_record() for verdict in job.verdicts],
            "document": job.task.carried_document(job.doc_id),
        }
        worker = worker or self._begin()
        try:
            return worker, _checked(worker.call(codec.dumps(message), self._job_timeout_s))
        except WorkerDied as died:
            worker.kill()
            self._end(worker)
            reason = f"scoring did not come back: {died}"
            return None, failure_record(job.task.name, job.doc_id, job.answers, reason)

    def _begin(self) -> WorkerProcess:
        worker = WorkerProcess(self._options.module, self._specs, self._options.verbosity)
        with self._lock:
            self._running.add(worker)
        return worker

    def _end(self, worker: WorkerProcess) -> None:
        with self._lock:
            self._running.discard(worker)
        worker.close()


def _checked(line: bytes) -> dict[str, Any]:
    try:
        record = codec.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, Mapping):
        raise WorkerDied("the scoring process sent something that is no record")
    return dict(record)
