"""Rates: how often something may be done, by whom (token buckets)."""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

MOST_CLIENTS = 4096
_NETWORK_BITS = 64
"""Of an address of version 6: who has one has all of this network."""


@dataclass(slots=True)
class Rates:
    """A bucket for each client, which holds ``most`` and fills with ``per_s`` each second.

    The client that has not been seen for longest is forgotten when there are too many: its bucket is full again.
    """

    most: float
    per_s: float
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_s(self, client: str) -> float:
        """Return the seconds until the client may go on, 0 if it may now; nothing is taken."""
        with self._lock:
            return self._wait(self._level(_network(client)))

    def take(self, client: str) -> float:
        """Take one, if there is one, and return 0; else return the seconds until there is one."""
        name = _network(client)
        with self._lock:
            level = self._level(name)
            wait = self._wait(level)
            self._buckets[name] = (level if wait else level - 1, self.clock())
            self._buckets.move_to_end(name)
            while len(self._buckets) > MOST_CLIENTS:
                self._buckets.popitem(last=False)
            return wait

    def _level(self, name: str) -> float:
        level, at = self._buckets.get(name, (self.most, 0.0))
        return min(self.most, level + (self.clock() - at) * self.per_s)

    def _wait(self, level: float) -> float:
        return 0.0 if level >= 1 else (1 - level) / self.per_s


def retry_after(seconds: float) -> str:
    """Spell a wait as the header ``Retry-After`` does."""
    return str(max(1, math.ceil(seconds)))


def _network(client: str) -> str:
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client[:64]
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _NETWORK_BITS), strict=False))
