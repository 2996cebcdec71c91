"""Rows of documents that are in flight: read once, kept until their document is scored.

A document is looked at several times: for its text, its messages, its target, its scores, its hash. The row is read at
the first of them, and what a benchmark parses from it is kept beside it (``once_per_document``).
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_BYTES = 64 * 2**20
"""Bytes of all rows of the process that are kept: about the texts of ten thousand documents."""
_NESTED = (list, dict)
_ROW_BYTES = 1024
"""Bytes of a row beside its texts."""


@dataclass(slots=True)
class Row:
    """The columns of a document that hold no media."""

    values: Mapping[str, Any]
    """Values as stored; columns that are decoded when they are read stand here undecoded."""
    nested: tuple[str, ...]
    """Columns of lists and mappings, which each reader gets a copy of."""
    parsed: dict[Hashable, Any] = field(default_factory=dict)
    """Results of functions over the document, by function and further arguments."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Row:
        return cls(values, tuple([name for name, value in values.items() if isinstance(value, _NESTED)]))

    def copy(self) -> dict[str, Any]:
        """Copies the values, so that a reader may change its own."""
        made = dict(self.values)
        for name in self.nested:
            made[name] = _copied(made[name])
        return made


class RowsInFlight:
    """Rows by key, at most so many bytes of them: the oldest go first."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._rows: dict[Hashable, tuple[Row, int]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: Hashable) -> Row | None:
        """Looks a row up; ``None`` if it is not kept, or no longer."""
        found = self._rows.get(key)
        return None if found is None else found[0]

    def keep(self, key: Hashable, row: Row) -> None:
        """Keeps a row until it is dropped, or until newer ones need its place."""
        size = _ROW_BYTES + sum(map(_size, row.values.values()))
        with self._lock:
            self._forget(key)
            self._rows[key] = row, size
            self._bytes += size
            while self._bytes > self._max_bytes:
                self._forget(next(iter(self._rows)))

    def drop(self, key: Hashable) -> None:
        """Forgets a row whose document is scored."""
        with self._lock:
            self._forget(key)

    def _forget(self, key: Hashable) -> None:
        found = self._rows.pop(key, None)
        if found is not None:
            self._bytes -= found[1]


ROWS = RowsInFlight()
"""Rows of this process, of all tasks together."""


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(item) for item in value]
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return value


def _size(value: Any) -> int:
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, list) else 8
