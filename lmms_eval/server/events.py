"""Server-sent events of a job: its state, the progress of its run, and the lines of its log.

The id of an event is a place in the log: who comes back with the last one (``Last-Event-ID``) gets the lines behind it.
State and progress are told anew to everyone who comes.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool

from lmms_eval.errors import BusyError
from lmms_eval.results.follow import FollowedRun, Snapshot
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.job_log import JobLog, Piece
from lmms_eval.server.outcome import records
from lmms_eval.server.service import Service
from lmms_eval.server.store import Job

MOST_JOBS = 16
MOST_TASKS = 200
MOST_LETTERS = 300
"""Of a reason for which documents have no score."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Numbers of a job's run at one moment."""

    snapshot: Snapshot | None = None
    """``None`` before the run has begun."""
    is_read: bool = True
    """All that the journals held has been read once."""

    def told(self, clean: Callable[[str], str]) -> Mapping[str, Any]:
        """Return what clients get.

        Args:
            clean: makes of a text what the client may read.
        """
        if self.snapshot is None:
            return {}
        known = asdict(self.snapshot)
        del known["processes"]  # names of hosts
        tasks = known["tasks"]
        return known | {
            "reasons": [(clean(text)[:MOST_LETTERS], count) for text, count in known["reasons"]],
            "tasks": tasks[:MOST_TASKS],
            "tasks_left_out": max(0, len(tasks) - MOST_TASKS),
        }


@dataclass(slots=True)
class JobProgress:
    """Follows what a job's run writes; each look reads what has come since the last one."""

    _runs: dict[Path, FollowedRun] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, records: Iterable[Path]) -> Progress:
        """Read the news. Where a job has several records, its run was begun anew: the last one counts.

        Args:
            records: the records of the job's run.
        """
        with self._lock:
            for folder in records:
                if folder not in self._runs:
                    self._runs[folder] = FollowedRun(folder)
            if not self._runs:
                return Progress()
            for run in self._runs.values():
                run.look()
            last = max(self._runs.values(), key=lambda run: (not run.is_gone, run.is_going, str(run.state.get("date"))))
            return Progress(last.snapshot(), last.is_read or last.is_gone)


class JobsProgress:
    """The jobs that were asked after last; the journals of a job that was forgotten meanwhile are read anew."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, JobProgress] = OrderedDict()

    def look(self, job_id: str, records: Iterable[Path]) -> Progress:
        """Read the news of a job.

        Args:
            job_id: the job.
            records: the records of its run.
        """
        with self._lock:
            followed = self._jobs.setdefault(job_id, JobProgress())
            self._jobs.move_to_end(job_id)
            while len(self._jobs) > MOST_JOBS:
                self._jobs.popitem(last=False)
        return followed.look(records)


EVERY_S = 0.5
PROGRESS_EVERY_S = 2.0
"""The rates of a run that goes on are others at each look; its progress is told so often at most."""
MOST_STREAMS, RETRY_S = 1000, 5.0
_ALIVE_S = 15.0
_PIECE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Look:
    """A job at one time."""

    job: Job | None
    state: str
    """JSON of what is told of its state."""
    progress: Progress
    log_end: int

    @property
    def is_last(self) -> bool:
        """The job has ended, and no look will find more."""
        return self.job is not None and self.job.has_ended and self.progress.is_read


@dataclass(slots=True)
class Feed:
    """The looks at one job, shared by all streams of it."""

    service: Service
    job_id: str
    readers: int = 0
    _progress: JobProgress = field(default_factory=JobProgress)
    _last: Look | None = None
    _at: float = -1.0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _piece: tuple[int, Piece] | None = None

    async def look(self) -> Look:
        """Look at the job; a look that is younger than ``EVERY_S`` is taken again."""
        async with self._lock:
            if self._last is None or time.monotonic() - self._at >= EVERY_S:
                self._last = await run_in_threadpool(self._look)
                self._at = time.monotonic()
            return self._last

    def _look(self) -> Look:
        job = self.service.job(self.job_id)
        if job is None:
            return Look(None, "", Progress(), 0)
        folder = JobFolder(Path(job.folder))
        end = JobLog(folder.log).end  # before the state is read, so that nothing comes behind the last look
        progress = self._progress.look(records(job, folder)) if job.started_at is not None else Progress()
        state: dict[str, Any] = {"status": job.state, "position_in_queue": self.service.store.position(job)}
        return Look(job, json.dumps(state), progress, end)

    async def piece(self, job: Job, place: int) -> Piece:
        """Read the log from a place on; streams that stand at the same place share what was read."""
        async with self._lock:
            if self._piece is None or self._piece[0] != place or not self._piece[1].data:
                log = JobLog(JobFolder(Path(job.folder)).log)
                self._piece = place, _whole_lines(await run_in_threadpool(log.read, place, _PIECE_BYTES), job)
            return self._piece[1]


def _whole_lines(piece: Piece, job: Job) -> Piece:
    """Leave a line that is being written to the next piece."""
    cut = piece.data.rfind(b"\n") + 1
    if cut == len(piece.data) or job.has_ended or (cut == 0 and len(piece.data) >= _PIECE_BYTES):
        return piece
    return Piece(piece.data[:cut], piece.next - len(piece.data) + cut, piece.left_out)


class Feeds:
    """The feeds that somebody reads."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._feeds: dict[str, Feed] = {}

    @property
    def count(self) -> int:
        """The streams that are open."""
        return sum(feed.readers for feed in [*self._feeds.values()])

    def check_room(self) -> None:
        """Raise ``BusyError`` if as many streams are open as may be."""
        if self.count >= MOST_STREAMS:
            raise BusyError(f"{MOST_STREAMS} event streams are open: ask for the job itself", RETRY_S)

    @contextmanager
    def open(self, job_id: str) -> Iterator[Feed]:
        """Lend the feed of a job."""
        feed = self._feeds.setdefault(job_id, Feed(self._service, job_id))
        feed.readers += 1
        try:
            yield feed
        finally:
            feed.readers -= 1
            if not feed.readers:
                self._feeds.pop(job_id, None)

    async def stream(self, job_id: str, place: int, clean: Callable[[str], str]) -> AsyncIterator[bytes]:
        """Send the events of a job until it has ended and its log was sent.

        Args:
            job_id: the job.
            place: the place in the log from which on it is sent.
            clean: makes of a text what the client may read.
        """
        with self.open(job_id) as feed:
            state, told_at = "", time.monotonic()
            progress, progress_at = Progress(), -PROGRESS_EVERY_S
            while True:
                look = await feed.look()
                if look.job is None:  # no longer in the list
                    return
                now = time.monotonic()
                if look.progress != progress and (look.is_last or now >= progress_at + PROGRESS_EVERY_S):
                    progress, progress_at, told_at = look.progress, now, now
                    yield _event("progress", orjson.dumps(progress.told(clean)).decode())
                if look.state != state and not look.job.has_ended:
                    state, told_at = look.state, now
                    yield _event("state", state)
                while look.log_end > place and (piece := await feed.piece(look.job, place)).data:
                    place, told_at = piece.next, time.monotonic()
                    told = {"text": clean(piece.text()), "left_out": piece.left_out}
                    yield _event("log", json.dumps(told), place)
                if look.is_last:
                    yield _event("state", look.state)
                    return
                if time.monotonic() - told_at > _ALIVE_S:
                    told_at = time.monotonic()
                    yield b": still here\n\n"
                await asyncio.sleep(EVERY_S)


def _event(kind: str, data: str, place: int | None = None) -> bytes:
    mark = "" if place is None else f"id: {place}\n"
    return f"event: {kind}\n{mark}data: {data}\n\n".encode("utf-8", "replace")
