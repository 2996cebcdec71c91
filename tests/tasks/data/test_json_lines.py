from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.data import text_files
from lmms_eval.tasks.data.documents import Documents
from lmms_eval.tasks.data.sizes import has_lists, has_text_lists, has_texts, list_lengths, text_lengths, value_of
from lmms_eval.tasks.data.sources import PlainSource, TableSource
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


PLAIN = st.one_of(
    *(
        st.lists(st.none() | values, min_size=5, max_size=5)
        for values in (
            st.text(max_size=12), st.sampled_from(["2024-05-06", "2024-05-06 07:08", "12345", "a\0b", "1:02:03"]),
            st.integers(-(2**64), 2**64 - 1), st.integers(-9, 9), st.booleans(), st.floats(-2, 2),
            st.lists(st.text(max_size=2), max_size=3), st.lists(st.none() | st.text(max_size=2), max_size=2),
        )
    )
)  # fmt: skip
"""Values of a column."""


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(rows=ROWS, block=st.integers(1, 60))
def test_blocks_give_the_rows_that_the_whole_file_gives(tmp_path: Path, rows: list[dict[str, Any]], block: int) -> None:
    file = write(tmp_path / "rows.jsonl", rows)
    whole = by_arrow(file)
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


def by_arrow(file: Path) -> TableSource:
    """Read a file as a table, whatever its size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "PLAIN_BYTES", -1)
        whole = text_files.read_json([file], {})
    assert isinstance(whole, TableSource)
    return whole


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(columns=st.dictionaries(st.text(max_size=3), PLAIN, min_size=1, max_size=3), count=st.integers(1, 5))
def test_python_reads_what_arrow_reads(tmp_path: Path, columns: dict[str, list[Any]], count: int) -> None:
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([{name: columns[name][row] for name in columns} for row in range(count)]), "utf-8")
    try:
        whole = by_arrow(file)
    except DataError:
        with pytest.raises(DataError):
            text_files.read_json([file], {})
        return
    plain = text_files.read_json([file], {})
    assert repr([dict(doc) for doc in Documents(plain)]) == repr([dict(doc) for doc in Documents(whole)])
    assert (plain.columns, plain.features, plain.where) == (whole.columns, whole.features, whole.where)
    assert plain.identity() == whole.identity()
    if isinstance(plain, PlainSource):
        assert plain.table().schema.equals(whole.table.schema, check_metadata=True)
        assert plain.table() == whole.table
    indices = [count - 1, *range(count)]
    for name in plain.columns:
        found, wanted = plain.cells(name, indices), whole.cells(name, indices)
        for about in (len, has_texts, has_lists, has_text_lists, lambda column: value_of(column, 0)):
            assert about(found) == about(wanted)
        assert found.to_pylist() == wanted.to_pylist()
        lengths = text_lengths if has_texts(wanted) else list_lengths if has_lists(wanted) else len
        assert lengths(found) == lengths(wanted)


@for_each(
    "lines",
    [
        '{"a": 1, "a": 2}', '{"a": "x"}\n{}', '{"a": "x"}\n{"b": "y"}', '{"a": null}', '{"a": 1.0}', "{}",
        '{"a": "2024-05-06"}', '{"a": []}', '{"a": {"b": "c"}}', '{"a": 1}\n{"a": true}', '{"a": 9223372036854775808}',
        "",
    ],
)  # fmt: skip
def test_arrow_reads_what_needs_inference(tmp_path: Path, lines: str) -> None:
    (tmp_path / "rows.jsonl").write_text(lines, "utf-8")
    assert isinstance(text_files.read_json([tmp_path / "rows.jsonl"], {}), TableSource)


def test_documents_are_copies_of_what_python_read(tmp_path: Path) -> None:
    found = text_files.read_json([write(tmp_path / "rows.jsonl", [{"a": ["x", "y"], "b": "text"}])], {})
    assert isinstance(found, PlainSource)
    next(iter(Documents(found)))["a"].append("z")
    assert found.row(0, ["b", "a"]) == {"b": "text", "a": ["x", "y"]}
    assert list(found.dataset()) == [{"a": ["x", "y"], "b": "text"}]
    assert found.media("a", [0]) == [[]]


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
    assert not isinstance(text_files.read_json([tmp_path / "list.json"], {}), JsonLinesSource)
    (tmp_path / "field.json").write_bytes(orjson.dumps({"data": many}))
    assert not isinstance(text_files.read_json([tmp_path / "field.json"], {"field": "data"}), JsonLinesSource)


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
