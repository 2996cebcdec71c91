"""The script that measures pictures on their way to an API: its data and its sums."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from benchmarks.pictures import SIZE, WAYS, Cost, report, write_tasks


def test_every_picture_is_another_one_as_a_file_and_in_the_column(tmp_path: Path) -> None:
    mean = write_tasks(tmp_path, 3)
    files = [(tmp_path / f"{number}.jpg").read_bytes() for number in range(3)]
    assert len(set(files)) == 3
    assert mean == pytest.approx(sum(map(len, files)) / 3)
    with Image.open(tmp_path / "0.jpg") as image:
        assert image.size == SIZE
    assert [row["bytes"] for row in pq.read_table(tmp_path / "column.parquet")["image"].to_pylist()] == files
    assert "image" not in pq.read_table(tmp_path / "file.parquet").column_names
    assert {path.stem for path in tmp_path.glob("*.yaml")} == {f"pictures_{way}" for way in WAYS}


def test_numbers_are_medians_over_the_rounds() -> None:
    found = report([Cost(2.0, 400.0), Cost(9.0, 400.0), Cost(1.0, 400.0)], 1.0, 300.0)
    assert found == {
        "cpu_ms": 2.0, "cpu_to_bare": 2.0, "request_bytes": 400, "bytes_ratio_to_base64_of_file": 1.0,
        "lowest_cpu_ms": 1.0,
    }  # fmt: skip
