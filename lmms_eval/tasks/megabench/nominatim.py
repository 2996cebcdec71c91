"""A live geocoder: a server with Nominatim's search protocol, asked at most once a second by all processes.

The public server's rules (usage policy of the OpenStreetMap Foundation): one request a second in all, a user agent
that names the program, answers cached. Nothing is sent unless ``--geocoder`` is given.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import sqlite3
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import closing, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.megabench.geocoding import Coordinates, GeocodeTable, Query, coordinates, query_key

log = logging.getLogger(__name__)
PUBLIC_SERVER = "https://nominatim.openstreetmap.org"
INTERVAL_S = 1.0
TIMEOUT_S = 10.0
LOCK_TIMEOUT_S = 30.0
ATTEMPTS = 3
MAX_REPLY_BYTES = 1 << 20
MAX_WAIT_S = 120.0
"""A reservation further ahead comes from a clock that was set back."""
_TRANSIENT = frozenset({429, 500, 502, 503, 504})
_SCHEMA = """
create table if not exists answers (
    server text, query text, latitude real, longitude real, primary key (server, query)
);
create table if not exists turns (server text primary key, next real not null);
"""


def server_url(name: str) -> str:
    """Return the base URL; ``nominatim`` means the public server."""
    return PUBLIC_SERVER if name == "nominatim" else name.rstrip("/")


def cache_file() -> Path:
    """Return the path of the database of earlier answers: ``lmms_eval/geocode.db`` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lmms_eval" / "geocode.db"


class AnswerMemory:
    """Answers of a server, found or not, and the turns to ask it; shared by all processes of the user.

    If the file cannot be used, answers and turns are kept in this process alone.
    """

    def __init__(self, server: str, path: Path | None = None) -> None:
        self._server, self._path = server_url(server), path or cache_file()
        self._own: dict[str, Coordinates | None] = {}
        self._next = 0.0

    def find(self, query: Query) -> Coordinates | None:
        """Return an earlier answer, ``None`` if the place does not exist. Raises ``KeyError`` without an answer."""
        key = query_key(query)
        if key not in self._own:
            select = "select latitude, longitude from answers where server = ? and query = ?"
            row = self._transact(lambda database: database.execute(select, (self._server, key)).fetchone())
            if row:
                self._own[key] = None if row[0] is None else Coordinates(row[0], row[1])
        return self._own[key]

    def keep(self, query: Query, found: Coordinates | None) -> None:
        """Remember an answer."""
        key = query_key(query)
        self._own[key] = found
        point = (None, None) if found is None else (found.latitude, found.longitude)
        insert = "insert or replace into answers values (?, ?, ?, ?)"
        self._transact(lambda database: database.execute(insert, (self._server, key, *point)))

    def take_turn(self, now: float) -> float:
        """Reserve the next turn to ask, ``INTERVAL_S`` after the last one. Returns its time in seconds since 1970."""

        def reserve(database: sqlite3.Connection) -> float:
            row = database.execute("select next from turns where server = ?", (self._server,)).fetchone()
            turn = max(now, row[0]) if row and row[0] < now + MAX_WAIT_S else now
            database.execute("insert or replace into turns values (?, ?)", (self._server, turn + INTERVAL_S))
            return float(turn)

        turn = self._transact(reserve)
        if turn is None:
            turn = max(now, self._next)
            self._next = turn + INTERVAL_S
        return float(turn)

    def _transact(self, action: Callable[[sqlite3.Connection], Any]) -> Any:
        """Run an action in one transaction; ``None`` if the file cannot be used."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=LOCK_TIMEOUT_S, isolation_level=None)) as database:
                database.executescript(_SCHEMA)
                database.execute("begin immediate")
                result = action(database)
                database.execute("commit")
        except (OSError, sqlite3.Error) as error:
            log.warning("geocoding answers are not kept: %s: %s", self._path, error)
            return None
        return result


class Nominatim(Struct, frozen=True):
    """Asks a table first, then earlier answers, then the server: ``GET BASE/search`` with a structured query."""

    server: str
    memory: AnswerMemory
    table: GeocodeTable | None = None
    sleep: Callable[[float], None] = time.sleep

    def locate(self, query: Query) -> Coordinates | None:
        """Return a place's coordinates; ``None`` if it does not exist. Answers are kept, failures are not.

        Raises ``NotEvaluated`` if there is no answer.
        """
        for source in (self.table, self.memory):
            with suppress(KeyError):
                if source is not None:
                    return source.find(query)
        found = self.ask(query)
        self.memory.keep(query, found)
        return found

    def ask(self, query: Query) -> Coordinates | None:
        """Return the first hit's coordinates; ``None`` without a hit. Raises ``NotEvaluated`` when the server fails."""
        try:
            version = metadata.version("lmms_eval")
        except metadata.PackageNotFoundError:
            version = "source"
        parameters = urllib.parse.urlencode({**query, "format": "jsonv2", "limit": 1}, errors="replace")
        request = urllib.request.Request(
            f"{server_url(self.server)}/search?{parameters}",
            headers={"User-Agent": f"lmms-eval/{version} (evaluation of multimodal models)"},
        )
        reason = ""
        for _ in range(ATTEMPTS):
            now = time.time()
            self.sleep(max(0.0, self.memory.take_turn(now) - now))
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
                    content: bytes = reply.read(MAX_REPLY_BYTES + 1)
                if len(content) > MAX_REPLY_BYTES:
                    raise ValueError(f"more than {MAX_REPLY_BYTES} bytes")
                hits: Any = json.loads(content)
                if not isinstance(hits, list):
                    raise TypeError("the reply is no list")
                return coordinates(hits[0]["lat"], hits[0]["lon"]) if hits else None
            except urllib.error.HTTPError as error:
                reason = f"status {error.code}"
                error.close()
                if error.code not in _TRANSIENT:
                    break
            except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, IndexError) as error:
                reason = f"{type(error).__name__}: {error}"
        raise NotEvaluated(f"the geocoder {server_url(self.server)} gave no answer ({reason})")
