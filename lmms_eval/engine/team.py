"""The processes of one launch: who takes which documents, and how results meet.

Everything goes through the key-value store of the launch, that of ``--processes`` (``launch_store``) or of accelerate,
torchrun and SLURM (``torch.distributed``): a counter from which blocks of documents are taken, so that a slow process
takes fewer; states and heartbeats; and, without shared files, the finished records. There is no collective operation:
nobody waits for anybody while there is work.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from types import TracebackType
from typing import Any, Protocol

import orjson

from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.utils.launch import STORE_PORT, STORE_TOKEN

HOST = "127.0.0.1"


class StoreServer:
    """Context in which the store is served by threads of this process."""

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
        """The variables that a process of the launch needs."""
        return {STORE_PORT: str(self._listener.address[1]), STORE_TOKEN: self._key}

    def __enter__(self) -> StoreServer:
        threading.Thread(target=self._accept, name="store", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        with suppress(OSError):  # wakes the thread that accepts
            Client((HOST, self._listener.address[1])).close()
        self._listener.close()
        with self._lock:
            for connection in self._connections:
                _hang_up(connection)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                connection = self._listener.accept()
            except OSError:  # one that went away
                continue
            with self._lock:
                self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), name="store", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with connection, suppress(OSError, EOFError, AuthenticationError):  # its process has ended, or a stranger
            # Here and not where connections are accepted: one that says nothing holds up nobody else.
            deliver_challenge(connection, self._key.encode())
            answer_challenge(connection, self._key.encode())
            while True:
                head, _, value = connection.recv_bytes().partition(b"\n")
                operation, keys, number = orjson.loads(head)
                with self._lock:
                    answer = self._answer(operation, keys, number, value)
                connection.send_bytes(answer)

    def _answer(self, operation: str, keys: list[str], number: int, value: bytes) -> bytes:
        """Carry an operation out; ``-`` where a value is wanted that is not there, else ``+`` and the result."""
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


def _hang_up(connection: Connection) -> None:
    """End a connection that another thread waits at: that thread closes it."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


class StoreClient:
    """A ``KeyValueStore`` that asks a ``StoreServer``; safe from several threads.

    Raises:
        OSError: the server has ended, or does not accept the key.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        try:
            self._connection = Client((HOST, int(environ[STORE_PORT])), authkey=environ[STORE_TOKEN].encode())
        except (EOFError, AuthenticationError) as error:
            raise ConnectionError(f"the launch's store refused the connection: {error}") from error
        self._lock = threading.Lock()

    def set(self, key: str, value: bytes) -> None:
        """Keep a value."""
        self._ask("set", [key], value=value)

    def get(self, key: str) -> bytes:
        """Read a value. Raises ``KeyError``: there is none."""
        return self._ask("get", [key])

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which begins at 0; returns the sum."""
        return int(self._ask("add", [key], amount))

    def delete_key(self, key: str) -> bool:
        """Forget a value; returns whether there was one."""
        return bool(self._ask("delete", [key]))

    def check(self, keys: list[str]) -> bool:
        """Tell if all of these values are there."""
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
"""A process without a sign of life for so long is taken for dead."""
CHUNK_BYTES = 1 << 20
MAX_BLOCK = 64
HOST_IS_GONE = (
    "the process that hosts the launch's store (the launcher, or the first process) has ended; what was finished is "
    "kept: start the same command again"
)


Patience = float | Callable[[], float | None] | None
"""Seconds, ``None`` for no limit, or a function that is asked for them again and again."""


class TeamError(LmmsEvalError):
    """Another process of the launch has failed or vanished."""


class KeyValueStore(Protocol):
    """Part of ``torch.distributed.Store`` that is used."""

    def set(self, key: str, value: bytes) -> None: ...
    def get(self, key: str) -> bytes: ...
    def add(self, key: str, amount: int) -> int: ...
    def delete_key(self, key: str) -> bool: ...
    def check(self, keys: list[str]) -> bool: ...


class HostedStore:
    """A store in another process, whose end makes every call raise ``TeamError``."""

    def __init__(self, store: KeyValueStore) -> None:
        self._store = store

    def set(self, key: str, value: bytes) -> None:
        with _while_hosted():
            self._store.set(key, value)

    def get(self, key: str) -> bytes:
        with _while_hosted():
            return self._store.get(key)

    def add(self, key: str, amount: int) -> int:
        with _while_hosted():
            return self._store.add(key, amount)

    def delete_key(self, key: str) -> bool:
        with _while_hosted():
            return self._store.delete_key(key)

    def check(self, keys: list[str]) -> bool:
        with _while_hosted():
            return self._store.check(keys)


@contextmanager
def _while_hosted() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, OSError) as error:
        raise TeamError(HOST_IS_GONE) from error


@dataclass(frozen=True, slots=True)
class Place:
    """This process among those of the launch, from the environment that launchers set."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    attempt: int = 0
    """Number of times that an elastic launcher has restarted the processes."""


def place_from_environment(environ: Mapping[str, str]) -> Place:
    """Read RANK, WORLD_SIZE and LOCAL_RANK. Raises ``UsageError`` for values that make no sense."""
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
    """Find the launch's store; waits for the process that hosts it.

    Raises:
        UsageError: it is PyTorch's, which is not installed.
        TeamError: its host has ended.
    """
    if STORE_PORT in os.environ:
        with _while_hosted():
            return HostedStore(StoreClient(os.environ))
    # Read when PyTorch is loaded: when the host ends, each waiting call would print twenty frames of C++ first.
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
    return HostedStore(PrefixStore("lmms_eval", store))


@dataclass(frozen=True, slots=True)
class Counting:
    """Whole numbers that all processes add up."""

    mine: Callable[[], Mapping[str, int]]
    """This process's numbers, which only grow."""
    take_others: Callable[[Mapping[str, int]], None]
    """Gets the sums over the other processes."""
    published: dict[str, int] = field(default_factory=dict)


def _nothing() -> None: ...


class Team:
    """One process's view of the launch."""

    def __init__(self, place: Place, store: KeyValueStore) -> None:
        self.place, self.store = place, store
        self._prefix = f"{place.attempt}"
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._on_failure: Callable[[], None] | None = None
        self._counting: Counting | None = None
        self._on_beat: Callable[[], None] = _nothing
        self._beat_s = BEAT_S
        self._thread: threading.Thread | None = None
        self.failure = ""
        """Error with which another process has failed."""

    @property
    def is_first(self) -> bool:
        return self.place.rank == 0

    def begin(self, number: int) -> None:
        """The next run of a batch: its values and its counter are kept apart from the earlier ones'."""
        with self._lock:
            self._prefix, self._counting = f"{self.place.attempt}/{number}", None
            self._on_beat, self._beat_s = _nothing, BEAT_S

    def _name(self, name: str) -> str:
        return f"{self._prefix}/{name}"

    def publish(self, name: str, value: Any) -> None:
        """Publish a JSON value."""
        self.publish_bytes(name, orjson.dumps(value))

    def publish_bytes(self, name: str, data: bytes) -> None:
        """Publish bytes, in pieces that the store takes."""
        pieces = [data[start : start + CHUNK_BYTES] for start in range(0, len(data), CHUNK_BYTES)]
        for number, piece in enumerate(pieces):
            self.store.set(self._name(f"{name}/{number}"), piece)
        self.store.set(self._name(name), str(len(pieces)).encode())

    def receive(self, name: str, of_rank: int, patience_s: Patience = None) -> Any:
        """``receive_bytes`` of a JSON value."""
        return orjson.loads(self.receive_bytes(name, of_rank, patience_s))

    def receive_bytes(self, name: str, of_rank: int, patience_s: Patience = None) -> bytes:
        """Wait for what another process publishes, for ``patience_s`` seconds or as long as it lives.

        Raises:
            TeamError: it fails or vanishes meanwhile, or any other process fails.
        """
        key = self._name(name)
        start = last_beat = time.monotonic()
        seen, pause = -1, FIRST_POLL_S
        while not self.store.check([key]):
            self._raise_failure()
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
        """The JSON value that another process has published; ``None`` if it has not yet. Raises ``TeamError``."""
        return self.receive(name, of_rank) if self.store.check([self._name(name)]) else None

    def delete(self, name: str) -> None:
        """Delete a value that this process has published and everybody has heard."""
        count = int(self.store.get(self._name(name)))
        for key in (name, *(f"{name}/{number}" for number in range(count))):
            self.store.delete_key(self._name(key))

    def next_block(self, total: int, most: int = MAX_BLOCK) -> range:
        """The next documents of the common order that nobody has taken; empty at the end. Blocks shrink towards it."""
        taken = self.store.add(self._name("taken"), 0)
        left = max(0, total - taken)
        size = max(1, min(most, left // (4 * self.place.size)))
        end = self.store.add(self._name("taken"), size)
        return range(min(end - size, total), min(end, total))

    def start(self) -> None:
        """Give signs of life from now on, and look for the others' failures."""
        self._thread = threading.Thread(target=self._beat, name="team", daemon=True)
        self._thread.start()

    def watch(self, on_failure: Callable[[], None]) -> None:
        """Call ``on_failure`` once another process has failed (at once if one has)."""
        self._on_failure = on_failure
        if self.failure:
            on_failure()

    def count(self, mine: Callable[[], Mapping[str, int]], take_others: Callable[[Mapping[str, int]], None]) -> None:
        """Add up ``mine`` over all processes from now on, with each sign of life."""
        self._counting = Counting(mine, take_others)

    def each_beat(self, call: Callable[[], None], seconds: float = BEAT_S) -> None:
        """Call this with each sign of life from now on, every so many seconds; it may raise ``TeamError``."""
        with self._lock:
            self._on_beat, self._beat_s = call, seconds

    def exchange_counts(self) -> None:
        """Publish this process's numbers and take the others'."""
        with self._lock:
            if self._counting is None:
                return
            counting, others = self._counting, {}
            for name, value in counting.mine().items():
                step = value - counting.published.get(name, 0)
                others[name] = self.store.add(self._name(f"count/{name}"), step) - value
                counting.published[name] = value
            counting.take_others(others)

    def fail(self, message: str) -> None:
        """Tell the others that this process cannot go on; without the host of the store they know."""
        if not self.failure:
            with suppress(TeamError):
                self.store.set(self._name("failed"), f"process {self.place.rank}: {message}".encode())

    def close(self) -> None:
        """End the signs of life. A thread inside the store's C++ code at the end of Python would abort the process."""
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

    def _raise_failure(self) -> None:
        self._look()
        if self.failure:
            raise TeamError(self.failure)


def join(environ: Mapping[str, str]) -> Team | None:
    """The team of this launch; ``None`` where no launcher has started several processes."""
    place = place_from_environment(environ)
    if place.size == 1:
        return None
    team = Team(place, connect(place))
    team.start()
    return team
