"""Sizes of a column's cells, from Arrow offsets and file metadata. No value is decoded, read or copied."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Item = float | str | None
"""One medium: its size in bytes, its path or URL, or ``None`` if unknown."""
_TINY_BYTES = 64
"""A column with a smaller mean holds paths, not contents."""


class PlainCells(Struct, frozen=True):
    """Cells of a column as Python's values, for rows that were read without Arrow."""

    kind: type
    """``str``, ``int``, ``bool``, or ``list`` of texts; any cell may be ``None``."""
    values: list[Any]

    def __len__(self) -> int:
        return len(self.values)

    def to_pylist(self) -> list[Any]:
        return self.values


Cells: TypeAlias = "pa.ChunkedArray | PlainCells"


def cells(column: pa.ChunkedArray, indices: Sequence[int]) -> pa.ChunkedArray:
    """Return some cells of a column, as views."""
    import pyarrow as pa

    if not len(indices):
        return column.slice(0, 0)
    if list(indices) == list(range(indices[0], indices[0] + len(indices))):
        return column.slice(indices[0], len(indices))
    return pa.chunked_array([chunk for i in indices for chunk in column.slice(i, 1).chunks], type=column.type)


def is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def has_texts(column: Cells) -> bool:
    """Return whether the cells of a column are texts."""
    return column.kind is str if isinstance(column, PlainCells) else is_text(column.type)


def has_lists(column: Cells) -> bool:
    """Return whether the cells of a column are lists."""
    return column.kind is list if isinstance(column, PlainCells) else is_list(column.type)


def has_text_lists(column: Cells) -> bool:
    """Return whether the cells of a column are lists of texts."""
    return has_lists(column) and (isinstance(column, PlainCells) or is_text(column.type.value_type))


def value_of(column: Cells, row: int) -> Any:
    """Return a cell as a value of Python."""
    return column.values[row] if isinstance(column, PlainCells) else column[row].as_py()


def text_lengths(column: Cells) -> list[int]:
    """Return the bytes of each cell of a text column."""
    if isinstance(column, PlainCells):
        return [len((value or "").encode()) for value in column.values]
    return [length or 0 for chunk in column.chunks for length in _lengths(chunk)]


def list_lengths(column: Cells) -> list[int]:
    """Return the number of elements of each cell of a list column."""
    if isinstance(column, PlainCells):
        return [len(value or ()) for value in column.values]
    return [length or 0 for chunk in column.chunks for length in _lengths(chunk)]


def _lengths(array: pa.Array) -> list[int | None]:
    """Return the lengths of the cells of an array of texts, bytes or lists; ``None`` for null cells.

    They come from the offsets in memory, because importing ``pyarrow.compute`` takes a tenth of a second.
    """
    import pyarrow as pa

    if not len(array):
        return []
    kind, first = array.type, array.offset
    validity, offsets = array.buffers()[:2]
    is_large = pa.types.is_large_list(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    ends = memoryview(offsets).cast("q" if is_large else "i")[first : first + len(array) + 1].tolist()
    lengths: list[int | None] = [end - begin for begin, end in pairwise(ends)]
    if validity is None or not array.null_count:
        return lengths
    bits = memoryview(validity)
    return [
        length if bits[place >> 3] >> (place & 7) & 1 else None for place, length in enumerate(lengths, start=first)
    ]


def stored_media(column: pa.ChunkedArray) -> list[list[Item]]:
    """Return the media of each cell of an image, audio or list-of-images column: sizes of contents, else paths."""
    return [items for chunk in column.chunks for items in _stored_media(chunk)]


def _stored_media(array: pa.Array) -> list[list[Item]]:
    import pyarrow as pa

    kind = array.type
    if is_list(kind):
        flat = iter(_stored_media(array.flatten()))
        return [[item for _ in range(count or 0) for item in next(flat)] for count in _lengths(array)]
    if pa.types.is_struct(kind):
        fields = dict(zip((field.name for field in kind), array.flatten(), strict=True))
        absent: list[Any] = [None] * len(array)
        sizes = _lengths(fields["bytes"]) if "bytes" in fields else absent
        paths = fields["path"].to_pylist() if "path" in fields else absent
        found = [size if size is not None else path for size, path in zip(sizes, paths, strict=True)]
        return [[] if value is None else [value] for value in found]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [[] if size is None else [size] for size in _lengths(array)]
    if is_text(kind):
        return [[] if value is None else [value] for value in array.to_pylist()]
    return [[] if value is None else [None] for value in array.to_pylist()]


def mean_media(group: pq.RowGroupMetaData, name: str) -> list[Item]:
    """Estimate the media of an average row of a parquet row group; exact sizes would require reading the group."""
    for number in range(group.num_columns):
        leaf = group.column(number)
        parts = leaf.path_in_schema.split(".")
        if parts[0] == name and parts[-1] != "path" and leaf.num_values and group.num_rows:
            mean = leaf.total_uncompressed_size / leaf.num_values
            count = max(1, round(leaf.num_values / group.num_rows))
            return [mean if mean > _TINY_BYTES else None] * count
    return []
