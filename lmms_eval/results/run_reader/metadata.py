"""Columns of text by which the documents of a task can be divided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.results.run_reader.sample import label

MOST_VALUES = 1000
LONGEST_VALUE = 200
"""A column with more values than this, or with longer ones, divides no documents."""


class MetadataColumns:
    """Columns of text by which documents can be divided: a few values, each of several documents."""

    def __init__(self, rows: int = 0) -> None:
        self.rows = rows
        """May grow while rows are added."""
        self._values: dict[str, list[str | None]] = {}
        self._known: dict[str, dict[str, str]] = {}
        self._dropped: set[str] = set()

    def add(self, row: int, name: str, value: Any) -> None:
        if name in self._dropped:
            return
        text = label(value)
        if text is None:
            return
        known = self._known.setdefault(name, {})
        text = known.setdefault(text, text)
        if len(text) > LONGEST_VALUE or len(known) > MOST_VALUES:
            self._dropped.add(name)
            del self._known[name]
            self._values.pop(name, None)
            return
        values = self._values.setdefault(name, [])
        if len(values) <= row:
            values.extend([None] * (row + 1 - len(values)))
        values[row] = text

    def found(self) -> dict[str, Sequence[str | None]]:
        """Return the columns of which a value belongs to two documents or more, on average."""
        kept = {name: values for name, values in self._values.items() if 2 * len(self._known[name]) <= self.rows}
        return {name: [*values, *[None] * (self.rows - len(values))] for name, values in kept.items()}


def metadata_of(rows: int, fields: Iterator[tuple[int, Mapping[str, Any]]]) -> dict[str, Sequence[str | None]]:
    """Collect the columns of metadata from each row's fields."""
    columns = MetadataColumns(rows)
    for row, values in fields:
        for name, value in values.items():
            columns.add(row, str(name), value)
    return columns.found()
