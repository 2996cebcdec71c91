"""Batching helpers that existing model plugins import (harness specification §3.6)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Size = Callable[[int, Sequence[Any]], int]


def _frozen(value: Any) -> Hashable:
    """Convert a value of nested mappings and lists to a dictionary key; equal values give equal keys."""
    if isinstance(value, Mapping):
        return frozenset((_frozen(key), _frozen(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(_frozen(item) for item in value)
    return value if isinstance(value, Hashable) else repr(value)


def chunks(items: Iterable[T], n: int = 0, fn: Size | None = None) -> Iterator[list[T]]:
    """Split into lists of ``n`` items, or of ``fn(index of the first item, all items)``; 0 gives one list of all."""
    everything = list(items)
    start = 0
    while start < len(everything):
        size = fn(start, everything) if fn is not None else n
        end = start + size if size > 0 else len(everything)
        yield everything[start:end]
        start = end


class Collator(Generic[T]):
    """Groups requests by equal generation arguments, sorts each group, yields batches and restores the order.

    Args:
        arr: the argument tuples of the requests.
        sort_fn: sort key of one of them.
        group_fn: the value that is equal within a batch (it may be a mapping); by default the second element.
        grouping: group the requests; otherwise all of them form one group.
    """

    def __init__(
        self,
        arr: Sequence[T],
        sort_fn: Callable[[T], Any],
        group_fn: Callable[[T], Any] = lambda item: item[1],  # type: ignore[index]
        grouping: bool = False,
    ) -> None:
        self._items, self._sort_fn = list(arr), sort_fn
        groups: dict[Hashable, list[int]] = {}
        for index, item in enumerate(self._items):
            groups.setdefault(_frozen(group_fn(item)) if grouping else None, []).append(index)
        self._groups = [sorted(group, key=lambda index: sort_fn(self._items[index])) for group in groups.values()]
        self._yielded: list[int] = []

    def get_batched(self, n: int = 1, batch_fn: Size | None = None) -> Iterator[list[T]]:
        """Yield batches of up to ``n`` items (or of ``batch_fn(index, items)``) of one group."""
        self._yielded = []
        for group in self._groups:
            sizes = None if batch_fn is None else self._sizes(batch_fn, group)
            for batch in chunks(group, n, sizes):
                self._yielded.extend(batch)
                yield [self._items[index] for index in batch]

    def _sizes(self, batch_fn: Size, group: Sequence[int]) -> Size:
        items = [self._items[index] for index in group]
        return lambda start, _: batch_fn(start, items)

    def get_original(self, newarr: Sequence[Any]) -> list[Any]:
        """Reorder results from the order of the batches to the order of the requests."""
        if len(newarr) != len(self._yielded):
            raise ValueError(f"get_original: {len(newarr)} results for {len(self._yielded)} requests handed out")
        restored: list[Any] = [None] * len(self._items)
        for index, result in zip(self._yielded, newarr, strict=True):
            restored[index] = result
        return restored

    def __len__(self) -> int:
        return len(self._items)


class Reorderer(Generic[T]):
    """Sorts items by a key and restores the order of their results."""

    def __init__(self, arr: Sequence[T], fn: Callable[[T], Any]) -> None:
        self._items = list(arr)
        self._order = sorted(range(len(self._items)), key=lambda index: fn(self._items[index]))

    def get_reordered(self) -> list[T]:
        return [self._items[index] for index in self._order]

    def get_original(self, newarr: Sequence[Any]) -> list[Any]:
        """Reorder results from the sorted order to the order of the items."""
        restored: list[Any] = [None] * len(self._items)
        for index, result in zip(self._order, newarr, strict=True):
            restored[index] = result
        return restored


class Grouper(Generic[T]):
    """Groups items by a key and restores the order of their results."""

    def __init__(self, arr: Sequence[T], fn: Callable[[T], Hashable]) -> None:
        self._items = list(arr)
        self._groups: dict[Hashable, list[int]] = {}
        for index, item in enumerate(self._items):
            self._groups.setdefault(fn(item), []).append(index)

    def get_grouped(self) -> dict[Hashable, list[T]]:
        return {key: [self._items[index] for index in group] for key, group in self._groups.items()}

    def get_original(self, grouped: Mapping[Hashable, Sequence[Any]]) -> list[Any]:
        """Reorder results by group, each in the order of its group, to the order of the items."""
        restored: list[Any] = [None] * len(self._items)
        for key, results in grouped.items():
            for index, result in zip(self._groups[key], results, strict=True):
                restored[index] = result
        return restored
