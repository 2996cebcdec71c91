"""JSON rows as Arrow tables. Values of columns with several types stay JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson
from msgspec import Struct, field

from lmms_eval.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

MAX_BLOCK = 2**30
_CHANGED_TYPE = re.compile(r"Column\(/([^/)]+)")


def parsed_rows(lines: Sequence[bytes], file: Path, first: int = 1) -> Iterator[dict[str, Any]]:
    """Parse lines; ``number`` is the number of the first line in its file.

    Raises:
        DataError: a line is not a JSON object.
    """
    for number, line in enumerate(lines, first):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise DataError(f"{file}, line {number}: not valid JSON: {error}") from error
        if not isinstance(row, dict):
            raise DataError(f"{file}, line {number}: a row must be an object, not a {type(row).__name__}")
        yield row


class Shapes:
    """Finds, row by row, the columns that hold objects with different keys, or both containers and scalars."""

    def __init__(self) -> None:
        self._containers: dict[str, _Shape] = {}
        self._scalars: set[str] = set()

    def add(self, row: dict[str, Any]) -> None:
        """Take another row into account."""
        for name, value in row.items():
            if isinstance(value, dict | list):
                if name not in self._containers:
                    self._containers[name] = _Shape()
                self._containers[name].add(value)
            elif value is not None:
                self._scalars.add(name)

    @property
    def mixed(self) -> set[str]:
        """Return the columns whose values stay JSON."""
        return {name for name, shape in self._containers.items() if shape.is_mixed or name in self._scalars}


class _Shape(Struct):
    """The common shape of the values of a column, a key or a list."""

    kind: Literal["object", "list", "scalar"] | None = None
    parts: dict[str, _Shape] = field(default_factory=dict)
    """Shapes of an object's values by key; for a list, the shape of its items under an empty key."""
    is_mixed: bool = False

    def add(self, value: Any) -> None:
        if value is None or self.is_mixed:
            return
        kind: Any = "object" if isinstance(value, dict) else "list" if isinstance(value, list) else "scalar"
        if self.kind is None:
            self.kind = kind
            self.parts = {key: _Shape() for key in (value if kind == "object" else ("",))}
            self.is_mixed = not self.parts
        if kind != self.kind or (kind == "object" and value.keys() != self.parts.keys()):
            self.is_mixed = True
        elif kind != "scalar":
            for key, item in value.items() if kind == "object" else (("", item) for item in value):
                self.parts[key].add(item)
            self.is_mixed = any(part.is_mixed for part in self.parts.values())


def as_json_feature(names: Iterable[str]) -> dict[str, Any]:
    """Return the types of columns whose values stay JSON."""
    return {name: {"_type": "Json"} for name in names}


def encoded(lines: Sequence[bytes], as_json: Iterable[str]) -> bytes:
    """Join lines, with the values of some columns as JSON texts."""
    names = set(as_json)
    if not names:
        return b"\n".join(lines)
    return b"\n".join(
        orjson.dumps(
            {
                name: orjson.dumps(value).decode() if name in names and value is not None else value
                for name, value in orjson.loads(line).items()
            }
        )
        for line in lines
    )


def schema_of(lines: Sequence[bytes], as_json: set[str], file: Path) -> pa.Schema:
    """Infer the types of columns from their values. Adds columns whose values have several types to ``as_json``.

    Raises:
        DataError: Arrow cannot read them.
    """
    import pyarrow as pa

    while True:
        data = encoded(lines, as_json)
        if not data:
            return pa.schema([])
        try:
            return _read(data).schema
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            clash = _CHANGED_TYPE.search(str(error))
            if clash is None:
                raise DataError(f"{file}: cannot be read as JSON lines: {error}") from error
            as_json.add(clash.group(1))


def final_schema(schema: pa.Schema, as_json: set[str]) -> pa.Schema:
    """Give the type text to columns whose values stay JSON, and to lists that hold only nulls.

    Arrow's reader makes invalid arrays of such lists.
    """
    import pyarrow as pa

    as_json |= {column.name for column in schema if _holds_null_lists(column.type)}
    return pa.schema([column.with_type(pa.string()) if column.name in as_json else column for column in schema])


def table_of(data: bytes, file: Path, schema: pa.Schema) -> pa.Table:
    """Read JSON lines as a table of a schema.

    The schema is passed even if it was inferred from the same lines, because Arrow's inference loses nulls that precede
    the first value of a list.

    Raises:
        DataError: a value is not of its column's type.
    """
    import pyarrow as pa

    if not data:
        return schema.empty_table()
    try:
        return _read(data, schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{file}: cannot be read as JSON lines: {error}") from error


def _read(data: bytes, schema: pa.Schema | None = None) -> pa.Table:
    import pyarrow as pa
    import pyarrow.json as pj

    options = pj.ReadOptions(use_threads=False, block_size=min(max(len(data) + 1, 2**16), MAX_BLOCK))
    parse = None if schema is None else pj.ParseOptions(explicit_schema=schema)
    return pj.read_json(pa.BufferReader(data), read_options=options, parse_options=parse)


def _holds_null_lists(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_list(kind):
        return bool(pa.types.is_null(kind.value_type)) or _holds_null_lists(kind.value_type)
    return bool(pa.types.is_struct(kind)) and any(_holds_null_lists(part.type) for part in kind)
