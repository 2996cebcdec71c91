"""The scheduler: starts jobs in the order of their submission as far as there is room, and sees each to its one end."""

from __future__ import annotations

import dataclasses
import errno
import logging
import shutil
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.errors import BusyError, JobStoreError, LmmsEvalError
from lmms_eval.server.command import Additions
from lmms_eval.server.folder import Exit, JobFolder
from lmms_eval.server.gpus import Room
from lmms_eval.server.job import Ending, Job, now
from lmms_eval.server.outcome import ending_of, lost
from lmms_eval.server.store import JobStore, NewJob, Submission
from lmms_eval.server.worker import Worker

log = logging.getLogger(__name__)
POLL_S = 0.1
_KILLING_S = 10.0
_FULL_S = 30.0
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE)
MOST_DEATHS = 3
"""Times that the processes of one job may be killed from outside before it is given up."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The rules by which a server runs jobs.

    Args:
        jobs: folder with a folder for each job.
        room: what is given to runs.
        additions: part of every run.
        most_ended: ended jobs that stay in the list.
        deletes_files: a job that leaves the list leaves no files.
        prefix: beginning of the names of the jobs' folders.
        grace_s: seconds in which a run that is told to end may do so.
        most_queued: jobs that may wait.
    """

    jobs: Path
    room: Room = field(default_factory=Room)
    additions: Additions = field(default_factory=Additions)
    most_ended: int = 100
    deletes_files: bool = False
    prefix: str = ""
    grace_s: float = 30.0
    most_queued: int = 10_000


class Scheduler:
    """Runs the jobs of a store. What was running when an earlier server ended goes on."""

    def __init__(self, store: JobStore, plan: Plan) -> None:
        self.store, self.plan = store, plan
        self.ended = {"completed": 0, "failed": 0, "cancelled": 0}
        """Jobs that have ended since the server was started, by how."""
        self._workers = {job.job_id: self._worker(job) for job in store.of_state("running")}
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def _worker(self, job: Job) -> Worker:
        return Worker(job, self.plan.additions, self.plan.room, self.plan.grace_s)

    def start(self) -> None:
        """Go on with what was running, and begin with what waits."""
        self._claim()
        self._thread.start()

    def stop(self, leaves_running: bool = False) -> None:
        """Start nothing any more; have running jobs interrupted, to go on when a server starts on this folder again."""
        self._stop.set()
        self._wake.set()
        self._thread.join()
        if leaves_running:
            return
        for worker in self._workers.values():
            try:
                worker.suspend()
            except LmmsEvalError as error:
                log.error("job %s goes on running: %s", worker.job.job_id, error)
        deadline = time.monotonic() + self.plan.grace_s + _KILLING_S
        while any(worker.is_alive for worker in self._workers.values()) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self._settle_all()  # those that had come to their end

    def submit(self, request: Mapping[str, Any], key: str | None = None) -> Submission:
        """Store a job; it is started at once if there is room.

        Raises:
            BusyError: as many jobs wait as may.
            RequestError: it never fits, or another request was submitted with the same key.
            LmmsEvalError: the disk does not take it.
        """
        self.plan.room.check(request)
        if key is not None and (earlier := self.store.by_key(key, request)) is not None:
            return earlier
        if self.store.counts().get("queued", 0) >= self.plan.most_queued:
            raise BusyError(f"{self.plan.most_queued} jobs wait (--max_queued_jobs)", _FULL_S)
        job_id = str(uuid.uuid4())
        folder = JobFolder(self.plan.jobs / f"{self.plan.prefix}{job_id}")
        created = now()
        note = {"job_id": job_id, "state": "queued", "request": dict(request), "created_at": created, "key": key}
        try:
            folder.write(folder.job_file, note)
            submission = self.store.add(NewJob(job_id, request, str(folder.path), created, key))
        except LmmsEvalError:
            shutil.rmtree(folder.path, ignore_errors=True)
            raise
        if not submission.is_new:
            shutil.rmtree(folder.path, ignore_errors=True)
        self._claim()
        self._wake.set()
        return submission

    def cancel(self, job_id: str) -> Job | None:
        """End a job: a queued one at once, a running one as soon as its processes are gone; ``None``: there is none.

        Raises:
            LmmsEvalError: the disk does not take the note.
        """
        with self._lock:
            job = self.store.cancel(job_id)
            worker = self._workers.get(job_id)
            if worker is not None:
                worker.job = dataclasses.replace(worker.job, is_cancelled=True)
                worker.cancel()
        if job is not None and job.state == "cancelled":
            self._note_end(job)
        return job

    @property
    def held_gpus(self) -> list[str]:
        with self._lock:
            return [gpu for worker in self._workers.values() for gpu in worker.job.gpus]

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._settle_all()
                self._claim()
                self._start_all()
            except LmmsEvalError as error:  # a full disk: the next look tries again
                log.error("%s", error)
                self._stop.wait(1.0)
            except Exception:
                log.exception("the scheduler goes on")
                self._stop.wait(1.0)
            self._wake.wait(POLL_S)
            self._wake.clear()

    def _claim(self) -> None:
        """Turn queued jobs into running ones while there is room for the first of them."""
        with self._lock:
            while not self._stop.is_set() and (job := self.store.first_queued()) is not None:
                gpus = self.plan.room.find(job.request, [worker.job.gpus for worker in self._workers.values()])
                if gpus is None:
                    break
                if self.store.claim(job.job_id, gpus):
                    claimed = self.store.get(job.job_id)
                    assert claimed is not None
                    self._workers[job.job_id] = self._worker(claimed)

    def _start_all(self) -> None:
        for worker in [*self._workers.values()]:
            if not worker.is_alive and worker.folder.exit() is None:
                was_begun = worker.folder.start_file.exists()
                log.info("job %s is %s", worker.job.job_id, "gone on with" if was_begun else "started")
                try:
                    worker.start()
                except LmmsEvalError as error:
                    if isinstance(error.__cause__, OSError) and error.__cause__.errno in _PASSING:
                        raise  # tried again: a full disk is no fault of the jobs that wait
                    self._end(worker, Ending("failed", None, str(error)))

    def _settle_all(self) -> None:
        for worker in [*self._workers.values()]:
            if worker.job.is_cancelled and not worker.folder.cancel_file.exists():
                worker.cancel()  # an earlier server was killed, or the disk was full
            if worker.is_alive:
                continue
            ended = worker.folder.exit()
            if ended is not None:
                self._end(worker, _ending(worker, ended))
            elif worker.folder.start_file.exists():
                self._after_death(worker)

    def _after_death(self, worker: Worker) -> None:
        """Decide about a job whose keeper is gone without a word: an earlier server has ended it, or it was killed."""
        worker.deaths += 1
        if worker.job.is_cancelled:
            self._end(worker, Ending("cancelled"))
        elif worker.deaths > MOST_DEATHS:
            self._end(worker, lost(worker.folder))

    def _end(self, worker: Worker, ending: Ending) -> None:
        """Note the end of a job, once. Raises ``JobStoreError`` where the disk does not take it: tried again later."""
        job_id = worker.job.job_id
        is_first = self.store.finish(job_id, ending)
        with self._lock:
            self._workers.pop(job_id, None)
        if not is_first:
            return
        job = self.store.get(job_id)
        assert job is not None
        log.info("job %s: %s", job_id, ending.state)
        self._note_end(job)

    def _note_end(self, job: Job) -> None:
        """Leave the end beside the job's files too, for the case that the list of jobs is lost."""
        if job.state in self.ended:
            self.ended[job.state] += 1
        folder = JobFolder(Path(job.folder))
        note = {name: getattr(job, name) for name in ("state", "started_at", "completed_at", "result", "error")}
        try:
            folder.write(folder.job_file, {**folder.read(folder.job_file), **note})
        except LmmsEvalError as error:
            log.warning("%s", error)
        try:
            dropped = self.store.drop_ended(self.plan.most_ended)
        except JobStoreError as error:
            log.warning("%s", error)
            return
        if self.plan.deletes_files:
            for old in dropped:
                shutil.rmtree(old.folder, ignore_errors=True)


def _ending(worker: Worker, ended: Exit) -> Ending:
    try:
        return ending_of(worker.job, worker.folder, ended)
    except (OSError, LmmsEvalError, ValueError) as error:
        return Ending("failed", None, f"the run's files cannot be read: {error}")
