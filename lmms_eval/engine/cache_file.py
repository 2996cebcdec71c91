"""The file of the response cache: one SQLite database in WAL mode, shared by any number of processes.

Every write is one short transaction. A damaged database is moved aside and a new one begun; a row whose digest does
not fit its content is deleted, never answered with.
"""

from __future__ import annotations

import fcntl
import hashlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loguru import logger

from lmms_eval.errors import UsageError

DEFAULT_NAME = "responses.db"
APPLICATION_ID = 0x4C4D4352
VERSION = 1
BUSY_S = 20.0
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TABLE = (
    "CREATE TABLE IF NOT EXISTS responses (key TEXT PRIMARY KEY, model TEXT NOT NULL, record BLOB NOT NULL, "
    "digest TEXT NOT NULL, stored REAL NOT NULL) WITHOUT ROWID"
)


def cache_path(name: str | Path) -> Path:
    """The database that ``--use_cache NAME`` means: a file that ends in ``.db``, or one in the folder."""
    path = Path(name).expanduser()
    return path if path.suffix == ".db" else path / DEFAULT_NAME


@dataclass(frozen=True, slots=True)
class Row:
    """Content of one key."""

    model: str
    record: bytes


@dataclass(frozen=True, slots=True)
class Stats:
    """Numbers that ``lmms-eval cache stats`` shows."""

    responses: int
    bytes: int
    models: dict[str, int] = field(default_factory=dict)
    oldest: float | None = None
    newest: float | None = None
    """Seconds since 1970."""


def is_damage(error: sqlite3.Error) -> bool:
    """The file itself is broken, as opposed to locked, full or read-only."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _DAMAGE or isinstance(error, DamagedFile)


class DamagedFile(sqlite3.DatabaseError):
    """SQLite's own check found a fault."""


class CacheFile:
    """``path`` is opened, and made if it does not exist.

    Args:
        path: the database.
        check: let SQLite check the whole file first.

    Raises:
        UsageError: the path cannot be used, or holds a database of something else.
    """

    def __init__(self, path: Path, check: bool = True) -> None:
        self.path, self._check = path, check
        self._lock = threading.RLock()
        self.damaged_rows = 0
        self.set_aside: Path | None = None
        """Place to which a damaged database of this opening was moved."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._exclusive():
                self._connection = self._open()
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"the response cache {path} cannot be opened: {error}") from error

    def get(self, key: str) -> Row | None:
        """Look a key up. Raises ``sqlite3.Error``."""
        with self._lock:
            found = self._connection.execute(
                "SELECT model, record, digest FROM responses WHERE key = ?", (key,)
            ).fetchone()
            if found is None:
                return None
            model, record, digest = found
            if _fits(key, model, record, digest):
                return Row(model, record)
            self.damaged_rows += 1
            self._connection.execute("DELETE FROM responses WHERE key = ? AND digest = ?", (key, digest))
            return None

    def put(self, key: str, row: Row) -> bool:
        """Keep a response; ``False`` if the key holds one already. Raises ``sqlite3.Error``."""
        values = (key, row.model, row.record, _digest(key, row.model, row.record), time.time())
        with self._lock:
            done = self._connection.execute("INSERT OR IGNORE INTO responses VALUES (?, ?, ?, ?, ?)", values)
            return done.rowcount > 0

    def repair(self) -> None:
        """Begin anew after damage, unless another process has done so. Raises ``UsageError`` if that fails."""
        with self._lock:
            self._connection.close()
            try:
                with self._exclusive():
                    self._connection = self._open()
            except (OSError, sqlite3.Error) as error:
                raise UsageError(f"the response cache {self.path} cannot be repaired: {error}") from error

    def stats(self) -> Stats:
        with self._lock:
            ask = self._connection.execute
            count, oldest, newest = ask("SELECT COUNT(*), MIN(stored), MAX(stored) FROM responses").fetchone()
            models = dict(ask("SELECT model, COUNT(*) FROM responses GROUP BY model ORDER BY model").fetchall())
        return Stats(count, sum(part.stat().st_size for part in _parts(self.path)), models, oldest, newest)

    def prune(self, before: float | None, model: str | None) -> int:
        """Delete what was stored before a time (seconds since 1970), or by a model, or both; returns how many."""
        with self._lock:
            done = self._connection.execute(
                "DELETE FROM responses WHERE (?1 IS NULL OR stored < ?1) AND (?2 IS NULL OR model = ?2)",
                (before, model),
            )
            self._connection.execute("VACUUM")
            return done.rowcount

    def verify(self) -> int:
        """Check every row against its digest and delete what does not fit; returns how many."""
        with self._lock:
            rows = self._connection.execute("SELECT key, model, record, digest FROM responses")
            bad = [key for key, model, record, digest in rows if not _fits(key, model, record, digest)]
            self._connection.executemany("DELETE FROM responses WHERE key = ?", [(key,) for key in bad])
        self.damaged_rows += len(bad)
        return len(bad)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """One process at a time opens, makes or replaces the file."""
        with self.path.with_name(f"{self.path.name}.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _open(self) -> sqlite3.Connection:
        try:
            return _connect(self.path, self._check)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self.set_aside = _move_aside(self.path)
            logger.warning(
                "the response cache {} is damaged ({}): moved to {}, a new one is begun",
                self.path, error, self.set_aside,
            )  # fmt: skip
            return _connect(self.path, check=False)


def _connect(path: Path, check: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    connection.text_factory = _text
    with ExitStack() as unless_sound:
        unless_sound.callback(connection.close)
        _claim(connection, path)
        if check:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise DamagedFile(found)
        unless_sound.pop_all()
    return connection


def _claim(connection: sqlite3.Connection, path: Path) -> None:
    """Tell our database from another program's, and make the table in an empty one."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    is_empty = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] == 0
    if not is_empty and (application, version) != (APPLICATION_ID, VERSION):
        raise UsageError(f"{path} is a database of another program or version: name another file or folder")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if is_empty:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute(_TABLE)


def _move_aside(path: Path) -> Path:
    number = 1
    while (target := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for part in _parts(path):
        part.rename(path.with_name(target.name + part.name.removeprefix(path.name)))
    return target


def _parts(path: Path) -> list[Path]:
    """The database and SQLite's files beside it, those that exist."""
    return [part for end in ("", "-wal", "-shm") if (part := path.with_name(path.name + end)).exists()]


def _text(content: bytes) -> str:
    """Damaged text fits no digest; it need not be an error too."""
    return content.decode("utf-8", "replace")


def _digest(key: str, model: str, record: bytes) -> str:
    return hashlib.sha256(b"\0".join((key.encode(), model.encode(), record))).hexdigest()


def _fits(key: str, model: str, record: object, digest: str) -> bool:
    return isinstance(record, bytes) and _digest(key, model, record) == digest
