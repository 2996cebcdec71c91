"""Rows in blocks. A block is read when one of its rows is needed, and the blocks read last are cached."""

from __future__ import annotations

import bisect
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from lmms_eval.tasks.data.sizes import cells

if TYPE_CHECKING:
    import pyarrow as pa

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
                while len(self._kept) > 1 and sum(map(_bytes_of, self._kept.values())) > self._max_bytes:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(number)
        return block, self._ends[number - 1] if number else 0


def _bytes_of(block: _Columns) -> int:
    return sum(column.nbytes for column in block.values())
