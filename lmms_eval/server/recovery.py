"""The list of jobs when a server starts: as it is, or, of a damaged one, made anew from the folders of the jobs."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from lmms_eval.errors import JobStoreError
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.job import FINAL, Job, State
from lmms_eval.server.store import JobStore, Restored

log = logging.getLogger(__name__)
DATABASE = "jobs.sqlite"


def open_store(folder: Path, jobs: Path) -> JobStore:
    """Open the list of jobs of a server's folder; a damaged one is put aside and made anew.

    Raises:
        JobStoreError: it cannot be opened, made or put aside.
    """
    path = folder / DATABASE
    is_lost = not path.exists() and any(jobs.glob("*/job.json"))
    try:
        store = JobStore(path)
    except sqlite3.DatabaseError as error:
        aside = _put_aside(path)
        log.warning("%s is damaged (%s): it is kept as %s, and the list is made anew", path, error, aside.name)
        store, is_lost = JobStore(path), True
    if is_lost:
        found = sorted(_read_back(jobs), key=lambda one: one.job.created_at)
        store.restore(found)
        log.warning("%d jobs were read back from %s", len(found), jobs)
    return store


def _put_aside(path: Path) -> Path:
    aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d_%H%M%S')}")
    try:
        path.rename(aside)
        for ending in ("-wal", "-shm"):
            beside = path.with_name(path.name + ending)
            if beside.exists():
                beside.rename(aside.with_name(aside.name + ending))
    except OSError as error:
        raise JobStoreError(f"{path} is damaged and cannot be put aside: {error.strerror or error}") from error
    return aside


def _read_back(jobs: Path) -> Iterator[Restored]:
    """Read jobs from their folders, as far as these tell; one that was begun goes on."""
    for file in jobs.glob("*/job.json"):
        folder = JobFolder(file.parent)
        told = folder.read(file)
        request, created = told.get("request"), told.get("created_at")
        if not (isinstance(request, dict) and isinstance(created, str) and isinstance(told.get("job_id"), str)):
            log.warning("%s does not tell the job: it is left out of the list", file)
            continue
        stated: State = told.get("state", "queued")
        is_known = folder.has_keeper or folder.exit() is not None
        state: State = stated if stated in FINAL else "running" if is_known else "queued"
        job = Job(
            job_id=told["job_id"],
            number=0,
            state=state,
            request=request,
            folder=str(file.parent),
            created_at=created,
            started_at=told.get("started_at") or (created if state == "running" else None),
            completed_at=told.get("completed_at"),
            result=told.get("result"),
            error=told.get("error"),
            gpus=tuple(folder.read(folder.start_file).get("gpus", ())) if state == "running" else (),
            is_cancelled=folder.cancel_file.exists(),
        )
        yield Restored(job, told.get("key"))
