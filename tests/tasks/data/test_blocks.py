from __future__ import annotations

import random
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_eval.tasks.data import sources
from lmms_eval.tasks.data.sources import Blocks, ParquetSource

TABLES = [pa.table({"n": list(range(start, start + 4))}) for start in (0, 4, 8)]


def test_blocks_are_read_on_demand_and_kept_within_a_bound() -> None:
    read: list[int] = []

    def read_block(number: int) -> pa.Table:
        read.append(number)
        return TABLES[number]

    blocks = Blocks([4, 4, 4], read_block, max_bytes=2 * TABLES[0].nbytes)
    assert len(blocks) == 12 and read == []
    assert [blocks.row(index, ["n"])["n"] for index in (5, 6, 11, 4)] == [5, 6, 11, 4]
    assert read == [1, 2]
    assert blocks.row(0, ["n"]) == {"n": 0} and read == [1, 2, 0]  # the block read longest ago has gone
    assert blocks.row(7, ["n"]) == {"n": 7} and read == [1, 2, 0]
    assert blocks.cells("n", [11, 3, 4, 5, 0]).to_pylist() == [11, 3, 4, 5, 0]
    assert len(Blocks([], read_block)) == 0


def test_blocks_from_many_threads() -> None:
    blocks = Blocks([4, 4, 4], TABLES.__getitem__, max_bytes=1)
    wrong: list[int] = []

    def work(seed: int) -> None:
        source = random.Random(seed)
        for _ in range(300):
            index = source.randrange(12)
            wrong.extend([index] if blocks.row(index, ["n"])["n"] != index else [])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two row groups of 60 rows, which are read in batches of some ten."""
    path = tmp_path / "large.parquet"
    rows = {"n": list(range(120)), "text": [f"{number:05}" * 20 for number in range(120)]}
    pq.write_table(pa.table(rows), path, row_group_size=60, use_dictionary=False, compression="none")
    monkeypatch.setattr(sources, "TEXT_BLOCK_BYTES", 1200)
    return path


def test_a_large_row_group_is_read_in_batches(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a row group was read as a whole")

    monkeypatch.setattr(sources, "_read", refuse)
    source = ParquetSource([large])
    assert len(source) == 120
    for index in range(0, 120, 7):
        assert source.row(index, ["text", "n"]) == {"text": f"{index:05}" * 20, "n": index}
    assert source.cells("n", range(40, 80)).to_pylist() == list(range(40, 80))


def test_rows_in_any_order(large: Path) -> None:
    source = ParquetSource([large])
    order = list(range(120))
    random.Random(0).shuffle(order)
    source._text._max_bytes = 1  # nothing is kept: each block is read anew
    assert [source.row(index, ["n"])["n"] for index in order] == order
    assert all(group._whole is not None for group in source._groups)  # no longer from the start at each block


def test_a_column_that_only_one_file_has(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [0.5]}), tmp_path / "1.parquet")
    source = ParquetSource([tmp_path / "0.parquet", tmp_path / "1.parquet"])
    assert [source.row(index, source.columns) for index in (0, 1)] == [{"a": 1.0, "b": "x"}, {"a": 0.5, "b": None}]
    assert source.cells("b", [1, 0]).to_pylist() == [None, "x"]
