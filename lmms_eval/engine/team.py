"""The processes of one launch, which share the documents and exchange messages.

They communicate through the key-value store of the launch: ``StoreServer`` for ``--processes``, ``torch.distributed``
for accelerate, torchrun and SLURM. It holds a counter that gives processes blocks of documents, so that a slow
process takes fewer; states and heartbeats; and, without shared files, the finished records. There are no collective
operations: no process waits for another while there is work.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import orjson
from msgspec import Struct

from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.utils.launch import STORE_PORT, STORE_TOKEN

P = ParamSpec("P")
T = TypeVar("T")
HOST = "127.0.0.1"


class StoreServer:
    """Context that serves the store by threads of this process."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._numbers: dict[str, int] = {}
        self._lock = threading.Lock()
        self._key = secrets.token_hex(32)
        self._listener = Listener((HOST, 0), "AF_INET", backlog=128)
        self._connections: list[Connection] = []
        self._is_closed = False

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for the processes of the launch."""
        return {STORE_PORT: str(self._listener.address[1]), STORE_TOKEN: self._key}

    def __enter__(self) -> StoreServer:
        threading.Thread(target=self._accept, name="store", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        with suppress(OSError):  # wakes the accepting thread
            Client((HOST, self._listener.address[1])).close()
        self._listener.close()
        with self._lock:
            for connection in self._connections:
                with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
                    line.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                connection = self._listener.accept()
            except OSError:  # the client went away
                continue
            with self._lock:
                self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), name="store", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with connection, suppress(OSError, EOFError, AuthenticationError):  # the process ended, or has no key
            # In this thread, so that a client that sends nothing does not block the accepting thread.
            deliver_challenge(connection, self._key.encode())
            answer_challenge(connection, self._key.encode())
            while True:
                head, _, value = connection.recv_bytes().partition(b"\n")
                operation, keys, number = orjson.loads(head)
                with self._lock:
                    answer = self._answer(operation, keys, number, value)
                connection.send_bytes(answer)

    def _answer(self, operation: str, keys: list[str], number: int, value: bytes) -> bytes:
        """Execute an operation; returns ``-`` for a missing value, else ``+`` and the result."""
        key = keys[0]
        match operation:
            case "set":
                self._values[key] = value
                return b"+"
            case "get":
                return b"+" + self._values[key] if key in self._values else b"-"
            case "add":
                self._numbers[key] = self._numbers.get(key, 0) + number
                return b"+%d" % self._numbers[key]
            case "delete":
                return b"+1" if self._values.pop(key, None) is not None else b"+"
            case _:
                return b"+1" if all(name in self._values for name in keys) else b"+"


class StoreClient:
    """A thread-safe client of a ``StoreServer``. Raises ``OSError`` if that has ended, or rejects the key."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        try:
            self._connection = Client((HOST, int(environ[STORE_PORT])), authkey=environ[STORE_TOKEN].encode())
        except (EOFError, AuthenticationError) as error:
            raise ConnectionError(f"the launch's store refused the connection: {error}") from error
        self._lock = threading.Lock()

    def set(self, key: str, value: bytes) -> None:
        """Store a value."""
        self._ask("set", [key], value=value)

    def get(self, key: str) -> bytes:
        """Return a value. Raises ``KeyError`` if it is missing."""
        return self._ask("get", [key])

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which starts at 0; returns the sum."""
        return int(self._ask("add", [key], amount))

    def delete_key(self, key: str) -> bool:
        """Delete a value; returns whether it existed."""
        return bool(self._ask("delete", [key]))

    def check(self, keys: list[str]) -> bool:
        """Return whether all of these values exist."""
        return bool(self._ask("check", keys))

    def _ask(self, operation: str, keys: list[str], number: int = 0, value: bytes = b"") -> bytes:
        try:
            with self._lock:
                self._connection.send_bytes(orjson.dumps([operation, keys, number]) + b"\n" + value)
                answer = self._connection.recv_bytes()
        except EOFError as error:
            raise ConnectionError("the launch's store has ended") from error
        if answer[:1] == b"-":
            raise KeyError(keys[0])
        return answer[1:]


POLL_S = 0.05
FIRST_POLL_S = 0.001
BEAT_S = 1.0
CLOSE_S = 5.0
DEAD_AFTER_S = 60.0
"""A process without a heartbeat for so many seconds counts as dead."""
CHUNK_BYTES = 1 << 20
MAX_BLOCK = 64
HOST_IS_GONE = (
    "the process that hosts the launch's store (the launcher, or the first process) has ended; what was finished is "
    "kept: start the same command again"
)

Patience = float | Callable[[], float | None] | None
"""Seconds, ``None`` for no limit, or a function that returns either and is called repeatedly."""


class TeamError(LmmsEvalError):
    """Another process of the launch failed or vanished."""


class KeyValueStore(Protocol):
    """The part of ``torch.distributed.Store`` that is used."""

    def set(self, key: str, value: bytes) -> None: ...
    def get(self, key: str) -> bytes: ...
    def add(self, key: str, amount: int) -> int: ...
    def delete_key(self, key: str) -> bool: ...
    def check(self, keys: list[str]) -> bool: ...


class HostedStore:
    """A ``KeyValueStore`` in another process. If that process ends, every call raises ``TeamError``."""

    def __init__(self, store: KeyValueStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return partial(_hosted, getattr(self._store, name))


def _hosted(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function of a store. Raises ``TeamError`` if the host of the store has ended."""
    try:
        return function(*args, **kwargs)
    except (RuntimeError, OSError) as error:
        raise TeamError(HOST_IS_GONE) from error


class Place(Struct, frozen=True):
    """The position of this process in the launch."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    attempt: int = 0
    """Number of times that an elastic launcher has restarted the processes."""


def place_from_environment(environ: Mapping[str, str]) -> Place:
    """Read RANK, WORLD_SIZE and LOCAL_RANK. Raises ``UsageError`` for invalid values."""
    try:
        place = Place(
            int(environ.get("RANK") or 0),
            int(environ.get("WORLD_SIZE") or 1),
            int(environ.get("LOCAL_RANK") or 0),
            int(environ.get("TORCHELASTIC_RESTART_COUNT") or 0),
        )
    except ValueError as error:
        raise UsageError(f"RANK, WORLD_SIZE and LOCAL_RANK must be whole numbers: {error}") from error
    if not 0 <= place.rank < place.size:
        raise UsageError(f"RANK={place.rank} with WORLD_SIZE={place.size}: start through accelerate launch or torchrun")
    if place.size > 1 and not (environ.get("MASTER_ADDR") and environ.get("MASTER_PORT")):
        raise UsageError("several processes need MASTER_ADDR and MASTER_PORT: use accelerate launch or torchrun")
    return place


def connect(place: Place, timeout_s: float = 600.0) -> KeyValueStore:
    """Connect to the launch's store; waits for the process that hosts it.

    Raises:
        UsageError: the store is PyTorch's, which is not installed.
        TeamError: the host of the store has ended.
    """
    if STORE_PORT in os.environ:
        return cast(KeyValueStore, HostedStore(_hosted(StoreClient, os.environ)))
    # Read when PyTorch is loaded: else each waiting call would print a C++ traceback if the host ends.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from datetime import timedelta

    try:
        from torch.distributed import PrefixStore
        from torch.distributed.rendezvous import rendezvous
    except ModuleNotFoundError as error:
        raise UsageError(
            "the processes of accelerate, torchrun and SLURM meet in a store of PyTorch, which is not installed: "
            "install torch, or give --processes N to a plain start on one machine"
        ) from error

    store, _, _ = next(iter(rendezvous("env://", place.rank, place.size, timeout=timedelta(seconds=timeout_s))))
    return cast(KeyValueStore, HostedStore(PrefixStore("lmms_eval", store)))


class Counter(Protocol):
    """An object with counts of this process, which receives the sums over the other processes."""

    def counts(self) -> Mapping[str, int]: ...
    def add_others(self, counts: Mapping[str, int]) -> None: ...


def _nothing() -> None: ...


class Team:
    """One process's view of the launch."""

    def __init__(self, place: Place, store: KeyValueStore) -> None:
        self.place, self.store = place, store
        self._prefix = f"{place.attempt}"
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._on_failure: Callable[[], None] | None = None
        self._counters: Sequence[Counter] = ()
        self._published: dict[str, int] = {}
        self._on_beat: Callable[[], None] = _nothing
        self._beat_s = BEAT_S
        self._thread: threading.Thread | None = None
        self.failure = ""
        """Error of another process that failed."""

    @property
    def is_first(self) -> bool:
        return self.place.rank == 0

    def begin(self, number: int) -> None:
        """Begin the next run of a batch, with its own values and counters."""
        with self._lock:
            self._prefix, self._counters, self._published = f"{self.place.attempt}/{number}", (), {}
            self._on_beat, self._beat_s = _nothing, BEAT_S

    def _name(self, name: str) -> str:
        return f"{self._prefix}/{name}"

    def publish(self, name: str, value: Any) -> None:
        """Publish a JSON value."""
        self.publish_bytes(name, orjson.dumps(value))

    def publish_bytes(self, name: str, data: bytes) -> None:
        """Publish bytes in pieces of a size that the store accepts."""
        pieces = [data[start : start + CHUNK_BYTES] for start in range(0, len(data), CHUNK_BYTES)]
        for number, piece in enumerate(pieces):
            self.store.set(self._name(f"{name}/{number}"), piece)
        self.store.set(self._name(name), str(len(pieces)).encode())

    def receive(self, name: str, of_rank: int, patience_s: Patience = None) -> Any:
        """Wait for a JSON value that another process publishes; see ``receive_bytes``."""
        return orjson.loads(self.receive_bytes(name, of_rank, patience_s))

    def receive_bytes(self, name: str, of_rank: int, patience_s: Patience = None) -> bytes:
        """Wait for bytes that another process publishes, for ``patience_s`` seconds or as long as it lives.

        Raises ``TeamError`` if that process vanished, or any process failed.
        """
        key = self._name(name)
        start = last_beat = time.monotonic()
        seen, pause = -1, FIRST_POLL_S
        while not self.store.check([key]):
            self._look()
            if self.failure:
                raise TeamError(self.failure)
            beat, now = self.store.add(self._name(f"beat/{of_rank}"), 0), time.monotonic()
            if beat != seen:
                seen, last_beat = beat, now
            if now - last_beat > DEAD_AFTER_S:
                raise TeamError(f"process {of_rank} has given no sign of life for {DEAD_AFTER_S:.0f} s")
            limit = patience_s() if callable(patience_s) else patience_s
            if limit is not None and now - start > limit:
                raise TeamError(f"process {of_rank} did not answer within {limit:g} s")
            if self._stop.wait(pause):
                raise TeamError("stopped while waiting for the other processes")
            pause = min(2 * pause, POLL_S)
        count = int(self.store.get(key))
        return b"".join(self.store.get(self._name(f"{name}/{number}")) for number in range(count))

    def poll(self, name: str, of_rank: int) -> Any | None:
        """Return a JSON value if another process has published it, else ``None``. Raises ``TeamError``."""
        return self.receive(name, of_rank) if self.store.check([self._name(name)]) else None

    def delete(self, name: str) -> None:
        """Delete a value that this process published and all others have received."""
        count = int(self.store.get(self._name(name)))
        for key in (name, *(f"{name}/{number}" for number in range(count))):
            self.store.delete_key(self._name(key))

    def add(self, name: str, amount: int) -> int:
        """Add to a number that all processes share, 0 at first, and return the sum."""
        return self.store.add(self._name(name), amount)

    def next_block(self, total: int, most: int = MAX_BLOCK) -> range:
        """Take the next documents of the common order; empty at the end. Blocks get smaller towards the end."""
        taken = self.add("taken", 0)
        left = max(0, total - taken)
        size = max(1, min(most, left // (4 * self.place.size)))
        end = self.add("taken", size)
        return range(min(end - size, total), min(end, total))

    def start(self) -> None:
        """Start sending heartbeats and checking for failures of other processes."""
        self._thread = threading.Thread(target=self._beat, name="team", daemon=True)
        self._thread.start()

    def watch(self, on_failure: Callable[[], None]) -> None:
        """Call ``on_failure`` when another process fails (at once if one has failed)."""
        self._on_failure = on_failure
        if self.failure:
            on_failure()

    def count(self, *counters: Counter) -> None:
        """Add up counts, which must only increase, over all processes with each heartbeat."""
        self._counters, self._published = counters, {}

    def each_beat(self, call: Callable[[], None], seconds: float = BEAT_S) -> None:
        """Set the interval of heartbeats and a function to call with each; it may raise ``TeamError``."""
        with self._lock:
            self._on_beat, self._beat_s = call, seconds

    def exchange_counts(self) -> None:
        """Publish the counts of this process and receive those of the others."""
        with self._lock:
            others: dict[str, int] = {}
            for name, value in (pair for counter in self._counters for pair in counter.counts().items()):
                step = value - self._published.get(name, 0)
                others[name] = self.store.add(self._name(f"count/{name}"), step) - value
                self._published[name] = value
            for counter in self._counters:
                counter.add_others(others)

    def fail(self, message: str) -> None:
        """Report to the others that this process failed; if the host of the store is gone, they know."""
        if not self.failure:
            with suppress(TeamError):
                self.store.set(self._name("failed"), f"process {self.place.rank}: {message}".encode())

    def close(self) -> None:
        """Stop the heartbeats: a thread inside the store's C++ code would abort the process when Python ends."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _beat(self) -> None:
        while not self._stop.wait(self._beat_s):
            try:
                self.store.add(self._name(f"beat/{self.place.rank}"), 1)
                self.exchange_counts()
                self._on_beat()
                self._look()
            except TeamError as error:
                self.failure = self.failure or str(error)
            if self.failure:
                if self._on_failure is not None:
                    self._on_failure()
                return

    def _look(self) -> None:
        if not self.failure and self.store.check([self._name("failed")]):
            self.failure = self.store.get(self._name("failed")).decode(errors="replace")


def join(environ: Mapping[str, str]) -> Team | None:
    """Return the team of this launch; ``None`` if there is only one process."""
    place = place_from_environment(environ)
    if place.size == 1:
        return None
    team = Team(place, connect(place))
    team.start()
    return team
