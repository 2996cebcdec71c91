"""Rows of local files: Arrow tables in memory, parquet files whose media are read row group by row group."""

from __future__ import annotations

import bisect
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.data.features import features_of, is_media
from lmms_eval.tasks.data.sizes import Item, cells, mean_media, stored_media

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

GROUP_CACHE_BYTES = 256 * 2**20
IN_MEMORY_BYTES = 2**30


def file_identity(files: Sequence[Path]) -> str:
    """Hash of names, sizes and modification times."""
    parts = [f"{file.name}|{file.stat().st_size}|{file.stat().st_mtime_ns}" for file in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


class TableSource:
    """Rows of an Arrow table in memory."""

    def __init__(
        self, table: pa.Table, files: Sequence[Path], features: Mapping[str, Any] | None = None, where: str = ""
    ) -> None:
        self.table, self.files = table, tuple(files)
        self.columns = tuple(table.column_names)
        self.features = features_of(table.schema) if features is None else features
        self.where = where or ", ".join(str(file) for file in files)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        return {name: self.table.column(name)[index].as_py() for name in columns}

    def cells(self, name: str, indices: Sequence[int]) -> pa.ChunkedArray:
        return cells(self.table, name, indices)

    def media(self, name: str, indices: Sequence[int]) -> list[list[Item]]:
        return stored_media(cells(self.table, name, indices))

    def identity(self) -> str:
        return file_identity(self.files)

    def dataset(self) -> Any:
        from lmms_eval.tasks.data.hub import dataset_of_table

        return dataset_of_table(self.table, self.features)


class ParquetSource:
    """Rows of parquet files. Columns of media stay on disk; their row groups are read when a document needs them."""

    def __init__(self, files: Sequence[Path]) -> None:
        import pyarrow as pa

        self.files = tuple(files)
        self.where = ", ".join(str(file) for file in self.files)
        self._parts = [_open_parquet(file) for file in self.files]
        schema = self._parts[0].schema_arrow
        self.columns = tuple(schema.names)
        self.features: Mapping[str, Any] = features_of(schema)
        self._media = tuple(name for name in self.columns if is_media(self.features.get(name)))
        text = [name for name in self.columns if name not in self._media]
        tables = [_read(part, file, text) for part, file in zip(self._parts, self.files, strict=True)]
        try:
            self._text = pa.concat_tables(tables, promote_options="permissive") if len(tables) > 1 else tables[0]
        except pa.ArrowException as error:
            raise DataError(f"{self.where}: the files do not have the same columns: {error}") from error
        self._rows = sum(part.metadata.num_rows for part in self._parts)
        self._groups = _row_groups(self._parts)
        self._starts = [start for start, _, _ in self._groups]
        self._cache: OrderedDict[int, pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return int(self._rows)

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        media, offset = None, 0
        row = {}
        for name in columns:
            if name not in self._media:
                row[name] = self._text.column(name)[index].as_py()
                continue
            if media is None:
                media, offset = self._group_of(index)
            row[name] = media.column(name)[index - offset].as_py()
        return row

    def cells(self, name: str, indices: Sequence[int]) -> pa.ChunkedArray:
        return cells(self._text, name, indices)

    def media(self, name: str, indices: Sequence[int]) -> list[list[Item]]:
        numbers = [self._group_number(index) for index in indices]
        places = {number: self._groups[number] for number in set(numbers)}
        means = {
            number: mean_media(self._parts[part].metadata.row_group(group), name)
            for number, (_, part, group) in places.items()
        }
        return [means[number] for number in numbers]

    def identity(self) -> str:
        return file_identity(self.files)

    def dataset(self) -> Any:
        from lmms_eval.tasks.data.hub import dataset_of_files, dataset_of_table

        if sum(file.stat().st_size for file in self.files) > IN_MEMORY_BYTES:
            return dataset_of_files("parquet", self.files)
        import pyarrow as pa

        tables = [_read(part, file, None) for part, file in zip(self._parts, self.files, strict=True)]
        return dataset_of_table(pa.concat_tables(tables, promote_options="permissive"), self.features)

    def _group_number(self, index: int) -> int:
        return bisect.bisect_right(self._starts, index) - 1

    def _group_of(self, index: int) -> tuple[pa.Table, int]:
        """The media columns of the row group that holds a row, and the number of its first row."""
        number = self._group_number(index)
        start, part, group = self._groups[number]
        with self._lock:
            if number not in self._cache:
                self._cache[number] = _read(self._parts[part], self.files[part], list(self._media), group)
                while len(self._cache) > 1 and sum(t.nbytes for t in self._cache.values()) > GROUP_CACHE_BYTES:
                    self._cache.popitem(last=False)
            self._cache.move_to_end(number)
            return self._cache[number], start


def _open_parquet(file: Path) -> pq.ParquetFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise _corrupt(file, error) from error


def _read(part: pq.ParquetFile, file: Path, columns: list[str] | None, group: int | None = None) -> pa.Table:
    import pyarrow as pa

    try:
        return part.read(columns) if group is None else part.read_row_group(group, columns)
    except (pa.ArrowException, OSError) as error:
        raise _corrupt(file, error) from error


def _corrupt(file: Path, error: Exception) -> DataError:
    size = file.stat().st_size if file.is_file() else 0
    return DataError(f"{file}: not a readable parquet file ({size} bytes): {error}; fetch or write it again")


def _row_groups(parts: Sequence[pq.ParquetFile]) -> list[tuple[int, int, int]]:
    """First row, file number and group number of every row group that holds rows."""
    found, start = [], 0
    for number, part in enumerate(parts):
        for group in range(part.metadata.num_row_groups):
            rows = part.metadata.row_group(group).num_rows
            if rows:
                found.append((start, number, group))
            start += rows
    return found
