"""Reads JSON, JSON lines, CSV, TSV, plain text and Arrow files as Arrow tables, with the types of ``datasets``."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import orjson
from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks.data.sizes import Item, stored_media
from lmms_eval.tasks.data.sources import Blocks, PlainSource, TableSource, file_identity

if TYPE_CHECKING:
    import pyarrow as pa


MAX_BLOCK = 2**30
_CHANGED_TYPE = re.compile(r"Column\(/([^/)]+)")


def parsed_rows(lines: Sequence[bytes], file: Path, first: int = 1) -> Iterator[dict[str, Any]]:
    """Parse lines; ``number`` is the number of the first line in its file.

    Raises ``DataError`` if a line is not a JSON object.
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
    parts: dict[str, _Shape] = msgspec.field(default_factory=dict)
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

    Raises ``DataError`` if Arrow cannot read them.
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
    the first value of a list. Raises ``DataError`` if a value is not of its column's type.
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

    Raises ``DataError`` if a line is not a JSON object.
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
            lines = _split_lines(data)
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
        data = encoded(_split_lines(data), self._as_json[block.file])
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


def _split_lines(data: bytes) -> list[bytes]:
    return [line for line in data.splitlines() if line.strip()]


PLAIN_BYTES = 2**20
"""Larger files are read by Arrow: the import of it and of numpy takes a tenth of a second."""
IN_MEMORY_BYTES = 8 * 2**20
"""Larger files of JSON lines are read in blocks."""
CSV_ROWS = 50_000
"""Rows of a piece of a CSV file."""
_WHOLE_FILE_OPTIONS = frozenset({"chunksize", "iterator", "skipfooter", "nrows", "engine"})
MAX_UNPACKED_BYTES = 2**30
MAX_RATIO = 100
"""Most growth of a gzip file above ``MAX_UNPACKED_BYTES``; text does not compress better."""


def read_json(files: Sequence[Path], kwargs: Mapping[str, Any]) -> TableSource | JsonLinesSource | PlainSource:
    """Read JSON lines, a list of objects, one object, or the list under ``field`` of an object.

    Large files of JSON lines are not kept in memory. A small file whose types need no inference is read without Arrow.
    """
    is_large = kwargs.get("field") is None and sum(file.stat().st_size for file in files) > IN_MEMORY_BYTES
    if is_large and all(map(_holds_lines, files)):
        return JsonLinesSource(files)
    lines = [_lines(read_bytes(file).removeprefix(_MARK), file, kwargs.get("field")) for file in files]
    if len(files) == 1 and sum(map(len, lines[0])) <= PLAIN_BYTES:
        rows = list(parsed_rows(lines[0], files[0]))
        kinds = plain_kinds(rows, lines[0])
        if kinds is not None:
            return PlainSource(rows, kinds, files)
    return _source([_json_table(of_file, file) for of_file, file in zip(lines, files, strict=True)], files)


def plain_kinds(rows: Sequence[Mapping[str, Any]], lines: Sequence[bytes]) -> dict[str, type] | None:
    """Return the types of columns that Arrow and Python read alike: texts, whole numbers, truth values, lists of texts.

    ``None`` if there may be a difference: rows with other keys or repeated ones, a column of several types, without
    any value, of other types, or of texts that may all be dates, which Arrow reads as such.
    """
    columns = list(rows[0]) if rows else []
    if not columns or any(list(row) != columns for row in rows):
        return None
    kinds = {name: _plain_kind([row[name] for row in rows]) for name in columns}
    if None in kinds.values() or any(_has_repeated_keys(line, len(columns)) for line in lines):
        return None
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _plain_kind(values: Sequence[Any]) -> type | None:
    kinds = {type(value) for value in values} - {type(None)}
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind is int:
        return int if all(value is None or -(2**63) <= value < 2**63 for value in values) else None
    if kind not in (str, list):
        return bool if kind is bool else None
    texts = values if kind is str else [text for value in values if value is not None for text in value]
    if kind is list and any(type(text) is not str for text in texts):
        return None
    return kind if any(text is not None and not _may_be_date(text) for text in texts) else None


def _may_be_date(text: str) -> bool:
    """Return whether Arrow may read a text as a date, such as ``2024-05-06``."""
    return len(text) >= 10 and text[4] == "-"


def _has_repeated_keys(line: bytes, columns: int) -> bool:
    return len(json.loads(line, object_pairs_hook=list)) != columns


def read_csv(files: Sequence[Path], kwargs: Mapping[str, Any]) -> TableSource:
    """Read comma-separated files with the types that pandas infers; ``kwargs`` are those of ``pandas.read_csv``."""
    import pyarrow as pa

    tables: list[tuple[pa.Table, dict[str, Any]]] = []
    for file in files:
        try:
            tables.append((_csv_table(file, kwargs), {}))
        except (ValueError, TypeError, OSError, pa.ArrowException) as error:
            raise DataError(f"{file}: cannot be read as CSV: {error}; check the separator (sep) and quoting") from error
    return _source(tables, files)


def _csv_table(file: Path, kwargs: Mapping[str, Any]) -> pa.Table:
    """Read a file in pieces, because pandas needs several times the memory of the table.

    The file is read as a whole if the pieces have different types, or if an option concerns the whole file.
    """
    import pandas as pd
    import pyarrow as pa

    def opened() -> Any:
        return io.BytesIO(read_bytes(file)) if file.suffix == ".gz" else file

    def table(frame: pd.DataFrame) -> pa.Table:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)

    if not _WHOLE_FILE_OPTIONS.intersection(kwargs):
        with pd.read_csv(opened(), **kwargs, chunksize=CSV_ROWS) as frames:
            pieces = list(map(table, frames))
        if pieces and all(piece.schema.equals(pieces[0].schema) for piece in pieces):
            return pa.concat_tables(pieces)
    return table(pd.read_csv(opened(), **kwargs))


def read_text(files: Sequence[Path], _kwargs: Mapping[str, Any]) -> TableSource:
    """Read one row per line, in the column ``text``."""
    import pyarrow as pa

    tables: list[tuple[pa.Table, dict[str, Any]]] = []
    for file in files:
        try:
            lines = read_bytes(file).decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise DataError(f"{file}: is not UTF-8 text: {error}") from error
        tables.append((pa.table({"text": pa.array(lines, type=pa.string())}), {}))
    return _source(tables, files)


def read_arrow(files: Sequence[Path], _kwargs: Mapping[str, Any]) -> TableSource:
    """Read Arrow IPC files, in the stream form that ``datasets`` writes or in the file form."""
    import pyarrow as pa

    tables = []
    for file in files:
        try:
            with pa.memory_map(str(file)) as mapped:
                try:
                    tables.append(pa.ipc.open_stream(mapped).read_all())
                except pa.ArrowInvalid:
                    mapped.seek(0)
                    tables.append(pa.ipc.open_file(mapped).read_all())
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{file}: not a readable Arrow file: {error}; fetch or write it again") from error
    return TableSource(pa.concat_tables(tables, promote_options="permissive"), files)


def _source(tables: Sequence[tuple[pa.Table, dict[str, Any]]], files: Sequence[Path]) -> TableSource:
    import pyarrow as pa

    features = {name: kind for _, kinds in tables for name, kind in kinds.items()}
    try:
        joined = pa.concat_tables([table for table, _ in tables], promote_options="permissive")
    except pa.ArrowException as error:
        names = ", ".join(str(file) for file in files)
        raise DataError(f"{names}: the files do not have the same types of columns: {error}") from error
    return TableSource(joined, files, features)


def read_bytes(file: Path) -> bytes:
    """Read a file; gzip is unpacked.

    Raises ``DataError`` if it cannot be read, or grows beyond ``MAX_UNPACKED_BYTES`` and ``MAX_RATIO`` times its size.
    """
    try:
        data = file.read_bytes()
        if data[:2] != b"\x1f\x8b":
            return data
        most = max(MAX_UNPACKED_BYTES, MAX_RATIO * len(data))
        with gzip.open(io.BytesIO(data)) as packed:
            content = packed.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file}: cannot be read: {error}") from error
    if len(content) > most:
        raise DataError(f"{file}: {len(data)} bytes grow to more than {most} when unpacked; unpack it yourself")
    return content


def _json_table(lines: Sequence[bytes], file: Path) -> tuple[pa.Table, dict[str, Any]]:
    shapes = Shapes()
    for row in parsed_rows(lines, file):
        shapes.add(row)
    as_json = shapes.mixed
    schema = final_schema(schema_of(lines, as_json, file), as_json)
    return table_of(encoded(lines, as_json), file, schema), as_json_feature(as_json)


def _lines(data: bytes, file: Path, field: Any) -> list[bytes]:
    """Return one JSON object per item."""
    start = data.lstrip()[:1]
    if field is None and start != b"[":
        lines = [line for line in data.splitlines() if line.strip()]
        if not lines or _is_object(lines[0]):
            return lines
    try:
        whole = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DataError(f"{file}: not valid JSON: {error}") from error
    if field is not None:
        if not isinstance(whole, Mapping) or field not in whole:
            keys = ", ".join(whole) if isinstance(whole, Mapping) else f"a {type(whole).__name__}"
            raise DataError(f"{file}: there is no field {field!r} in it; there is: {keys}")
        whole = whole[field]
    rows = whole if isinstance(whole, list) else [whole]
    return [orjson.dumps(row if isinstance(row, Mapping) else {"text": row}) for row in rows]


def _holds_lines(file: Path) -> bool:
    """Return whether a file that is not gzip holds JSON lines, by its first line."""
    try:
        with open(file, "rb") as opened:
            lines = (line.removeprefix(b"\xef\xbb\xbf") for line in opened)
            first = next((line for line in lines if line.strip()), b"")
    except OSError:
        return False
    return first.lstrip()[:1] == b"{" and _is_object(first)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}")
