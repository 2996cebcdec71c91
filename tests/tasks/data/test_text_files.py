"""Text files as tables: CSV read in pieces gives what reading it at once gives."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.data import text_files

CELLS = ["1", "2.5", "", "x", "True", "9223372036854775808", "2020-01-01", '"a,b"']


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "CSV_ROWS", 2)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("first", CELLS)
@pytest.mark.parametrize("then", CELLS)
def test_a_csv_in_pieces_is_as_pandas_reads_it_at_once(first: str, then: str, tmp_path: Path) -> None:
    text = "a,b\n" + f"{first},7\n" * 2 + f"{then},8\n" * 3
    path = tmp_path / "x.csv"
    path.write_text(text)
    try:
        expected = pa.Table.from_pandas(pd.read_csv(io.StringIO(text)), preserve_index=False)
    except pa.ArrowException:
        with pytest.raises(DataError, match=r"x\.csv: cannot be read as CSV"):
            text_files.read_csv([path], {})
        return
    table = text_files.read_csv([path], {}).table
    assert table.schema.equals(expected.schema) and table.to_pydict() == expected.to_pydict()


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("text", "options", "rows"),
    [
        ("a\n1\n2\n3\nend\n", {"skipfooter": 1, "engine": "python"}, [1, 2, 3]),
        ("a\n1\n2\n3\n", {"nrows": 1}, [1]),
        ("a\n", {}, []),
    ],
)
def test_options_of_the_whole_file(text: str, options: dict[str, object], rows: list[int], tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert text_files.read_csv([path], options).table.column("a").to_pylist() == rows
