"""The scheduler starts jobs in the order of submission while there is room, and records exactly one end for each."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from lmms_eval.errors import BusyError, JobStoreError, LmmsEvalError, RequestError
from lmms_eval.server.command import command_line, environment, run_options, with_sources, write_config
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.outcome import ending_of, lost
from lmms_eval.server.settings import ServerSettings
from lmms_eval.server.store import Job, JobEnding, JobStore, Submission, now
from lmms_eval.storage.atomic import write_atomically

_WORKERS = ("media_workers", "score_workers")
_WORKERS_PER_CORE = 8
log = logging.getLogger(__name__)
POLL_S = 0.1
_KILLING_S = 10.0
_FULL_S = 30.0
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE)
MOST_DEATHS = 3
"""Times that the processes of one job may be killed from outside before the job fails."""


class Room(Struct, frozen=True):
    """Resources that a server assigns to runs.

    Args:
        gpus: GPUs to assign, by the names that ``CUDA_VISIBLE_DEVICES`` takes. If empty, GPUs are not assigned and each
            run sees what the server sees.
        parallel: number of parallel runs at most.
        seen: number of GPUs that the server sees; limits a run if GPUs are not assigned.
        cores: number of CPU cores; limits the workers of a run.
    """

    gpus: tuple[str, ...] = ()
    parallel: int = 1
    seen: int = 0
    cores: int = 1

    def check(self, request: Mapping[str, Any]) -> None:
        """Refuse a request that can never run here. Raises ``RequestError``."""
        for name in _WORKERS:
            count = request.get(name)
            if isinstance(count, int) and count > self.cores * _WORKERS_PER_CORE:
                most = self.cores * _WORKERS_PER_CORE
                raise RequestError(f"{name}: {self.cores} cores of this server take {most} at most; got {count}")
        if not self.gpus:
            if _count(request) > max(1, self.seen):
                raise RequestError(f"num_gpus: this server sees {self.seen} GPUs; got {_count(request)}")
            return
        wanted = _named_gpu(request)
        if wanted is not None and wanted not in self.gpus:
            raise RequestError(f"device: this server assigns the GPUs {', '.join(self.gpus)}; there is no {wanted}")
        if wanted is not None and _count(request) > 1:
            raise RequestError("device: cuda:N is one GPU; leave it out for num_gpus above 1")
        if _count(request) > len(self.gpus):
            raise RequestError(f"num_gpus: this server assigns {len(self.gpus)} GPUs; got {_count(request)}")

    def find(self, request: Mapping[str, Any], held: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
        """Return the GPUs for a run, given those that other runs hold; ``None`` if the run must wait."""
        taken = list(held)
        if len(taken) >= self.parallel:
            return None
        if not self.gpus or str(request.get("device") or "").strip().lower() == "cpu":
            return ()
        free = [gpu for gpu in self.gpus if not any(gpu in one for one in taken)]
        wanted = _named_gpu(request)
        if wanted is not None:
            return (wanted,) if wanted in free else None
        return tuple(free[: _count(request)]) if len(free) >= _count(request) else None

    def visible(self, gpus: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the GPUs that a run may see; ``None`` if this server does not assign GPUs."""
        return gpus if self.gpus else None


def _count(request: Mapping[str, Any]) -> int:
    return int(request.get("num_gpus") or 1)


def _named_gpu(request: Mapping[str, Any]) -> str | None:
    kind, _, name = str(request.get("device") or "").strip().partition(":")
    return name if kind == "cuda" and name else None


@dataclass(slots=True)
class RunningJob:
    """A running job. An earlier server may have started it; its keeper outlives that server."""

    job: Job
    settings: ServerSettings
    room: Room
    deaths: int = 0
    """Times that its processes were killed from outside since this server started."""
    _process: subprocess.Popen[bytes] | None = field(init=False, default=None)

    @property
    def folder(self) -> JobFolder:
        return self.job.files

    @property
    def is_alive(self) -> bool:
        if self._process is not None and self._process.poll() is None:
            return True  # it may not hold the lock yet
        self._process = None
        return self.folder.has_keeper

    def start(self) -> None:
        """Start the job's keeper. Raises ``LmmsEvalError`` if the job's folder cannot be written."""
        folder, request = self.folder, self.job.request
        was_begun = folder.start_file.exists()
        try:
            folder.suspend_file.unlink(missing_ok=True)
            folder.path.mkdir(parents=True, exist_ok=True)
            write_config(with_sources(run_options(request, folder, self.job.gpus), self.settings), folder)
            words = command_line(request, folder, continues=was_begun)
            folder.write(folder.start_file, {"command": words, "grace_s": self.settings.grace, "gpus": self.job.gpus})
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lmms_eval.server.keeper", str(folder.path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment(os.environ, self.room.visible(self.job.gpus)),
                cwd=folder.path,
                start_new_session=True,  # it outlives the server, and no signal of a terminal reaches it
            )
        except OSError as error:
            raise LmmsEvalError(f"job {self.job.job_id} cannot be started: {error.strerror or error}") from error

    def cancel(self) -> None:
        """Make the keeper end the run for good. Raises ``JournalError`` if the disk cannot be written."""
        write_atomically(self.folder.cancel_file, b"")

    def suspend(self) -> None:
        """Make the keeper interrupt the run, which resumes when a server starts it again. Raises ``JournalError``."""
        write_atomically(self.folder.suspend_file, b"")


class Scheduler:
    """Runs the jobs of a store. Jobs that were running when an earlier server ended continue."""

    def __init__(self, store: JobStore, settings: ServerSettings, jobs: Path, room: Room) -> None:
        self.store, self.settings, self.room = store, settings, room
        self._jobs = jobs
        self.ended = {"completed": 0, "failed": 0, "cancelled": 0}
        """Number of jobs that have ended since the server started, by state."""
        self._workers = {job.job_id: RunningJob(job, settings, room) for job in store.of_state("running")}
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def start(self) -> None:
        """Continue the running jobs and begin with the queued ones."""
        self._claim()
        self._thread.start()

    def stop(self, leaves_running: bool = False) -> None:
        """Start no more jobs, and interrupt the running ones. They resume when a server starts on this folder again."""
        self._stop.set()
        self._wake.set()
        self._thread.join()
        if leaves_running:
            return
        for worker in self._workers.values():
            try:
                worker.suspend()
            except LmmsEvalError as error:
                log.error("job %s keeps running: %s", worker.job.job_id, error)
        deadline = time.monotonic() + self.settings.grace + _KILLING_S
        while any(worker.is_alive for worker in self._workers.values()) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self._settle_all()  # record the jobs that had finished

    def submit(self, request: Mapping[str, Any], key: str | None = None) -> Submission:
        """Store a job, and start it at once if there is room.

        Raises:
            BusyError: the queue is full.
            RequestError: the job can never run here, or a different request was submitted with the same key.
            LmmsEvalError: the disk cannot be written.
        """
        self.room.check(request)
        if key is not None and (earlier := self.store.by_key(key, request)) is not None:
            return earlier
        if self.store.counts().get("queued", 0) >= self.settings.max_queued_jobs:
            raise BusyError(f"{self.settings.max_queued_jobs} jobs wait (--max_queued_jobs)", _FULL_S)
        job_id = str(uuid.uuid4())
        folder = JobFolder(self._jobs / f"{self.settings.prefix}{job_id}")
        created = now()
        note = {"job_id": job_id, "state": "queued", "request": dict(request), "created_at": created, "key": key}
        try:
            folder.write(folder.job_file, note)
            submission = self.store.add(job_id, request, str(folder.path), created, key)
        except LmmsEvalError:
            shutil.rmtree(folder.path, ignore_errors=True)
            raise
        if not submission.is_new:
            shutil.rmtree(folder.path, ignore_errors=True)
        self._claim()
        self._wake.set()
        return submission

    def cancel(self, job_id: str) -> Job | None:
        """Cancel a job: a queued one ends at once, a running one as soon as its processes are gone.

        Returns:
            The changed job, ``None`` if it does not exist.

        Raises:
            LmmsEvalError: the disk cannot be written.
        """
        with self._lock:
            job = self.store.cancel(job_id)
            worker = self._workers.get(job_id)
            if worker is not None:
                worker.job = structs.replace(worker.job, is_cancelled=True)
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
            except LmmsEvalError as error:  # a full disk: the next round tries again
                log.error("%s", error)
                self._stop.wait(1.0)
            except Exception:  # one job's error must not end the scheduling of the others
                log.exception("an error in the scheduler, which continues")
                self._stop.wait(1.0)
            self._wake.wait(POLL_S)
            self._wake.clear()

    def _claim(self) -> None:
        """Turn queued jobs into running ones while there is room for the first in the queue."""
        with self._lock:
            while not self._stop.is_set() and (job := self.store.first_queued()) is not None:
                gpus = self.room.find(job.request, [worker.job.gpus for worker in self._workers.values()])
                if gpus is None:
                    break
                if self.store.claim(job.job_id, gpus):
                    claimed = self.store.get(job.job_id)
                    assert claimed is not None
                    self._workers[job.job_id] = RunningJob(claimed, self.settings, self.room)

    def _start_all(self) -> None:
        for worker in [*self._workers.values()]:
            if not worker.is_alive and worker.folder.exit() is None:
                was_begun = worker.folder.start_file.exists()
                log.info("job %s is %s", worker.job.job_id, "resumed" if was_begun else "started")
                try:
                    worker.start()
                except LmmsEvalError as error:
                    if isinstance(error.__cause__, OSError) and error.__cause__.errno in _PASSING:
                        raise  # retried: the queued jobs must not fail because the disk is full
                    self._end(worker, JobEnding("failed", None, str(error)))

    def _settle_all(self) -> None:
        for worker in [*self._workers.values()]:
            if worker.job.is_cancelled and not worker.folder.cancel_file.exists():
                worker.cancel()  # an earlier server was killed, or the disk was full
            if worker.is_alive:
                continue
            ended = worker.folder.exit()
            if ended is not None:
                try:
                    ending = ending_of(worker.job, ended)
                except (OSError, LmmsEvalError, ValueError) as error:
                    ending = JobEnding("failed", None, f"the run's files cannot be read: {error}")
                self._end(worker, ending)
            elif worker.folder.start_file.exists():
                worker.deaths += 1  # an earlier server stopped it, or its keeper was killed
                if worker.job.is_cancelled:
                    self._end(worker, JobEnding("cancelled"))
                elif worker.deaths > MOST_DEATHS:
                    self._end(worker, lost(worker.job))

    def _end(self, worker: RunningJob, ending: JobEnding) -> None:
        """Record the end of a job, once. Raises ``JobStoreError`` if the disk is full; the caller retries."""
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
        """Record the end in the job's folder too, in case the list of jobs is lost."""
        if job.state in self.ended:
            self.ended[job.state] += 1
        folder = job.files
        note = {name: getattr(job, name) for name in ("state", "started_at", "completed_at", "result", "error")}
        try:
            folder.write(folder.job_file, {**folder.read(folder.job_file), **note})
        except LmmsEvalError as error:
            log.warning("%s", error)
        try:
            dropped = self.store.drop_ended(self.settings.max_completed_jobs)
        except JobStoreError as error:
            log.warning("%s", error)
            return
        if self.settings.delete_files:
            for old in dropped:
                shutil.rmtree(old.folder, ignore_errors=True)
