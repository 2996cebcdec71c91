"""Reads JSON, JSON lines, CSV, TSV, plain text and Arrow files as Arrow tables, with the types of ``datasets``."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from lmms_eval.errors import DataError
from lmms_eval.tasks.data.json_lines import JsonLinesSource
from lmms_eval.tasks.data.json_tables import (
    Shapes,
    as_json_feature,
    encoded,
    final_schema,
    parsed_rows,
    schema_of,
    table_of,
)
from lmms_eval.tasks.data.sources import TableSource

if TYPE_CHECKING:
    import pyarrow as pa

IN_MEMORY_BYTES = 8 * 2**20
"""Larger files of JSON lines are read in blocks."""
CSV_ROWS = 50_000
"""Rows of a piece of a CSV file."""
_WHOLE_FILE_OPTIONS = frozenset({"chunksize", "iterator", "skipfooter", "nrows", "engine"})
MAX_UNPACKED_BYTES = 2**30
MAX_RATIO = 100
"""Most growth of a gzip file above ``MAX_UNPACKED_BYTES``; text does not compress better."""


def read_json(files: Sequence[Path], kwargs: Mapping[str, Any]) -> TableSource | JsonLinesSource:
    """Read JSON lines, a list of objects, one object, or the list under ``field`` of an object.

    Large files of JSON lines are not kept in memory.
    """
    is_large = kwargs.get("field") is None and sum(file.stat().st_size for file in files) > IN_MEMORY_BYTES
    if is_large and all(map(_holds_lines, files)):
        return JsonLinesSource(files)
    return _source([_json_table(file, kwargs.get("field")) for file in files], files)


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

    Raises:
        DataError: it cannot be read, or grows beyond ``MAX_UNPACKED_BYTES`` and ``MAX_RATIO`` times its size.
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


def _json_table(file: Path, field: Any) -> tuple[pa.Table, dict[str, Any]]:
    data = read_bytes(file).removeprefix(b"\xef\xbb\xbf")
    lines = _lines(data, file, field)
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
