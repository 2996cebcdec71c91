"""Rows in blocks that are read when a row of them is needed; the blocks read last are kept."""

from __future__ import annotations

import bisect
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.tasks.data.sizes import cells

if TYPE_CHECKING:
    import pyarrow as pa

MAX_BYTES = 256 * 2**20


class Blocks:
    """The rows of Arrow tables of one schema, one after the other.

    Args:
        counts: number of rows of each block.
        read: reads a block by its number; called under a lock.
        max_bytes: of the tables that are kept; the last one is kept however large it is.
    """

    def __init__(self, counts: Sequence[int], read: Callable[[int], pa.Table], max_bytes: int = MAX_BYTES) -> None:
        self._ends = list(itertools.accumulate(counts))
        self._read, self._max_bytes = read, max_bytes
        self._kept: OrderedDict[int, pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def number_of(self, index: int) -> int:
        """Returns the number of the block that holds a row."""
        return bisect.bisect_right(self._ends, index)

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        """Reads some columns of a row."""
        table, offset = self._table_of(index)
        return {name: table.column(name)[index - offset].as_py() for name in columns}

    def cells(self, name: str, indices: Sequence[int]) -> pa.ChunkedArray:
        """Collects some cells of a column, as views; ``indices`` is not empty."""
        import pyarrow as pa

        found: list[pa.ChunkedArray] = []
        for _, same_block in itertools.groupby(indices, self.number_of):
            wanted = list(same_block)
            table, offset = self._table_of(wanted[0])
            found.append(cells(table, name, [index - offset for index in wanted]))
        return pa.chunked_array([chunk for part in found for chunk in part.chunks], type=found[0].type)

    def _table_of(self, index: int) -> tuple[pa.Table, int]:
        """Returns the block that holds a row, and the number of its first row."""
        number = self.number_of(index)
        with self._lock:
            table = self._kept.get(number)
            if table is None:
                table = self._kept[number] = self._read(number)
                while len(self._kept) > 1 and sum(kept.nbytes for kept in self._kept.values()) > self._max_bytes:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(number)
        return table, self._ends[number - 1] if number else 0
