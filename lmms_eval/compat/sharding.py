"""Documents dealt out to processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")


def create_iterator(
    raw_iterator: Iterable[Item], rank: int, world_size: int, limit: int | None = None, offset: int = 0
) -> Iterator[Item]:
    """Iterate over every ``world_size``-th item from ``offset + rank`` on, up to ``offset + limit``.

    Raises:
        ValueError: a negative number, or a ``world_size`` below 1.
    """
    end = None if limit is None else offset + limit
    return islice(raw_iterator, offset + rank, end, world_size)
