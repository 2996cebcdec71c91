"""Jobs in SQLite: a submission that was confirmed to a client survives the server.

Each row has a checksum over its other columns (``seal``), and a sealed row of ``facts`` holds the number of rows. A bit
that flips on the disk therefore cannot change or remove a job unnoticed.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct

from lmms_eval.errors import JobStoreError, RepeatedKeyError
from lmms_eval.server.folder import JobFolder

State = Literal["queued", "running", "completed", "failed", "cancelled"]
FinalState = Literal["completed", "failed", "cancelled"]
STATES: tuple[State, ...] = get_args(State)
FINAL: frozenset[State] = frozenset({"completed", "failed", "cancelled"})
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
    submission_key TEXT UNIQUE,
    seal TEXT NOT NULL DEFAULT '00000000'
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL, seal TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, number);
"""
log = logging.getLogger(__name__)
_VERSION = 2
"""Version of the schema. A file of a newer version is left alone; version 1 had no checksums."""
_COLUMNS = (
    "job_id, number, state, request, folder, created_at, started_at, completed_at, result, error, gpus, is_cancelled, "
    "submission_key"
)
_VERSION_FACT, _TOTAL_FACT = "version", "total"
_BUSY_S = 10.0
_PLACE = frozenset({
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM,
})  # fmt: skip
"""Codes of errors that do not mean that the file is damaged: it is left as it is."""
DATABASE = "jobs.sqlite"


class Job(Struct, frozen=True):
    """A job in the store."""

    job_id: str
    number: int
    """Number of the submission. Jobs run in this order."""
    state: State
    request: Mapping[str, Any]
    """Body of the submission, with defaults filled in."""
    folder: str
    """Folder of the job's files."""
    created_at: str
    started_at: str | None = None
    completed_at: str | None = None
    result: Mapping[str, Any] | None = None
    error: str | None = None
    gpus: tuple[str, ...] = ()
    """GPUs that the job holds while it runs."""
    is_cancelled: bool = False
    """The job was cancelled. It still counts as running until its processes are gone."""

    @property
    def files(self) -> JobFolder:
        return JobFolder(Path(self.folder))

    @property
    def has_ended(self) -> bool:
        return self.state in FINAL


class JobEnding(Struct, frozen=True):
    """The end of a job."""

    state: FinalState
    result: Mapping[str, Any] | None = None
    error: str | None = None


def now() -> str:
    """Return the current time in the format that jobs record."""
    return datetime.now(tz=UTC).isoformat()


class Submission(Struct, frozen=True):
    """A submitted job: of this call, or of an earlier one with the same key."""

    job: Job
    position: int
    is_new: bool


Restored = tuple[Job, str | None]
"""A job that was recovered from a damaged list or from its folder, and its submission key."""


class JobStore:
    """The jobs of a server. Its threads share one connection; other processes only read.

    Raises:
        sqlite3.DatabaseError: the file is damaged (``open_store`` replaces it).
        JobStoreError: the file cannot be opened or created.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._logged: set[Any] = set()
        """Ids of damaged rows that the log has named."""
        try:
            self._connection = _connection(path)
        except sqlite3.OperationalError as error:
            raise JobStoreError(f"{path} cannot be opened: {error}") from error
        try:
            self._prepare(path)
        except sqlite3.OperationalError as error:
            self._connection.close()
            if error.sqlite_errorcode & 0xFF in _PLACE or not os.access(path, os.W_OK):
                raise JobStoreError(f"{path} cannot be opened: {error}") from error
            raise
        except UnicodeDecodeError as error:  # SQLite's own message repeats damaged bytes
            self._connection.close()
            raise sqlite3.DatabaseError("its schema is not text") from error
        except BaseException:  # re-raised, also a KeyboardInterrupt
            self._connection.close()
            raise

    def _prepare(self, path: Path) -> None:
        """Create or update the tables, and check every row.

        Raises:
            sqlite3.DatabaseError: the file is damaged, or a row is missing or was changed by another program.
            JobStoreError: a newer version has written the file.
        """
        for setting in ("journal_mode=WAL", "synchronous=FULL"):
            self._connection.execute(f"PRAGMA {setting}")
        found = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != ("ok",):
            raise sqlite3.DatabaseError(str(found[0] if found else "no answer"))
        (stated,) = self._connection.execute("PRAGMA user_version").fetchone()
        is_old = not self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone()
        version = stated if is_old else self._fact(_VERSION_FACT)
        if version > _VERSION:
            newer = f"a newer version of lmms_eval has written it (format {version}; this one reads up to {_VERSION})"
            raise JobStoreError(f"{path}: {newer}: update this one, or give it a folder of its own")
        if version != stated or (is_old and stated > 1):
            raise sqlite3.DatabaseError(f"it states format {stated}")
        columns = [row[1] for row in self._connection.execute("PRAGMA table_info(jobs)")]
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")  # after a kill, either all of it was done or nothing
            if columns and "seal" not in columns:
                self._connection.execute("ALTER TABLE jobs ADD COLUMN seal TEXT NOT NULL DEFAULT '00000000'")
            for statement in filter(str.strip, _SCHEMA.split(";")):
                self._connection.execute(statement)
            if "seal" not in columns:  # a new list, or one of version 1
                unsealed = self._connection.execute(f"SELECT {_COLUMNS} FROM jobs").fetchall()
                seals = [(_seal(row), row[0]) for row in unsealed]
                self._connection.executemany("UPDATE jobs SET seal = ? WHERE job_id = ?", seals)
                self._connection.execute(f"PRAGMA user_version = {_VERSION}")
                self._set_fact(_TOTAL_FACT, len(unsealed))
            self._set_fact(_VERSION_FACT, _VERSION)  # fails now if the file cannot be written
        rows = self._connection.execute(f"SELECT {_COLUMNS}, seal FROM jobs").fetchall()
        damaged = [row for row in rows if row[-1] != _seal(row[:-1])]
        if damaged:
            raise sqlite3.DatabaseError(f"{len(damaged)} of {len(rows)} rows do not fit their checksums")
        if len(rows) != self._fact(_TOTAL_FACT):
            raise sqlite3.DatabaseError(f"it holds {len(rows)} jobs instead of {self._fact(_TOTAL_FACT)}")

    def _fact(self, name: str) -> int:
        row = self._connection.execute("SELECT name, value, seal FROM facts WHERE name = ?", (name,)).fetchone()
        if row is None or row[-1] != _seal(row[:-1]):
            raise sqlite3.DatabaseError(f"the fact {name!r} does not fit its checksum")
        return int(row[1])

    def _set_fact(self, name: str, value: int) -> None:
        row = (name, value)
        self._connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (*row, _seal(row)))

    def _recount(self) -> None:
        """Update the stored number of rows, within the transaction that changes it."""
        self._set_fact(_TOTAL_FACT, self._connection.execute("SELECT COUNT(*) FROM jobs").fetchone()[0])

    def _change(self, job_id: str, change: str, values: Sequence[Any]) -> bool:
        """Change a row and reseal it; ``False`` if no row matches. Raises ``JobStoreError`` if the row is damaged."""
        with self._writing() as connection:
            for row in connection.execute(f"SELECT {_COLUMNS}, seal FROM jobs WHERE job_id = ?", (job_id,)):
                if row[-1] != _seal(row[:-1]):
                    raise JobStoreError(_damaged(row))
            done = connection.execute(f"UPDATE jobs SET {change}", values)
            self._seal_row(job_id)
        return done.rowcount == 1

    def _seal_row(self, job_id: str) -> None:
        for row in self._connection.execute(f"SELECT {_COLUMNS} FROM jobs WHERE job_id = ?", (job_id,)).fetchall():
            self._connection.execute("UPDATE jobs SET seal = ? WHERE job_id = ?", (_seal(row), job_id))

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction. Raises ``JobStoreError`` if the disk refuses it; then nothing has changed."""
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
        """Read jobs. A row that was damaged since the server started is skipped, and the log names it once."""
        rows = self._read(f"SELECT {_COLUMNS}, seal FROM jobs WHERE {condition} ORDER BY number", values)
        for row in rows:
            if row[-1] != _seal(row[:-1]) and row[0] not in self._logged:
                self._logged.add(row[0])
                log.error("%s", _damaged(row))
        return [_job(row[:-1]) for row in rows if row[-1] == _seal(row[:-1])]

    def add(
        self, job_id: str, request: Mapping[str, Any], folder: str, created_at: str, key: str | None = None
    ) -> Submission:
        """Append a job to the queue.

        Args:
            job_id: id of the job.
            request: body of the submission.
            folder: folder of the job's files.
            created_at: time of the submission.
            key: the client's key of the submission, which shows a repetition.

        Raises:
            RepeatedKeyError: a different request was submitted with the same key.
            JobStoreError: the job cannot be written.
        """
        with self._lock:
            if key is not None and (earlier := self.by_key(key, request)) is not None:
                return earlier
            position = self._count("state = 'queued'")
            with self._writing() as connection:
                connection.execute(
                    "INSERT INTO jobs (job_id, state, request, folder, created_at, submission_key)"
                    " VALUES (?, 'queued', ?, ?, ?, ?)",
                    (job_id, json.dumps(request), folder, created_at, key),
                )
                self._seal_row(job_id)
                self._recount()
            job = self.get(job_id)
            assert job is not None
            return Submission(job, position, is_new=True)

    def by_key(self, key: str, request: Mapping[str, Any]) -> Submission | None:
        """Find an earlier submission by its key. Raises ``RepeatedKeyError`` if its request was different."""
        with self._lock:
            earlier = self.of_key(key)
            if earlier is None:
                return None
            if earlier.request != json.loads(json.dumps(request)):
                raise RepeatedKeyError(
                    f"another request was submitted with this Idempotency-Key before, as job {earlier.job_id}: give "
                    "each submission a key of its own"
                )
            return Submission(earlier, self.position(earlier), is_new=False)

    def of_key(self, key: str) -> Job | None:
        """Find the job that was submitted with a key."""
        return next(iter(self._rows("submission_key = ?", (key,))), None)

    def get(self, job_id: str) -> Job | None:
        return next(iter(self._rows("job_id = ?", (job_id,))), None)

    def of_state(self, *states: State) -> list[Job]:
        """List the jobs in these states, in the order of submission."""
        return self._rows(f"state IN ({','.join('?' * len(states))})", states)

    def first_queued(self) -> Job | None:
        first, number = "SELECT MIN(number) FROM jobs WHERE state = 'queued' AND number > ?", -(1 << 63)
        while (number := self._read(first, (number,))[0][0]) is not None:
            if found := self._rows("number = ?", (number,)):
                return found[0]
        return None

    def counts(self) -> dict[str, int]:
        """Count the jobs by state; states without jobs are left out."""
        return dict(self._read("SELECT state, COUNT(*) FROM jobs GROUP BY state"))

    def _count(self, condition: str, values: Sequence[Any] = ()) -> int:
        return int(self._read(f"SELECT COUNT(*) FROM jobs WHERE {condition}", values)[0][0])

    def position(self, job: Job) -> int:
        """Count the jobs that start before a queued job; 0 for a job that is not queued."""
        return self._count("state = 'queued' AND number < ?", (job.number,)) if job.state == "queued" else 0

    def claim(self, job_id: str, gpus: Sequence[str]) -> bool:
        """Turn a queued job into a running one that holds these GPUs; ``False`` if it is no longer queued."""
        change = "state = 'running', started_at = ?, gpus = ? WHERE job_id = ? AND state = 'queued'"
        return self._change(job_id, change, (now(), json.dumps(list(gpus)), job_id))

    def cancel(self, job_id: str) -> Job | None:
        """End a queued job, or mark a running one as cancelled. Return the changed job."""
        change = "state = 'cancelled', completed_at = ?, is_cancelled = 1 WHERE job_id = ? AND state = 'queued'"
        with self._lock:
            if not self._change(job_id, change, (now(), job_id)):
                self._change(job_id, "is_cancelled = 1 WHERE job_id = ? AND state = 'running'", (job_id,))
        return self.get(job_id)

    def finish(self, job_id: str, ending: JobEnding) -> bool:
        """End a running job; ``False`` if it has already ended."""
        result = None if ending.result is None else json.dumps(ending.result)
        change = (
            "state = ?, completed_at = ?, result = ?, error = ?, gpus = '[]' WHERE job_id = ? AND state = 'running'"
        )
        return self._change(job_id, change, (ending.state, now(), result, ending.error, job_id))

    def drop_ended(self, most: int) -> list[Job]:
        """Remove the jobs that ended first from the list, so that at most ``most`` ended ones stay."""
        ended = "state IN ('completed', 'failed', 'cancelled')"
        oldest = f"number IN (SELECT number FROM jobs WHERE {ended} ORDER BY completed_at DESC, number DESC"
        with self._lock:
            if self._count(ended) <= most:
                return []
            dropped = self._rows(f"{oldest} LIMIT -1 OFFSET ?)", (most,))
            with self._writing() as connection:
                connection.executemany("DELETE FROM jobs WHERE job_id = ?", [(job.job_id,) for job in dropped])
                self._recount()
        return dropped

    def restore(self, found: Sequence[Restored]) -> None:
        """Store recovered jobs."""
        rows = [
            (
                job.job_id, job.state, json.dumps(job.request), job.folder, job.created_at, job.started_at,
                job.completed_at, None if job.result is None else json.dumps(job.result), job.error, job.is_cancelled,
                json.dumps(job.gpus), key,
            )
            for job, key in found
        ]  # fmt: skip
        with self._writing() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO jobs (job_id, state, request, folder, created_at, started_at, completed_at,"
                " result, error, is_cancelled, gpus, submission_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            for job, _ in found:
                self._seal_row(job.job_id)
            self._recount()


def _connection(path: Path) -> sqlite3.Connection:
    made = sqlite3.connect(path, timeout=_BUSY_S, check_same_thread=False)
    made.text_factory = lambda text: text.decode("utf-8", "surrogateescape")  # a damaged text matches no checksum
    return made


def _seal(row: Sequence[Any]) -> str:
    """Return the checksum of a row's values and their types. Its length is fixed, so a row is sealed in place."""
    return f"{zlib.crc32(json.dumps(row, default=repr).encode()):08x}"


def _damaged(row: Sequence[Any]) -> str:
    return f"the entry of job {row[0]!r} in the list is damaged: restart the server, which restores it from its folder"


def _job(row: Sequence[Any]) -> Job:
    job_id, number, state, request, folder, created, started, completed, result, error, gpus, is_cancelled, _ = row
    return Job(
        job_id, number, state, json.loads(request), folder, created, started, completed,
        None if result is None else json.loads(result), error, tuple(json.loads(gpus)), bool(is_cancelled),
    )  # fmt: skip


def open_store(folder: Path, jobs: Path) -> JobStore:
    """Open the list of jobs in a folder. A damaged list is set aside and rebuilt. Raises ``JobStoreError``."""
    path = folder / DATABASE
    kept: list[Restored] = []
    damaged: list[tuple[str, str]] = []
    is_lost = not path.exists() and any(jobs.glob("*/job.json"))
    try:
        store = JobStore(path)
    except sqlite3.DatabaseError as error:
        kept, damaged = _salvage(path)
        aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d_%H%M%S')}")
        try:
            for ending in ("", "-wal", "-shm"):
                present = path.with_name(path.name + ending)
                if present.exists():
                    present.rename(aside.with_name(aside.name + ending))
        except OSError as fault:
            raise JobStoreError(f"{path} is damaged and cannot be set aside: {fault.strerror or fault}") from fault
        log.warning("%s is damaged (%s): it is kept as %s, and the list is rebuilt", path, error, aside.name)
        store, is_lost = JobStore(path), True
    if is_lost:
        _refill(store, jobs, kept, damaged)
    return store


def _salvage(path: Path) -> tuple[list[Restored], list[tuple[str, str]]]:
    """Read a damaged list without changing it.

    Returns:
        The jobs of the rows that match their checksums, and the ids and folders of the other rows. An id that is not
        text is left empty.
    """
    jobs: list[Restored] = []
    damaged: list[tuple[str, str]] = []
    try:
        connection = _connection(path)
    except sqlite3.Error:
        return jobs, damaged
    try:
        for row in connection.execute(f"SELECT {_COLUMNS}, seal FROM jobs"):
            if row[-1] == _seal(row[:-1]):
                jobs.append((_job(row[:-1]), row[-2]))
            else:
                damaged.append((row[0] if isinstance(row[0], str) else "", str(row[4])))
    except (sqlite3.Error, UnicodeDecodeError):  # rows after the damage cannot be read
        pass
    finally:
        connection.close()
    return jobs, damaged


def _refill(store: JobStore, jobs: Path, kept: Sequence[Restored], damaged: Sequence[tuple[str, str]]) -> None:
    """Fill a new list from a damaged one and from the jobs' folders. Raises ``JobStoreError``."""
    names = {job.job_id for job, _ in kept}
    read = [(job, key) for job, key in _read_back(jobs) if job.job_id not in names]
    known = {text for job, _ in (*kept, *read) for text in (job.job_id, job.folder)}
    lost = {name for name, folder in damaged if name and known.isdisjoint((name, folder))}
    unknown = {name: path for name in lost for path in jobs.iterdir() if path.name.endswith(name)}
    reason = "its entry in the list of jobs was damaged, and its folder does not hold the request: submit it again"
    failed = [
        Job(name, 0, "failed", {"model": "", "tasks": []}, str(path), now(), completed_at=now(), error=reason)
        for name, path in unknown.items()
    ]
    store.restore(sorted([*kept, *read, *((job, None) for job in failed)], key=lambda one: one[0].created_at))
    log.warning("%d jobs were restored from %s, %d from intact entries of the list", len(read), jobs, len(kept))
    for name in unknown:
        log.error("job %s: its entry in the list is damaged, and its folder does not hold it: it has failed", name)


def _read_back(jobs: Path) -> Iterator[Restored]:
    """Yield the jobs that their folders describe. A job whose run has begun continues."""
    for file in jobs.glob("*/job.json"):
        folder = JobFolder(file.parent)
        found = folder.read(file)
        texts = {name: value for name, value in found.items() if isinstance(value, str)}
        request, result, created = found.get("request"), found.get("result"), texts.get("created_at")
        if not (isinstance(request, dict) and created is not None and "job_id" in texts):
            log.warning("%s does not describe a job: it is left out of the list", file)
            continue
        has_begun = folder.has_keeper or folder.exit() is not None
        final: State | None = next((one for one in FINAL if one == found.get("state")), None)
        state: State = final or ("running" if has_begun else "queued")
        job = Job(
            job_id=texts["job_id"],
            number=0,
            state=state,
            request=request,
            folder=str(file.parent),
            created_at=created,
            started_at=texts.get("started_at") or (created if state == "running" else None),
            completed_at=texts.get("completed_at"),
            result=result if isinstance(result, dict) else None,
            error=texts.get("error"),
            gpus=tuple(folder.read(folder.start_file).get("gpus", ())) if state == "running" else (),
            is_cancelled=folder.cancel_file.exists(),
        )
        yield job, texts.get("key")
