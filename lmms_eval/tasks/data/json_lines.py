"""Large files of JSON lines. One pass over the file finds the column types; blocks of rows are read on demand.

The rows equal those of reading the whole file (``text_files.read_json``): each column has one type, and values of
several types are kept as JSON.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks.data.json_tables import (
    Shapes,
    as_json_feature,
    encoded,
    final_schema,
    parsed_rows,
    schema_of,
    table_of,
)
from lmms_eval.tasks.data.sizes import Item, stored_media
from lmms_eval.tasks.data.sources import Blocks, file_identity

if TYPE_CHECKING:
    import pyarrow as pa


def merged_schema(first: pa.Schema, second: pa.Schema) -> tuple[pa.Schema, set[str]]:
    """Merge two schemas. Columns whose types clash become text; their names are returned too."""
    import pyarrow as pa

    fields, clashes = {field.name: field.type for field in first}, set[str]()
    for field in second:
        kind = merged_type(fields[field.name], field.type) if field.name in fields else field.type
        if kind is None:
            clashes.add(field.name)
        fields[field.name] = pa.string() if kind is None else kind
    return pa.schema(list(fields.items())), clashes


def merged_type(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Return the type that Arrow's JSON reader gives to values of both types; ``None`` if it refuses them."""
    import pyarrow as pa

    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    numbers = (pa.types.is_integer, pa.types.is_floating)
    if all(any(is_kind(kind) for is_kind in numbers) for kind in (first, second)):
        return pa.float64()
    texts = (pa.types.is_string, pa.types.is_timestamp)
    if all(any(is_kind(kind) for is_kind in texts) for kind in (first, second)):
        return pa.string()
    if pa.types.is_list(first) and pa.types.is_list(second):
        item = merged_type(first.value_type, second.value_type)
        return None if item is None else pa.list_(item)
    if pa.types.is_struct(first) and pa.types.is_struct(second):
        return _merged_struct(first, second)
    return None


def _merged_struct(first: pa.StructType, second: pa.StructType) -> pa.DataType | None:
    import pyarrow as pa

    fields = {field.name: field.type for field in first}
    for field in second:
        kind = merged_type(fields[field.name], field.type) if field.name in fields else field.type
        if kind is None:
            return None
        fields[field.name] = kind
    return pa.struct(list(fields.items()))


BLOCK_BYTES = 2 * 2**20
KEPT_BYTES = 64 * 2**20
_MARK = b"\xef\xbb\xbf"


class _Block(Struct, frozen=True):
    """A run of whole lines of a file."""

    file: Path
    offset: int
    length: int
    rows: int


class JsonLinesSource:
    """Rows of files of JSON lines. Only their offsets and types are kept in memory.

    Raises:
        DataError: a line is not a JSON object.
    """

    def __init__(self, files: Sequence[Path], block_bytes: int = BLOCK_BYTES) -> None:
        import pyarrow as pa

        self.files = tuple(files)
        self.where = ", ".join(str(file) for file in files)
        self._blocks: list[_Block] = []
        self._schemas: dict[Path, pa.Schema] = {}
        self._as_json: dict[Path, set[str]] = {}
        for file in files:
            self._scan(file, block_bytes)
        try:
            schema = pa.unify_schemas([self._schemas[file] for file in files], promote_options="permissive")
        except pa.ArrowException as error:
            raise DataError(f"{self.where}: the files do not have the same types of columns: {error}") from error
        self._schema, self.columns = schema, tuple(schema.names)
        self.features: Mapping[str, Any] = as_json_feature(name for file in files for name in self._as_json[file])
        self._rows = Blocks([block.rows for block in self._blocks], self._table, KEPT_BYTES)

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        return self._rows.row(index, columns)

    def cells(self, name: str, indices: Sequence[int]) -> pa.ChunkedArray:
        import pyarrow as pa

        if not len(indices):
            return pa.chunked_array([], type=self._schema.field(name).type)
        return self._rows.cells(name, indices)

    def media(self, name: str, indices: Sequence[int]) -> list[list[Item]]:
        return stored_media(self.cells(name, indices))

    def identity(self) -> str:
        return file_identity(self.files)

    def dataset(self) -> Any:
        import pyarrow as pa

        from lmms_eval.tasks.data.hub import dataset_of_table

        whole = pa.concat_tables([self._table(number) for number in range(len(self._blocks))])
        return dataset_of_table(whole, self.features)

    def _scan(self, file: Path, block_bytes: int) -> None:
        """Find a file's blocks and the types of its columns."""
        import pyarrow as pa

        shapes, as_json, schema, seen = Shapes(), set[str](), pa.schema([]), 0
        for offset, data in _pieces(file, block_bytes):
            lines = _lines(data)
            for row in parsed_rows(lines, file, seen + 1):
                shapes.add(row)
            seen += len(lines)
            as_json |= shapes.mixed
            schema, clashes = merged_schema(schema, schema_of(lines, as_json, file))
            as_json |= clashes
            if lines:
                self._blocks.append(_Block(file, offset, len(data), len(lines)))
        self._schemas[file], self._as_json[file] = final_schema(schema, as_json), as_json

    def _table(self, number: int) -> pa.Table:
        import pyarrow as pa

        block = self._blocks[number]
        with open(block.file, "rb") as file:
            data = os.pread(file.fileno(), block.length, block.offset)
        data = encoded(_lines(data), self._as_json[block.file])
        try:
            table = table_of(data, block.file, self._schemas[block.file])
        except DataError as error:
            raise DataError(f"{error}; it was readable at the start: start the run again") from error
        if table.num_rows != block.rows:
            raise DataError(f"{block.file}: its rows changed while it was in use; start the run again")
        if table.schema.equals(self._schema):
            return table
        return pa.concat_tables([self._schema.empty_table(), table], promote_options="permissive")


def _pieces(file: Path, block_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of whole lines of about ``size`` bytes, with their offsets."""
    try:
        with open(file, "rb") as opened:
            offset = len(_MARK) if opened.read(len(_MARK)) == _MARK else 0
            opened.seek(offset)
            while data := opened.read(block_bytes):
                data += opened.readline()
                yield offset, data
                offset += len(data)
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error}") from error


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.splitlines() if line.strip()]
