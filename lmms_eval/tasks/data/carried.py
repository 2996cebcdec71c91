"""Documents sent by another process, for a process that has not opened the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.tasks.data.documents import Documents, Source

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval.tasks.data.sizes import Item

_PLAIN = (str, int, float, bytes)


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


def can_be_carried(value: Any) -> bool:
    """Return whether a stored value is unchanged after it is written to a pipe and read back."""
    if isinstance(value, list):
        return all(map(can_be_carried, value))
    if isinstance(value, Mapping):
        return all(map(can_be_carried, value.values()))
    return value is None or isinstance(value, _PLAIN)


class CarriedSource:
    """Rows that another process sends one by one. For any other row the data is opened.

    Args:
        description: the value of ``described`` in the other process.
        open_source: opens the data.
    """

    def __init__(self, description: Mapping[str, Any], open_source: Callable[[], Source]) -> None:
        self.columns: tuple[str, ...] = tuple(description["columns"])
        self.features: Mapping[str, Any] = description["features"]
        self.where: str = description["where"]
        self._rows: int = description["rows"]
        self._open = open_source
        self._source: Source | None = None

    def __len__(self) -> int:
        return self._rows

    def open(self) -> Source:
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
