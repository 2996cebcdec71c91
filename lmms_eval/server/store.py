"""Jobs in SQLite: what was confirmed to a client survives the server."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.errors import JobStoreError, RepeatedKeyError
from lmms_eval.server.job import Ending, Job, State, now

_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    request TEXT NOT NULL,
    folder TEXT NOT NULL,
    created_at TEXT NOT NULL,
    started_at TEXT,
    completed_at TEXT,
    result TEXT,
    error TEXT,
    gpus TEXT NOT NULL DEFAULT '[]',
    is_cancelled INTEGER NOT NULL DEFAULT 0,
    submission_key TEXT UNIQUE
);
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, number);
"""
_VERSION = 1
"""Of the table: one that a newer version has written is left alone."""
_COLUMNS = (
    "job_id, number, state, request, folder, created_at, started_at, completed_at, result, error, gpus, is_cancelled"
)
_BUSY_S = 10.0


@dataclass(frozen=True, slots=True)
class Submission:
    """A job as it was submitted, by this call or by an earlier one with the same key."""

    job: Job
    position: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job that is to be stored."""

    job_id: str
    request: Mapping[str, Any]
    folder: str
    created_at: str
    key: str | None = None
    """The client's own mark of the submission, by which a repeated one is found again."""
    state: State = "queued"


@dataclass(frozen=True, slots=True)
class Restored:
    """A job that was read back from its folder."""

    job: Job
    key: str | None = None


class JobStore:
    """The jobs of a server. One connection, which its threads share; other processes only read.

    Raises:
        sqlite3.DatabaseError: the file is damaged (``recovery.open_store`` mends that).
        JobStoreError: the file cannot be opened or made.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(path, timeout=_BUSY_S, check_same_thread=False)
        except sqlite3.OperationalError as error:
            raise JobStoreError(f"{path} cannot be opened: {error}") from error
        try:
            self._prepare(path)
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, path: Path) -> None:
        for setting in ("journal_mode=WAL", "synchronous=FULL"):
            self._connection.execute(f"PRAGMA {setting}")
        found = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != ("ok",):
            raise sqlite3.DatabaseError(str(found[0] if found else "no answer"))
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            told = f"a newer version of lmms_eval has written it (format {version}; this one reads up to {_VERSION})"
            raise JobStoreError(f"{path}: {told}: update this one, or give it a folder of its own")
        with self._connection:
            self._connection.executescript(_SCHEMA)
            self._connection.execute(f"PRAGMA user_version = {_VERSION}")
        self._connection.execute(f"SELECT {_COLUMNS}, submission_key FROM jobs LIMIT 1").fetchone()

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction. Raises ``JobStoreError`` where the disk does not take it; then nothing has changed."""
        with self._lock:
            try:
                with self._connection:
                    yield self._connection
            except sqlite3.IntegrityError:
                raise
            except sqlite3.Error as error:
                raise JobStoreError(
                    f"the list of jobs cannot be written: {error}; make room where the server keeps its folder"
                ) from error

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Read rows. Raises ``JobStoreError``."""
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise JobStoreError(f"the list of jobs cannot be read: {error}; restart the server") from error

    def _rows(self, condition: str, values: Sequence[Any] = ()) -> list[Job]:
        return [
            _job(row) for row in self._read(f"SELECT {_COLUMNS} FROM jobs WHERE {condition} ORDER BY number", values)
        ]

    def add(self, new: NewJob) -> Submission:
        """Store a job behind all others.

        Raises:
            RepeatedKeyError: another request was submitted with the same key.
            JobStoreError: the job cannot be written.
        """
        with self._lock:
            if new.key is not None and (earlier := self.of_key(new.key)) is not None:
                return self._again(earlier, new)
            position = self._count("state = 'queued'")
            with self._writing() as connection:
                connection.execute(
                    "INSERT INTO jobs (job_id, state, request, folder, created_at, submission_key)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (new.job_id, new.state, json.dumps(new.request), new.folder, new.created_at, new.key),
                )
            job = self.get(new.job_id)
            assert job is not None
            return Submission(job, position, is_new=True)

    def by_key(self, key: str, request: Mapping[str, Any]) -> Submission | None:
        """Find what was submitted with a key. Raises ``RepeatedKeyError`` if that was another request."""
        with self._lock:
            earlier = self.of_key(key)
            return None if earlier is None else self._again(earlier, NewJob("", request, "", "", key))

    def of_key(self, key: str) -> Job | None:
        """Find the job that was submitted with a key."""
        return next(iter(self._rows("submission_key = ?", (key,))), None)

    def _again(self, earlier: Job, new: NewJob) -> Submission:
        if earlier.request != json.loads(json.dumps(new.request)):
            raise RepeatedKeyError(
                f"another request was submitted with this Idempotency-Key before, as job {earlier.job_id}: give each "
                "submission a key of its own"
            )
        return Submission(earlier, self.position(earlier), is_new=False)

    def get(self, job_id: str) -> Job | None:
        return next(iter(self._rows("job_id = ?", (job_id,))), None)

    def of_state(self, *states: State) -> list[Job]:
        """List jobs of these states, those submitted first at the front."""
        return self._rows(f"state IN ({','.join('?' * len(states))})", states)

    def first_queued(self) -> Job | None:
        return next(iter(self._rows("number = (SELECT MIN(number) FROM jobs WHERE state = 'queued')")), None)

    def counts(self) -> dict[str, int]:
        """Count the jobs of each state that has some."""
        return dict(self._read("SELECT state, COUNT(*) FROM jobs GROUP BY state"))

    def _count(self, condition: str, values: Sequence[Any] = ()) -> int:
        return int(self._read(f"SELECT COUNT(*) FROM jobs WHERE {condition}", values)[0][0])

    def position(self, job: Job) -> int:
        """Count the jobs that are started before a queued one; 0 of all others."""
        return self._count("state = 'queued' AND number < ?", (job.number,)) if job.state == "queued" else 0

    def claim(self, job_id: str, gpus: Sequence[str]) -> bool:
        """Turn a queued job into a running one, which holds these GPUs; ``False`` if it is not queued any longer."""
        with self._writing() as connection:
            done = connection.execute(
                "UPDATE jobs SET state = 'running', started_at = ?, gpus = ? WHERE job_id = ? AND state = 'queued'",
                (now(), json.dumps(list(gpus)), job_id),
            )
        return done.rowcount == 1

    def cancel(self, job_id: str) -> Job | None:
        """End a queued job, or note that a running one is to be ended; return the job as it is then."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE jobs SET state = 'cancelled', completed_at = ?, is_cancelled = 1"
                " WHERE job_id = ? AND state = 'queued'",
                (now(), job_id),
            )
            connection.execute("UPDATE jobs SET is_cancelled = 1 WHERE job_id = ? AND state = 'running'", (job_id,))
        return self.get(job_id)

    def finish(self, job_id: str, ending: Ending) -> bool:
        """End a running job; ``False`` if it has ended before."""
        result = None if ending.result is None else json.dumps(ending.result)
        with self._writing() as connection:
            done = connection.execute(
                "UPDATE jobs SET state = ?, completed_at = ?, result = ?, error = ?, gpus = '[]'"
                " WHERE job_id = ? AND state = 'running'",
                (ending.state, now(), result, ending.error, job_id),
            )
        return done.rowcount == 1

    def drop_ended(self, most: int) -> list[Job]:
        """Take the jobs that ended first off the list, so that ``most`` ended ones stay."""
        ended = "state IN ('completed', 'failed', 'cancelled')"
        oldest = f"number IN (SELECT number FROM jobs WHERE {ended} ORDER BY completed_at DESC, number DESC"
        with self._lock:
            if self._count(ended) <= most:
                return []
            dropped = self._rows(f"{oldest} LIMIT -1 OFFSET ?)", (most,))
            with self._writing() as connection:
                connection.executemany("DELETE FROM jobs WHERE job_id = ?", [(job.job_id,) for job in dropped])
        return dropped

    def restore(self, found: Sequence[Restored]) -> None:
        """Store jobs that were read back from their folders."""
        rows = [
            (
                job.job_id, job.state, json.dumps(job.request), job.folder, job.created_at, job.started_at,
                job.completed_at, None if job.result is None else json.dumps(job.result), job.error, job.is_cancelled,
                json.dumps(job.gpus), key,
            )
            for job, key in ((one.job, one.key) for one in found)
        ]  # fmt: skip
        with self._writing() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO jobs (job_id, state, request, folder, created_at, started_at, completed_at,"
                " result, error, is_cancelled, gpus, submission_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )


def _job(row: Sequence[Any]) -> Job:
    job_id, number, state, request, folder, created, started, completed, result, error, gpus, is_cancelled = row
    return Job(
        job_id, number, state, json.loads(request), folder, created, started, completed,
        None if result is None else json.loads(result), error, tuple(json.loads(gpus)), bool(is_cancelled),
    )  # fmt: skip
