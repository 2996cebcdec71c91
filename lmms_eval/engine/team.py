"""The processes of one launch (accelerate, torchrun, SLURM): who takes which documents, and how results meet.

Everything goes through the key-value store of the launch (``torch.distributed``): a counter from which blocks of
documents are taken, so that a slow process takes fewer; states and heartbeats; and, without shared files, the finished
records. There is no collective operation: nobody waits for anybody while there is work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from lmms_eval.errors import LmmsEvalError, UsageError

POLL_S = 0.05
BEAT_S = 1.0
DEAD_AFTER_S = 60.0
"""A process without a sign of life for so long is taken for dead."""
CHUNK_BYTES = 1 << 20
MAX_BLOCK = 64


class TeamError(LmmsEvalError):
    """Another process of the launch has failed or vanished."""


class KeyValueStore(Protocol):
    """What is used of ``torch.distributed.Store``."""

    def set(self, key: str, value: bytes) -> None: ...
    def get(self, key: str) -> bytes: ...
    def add(self, key: str, amount: int) -> int: ...
    def check(self, keys: list[str]) -> bool: ...


@dataclass(frozen=True, slots=True)
class Place:
    """This process among those of the launch, from the environment that launchers set."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    attempt: int = 0
    """How often an elastic launcher has restarted the processes."""


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
    """The launch's store; waits for the process that hosts it."""
    from datetime import timedelta

    from torch.distributed import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    store, _, _ = next(iter(rendezvous("env://", place.rank, place.size, timeout=timedelta(seconds=timeout_s))))
    prefixed: KeyValueStore = PrefixStore("lmms_eval", store)
    return prefixed


class Team:
    """One process's view of the launch."""

    def __init__(self, place: Place, store: KeyValueStore) -> None:
        self.place, self.store = place, store
        self._prefix = f"{place.attempt}"
        self._stop = threading.Event()
        self._on_failure: Callable[[], None] | None = None
        self.failure = ""
        """What another process has failed with."""

    @property
    def is_first(self) -> bool:
        return self.place.rank == 0

    def begin(self, number: int) -> None:
        """The next run of a batch: its values and its counter are kept apart from the earlier ones'."""
        self._prefix = f"{self.place.attempt}/{number}"

    def _name(self, name: str) -> str:
        return f"{self._prefix}/{name}"

    def tell(self, name: str, value: Any) -> None:
        """Publish a JSON value, in pieces that the store takes."""
        data = orjson.dumps(value)
        pieces = [data[start : start + CHUNK_BYTES] for start in range(0, len(data), CHUNK_BYTES)]
        for number, piece in enumerate(pieces):
            self.store.set(self._name(f"{name}/{number}"), piece)
        self.store.set(self._name(name), str(len(pieces)).encode())

    def hear(self, name: str, of_rank: int, patience_s: float | None = None) -> Any:
        """Wait for a value that another process publishes, for ``patience_s`` seconds or as long as it lives.

        Raises:
            TeamError: it fails or vanishes meanwhile, or any other process fails.
        """
        key = self._name(name)
        start = last_beat = time.monotonic()
        seen = -1
        while not self.store.check([key]):
            self._raise_failure()
            beat, now = self.store.add(self._name(f"beat/{of_rank}"), 0), time.monotonic()
            if beat != seen:
                seen, last_beat = beat, now
            if now - last_beat > DEAD_AFTER_S:
                raise TeamError(f"process {of_rank} has given no sign of life for {DEAD_AFTER_S:.0f} s")
            if patience_s is not None and now - start > patience_s:
                raise TeamError(f"process {of_rank} did not answer within {patience_s:g} s")
            if self._stop.wait(POLL_S):
                raise TeamError("stopped while waiting for the other processes")
        count = int(self.store.get(key))
        return orjson.loads(b"".join(self.store.get(self._name(f"{name}/{number}")) for number in range(count)))

    def next_block(self, total: int) -> range:
        """The next documents of the common order that nobody has taken; empty at the end. Blocks shrink towards it."""
        taken = self.store.add(self._name("taken"), 0)
        left = max(0, total - taken)
        size = max(1, min(MAX_BLOCK, left // (4 * self.place.size)))
        end = self.store.add(self._name("taken"), size)
        return range(min(end - size, total), min(end, total))

    def start(self) -> None:
        """Give signs of life from now on, and look for the others' failures."""
        threading.Thread(target=self._beat, name="team", daemon=True).start()

    def watch(self, on_failure: Callable[[], None]) -> None:
        """Call ``on_failure`` once another process has failed (at once if one has)."""
        self._on_failure = on_failure
        if self.failure:
            on_failure()

    def fail(self, message: str) -> None:
        """Tell the others that this process cannot go on."""
        if not self.failure:
            self.store.set(self._name("failed"), f"process {self.place.rank}: {message}".encode())

    def close(self) -> None:
        self._stop.set()

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_S):
            try:
                self.store.add(self._name(f"beat/{self.place.rank}"), 1)
                self._look()
            except (RuntimeError, OSError):  # the host of the store is gone, and with it the first process
                self.failure = self.failure or "the process that hosts the launch's store has ended"
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
