"""Server-sent events of a job: its state, the progress of its run, and the lines of its log.

The id of an event is a position in the log. A client that reconnects with the last id (``Last-Event-ID``) receives the
lines after it. State and progress are sent again on every connection.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct, field
from starlette.concurrency import run_in_threadpool

from lmms_eval.errors import BusyError
from lmms_eval.results.follow import FollowedRun, Snapshot
from lmms_eval.server.job_log import JobLog, LogPiece
from lmms_eval.server.outcome import records
from lmms_eval.server.service import Service
from lmms_eval.server.store import Job
from lmms_eval.utils.records import to_dict

MOST_JOBS = 16
MOST_TASKS = 200
MOST_LETTERS = 300
"""Characters that are sent of a reason why documents have no score."""
EVERY_S = 0.5
PROGRESS_EVERY_S = 2.0
"""Least seconds between two progress events. The rates of a running job change at every look."""
MOST_STREAMS, RETRY_S = 1000, 5.0
ALIVE_S = 15.0
_PIECE_BYTES = 64 << 10


class Progress(Struct, frozen=True):
    """Progress of a job's run at one moment."""

    snapshot: Snapshot | None = None
    """``None`` before the run has begun."""
    is_read: bool = True
    """Whether the journals have been read to their end once."""

    def content(self, clean: Callable[[str], str]) -> Mapping[str, Any]:
        """Return the progress as clients receive it. ``clean`` removes from a text what the client may not read."""
        if self.snapshot is None:
            return {}
        known = to_dict(self.snapshot)
        del known["processes"]  # they name hosts
        tasks = known["tasks"]
        return known | {
            "reasons": [(clean(text)[:MOST_LETTERS], count) for text, count in known["reasons"]],
            "tasks": tasks[:MOST_TASKS],
            "tasks_left_out": max(0, len(tasks) - MOST_TASKS),
        }


class JobProgress(Struct):
    """Follows what a job's run writes. Each look reads what was written since the last one."""

    _runs: dict[Path, FollowedRun] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, records: Iterable[Path]) -> Progress:
        """Read what is new in journal folders. If a job has several, its run was restarted and the last one counts."""
        with self._lock:
            for folder in records:
                if folder not in self._runs:
                    self._runs[folder] = FollowedRun(folder)
            if not self._runs:
                return Progress()
            for run in self._runs.values():
                run.look()
            last = max(
                self._runs.values(), key=lambda run: (not run.is_gone, run.is_going, str(run.record.get("date")))
            )
            return Progress(last.snapshot(), last.is_read or last.is_gone)


class JobsProgress:
    """Progress of the jobs that clients asked for last. For other jobs the journals are read from their beginning."""

    def __init__(self) -> None:
        self._followed = lru_cache(MOST_JOBS)(lambda _job_id: JobProgress())

    def look(self, job_id: str, records: Iterable[Path]) -> Progress:
        """Return the progress of a job from the folders of its run's journals."""
        return self._followed(job_id).look(records)


class Look(Struct, frozen=True):
    """State of a job at one moment."""

    job: Job | None
    state: str
    """Data of its state event, as JSON."""
    progress: Progress
    log_end: int

    @property
    def is_last(self) -> bool:
        """Whether the job has ended and everything was read."""
        return self.job is not None and self.job.has_ended and self.progress.is_read


class Feed(Struct):
    """Looks at one job, shared by all its event streams."""

    service: Service
    job_id: str
    readers: int = 0
    _progress: JobProgress = field(default_factory=JobProgress)
    _last: Look | None = None
    _at: float = -1.0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _piece: tuple[int, LogPiece] | None = None

    async def look(self) -> Look:
        """Return a look at the job that is not older than ``EVERY_S``."""
        async with self._lock:
            if self._last is None or time.monotonic() - self._at >= EVERY_S:
                self._last = await run_in_threadpool(self._look)
                self._at = time.monotonic()
            return self._last

    def _look(self) -> Look:
        job = self.service.store.get(self.job_id)
        if job is None:
            return Look(None, "", Progress(), 0)
        end = JobLog(job.files.log).end  # before the state is read, so that the last look misses nothing
        progress = self._progress.look(records(job)) if job.started_at is not None else Progress()
        state: dict[str, Any] = {"status": job.state, "position_in_queue": self.service.store.position(job)}
        return Look(job, json.dumps(state), progress, end)

    async def piece(self, job: Job, place: int) -> LogPiece:
        """Read the log from a position on. Streams at the same position share what was read."""
        async with self._lock:
            if self._piece is None or self._piece[0] != place or not self._piece[1].data:
                log = JobLog(job.files.log)
                piece = await run_in_threadpool(log.whole_lines, place, _PIECE_BYTES, job.has_ended)
                self._piece = place, piece
            return self._piece[1]


class Feeds:
    """Feeds of the jobs that have open event streams."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._feeds: dict[str, Feed] = {}

    @property
    def count(self) -> int:
        """Number of open streams."""
        return sum(feed.readers for feed in [*self._feeds.values()])

    def check_room(self) -> None:
        """Raise ``BusyError`` if the greatest number of streams is open."""
        if self.count >= MOST_STREAMS:
            raise BusyError(f"{MOST_STREAMS} event streams are open: ask for the job itself", RETRY_S)

    @contextmanager
    def open(self, job_id: str) -> Iterator[Feed]:
        """Open the feed of a job for one reader."""
        feed = self._feeds.setdefault(job_id, Feed(self._service, job_id))
        feed.readers += 1
        try:
            yield feed
        finally:
            feed.readers -= 1
            if not feed.readers:
                self._feeds.pop(job_id, None)

    async def stream(self, job_id: str, place: int, clean: Callable[[str], str]) -> AsyncIterator[bytes]:
        """Yield the events of a job until its end. Its log begins at ``place``. ``clean`` is as for ``content``."""
        with self.open(job_id) as feed:
            state, sent_at = "", time.monotonic()
            progress, progress_at = Progress(), -PROGRESS_EVERY_S
            while True:
                look = await feed.look()
                if look.job is None:  # no longer in the list
                    return
                now = time.monotonic()
                if look.progress != progress and (look.is_last or now >= progress_at + PROGRESS_EVERY_S):
                    progress, progress_at, sent_at = look.progress, now, now
                    yield event("progress", orjson.dumps(progress.content(clean)).decode())
                if look.state != state and not look.job.has_ended:
                    state, sent_at = look.state, now
                    yield event("state", state)
                while look.log_end > place and (piece := await feed.piece(look.job, place)).data:
                    place, sent_at = piece.next, time.monotonic()
                    yield event("log", json.dumps({"text": clean(piece.text()), "left_out": piece.left_out}), place)
                if look.is_last:
                    yield event("state", look.state)
                    return
                if time.monotonic() - sent_at > ALIVE_S:
                    sent_at = time.monotonic()
                    yield b": still here\n\n"
                await asyncio.sleep(EVERY_S)


def event(kind: str, data: str, place: int | None = None) -> bytes:
    """Return a server-sent event. ``place`` is its id."""
    mark = "" if place is None else f"id: {place}\n"
    return f"event: {kind}\n{mark}data: {data}\n\n".encode("utf-8", "replace")
