"""Printed tables, read and compared cell by cell: widths, rules, trailing zeros and further columns are free."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

RESULTS = ("Tasks", "Groups")
"""First columns of the tables of results."""


@dataclass(slots=True)
class Row:
    """Cells by column name, without the blanks around them."""

    cells: dict[str, str]
    indent: int
    """Blanks in front of the first cell."""

    @property
    def key(self) -> str:
        """First cell (the ``- `` of an indented alias belongs to it), filter and metric."""
        first = next(iter(self.cells.values()), "")
        return f"{first}|{self.cells.get('Filter')}|{self.cells.get('Metric')}"


@dataclass(slots=True)
class Table:
    """A printed table; ``kind`` is the name of its first column."""

    kind: str
    rows: list[Row] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        return [row.key for row in self.rows]

    @property
    def depths(self) -> list[int]:
        """How far each row is indented, counted in levels."""
        levels = sorted({row.indent for row in self.rows})
        return [levels.index(row.indent) for row in self.rows]


def read_tables(text: str, kinds: Collection[str] = RESULTS) -> list[Table]:
    """Tables of these kinds (none: all), in order. A column without a name is named after the one before it."""
    tables: list[Table] = []
    columns: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = []
            continue
        raw = line.strip().strip("|").split("|")
        cells = [cell.strip() for cell in raw]
        if not columns:
            for name in cells:
                columns.append(name or f"after {columns[-1] if columns else ''}")
            tables.append(Table(cells[0]))
        elif not re.fullmatch(r"[-:| ]+", line):
            row = Row(dict(zip(columns, cells, strict=False)), len(raw[0]) - len(raw[0].lstrip()))
            tables[-1].rows.append(row)
    return [table for table in tables if not kinds or table.kind in kinds]


def text_differences(expected: str, ours: str) -> Iterator[str]:
    """What differs between two texts that hold tables of any kind: the tables by cells, other lines without blanks."""
    others = [
        [line.strip() for line in text.splitlines() if line.strip() and line[0] != "|"] for text in (expected, ours)
    ]
    if others[0] != others[1]:
        yield f"lines {others[1]}, not {others[0]}"
    yield from table_differences(expected, ours, kinds=())


def table_differences(
    expected: str,
    ours: str,
    corrections: Mapping[str, Mapping[str, object]] | None = None,
    kinds: Collection[str] = RESULTS,
) -> Iterator[str]:
    """What differs between the tables in two texts; ``corrections`` are right cells by row key and column."""
    wanted, found = read_tables(expected, kinds), read_tables(ours, kinds)
    if [table.kind for table in wanted] != [table.kind for table in found]:
        yield f"tables {[table.kind for table in found]}, not {[table.kind for table in wanted]}"
        return
    for left, right in zip(wanted, found, strict=True):
        yield from _row_differences(left, right, corrections or {})


def _row_differences(left: Table, right: Table, corrections: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    for row in left.rows:
        row.cells |= {name: str(cell) for name, cell in corrections.get(row.key, {}).items()}
    if left.depths != right.depths:
        yield f"rows {right.keys} at depths {right.depths}, not {left.keys} at {left.depths}"
        return
    for row, other in zip(left.rows, right.rows, strict=True):
        for name, cell in row.cells.items():
            if not same_cell(cell, other.cells.get(name)):
                yield f"{row.key}, {name}: {other.cells.get(name)!r}, not {cell!r}"


def same_cell(expected: str, ours: str | None) -> bool:
    """Numbers at 4 decimals, everything else as text."""
    if ours is None or expected == ours:
        return expected == ours
    try:
        return round(float(expected), 4) == round(float(ours), 4)
    except (ValueError, OverflowError):
        return False
