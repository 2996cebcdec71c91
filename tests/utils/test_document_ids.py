from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.utils.document_ids import ids_text, parse_ids
from tests.cases import for_each


@for_each(
    ("text", "shortest"),
    [
        ("1,2,5-9", "1-2,5-9"),
        ("9,5-8, 7", "5-9"),
        ("3\n4\n\n10", "3-4,10"),
        ("quiz:1,2;other:5", "quiz:1-2;other:5"),
        ("a:b:1;a:b:2", "a:b:1-2"),
    ],
)
def test_numbers_and_ranges(text: str, shortest: str) -> None:
    assert ids_text(text) == shortest
    assert ids_text(shortest) == shortest


def test_a_file_is_read_once_and_for_all(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("4\n2\n3\n")
    assert ids_text(str(tmp_path / "ids.txt")) == "2-4"


def test_the_column_id_of_a_table_is_read(tmp_path: Path) -> None:
    table = tmp_path / "suspects.csv"
    table.write_text('task,rank,id,answer\nquiz,1,7,"A, or\nB"\nquiz,2,3,C\nother,1,3,D\n')
    assert ids_text(str(table)) == "quiz:3,7;other:3"
    table.write_text("id,share\n4,1\n5,0\n")
    assert ids_text(str(table)) == "4-5"
    table.write_text("id,share\nfour,1\n")
    with pytest.raises(UsageError, match="'four' is not a document number"):
        ids_text(str(table))


def test_documents_of_a_task() -> None:
    ids = parse_ids("quiz:1,8-20;other:5")
    assert list(ids.of("quiz").among(10)) == [1, 8, 9]
    assert list(ids.of("third").among(10)) == []
    assert list(parse_ids("1-2").of("third").among(10)) == [1, 2]
    assert 9 in ids.of("quiz")
    assert 21 not in ids.of("quiz")


@for_each("text", ["", "x", "5-", "-5", "9-5", "1,,x", "no/such/file", "quiz:1;2", "²", "1" * 5000])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--ids"):
        ids_text(text)


@given(st.text(alphabet="0123456789-,:; \nab", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = str(parse_ids(text))
    except UsageError:
        return
    assert str(parse_ids(found)) == found
