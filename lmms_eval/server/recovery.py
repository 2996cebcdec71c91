"""The list of jobs when a server starts: as it is, or, of a damaged one, made anew.

What still fits its checksum is kept; the rest comes from the folders of the jobs. A job whose row is damaged and whose
folder does not tell it stays in the list as failed, with that reason.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lmms_eval.errors import JobStoreError
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.job import FINAL, Job, State, now
from lmms_eval.server.store import JobStore, Restored, Salvage, salvage

log = logging.getLogger(__name__)
DATABASE = "jobs.sqlite"


def open_store(folder: Path, jobs: Path) -> JobStore:
    """Open the list of jobs of a server's folder; a damaged one is put aside and made anew.

    Raises:
        JobStoreError: it cannot be opened, made or put aside.
    """
    path = folder / DATABASE
    left = Salvage()
    is_lost = not path.exists() and any(jobs.glob("*/job.json"))
    try:
        store = JobStore(path)
    except sqlite3.DatabaseError as error:
        left = salvage(path)
        aside = _put_aside(path)
        log.warning("%s is damaged (%s): it is kept as %s, and the list is made anew", path, error, aside.name)
        store, is_lost = JobStore(path), True
    if is_lost:
        _refill(store, jobs, left)
    return store


def _refill(store: JobStore, jobs: Path, left: Salvage) -> None:
    """Fill a new list. Raises ``JobStoreError``."""
    kept = {one.job.job_id: one for one in left.jobs}
    read = {one.job.job_id: one for one in _read_back(jobs) if one.job.job_id not in kept}
    known = {*kept, *read, *(one.job.folder for one in (*kept.values(), *read.values()))}
    names = {name for name, folder in left.damaged if name and known.isdisjoint((name, folder))}
    unknown = {name: path for name in names for path in jobs.iterdir() if path.name.endswith(name)}
    found = [*kept.values(), *read.values(), *(Restored(_untold(name, path)) for name, path in unknown.items())]
    store.restore(sorted(found, key=lambda one: one.job.created_at))
    log.warning("%d jobs were read back from %s, %d were kept as they stood in the list", len(read), jobs, len(kept))
    for name in unknown:
        log.error("job %s: its entry in the list is damaged, and its folder does not tell it: it has failed", name)


def _untold(job_id: str, folder: Path) -> Job:
    """A job known only by its id and its folder."""
    told = "its entry in the list of jobs was damaged, and its folder does not tell the request: submit it again"
    return Job(job_id, 0, "failed", {"model": "", "tasks": []}, str(folder), now(), completed_at=now(), error=told)


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
        stated = told.get("state")
        is_known = folder.has_keeper or folder.exit() is not None
        final: State | None = next((one for one in FINAL if one == stated), None)
        state: State = final or ("running" if is_known else "queued")
        result = told.get("result")
        job = Job(
            job_id=told["job_id"],
            number=0,
            state=state,
            request=request,
            folder=str(file.parent),
            created_at=created,
            started_at=_text(told, "started_at") or (created if state == "running" else None),
            completed_at=_text(told, "completed_at"),
            result=result if isinstance(result, dict) else None,
            error=_text(told, "error"),
            gpus=tuple(folder.read(folder.start_file).get("gpus", ())) if state == "running" else (),
            is_cancelled=folder.cancel_file.exists(),
        )
        yield Restored(job, _text(told, "key"))


def _text(told: Mapping[str, Any], name: str) -> str | None:
    value = told.get(name)
    return value if isinstance(value, str) else None
