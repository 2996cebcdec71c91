"""Rows of documents: those of local files, those that another process sends, and changed ones.

Arrow tables are in memory; parquet files are read only as far as needed.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from lmms_eval.errors import DataError
from lmms_eval.tasks.data.documents import Documents, RowSource, features_of, is_media
from lmms_eval.tasks.data.sizes import Cells, Item, PlainCells, cells, mean_media, stored_media

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


MAX_BYTES = 256 * 2**20

_Columns: TypeAlias = "dict[str, pa.ChunkedArray]"


class Blocks:
    """The concatenated rows of Arrow tables of one schema.

    Args:
        counts: number of rows of each block.
        read: reads a block by its number; called under a lock.
        max_bytes: limit of the cached tables; the last one is kept whatever its size.
    """

    def __init__(self, counts: Sequence[int], read: Callable[[int], pa.Table], max_bytes: int = MAX_BYTES) -> None:
        self._ends = list(itertools.accumulate(counts))
        self._read, self._max_bytes = read, max_bytes
        self._kept: OrderedDict[int, _Columns] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def number_of(self, index: int) -> int:
        """Return the number of the block that holds a row."""
        return bisect.bisect_right(self._ends, index)

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        """Read some columns of a row."""
        block, offset = self._block_of(index)
        return {name: block[name][index - offset].as_py() for name in columns}

    def cells(self, name: str, indices: Sequence[int]) -> pa.ChunkedArray:
        """Collect some cells of a column, as views; ``indices`` is not empty."""
        import pyarrow as pa

        found: list[pa.ChunkedArray] = []
        for _, same_block in itertools.groupby(indices, partial(bisect.bisect_right, self._ends)):
            wanted = list(same_block)
            block, offset = self._block_of(wanted[0])
            found.append(cells(block[name], [index - offset for index in wanted]))
        return pa.chunked_array([chunk for part in found for chunk in part.chunks], type=found[0].type)

    def _block_of(self, index: int) -> tuple[_Columns, int]:
        """Return the block that holds a row, and the number of its first row."""
        number = bisect.bisect_right(self._ends, index)
        with self._lock:
            block = self._kept.get(number)
            if block is None:
                table = self._read(number)
                block = self._kept[number] = {name: table.column(name) for name in table.column_names}
                while len(self._kept) > 1 and self._max_bytes < sum(
                    column.nbytes for kept in self._kept.values() for column in kept.values()
                ):
                    self._kept.popitem(last=False)
            self._kept.move_to_end(number)
        return block, self._ends[number - 1] if number else 0


TEXT_BLOCK_BYTES = 8 * 2**20
"""Row groups with larger texts are read in batches of about this size."""
MAX_RESTARTS = 2
"""Restarts of a row group before it is read as a whole, because its rows are read in random order."""
IN_MEMORY_BYTES = 2**30


def file_identity(files: Sequence[Path]) -> str:
    """Compute the hash of names, sizes and modification times."""
    parts = [f"{file.name}|{file.stat().st_size}|{file.stat().st_mtime_ns}" for file in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


class TableSource:
    """Rows of an Arrow table in memory."""

    def __init__(
        self, table: pa.Table, files: Sequence[Path], features: Mapping[str, Any] | None = None, where: str = ""
    ) -> None:
        self.table, self.files = table, tuple(files)
        self.columns = tuple(table.column_names)
        self._columns = {name: table.column(name) for name in self.columns}
        self.features = features_of(table.schema) if features is None else features
        self.where = where or ", ".join(str(file) for file in files)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        return {name: self._columns[name][index].as_py() for name in columns}

    def cells(self, name: str, indices: Sequence[int]) -> pa.ChunkedArray:
        return cells(self._columns[name], indices)

    def media(self, name: str, indices: Sequence[int]) -> list[list[Item]]:
        return stored_media(cells(self._columns[name], indices))

    def identity(self) -> str:
        return file_identity(self.files)

    def dataset(self) -> Any:
        from lmms_eval.tasks.data.hub import dataset_of_table

        return dataset_of_table(self.table, self.features)


class PlainSource:
    """Rows of a small file of JSON, as Python reads it: Arrow would read the same (see ``plain_kinds``).

    Args:
        rows: the rows; all have the same keys in the same order.
        kinds: types of the columns, as in ``PlainCells``.
        files: the file.
    """

    features: Mapping[str, Any] = {}

    def __init__(self, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, type], files: Sequence[Path]) -> None:
        self._rows, self._kinds, self.files = rows, kinds, tuple(files)
        self.columns = tuple(kinds)
        self.where = ", ".join(str(file) for file in files)

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        row = self._rows[index]
        return {name: list(row[name]) if type(row[name]) is list else row[name] for name in columns}

    def cells(self, name: str, indices: Sequence[int]) -> PlainCells:
        return PlainCells(self._kinds[name], [self._rows[index][name] for index in indices])

    def media(self, name: str, indices: Sequence[int]) -> list[list[Item]]:
        return [[] for _ in self.cells(name, indices).values]

    def identity(self) -> str:
        return file_identity(self.files)

    def table(self) -> pa.Table:
        """Return the rows as the Arrow table that would have been read."""
        import pyarrow as pa

        types = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), list: pa.list_(pa.string())}
        schema = pa.schema([(name, types[kind]) for name, kind in self._kinds.items()])
        return pa.Table.from_pylist(list(self._rows), schema)

    def dataset(self) -> Any:
        from lmms_eval.tasks.data.hub import dataset_of_table

        return dataset_of_table(self.table(), self.features)


class ParquetSource:
    """Rows of parquet files. A row group, or a batch of a large one, is read when one of its rows is needed."""

    def __init__(self, files: Sequence[Path]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.files = tuple(files)
        self.where = ", ".join(str(file) for file in self.files)
        self._parts: list[pq.ParquetFile] = []
        for file in self.files:
            with _reading(file):
                self._parts.append(pq.ParquetFile(file))
        schema = self._parts[0].schema_arrow
        self.columns = tuple(schema.names)
        self.features: Mapping[str, Any] = features_of(schema)
        self._media = tuple(name for name in self.columns if is_media(self.features.get(name)))
        text = [name for name in self.columns if name not in self._media]
        try:
            stated = [part.schema_arrow for part in self._parts]
            schemas = [pa.schema([one.field(name) for name in text if name in one.names]) for one in stated]
            self._schema = pa.unify_schemas(schemas, promote_options="permissive")
        except pa.ArrowException as error:
            raise DataError(f"{self.where}: the files do not have the same columns: {error}") from error
        self._groups = [
            _RowGroup(part, file, group)
            for part, file in zip(self._parts, self.files, strict=True)
            for group in range(part.metadata.num_row_groups)
            if part.metadata.row_group(group).num_rows
        ]
        batches: list[tuple[_RowGroup, int, int]] = []
        for one in self._groups:
            size = one.batch_size(text)
            batches += [
                (one, number, min(size, one.rows - begin)) for number, begin in enumerate(range(0, one.rows, size))
            ]
        self._text = Blocks(
            [rows for _, _, rows in batches],
            lambda block: self._as_unified(batches[block][0].batch(text, batches[block][1])),
        )
        self._pictures = Blocks(
            [group.rows for group in self._groups], lambda block: self._groups[block].read(list(self._media))
        )

    def __len__(self) -> int:
        return sum(group.rows for group in self._groups)

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        media = [name for name in columns if name in self._media]
        text = [name for name in columns if name not in self._media]
        row = self._text.row(index, text) if text else {}
        if not media:
            return row
        row |= self._pictures.row(index, media)
        return {name: row[name] for name in columns}

    def cells(self, name: str, indices: Sequence[int]) -> pa.ChunkedArray:
        import pyarrow as pa

        if not len(indices):
            return pa.chunked_array([], type=self._schema.field(name).type)
        return self._text.cells(name, indices)

    def media(self, name: str, indices: Sequence[int]) -> list[list[Item]]:
        numbers = [self._pictures.number_of(index) for index in indices]
        means = {number: mean_media(self._groups[number].metadata, name) for number in set(numbers)}
        return [means[number] for number in numbers]

    def identity(self) -> str:
        return file_identity(self.files)

    def dataset(self) -> Any:
        from lmms_eval.tasks.data.hub import dataset_of_files, dataset_of_table

        if sum(file.stat().st_size for file in self.files) > IN_MEMORY_BYTES:
            return dataset_of_files("parquet", self.files)
        import pyarrow as pa

        tables = [_read(part, file) for part, file in zip(self._parts, self.files, strict=True)]
        return dataset_of_table(pa.concat_tables(tables, promote_options="permissive"), self.features)

    def _as_unified(self, table: pa.Table) -> pa.Table:
        """Cast a table to the types that hold for all files."""
        import pyarrow as pa

        if table.schema.equals(self._schema):
            return table
        return pa.concat_tables([self._schema.empty_table(), table], promote_options="permissive")


class _RowGroup:
    """A row group of a parquet file. If its texts are large, it is read in batches from its start."""

    def __init__(self, part: pq.ParquetFile, file: Path, number: int) -> None:
        self._part, self._file, self._number = part, file, number
        self.metadata = part.metadata.row_group(number)
        self.rows: int = self.metadata.num_rows
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._next = -1
        """Number of the batch that comes next; -1: none was read yet."""
        self._restarts = 0
        self._whole: pa.Table | None = None

    def read(self, columns: list[str]) -> pa.Table:
        """Read some columns as a whole."""
        return _read(self._part, self._file, columns, self._number)

    def batch(self, columns: list[str], number: int) -> pa.Table:
        """Read a batch of some columns. Batches in between are skipped."""
        import pyarrow as pa

        size = self.batch_size(columns)
        if size >= self.rows:
            return self.read(columns)
        if self._whole is None and number < self._next:
            self._restarts += 1
        if self._restarts > MAX_RESTARTS:
            self._whole = self.read(columns) if self._whole is None else self._whole
            return self._whole.slice(number * size, size)
        if not 0 <= self._next <= number:
            self._next = 0
            self._batches = self._part.iter_batches(size, row_groups=[self._number], columns=columns, use_threads=False)
        with _reading(self._file):
            while True:
                batch = next(self._batches)
                self._next += 1
                if self._next > number:
                    return pa.Table.from_batches([batch])

    def batch_size(self, columns: list[str]) -> int:
        """Return the number of rows of a batch of some columns, except the last one."""
        wanted = set(columns)
        sizes = [self.metadata.column(number) for number in range(self.metadata.num_columns)]
        total = sum(c.total_uncompressed_size for c in sizes if c.path_in_schema.partition(".")[0] in wanted)
        return self.rows if total <= TEXT_BLOCK_BYTES else max(1, self.rows * TEXT_BLOCK_BYTES // total)


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        size = file.stat().st_size if file.is_file() else 0
        raise DataError(
            f"{file}: not a readable parquet file ({size} bytes): {error}; fetch or write it again"
        ) from error


def _read(part: pq.ParquetFile, file: Path, columns: list[str] | None = None, group: int | None = None) -> pa.Table:
    with _reading(file):
        return part.read(columns) if group is None else part.read_row_group(group, columns)


def described(documents: Documents) -> dict[str, Any] | None:
    """Describe documents as JSON for ``CarriedSource``; ``None`` if they hold media and cannot be sent."""
    if documents.media_columns:
        return None
    source = documents.source
    return {
        "columns": source.columns,
        "features": dict(source.features),
        "where": source.where,
        "rows": len(documents),
    }


class CarriedSource:
    """Rows that another process sends one by one. For any other row the data is opened.

    Args:
        description: the value of ``described`` in the other process.
        open_source: opens the data.
    """

    def __init__(self, description: Mapping[str, Any], open_source: Callable[[], RowSource]) -> None:
        self.columns: tuple[str, ...] = tuple(description["columns"])
        self.features: Mapping[str, Any] = description["features"]
        self.where: str = description["where"]
        self._rows: int = description["rows"]
        self._open = open_source
        self._source: RowSource | None = None

    def __len__(self) -> int:
        return self._rows

    def open(self) -> RowSource:
        """Open the data if it is not open yet."""
        if self._source is None:
            self._source = self._open()
        return self._source

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        return self.open().row(index, columns)

    def cells(self, name: str, indices: Sequence[int]) -> Cells:
        return self.open().cells(name, indices)

    def media(self, name: str, indices: Sequence[int]) -> list[list[Item]]:
        return self.open().media(name, indices)

    def identity(self) -> str:
        return self.open().identity()

    def dataset(self) -> Any:
        return self.open().dataset()


class ChangedSource:
    """Rows of another source, changed.

    Args:
        source: the unchanged rows.
        columns: the columns that the change reads and writes, without media columns.
        change: returns the new values of these columns from the old ones.
    """

    def __init__(
        self, source: RowSource, columns: Sequence[str], change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    ) -> None:
        self.columns, self.features, self.where = source.columns, source.features, source.where
        self._source, self._change = source, change
        self._changed = tuple(name for name in columns if name in source.columns)

    def __len__(self) -> int:
        return len(self._source)

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        if not set(columns) & set(self._changed):
            return self._source.row(index, columns)
        row = self._source.row(index, tuple(dict.fromkeys((*columns, *self._changed))))
        return {name: value for name, value in {**row, **self._change(row)}.items() if name in columns}

    def cells(self, name: str, indices: Sequence[int]) -> Cells:
        """Return some unchanged cells, for estimates of costs."""
        return self._source.cells(name, indices)

    def media(self, name: str, indices: Sequence[int]) -> list[list[Item]]:
        return self._source.media(name, indices)

    def identity(self) -> str:
        return self._source.identity()

    def dataset(self) -> Any:
        """Return the unchanged rows. Code that reads the data set gets the changed document from the task."""
        return self._source.dataset()
