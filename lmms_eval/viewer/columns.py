"""The index of a task's samples: columns in pieces, of which a page reads only what it shows, filters or sorts by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lmms_eval.viewer.chunks import Chunks

PER_ROWS, PER_COLUMN, PER_NAMES = 200, 10_000, 2_000
"""Samples in a piece of the texts of a list's rows, in one of a column of numbers or codes, in one of sorted ids."""
FEW_SAMPLES, FEW_VALUES = 500, 64
"""Up to so many samples all columns stand in the index itself, and up to so many values those of a column."""

Kind = Literal["texts", "numbers", "codes"]


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """One column: texts of the list's rows, numbers, or a few values by their places in a list of them."""

    key: str
    """Name in the page's address: ``id``, ``latency``, ``s.METRIC,FILTER``, ``m.NAME``."""
    kind: Kind
    values: Sequence[Any]
    """One for each sample; ``None`` where there is none."""


def write_index(chunks: Chunks, task: str, columns: Sequence[IndexColumn]) -> None:
    """Write ``index-TASK``, which tells the columns, and their pieces.

    These are ``rows-TASK-N`` (all texts of ``PER_ROWS`` samples), ``column-TASK-C-N`` (numbers, codes),
    ``values-TASK-C`` (what many codes stand for) and ``names-TASK-N`` (ids in order with their places, by which one
    sample is found). A column of one value throughout has no pieces.

    Args:
        chunks: place of the pieces.
        task: name of the task in the names of pieces.
        columns: the column ``id`` first.

    Raises:
        LmmsEvalError: a file cannot be written.
    """
    ids = columns[0].values
    is_small = len(ids) <= FEW_SAMPLES
    entries: list[dict[str, Any]] = []
    texts: dict[str, Sequence[str]] = {}
    for number, column in enumerate(columns):
        entry: dict[str, Any] = {"key": column.key, "kind": column.kind}
        entries.append(entry)
        if column.key == "id" and (first := _first_number(ids)) is not None:
            entry["from"] = first
        elif not any(value not in (None, "") for value in column.values):
            entry["empty"] = True
        elif column.kind == "texts" and not is_small:
            texts[column.key] = column.values
        else:
            values = _with_codes(chunks, f"{task}-{number}", column, entry) if column.kind == "codes" else column.values
            if column.kind == "codes" and not any(values):
                entry["same"] = True
            elif is_small:
                entry["all"] = values
            else:
                _write_pieces(chunks, f"column-{task}-{number}", values)
    index: dict[str, Any] = {"count": len(ids), "per_rows": PER_ROWS, "per_column": PER_COLUMN, "columns": entries}
    for number, start in enumerate(range(0, len(ids) if texts else 0, PER_ROWS)):
        part = {key: values[start : start + PER_ROWS] for key, values in texts.items()}
        chunks.write(f"rows-{task}-{number}", part)
    if "id" in texts:
        index["names"] = _write_names(chunks, task, ids)
    chunks.write(f"index-{task}", index)


def plain_number(value: float) -> float | int | None:
    """Return a number as JSON writes it shortest; ``None`` for NaN."""
    if math.isnan(value):
        return None
    rounded = round(float(value), 6)
    return int(rounded) if rounded.is_integer() else rounded


def _write_pieces(chunks: Chunks, name: str, values: Sequence[Any]) -> None:
    for number, start in enumerate(range(0, len(values), PER_COLUMN)):
        chunks.write(f"{name}-{number}", values[start : start + PER_COLUMN])


def _with_codes(chunks: Chunks, name: str, column: IndexColumn, entry: dict[str, Any]) -> Sequence[int]:
    """Return the codes of values, -1 where there is none; what they stand for goes into the entry or a piece."""
    known: dict[Any, int] = {}
    codes = [-1 if value in (None, "") else known.setdefault(value, len(known)) for value in column.values]
    if len(known) <= FEW_VALUES:
        entry["values"] = list(known)
    else:
        chunks.write(f"values-{name}", list(known))
    return codes


def _first_number(ids: Sequence[str]) -> int | None:
    """Return the first of ids that are numbers each one above the last; ``None`` where they are not."""
    if not ids or not ids[0].isdecimal() or not ids[0].isascii():
        return None
    first = int(ids[0])
    return first if all(text == str(number) for number, text in enumerate(ids, first)) else None


def _write_names(chunks: Chunks, task: str, ids: Sequence[str]) -> list[str]:
    """Write ids in the order in which browsers compare texts, each once; returns the first id of each piece."""
    places: dict[str, int] = {}
    for place, name in enumerate(ids):
        places.setdefault(name, place)
    ordered: list[tuple[str, int]] = sorted(places.items(), key=_utf16)
    starts = range(0, len(ordered), PER_NAMES)
    for number, start in enumerate(starts):
        part = ordered[start : start + PER_NAMES]
        names: Mapping[str, Any] = {"ids": [name for name, _ in part], "places": [place for _, place in part]}
        chunks.write(f"names-{task}-{number}", names)
    return [ordered[start][0] for start in starts]


def _utf16(item: tuple[str, int]) -> bytes:
    return item[0].encode("utf-16-be", "replace")
