"""The data of a report in pieces, which a page loads when it needs them, also from disk.

A page that was opened from disk cannot fetch files, but it can load scripts. So each piece is a script with one call,
which has JSON in a string as its argument. The page reads it by ``JSON.parse``, so that keys such as ``__proto__`` are
plain keys and no code in the data runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import orjson
from msgspec import Struct, field

from lmms_eval.errors import LmmsEvalError
from lmms_eval.storage.atomic import replacing
from lmms_eval.utils.redaction import mask_known

_NAME = re.compile(r"[a-z0-9-]{1,80}")
ENDINGS = frozenset({".js", ".webp", ".png", ".jpg", ".gif", ".wav", ".jsonl"})
"""Suffixes of the files in a report's folders of data and media."""
_MOST = 2**63
"""Integers from this on become texts, because orjson does not encode them and browsers round them."""


class FolderChunks:
    """Pieces as scripts ``FOLDER/NAME.js``. ``before`` is called before each piece; it may raise to end the writing."""

    def __init__(self, folder: Path, before: Callable[[], None] = lambda: None) -> None:
        self.folder, self.before = folder, before
        self.names: set[str] = set()
        """Names of the written files."""

    def write(self, name: str, content: Any) -> None:
        """Write a piece. Raises ``LmmsEvalError`` if it cannot be written."""
        self.before()
        text = orjson.dumps(chunk_text(name, content)).decode()
        write_file(self.folder / f"{name}.js", f'lmmsChunk("{name}",{text});\n'.encode())
        self.names.add(f"{name}.js")


class PageChunks:
    """Pieces as JSON for the page itself, by name."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def write(self, name: str, content: Any) -> None:
        # JSON contains "<" in strings only. Escaping it keeps a text from closing the script element.
        self.texts[name] = chunk_text(name, content).replace("<", "\\u003c")


Chunks = FolderChunks | PageChunks


def chunk_text(name: str, content: Any) -> str:
    """Return the JSON of a piece, with known secrets masked."""
    assert _NAME.fullmatch(name), name
    return mask_known(json_of(content))


def json_of(content: Any) -> str:
    """Encode JSON for browsers. Numbers that JSON lacks become ``null``, unpaired surrogates question marks."""
    try:
        found = orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS, default=str)
    except TypeError:
        found = orjson.dumps(_plain(content))
    return found.decode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bool | None):
        return value
    if isinstance(value, int):
        return value if -_MOST < value < _MOST else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value).encode("utf-8", "replace").decode()


def delete_others(folder: Path, names: Collection[str]) -> None:
    """Delete the files of an earlier report, except those with the given names."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in names and path.suffix in ENDINGS:
            path.unlink(missing_ok=True)


def write_file(path: Path, data: bytes) -> None:
    """Write a file of a report atomically. Raises ``LmmsEvalError`` if it cannot be written."""
    try:
        with replacing(path, survives_power_loss=False) as file:
            file.write(data)
    except OSError as error:
        raise LmmsEvalError(f"cannot write {path}: {error.strerror or error}") from error


PER_ROWS, PER_COLUMN, PER_NAMES = 200, 10_000, 2_000
"""Samples in a piece of row texts, in a piece of a column of numbers or codes, and in a piece of sorted ids."""
PER_GROWING = 1_000
"""Samples in a piece of row texts while the task grows, since each piece is requested over a connection."""
FEW_SAMPLES, FEW_VALUES = 500, 64
"""The index holds all columns of a task with at most so many samples, else those with at most so many values."""

Kind = Literal["texts", "numbers", "codes"]
T = TypeVar("T")


class IndexColumn(Struct, frozen=True):
    """One column: texts, numbers, or codes that are indices in a list of distinct values."""

    key: str
    """Name in the page's address: ``id``, ``latency``, ``s.METRIC,FILTER``, ``m.NAME``."""
    kind: Kind
    values: Sequence[Any]
    """The value of each sample, which may be ``None``."""
    codes: dict[Any, int] = field(default_factory=dict)
    """Codes of known values. New values are added."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the column's entry in the index."""


class TaskIndex:
    """The index of a task's samples: ``content``, which describes the columns, and their pieces.

    The first column is ``id``. A column with the same value everywhere has no pieces. If the task is growing, the names
    are one piece, which also finds rows that are added later.
    """

    def __init__(self, columns: Sequence[IndexColumn], is_growing: bool = False) -> None:
        self._ids = columns[0].values
        self._texts: dict[str, Sequence[str]] = {}
        self._cells: dict[int, Sequence[Any]] = {}
        self._values: dict[int, list[Any]] = {}
        self._names: list[tuple[str, int]] = []
        self._per_names = max(1, len(self._ids)) if is_growing else PER_NAMES
        self._per_rows = PER_GROWING if is_growing else PER_ROWS
        self.content: dict[str, Any] = {"count": len(self._ids), "per_rows": self._per_rows, "per_column": PER_COLUMN}
        self.content["columns"] = [self._entry(number, column) for number, column in enumerate(columns)]
        if "id" in self._texts and is_growing:
            self._names = [(name, place) for place, name in enumerate(self._ids)]
            self.content["names"] = [""]
        elif "id" in self._texts:
            places: dict[str, int] = {}
            for place, name in enumerate(self._ids):
                places.setdefault(name, place)
            # Browsers compare texts in this order.
            self._names = sorted(places.items(), key=lambda item: item[0].encode("utf-16-be", "replace"))
            self.content["names"] = [name for name, _ in self._names[:: self._per_names]]

    def _entry(self, number: int, column: IndexColumn) -> dict[str, Any]:
        """Return the index's entry of a column, and keep the rest for its pieces."""
        entry: dict[str, Any] = {"key": column.key, "kind": column.kind, **column.facts}
        is_small = len(self._ids) <= FEW_SAMPLES
        if column.key == "id" and (first := _first_number(column.values)) is not None:
            return entry | {"from": first}
        if not any(value not in (None, "") for value in column.values):
            return entry | {"empty": True}
        if column.kind == "texts" and not is_small:
            self._texts[column.key] = column.values
            return entry
        cells = column.values
        if column.kind == "codes":
            known = column.codes
            cells = [-1 if value in (None, "") else known.setdefault(value, len(known)) for value in cells]
            if len(known) <= FEW_VALUES:
                entry["values"] = list(known)
            else:
                self._values[number] = list(known)
            if not any(cells):
                return entry | {"same": True}
        if is_small:
            return entry | {"all": cells}
        self._cells[number] = cells
        return entry

    def rows(self, number: int) -> dict[str, Sequence[str]]:
        """Return the texts of ``per_rows`` samples."""
        return {key: _part(values, number, self._per_rows) for key, values in self._texts.items()}

    def column(self, column: int, number: int) -> Sequence[Any]:
        """Return numbers or codes of a column for ``PER_COLUMN`` samples, or nothing if it has no pieces."""
        return _part(self._cells.get(column, ()), number, PER_COLUMN)

    def values(self, column: int) -> list[Any]:
        """Return the values of a column's codes, if they have a piece of their own."""
        return self._values.get(column, [])

    def names(self, number: int) -> dict[str, Any]:
        """Return ids with their places, so that a page finds a sample."""
        part = _part(self._names, number, self._per_names)
        return {"ids": [name for name, _ in part], "places": [place for _, place in part]}

    def pieces(self, task: str) -> Iterator[tuple[str, Any]]:
        """Yield all pieces with their names: ``values-TASK-C``, ``column-TASK-C-N``, ``rows-TASK-N``,
        ``names-TASK-N``, and finally ``index-TASK``."""
        for column, listed in self._values.items():
            yield f"values-{task}-{column}", listed
        for column, cells in self._cells.items():
            for number in range(-(-len(cells) // PER_COLUMN)):
                yield f"column-{task}-{column}-{number}", self.column(column, number)
        for number in range(-(-len(self._ids) // self._per_rows) if self._texts else 0):
            yield f"rows-{task}-{number}", self.rows(number)
        for number in range(len(self.content.get("names", ()))):
            yield f"names-{task}-{number}", self.names(number)
        yield f"index-{task}", self.content


def plain_number(value: float) -> float | int | None:
    """Round a number for short JSON. Returns ``None`` for NaN."""
    if math.isnan(value):
        return None
    rounded = round(float(value), 6)
    return int(rounded) if rounded.is_integer() else rounded


def _part(values: Sequence[T], number: int, per: int) -> Sequence[T]:
    return values[number * per : (number + 1) * per]


_MOST_DIGITS = 15
"""Most digits of a first id that is a number, since browsers count exactly up to 2**53."""


def _first_number(ids: Sequence[str]) -> int | None:
    """Return the first id if the ids are consecutive numbers, else ``None``."""
    if not ids or not ids[0].isdecimal() or not ids[0].isascii():
        return None
    if len(ids[0]) > _MOST_DIGITS:
        return None
    first = int(ids[0])
    return first if all(text == str(number) for number, text in enumerate(ids, first)) else None
