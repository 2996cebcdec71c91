from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.data import sizes
from tests.cases import for_each

PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def picture(data: bytes | None, path: str | None = None) -> dict[str, Any]:
    return {"bytes": data, "path": path}


@for_each(
    ("values", "kind", "found"),
    [
        ([picture(b"abc", "a.png"), picture(None, "b.png"), picture(None), None], PICTURE, [[3], ["b.png"], [], []]),
        (
            [[picture(b"a"), picture(b"bc")], [], None, [picture(None, "x.jpg")]],
            pa.list_(PICTURE),
            [[1, 2], [], [], ["x.jpg"]],
        ),
        ([b"abcd", None], pa.binary(), [[4], []]),
        (["a.wav", None], pa.string(), [["a.wav"], []]),
        ([7, None], pa.int64(), [[None], []]),
    ],
)
def test_media_by_offsets(values: list[Any], kind: pa.DataType, found: list[Any]) -> None:
    whole = pa.chunked_array([values[:1], values[1:]], type=kind)
    assert sizes.stored_media(whole) == found
    assert sizes.stored_media(whole.slice(1)) == found[1:]


def test_lengths_of_texts_and_lists() -> None:
    assert sizes.text_lengths(pa.chunked_array([["äöü", None, ""]])) == [6, 0, 0]
    assert sizes.list_lengths(pa.chunked_array([[["a", "b"], None, []]])) == [2, 0, 0]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.list_(pa.int8()), pa.large_list(pa.int8())],
)
@given(lengths=st.lists(st.none() | st.integers(0, 4)), start=st.integers(0, 9), count=st.integers(0, 9))
def test_lengths_are_those_of_arrow(kind: pa.DataType, lengths: list[int | None], start: int, count: int) -> None:
    is_list = "list" in str(kind)
    cell: Any = [None] if is_list else "é" if "string" in str(kind) else b"x"
    array = pa.array([None if length is None else cell * length for length in lengths], kind).slice(start, count)
    known = pc.list_value_length(array) if is_list else pc.binary_length(array)
    measured = sizes.list_lengths if is_list else sizes.text_lengths
    assert measured(pa.chunked_array([array])) == [length or 0 for length in known.to_pylist()]
    if kind in (pa.binary(), pa.large_binary()):
        media = [[] if length is None else [length] for length in known.to_pylist()]
        assert sizes.stored_media(pa.chunked_array([array])) == media


def test_cells_are_views_in_the_order_asked_for() -> None:
    table = pa.table({"n": pa.chunked_array([[0, 1], [2, 3, 4]])})
    assert sizes.cells(table.column("n"), [4, 1, 1]).to_pylist() == [4, 1, 1]
    assert sizes.cells(table.column("n"), range(1, 4)).to_pylist() == [1, 2, 3]
    assert sizes.cells(table.column("n"), range(0)).to_pylist() == []
