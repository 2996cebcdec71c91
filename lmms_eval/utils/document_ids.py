"""Parsing of ``--ids``: ``1,2,5-9``, ``TASK:1,2;TASK2:5``, or a file with such numbers or a CSV column ``id``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from lmms_eval.errors import UsageError

MOST_BYTES = 1 << 26
"""Bytes that a file of numbers may have."""


class Ranges(Struct, frozen=True):
    """Inclusive ranges of document numbers, in ascending order without overlaps."""

    pairs: tuple[tuple[int, int], ...]

    def __contains__(self, doc_id: object) -> bool:
        return isinstance(doc_id, int) and any(first <= doc_id <= last for first, last in self.pairs)

    def among(self, total: int) -> Iterator[int]:
        """Yield the numbers below ``total``."""
        for first, last in self.pairs:
            yield from range(first, min(last + 1, total))

    def __str__(self) -> str:
        return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in self.pairs)


class DocumentIds(Struct, frozen=True):
    """Document numbers for all tasks, or for each named task."""

    everywhere: Ranges | None
    by_task: Mapping[str, Ranges]

    def of(self, task: str) -> Ranges:
        """Return the documents of a task; empty if only other tasks are named."""
        return self.by_task.get(task, Ranges(())) if self.everywhere is None else self.everywhere

    def __str__(self) -> str:
        if self.everywhere is not None:
            return str(self.everywhere)
        return ";".join(f"{task}:{ranges}" for task, ranges in self.by_task.items())


def ids_text(text: str) -> str:
    """Return ``--ids`` in its shortest form. A file is replaced by its content, so later edits do not matter.

    Raises ``UsageError`` if the text is neither numbers nor a file with numbers.
    """
    path, content = Path(text).expanduser(), text
    try:
        if path.is_file():
            if path.stat().st_size > MOST_BYTES:
                raise UsageError(f"--ids {text}: the file is larger than {MOST_BYTES} bytes")
            content = _table_ids(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        if "\n" not in text and "," not in text:  # otherwise these are numbers, too long for a file name
            raise UsageError(f"--ids {text}: the file cannot be read: {error}") from error
    return str(parse_ids(content))


def _table_ids(content: str) -> str:
    """Turn a CSV table with a column ``id``, and perhaps ``task``, into ``--ids``; return other contents unchanged."""
    table = csv.DictReader(io.StringIO(content))
    if "id" not in (table.fieldnames or ()):
        return content
    return "\n".join(f"{row['task']}:{row['id']}" if row.get("task") else f"{row['id']}" for row in table)


def parse_ids(text: str) -> DocumentIds:
    """Parse document numbers. Raises ``UsageError``."""
    parts = [part for line in text.splitlines() for part in line.split(";") if part.strip()]
    if not parts:
        raise UsageError("--ids: no document number given; write 1,2,5-9, TASK:1,2;TASK2:5, or a file of them")
    named: dict[str, list[str]] = {}
    for part in parts:
        task, mark, numbers = part.rpartition(":")
        if not numbers.strip(" ,\t") or (mark and not task.strip()):
            raise UsageError(f"--ids: {part[:80]!r} is not TASK:NUMBERS; write 1,2,5-9, TASK:1,2;TASK2:5, or a file")
        named.setdefault(task.strip() if mark else "", []).append(numbers)
    if "" in named and len(named) > 1:
        raise UsageError("--ids: some numbers follow a task and some do not: name the task of all")
    ranges = {task: _ranges(",".join(numbers)) for task, numbers in named.items()}
    return DocumentIds(ranges.get(""), {task: found for task, found in ranges.items() if task})


def _ranges(text: str) -> Ranges:
    pairs: list[tuple[int, int]] = []
    for word in text.replace(",", " ").split():
        begin, mark, end = word.partition("-")
        numbers = (begin, end if mark else begin)
        are_numbers = all(number.isascii() and number.isdigit() and len(number) <= 15 for number in numbers)
        if not are_numbers or int(numbers[0]) > int(numbers[1]):
            raise UsageError(f"--ids: {word[:80]!r} is not a document number, a range such as 5-9, or a file")
        pairs.append((int(numbers[0]), int(numbers[1])))
    joined: list[tuple[int, int]] = []
    for first, last in sorted(pairs):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return Ranges(tuple(joined))
