from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.data import text_files
from lmms_eval.tasks.data.documents import Documents
from lmms_eval.tasks.data.sources import TableSource
from lmms_eval.tasks.data.text_files import JsonLinesSource
from tests.cases import for_each

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(-2, 2), st.sampled_from(["", "text", "2024-05-06", "é\n"]),
    st.just("2024-05-06 07:08:09"),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
ROWS = st.lists(st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4), min_size=1, max_size=8).filter(any)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(rows=ROWS, block=st.integers(1, 60))
def test_blocks_give_the_rows_that_the_whole_file_gives(tmp_path: Path, rows: list[dict[str, Any]], block: int) -> None:
    file = write(tmp_path / "rows.jsonl", rows)
    whole = text_files.read_json([file], {})
    assert isinstance(whole, TableSource)
    lazy = JsonLinesSource([file], block)
    assert lazy.columns == whole.columns
    assert lazy.features == whole.features
    assert [dict(doc) for doc in Documents(lazy)] == [dict(doc) for doc in Documents(whole)]
    if not any("2024" in str(row) for row in rows):  # texts of dates become dates, if all of a column are
        assert [dict(doc) for doc in Documents(whole)] == [
            {name: row.get(name) for name in whole.columns} for row in rows
        ]
    for name in whole.columns:
        cells = lazy.cells(name, range(len(whole)))
        assert cells.type == whole.cells(name, range(len(whole))).type
        assert cells.to_pylist() == whole.cells(name, range(len(whole))).to_pylist()


def test_large_files_are_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "IN_MEMORY_BYTES", 50)
    many = [{"n": number, "text": f"row {number}"} for number in range(40)]
    first, second = write(tmp_path / "a.jsonl", many[:25]), write(tmp_path / "b.jsonl", [*many[25:], {"n": 0.5}])
    found = text_files.read_json([first, second], {})
    assert isinstance(found, JsonLinesSource)
    assert len(found) == 41
    assert found.row(7, ["text", "n"]) == {"text": "row 7", "n": 7.0}
    assert found.row(40, ["n", "text"]) == {"n": 0.5, "text": None}
    assert found.cells("text", [30, 3, 4]).to_pylist() == ["row 30", "row 3", "row 4"]
    assert found.cells("n", []).to_pylist() == []
    assert list(found.dataset()) == [dict(doc) for doc in Documents(found)]
    (tmp_path / "list.json").write_bytes(orjson.dumps(many))
    assert isinstance(text_files.read_json([tmp_path / "list.json"], {}), TableSource)
    (tmp_path / "field.json").write_bytes(orjson.dumps({"data": many}))
    assert isinstance(text_files.read_json([tmp_path / "field.json"], {"field": "data"}), TableSource)


@for_each(
    "rows",
    [
        [{"a": [None, 1]}, {"a": [2, None]}],
        [{"a": [None, "x"]}],
        [{"a": [None, None]}],
        [{"a": {"x": [None, None]}}],
        [{"a": [[None], [None, 1]]}],
    ],
)
def test_lists_that_begin_with_null(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    file = write(tmp_path / "rows.jsonl", rows)
    assert [dict(doc) for doc in Documents(text_files.read_json([file], {}))] == rows
    assert [dict(doc) for doc in Documents(JsonLinesSource([file], 1))] == rows


def test_marks_blank_lines_and_carriage_returns(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n{"a": 2}\r{"a": 3}\n  \n{"a": 4}')
    for block in (1, 12, 10_000):
        assert [doc["a"] for doc in Documents(JsonLinesSource([file], block))] == [1, 2, 3, 4]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{"a": 1}\n{"a": 2}\n{"a": \n')
    with pytest.raises(DataError, match=r"rows\.jsonl, line 3: not valid JSON"):
        JsonLinesSource([file], 1)
    file.write_bytes(b'{"a": 1}\n[2]\n')
    with pytest.raises(DataError, match=r"rows\.jsonl, line 2: a row must be an object, not a list"):
        JsonLinesSource([file], 1)


def test_a_file_that_changes_while_it_is_in_use(tmp_path: Path) -> None:
    file = write(tmp_path / "rows.jsonl", [{"a": 1}, {"a": 2}])
    source = JsonLinesSource([file], 1)
    file.write_bytes(b'{"a": 1}\n')
    with pytest.raises(DataError, match="its rows changed while it was in use; start the run again"):
        source.row(1, ["a"])


def test_files_of_differing_types(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.jsonl", [{"a": 1}]), write(tmp_path / "b.jsonl", [{"a": "x"}])]
    with pytest.raises(DataError, match="do not have the same types of columns"):
        JsonLinesSource(files)
