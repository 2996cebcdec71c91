"""Sources around others: documents sent by another process, and documents that are changed when they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.tasks.data.documents import Documents, RowSource

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval.tasks.data.sizes import Item


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

    def cells(self, name: str, indices: Sequence[int]) -> pa.ChunkedArray:
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

    def cells(self, name: str, indices: Sequence[int]) -> pa.ChunkedArray:
        """Return some unchanged cells, for estimates of costs."""
        return self._source.cells(name, indices)

    def media(self, name: str, indices: Sequence[int]) -> list[list[Item]]:
        return self._source.media(name, indices)

    def identity(self) -> str:
        return self._source.identity()

    def dataset(self) -> Any:
        """Return the unchanged rows. Code that reads the data set gets the changed document from the task."""
        return self._source.dataset()
