"""A thread-safe least-recently-used table that is bounded in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """Counters of a :class:`ByteLRU`; ``nbytes`` and ``max_bytes`` in bytes."""

    entries: int
    nbytes: int
    max_bytes: int
    hits: int
    misses: int


class ByteLRU(Generic[Value]):
    """Keeps the most recently used values whose sizes add up to at most ``max_bytes``.

    A value larger than the whole table is not kept. Two threads that miss the same key at the same time both
    compute it: that is cheaper than holding a lock while pictures are encoded.

    Args:
        max_bytes: bound on the sum of sizes; 0 keeps nothing.
        size_of: size of a value in bytes.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[Value], int]) -> None:
        self._max_bytes = max_bytes
        self._size_of = size_of
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._nbytes = self._hits = self._misses = 0

    def get(self, key: Hashable) -> Value | None:
        """The value of ``key``, or ``None``; counts as a use."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                self._misses += 1
                return None
            self._hits += 1
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: Value) -> None:
        """Keep ``value``; drops the least recently used ones that no longer fit."""
        size = self._size_of(value)
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._nbytes -= entry[1]
            if size > self._max_bytes:
                return
            self._entries[key] = (value, size)
            self._nbytes += size
            self._shrink()

    def get_or_make(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of ``key``, computed by ``make`` (and kept) where it is absent."""
        found = self.get(key)
        if found is not None:
            return found
        value = make()
        self.put(key, value)
        return value

    def resize(self, max_bytes: int) -> None:
        """Change the bound; drops what no longer fits."""
        with self._lock:
            self._max_bytes = max_bytes
            self._shrink()

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._nbytes = 0

    def info(self) -> CacheInfo:
        with self._lock:
            return CacheInfo(len(self._entries), self._nbytes, self._max_bytes, self._hits, self._misses)

    def _shrink(self) -> None:
        while self._nbytes > self._max_bytes:
            _, (_, size) = self._entries.popitem(last=False)
            self._nbytes -= size
