"""Keys of records: each is compared or given to the code under test, or is named as information.

A key is named by its path with a ``*`` for each place in a list (``visuals.*.size.*``); in a pattern ``*`` stands for
anything, dots included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tests.parity.vectors import LineAdapter, Vector, Verdict, failed

ABOUT = {
    "case": "the case in words",
    "deviation": "read where lines are judged",
    "id": "number of the line",
    "name": "the case in words",
    "note": "what was put in, in words",
    "wanted": "read where lines are judged",
    "why": "the reason of a correction, in words",
}
"""Information in every record, where an adapter does not look at a key of this name."""


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Paths of everything that holds no further keys: values, and empty lists and objects."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for item in value:
            yield from leaves(item, f"{path}.*")
    else:
        yield path


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a kind of record, by patterns; the longest (most exact) one that fits a key counts."""

    seen: tuple[str, ...]
    """Those that are compared, or given to the code under test."""
    information: Mapping[str, str] = field(default_factory=dict)
    """Those that are not compared, and why."""

    def unseen(self, record: Any) -> str:
        """What nobody looks at, in words; empty if there is no such key."""
        paths = {path for path in leaves(record) if not self._is_known(path)}
        return f"nobody looks at {', '.join(sorted(paths))}" if paths else ""

    def is_information(self, path: str) -> bool:
        patterns = self._patterns(path)
        return max(patterns, key=len) in self.information if patterns else _is_about(path)

    def _patterns(self, path: str) -> list[str]:
        return [pattern for pattern in (*self.seen, *self.information) if fnmatchcase(path, pattern)]

    def _is_known(self, path: str) -> bool:
        """What is empty is known by what might be in it."""
        inner = any(pattern.startswith(f"{path}.") for pattern in (*self.seen, *self.information))
        return inner or bool(self._patterns(path)) or _is_about(path)


def _is_about(path: str) -> bool:
    return path.partition(".")[0] in ABOUT


@dataclass(frozen=True, slots=True)
class Keyed:
    """A line adapter that fails records with a key that nobody looks at."""

    adapter: LineAdapter
    keys: Keys

    def __call__(self, vector: Vector) -> Verdict:
        unseen = self.keys.unseen(vector.record)
        return failed(unseen) if unseen else self.adapter(vector)


def keyed(*seen: str, information: Mapping[str, str] | None = None) -> Callable[[LineAdapter], Keyed]:
    """Say which keys an adapter looks at, and which are information."""
    return lambda adapter: Keyed(adapter, Keys(seen, information or {}))
