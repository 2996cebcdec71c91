"""Scoring behind the model: in a thread of this process, or in worker processes, both behind bounded queues."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmms_eval.api.task import Task
from lmms_eval.engine.conversations import Job
from lmms_eval.engine.document_scoring import score_document
from lmms_eval.engine.records import answer_record, failure_record
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
        self._inline: queue.Queue[Job | None] = queue.Queue(QUEUE_LENGTH)
        self._process: queue.Queue[Job | None] = queue.Queue(QUEUE_LENGTH)
        self._specs = {task.name: task.spec() for task in tasks if task.scoring == "process"}
        self._module = "" if workers is None else workers.module
        count = 0 if workers is None else workers.count
        self._workers = count if count is not None else min(4, max(1, (os.cpu_count() or 2) - 1))
        self._threads: list[threading.Thread] = []
        self._running: set[WorkerProcess] = set()
        self._lock = threading.Lock()
        self._error: BaseException | None = None

    def is_behind(self) -> bool:
        """``submit`` might block."""
        return self._error is None and (self._inline.full() or self._process.full())

    def submit(self, job: Job) -> None:
        """Queue a document; blocks while the queue is full. Failed answers are recorded without scoring."""
        self._raise_error()
        if hung := self._hung.get((job.task.name, job.doc_id)):
            job = replace(job, error=hung)
        if job.reason:
            self._sink(score_document(job))
            return
        if job.task.scoring == "process" and self._workers > 0:
            self._start(self._run_process, self._workers)
            self._put(self._process, job)
        else:
            self._start(self._run_inline, 1)
            self._put(self._inline, job)
        self._raise_error()

    def drain(self) -> None:
        """Wait until every job is scored. Raises what the sink raised (a full disk)."""
        for thread in self._threads:
            target = self._inline if thread.name.startswith("score-inline") else self._process
            self._put(target, None)
        for thread in self._threads:
            thread.join()
        self._threads = []
        self._raise_error()

    def close(self) -> None:
        """End the threads and processes without waiting for queued jobs; after ``drain`` there is nothing to end."""
        self._fail(InterruptedError("scoring was closed"))
        deadline = time.monotonic() + CLOSING_S
        for thread in self._threads:
            thread.join(timeout=max(0.0, deadline - time.monotonic()))
        self._threads = []

    def _put(self, target: queue.Queue[Job | None], job: Job | None) -> None:
        while self._error is None:
            try:
                target.put(job, timeout=0.5)
                return
            except queue.Full:
                continue

    def _next(self, source: queue.Queue[Job | None]) -> Job | None:
        """The next job; ``None`` at the end, or when the scoring has failed or was closed."""
        while self._error is None:
            try:
                return source.get(timeout=0.5)
            except queue.Empty:
                continue
        return None

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _fail(self, error: BaseException) -> None:
        """Let every thread end soon: the first error stays, and nobody waits for a worker process any more."""
        with self._lock:
            self._error = self._error or error
            running = list(self._running)
        for worker in running:
            worker.kill()

    def _start(self, run: Callable[[], None], count: int) -> None:
        name = "score-inline" if run == self._run_inline else "score-process"
        with self._lock:
            if any(thread.name.startswith(name) for thread in self._threads):
                return
            started = [
                threading.Thread(target=self._guard, args=(run,), name=f"{name}-{n}", daemon=True) for n in range(count)
            ]
            self._threads += started
            for thread in started:
                thread.start()

    def _guard(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - carried to the main thread, which re-raises it
            self._fail(error)

    def _run_inline(self) -> None:
        with ScoringWatch(self._job_timeout_s, self._folder) as watch:
            while (job := self._next(self._inline)) is not None:
                self._sink(watch.call(job, score_document))

    def _run_process(self) -> None:
        worker: WorkerProcess | None = None
        try:
            while (job := self._next(self._process)) is not None:
                worker, record = self._ask_worker(worker, job)
                self._raise_error()  # a worker that was killed because of it has scored nothing
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
        worker = WorkerProcess(self._module, self._specs)
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
