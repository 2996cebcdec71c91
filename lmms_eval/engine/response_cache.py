"""The cache of responses across runs (``--use_cache``).

It is searched before a request is prepared, and filled when a response arrives. Requests without an exact key are
skipped and counted: a cache that could return a wrong answer would be worse than no cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from loguru import logger
from msgspec import Struct, field, structs

from lmms_eval.api.messages import ChatMessages, ChatTextContent, ChatVideoContent
from lmms_eval.api.request import GeneratedImage, Request, Response
from lmms_eval.api.response import is_invisible
from lmms_eval.api.task import Task
from lmms_eval.engine.records import images_of, mapped_pictures, response_from_record, response_record
from lmms_eval.errors import UsageError
from lmms_eval.media.reference import digest
from lmms_eval.storage import codec

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
    """Return the database for ``--use_cache NAME``: ``NAME`` if it ends in ``.db``, else a file in that folder."""
    path = Path(name).expanduser()
    return path if path.suffix == ".db" else path / DEFAULT_NAME


class Stats(Struct, frozen=True):
    """The numbers of ``lmms-eval cache stats``."""

    responses: int
    bytes: int
    models: dict[str, int] = field(default_factory=dict)
    oldest: float | None = None
    newest: float | None = None
    """Seconds since 1970."""


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the file is damaged, in contrast to locked, full or read-only."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _DAMAGE or isinstance(error, DamagedFile)


class DamagedFile(sqlite3.DatabaseError):
    """SQLite's integrity check failed."""


class CacheFile:
    """The database of the cache, which is created if it does not exist.

    ``check``: check the integrity of the whole file first. Raises ``UsageError`` if the path cannot be used, or is the
    database of another program.
    """

    def __init__(self, path: Path, check: bool = True) -> None:
        self.path, self._check = path, check
        self._lock = threading.RLock()
        self.damaged_rows = 0
        self.set_aside: Path | None = None
        """Path of a damaged database after it was moved on opening."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._exclusive():
                self._connection = self._open()
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"the response cache {path} cannot be opened: {error}") from error

    def get(self, key: str) -> bytes | None:
        """Return the record of a key. Raises ``sqlite3.Error``."""
        with self._lock:
            found = self._connection.execute(
                "SELECT model, record, digest FROM responses WHERE key = ?", (key,)
            ).fetchone()
            if found is None:
                return None
            model, record, digest = found
            if _fits(key, model, record, digest):
                content: bytes = record
                return content
            self.damaged_rows += 1
            self._connection.execute("DELETE FROM responses WHERE key = ? AND digest = ?", (key, digest))
            return None

    def put(self, key: str, model: str, record: bytes) -> bool:
        """Store a record; returns ``False`` if the key already has one. Raises ``sqlite3.Error``."""
        values = (key, model, record, _digest(key, model, record), time.time())
        with self._lock:
            done = self._connection.execute("INSERT OR IGNORE INTO responses VALUES (?, ?, ?, ?, ?)", values)
            return done.rowcount > 0

    def repair(self) -> None:
        """Start a new file after damage, unless another process already did. Raises ``UsageError`` if that fails."""
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
        """Delete rows before a time (seconds since 1970), of a model, or both; returns their number."""
        with self._lock:
            done = self._connection.execute(
                "DELETE FROM responses WHERE (?1 IS NULL OR stored < ?1) AND (?2 IS NULL OR model = ?2)",
                (before, model),
            )
            self._connection.execute("VACUUM")
            return done.rowcount

    def verify(self) -> int:
        """Delete all rows that do not match their digest; returns their number."""
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
        """Lock the file against other processes while it is opened, created or replaced."""
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
        # The database must be one of ours; an empty one gets the table.
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
        if check:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise DamagedFile(found)
        unless_sound.pop_all()
    return connection


def _move_aside(path: Path) -> Path:
    number = 1
    while (target := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for part in _parts(path):
        part.rename(path.with_name(target.name + part.name.removeprefix(path.name)))
    return target


def _parts(path: Path) -> list[Path]:
    """Return the existing files of the database, including SQLite's auxiliary files."""
    return [part for end in ("", "-wal", "-shm") if (part := path.with_name(path.name + end)).exists()]


def _text(content: bytes) -> str:
    """Decode a text; a damaged one need not raise, since it does not match its digest."""
    return content.decode("utf-8", "replace")


def _digest(key: str, model: str, record: bytes) -> str:
    return hashlib.sha256(b"\0".join((key.encode(), model.encode(), record))).hexdigest()


def _fits(key: str, model: str, record: object, digest: str) -> bool:
    return isinstance(record, bytes) and _digest(key, model, record) == digest


SCHEME = 1
"""Version of the keys; to be increased whenever their meaning changes."""
COUNTS = ("n", "best_of", "num_return_sequences")
_CONTENT = frozenset({"bytes", "array", "path", "url", "video", "image", "audio"})


class CacheKeys:
    """Computes the keys of one model's requests.

    Args:
        identity: everything except the request that determines the model's answers, without secrets.
        reads_documents: the model reads the task's documents itself, so the document is part of the key.

    Raises:
        VolatileValue: ``identity`` holds a value that cannot be hashed.
    """

    def __init__(self, identity: Mapping[str, Any], reads_documents: bool) -> None:
        self._identity = _hash(identity)
        self._reads_documents = reads_documents
        self._tasks: dict[str, str] = {}
        self._lock = threading.Lock()

    def key(self, request: Request, messages: ChatMessages) -> str:
        """Return the key of a request, a hexadecimal SHA-256.

        Raises:
            MediaError: a picture, video or sound cannot be read.
            VolatileValue: a generation option or a part of a message cannot be hashed.
        """
        document = None
        if self._reads_documents:
            task = self._task(request.task)
            document = [task, request.doc_id, request.round, request.index, request.seed, request.context]
        # Only added if it is set, so that older keys of requests without it stay valid.
        added: dict[str, Any] = {"implied_stop": request.implied_stop} if request.implied_stop else {}
        if messages.is_plain:
            added["plain"] = True
        if request.moves_blanks:
            added["moves_blanks"] = "true"
        if request.media is not None:
            added["media"] = request.media.stated
        return _hash(
            {
                "scheme": SCHEME,
                "model": self._identity,
                "kind": request.kind,
                "messages": [[m.role, [_part(part) for part in m.content]] for m in messages.messages],
                "generation": dict(request.generation),
                "continuation": [request.continuation, request.implied_delimiter],
                "repeat": request.repeat,
                "document": document,
                **added,
            }
        )

    def _task(self, task: Task) -> str:
        with self._lock:
            if task.name not in self._tasks:
                parts = {part: value for part, value in task.fingerprint().items() if part not in _NO_PROMPT}
                self._tasks[task.name] = _hash({"name": task.name, "parts": parts})
            return self._tasks[task.name]


def is_sampled(options: Mapping[str, Any]) -> bool:
    """Return whether generation with these options may give different answers."""
    return (
        bool(options.get("do_sample"))
        or _number(options.get("temperature")) > 0
        or any(_number(options.get(name)) > 1 for name in COUNTS)
        or any(_holds_sampling(value) for value in options.values())
    )


def _holds_sampling(value: Any) -> bool:
    """Return whether an option is a mapping, or JSON text of one, with sampling options (``extra_body``, ...)."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return True  # treated as sampling, so that no wrong answer is cached
    return isinstance(value, Mapping) and is_sampled(value)


def _number(value: Any) -> float:
    try:
        return float(value or 0)
    except (TypeError, ValueError):
        return float("inf")  # treated as sampling, so that no wrong answer is cached


def _part(part: Any) -> list[Any]:
    if isinstance(part, ChatTextContent):
        return ["text", part.text]
    times = [part.start_time, part.end_time] if isinstance(part, ChatVideoContent) else []
    return [part.type, _media(part.url), *times]


def _media(value: Any) -> Any:
    if isinstance(value, list | tuple):  # frames
        return [_media(item) for item in value]
    if isinstance(value, Mapping):  # content with further facts (times, frame counts, ...)
        return [digest(value), {str(name): item for name, item in value.items() if name not in _CONTENT}]
    return digest(value)


def _hash(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(codec.encode(value), option=orjson.OPT_SORT_KEYS)).hexdigest()


COUNTED = ("hit", "stored", "skipped", "failed", "damaged")
IMAGES = "images"
"""Key of a record for the bytes of its pictures by their hash."""
_NO_PROMPT = ("scoring", "pack")
"""Parts of a task's fingerprint that change no request."""
_ERRORS = (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError)
"""Errors of the database, and of records in another form."""


class ResponseCache:
    """The cache of one run; thread-safe.

    Args:
        file: the database.
        keys: ``None`` if the model has no identity; then every request is skipped.
        model: name of the model for ``lmms-eval cache stats``.
        defaults: generation options in the model's own arguments.
    """

    def __init__(
        self, file: CacheFile, keys: CacheKeys | None, model: str, defaults: Mapping[str, Any] | None = None
    ) -> None:
        self.file, self._keys, self._model = file, keys, model
        self._is_sampling = is_sampled(defaults or {})
        self._counts = dict.fromkeys(COUNTED, 0)
        self._lock = threading.Lock()
        self._has_warned = False

    def key(self, request: Request, build_messages: Callable[[], ChatMessages]) -> str | None:
        """Return the key of a request; ``None``, and counted, if it cannot be cached."""
        is_generation = not request.is_likelihood
        if (
            self._keys is None
            or request.task.asks_again  # a second answer must come from the model
            or request.kind == "generate_until_multi_round"
            or (is_generation and (self._is_sampling or is_sampled(request.generation)))
        ):
            self._count("skipped")
            return None
        try:
            return self._keys.key(request, build_messages())
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - task functions may raise anything; preparing the request reports it
            logger.debug("{} is not cached: {}: {}", request.id, type(error).__name__, error)
            self._count("skipped")
            return None

    def get(self, key: str, request_id: str) -> tuple[Response, str] | None:
        """Return the response of a key, with the id of this request, and the fingerprint of its original prompt."""
        try:
            line = self.file.get(key)
            if line is None:
                return None
            record = codec.loads(line)
            found = {**record, "id": request_id, "cached": True}
            response = with_images(response_from_record(found), record.get(IMAGES, {}))
        except _ERRORS as error:
            self._failed(error)
            return None
        self._count("hit")
        return response, record.get("prompt", "")

    def put(self, key: str, response: Response, prompt: str) -> None:
        """Store a response unless it is an error or blank."""
        if not is_good(response):
            return
        kept = structs.replace(
            response, request_id="", latency=None, ttft=None, tokens_per_second=None, attempts=1, batch=(), messages=(),
            is_cached=False, media=tuple(replace(one, stored=(), not_stored="") for one in response.media),
        )  # fmt: skip
        try:
            record = response_record(kept, prompt)
            if images := images_of(kept):
                record[IMAGES] = {image.sha256: image.data for image in images}
            if self.file.put(key, self._model, codec.dumps(record)):
                self._count("stored")
        except (sqlite3.Error, codec.VolatileValue) as error:
            self._failed(error)

    def counts(self) -> dict[str, int]:
        """Return the counts by outcome; ``damaged`` counts deleted rows, ``failed`` failed reads and writes."""
        with self._lock:
            return {**self._counts, "damaged": self.file.damaged_rows}

    def close(self) -> None:
        self.file.close()

    def _count(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1

    def _failed(self, error: Exception) -> None:
        """Count a failed read or write, and continue the run without the cache."""
        self._count("failed")
        with self._lock:
            is_first, self._has_warned = not self._has_warned, True
        if is_first:
            logger.warning("the response cache {} failed: {}: {}", self.file.path, type(error).__name__, error)
        if isinstance(error, sqlite3.Error) and is_damage(error):
            self.file.repair()


def with_images(response: Response, data: Mapping[str, bytes]) -> Response:
    """Return the response with the bytes of its pictures. Raises ``KeyError`` if one is missing."""

    def whole(image: GeneratedImage) -> GeneratedImage:
        return replace(image, data=data[image.sha256])

    parts = tuple(part if isinstance(part, str) else whole(part) for part in response.parts)
    messages = tuple(mapped_pictures(message, whole) for message in response.tool_messages)
    return structs.replace(response, parts=parts, tool_messages=messages)


def is_good(response: Response) -> bool:
    """Return whether a response is worth caching: it has no error, and a visible text or a picture."""
    if response.error is not None:
        return False
    if response.parts:
        return all(image.data is not None for image in images_of(response))
    if response.loglikelihood is not None:
        return not math.isnan(response.loglikelihood)
    texts = response.rounds if response.rounds is not None else (response.text,)
    return bool(texts) and all(text is not None and not is_invisible(text) for text in texts)
