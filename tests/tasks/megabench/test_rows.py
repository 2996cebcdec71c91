from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.megabench.rows import COLUMNS, is_video, parse_row
from tests.tasks.megabench.rows_for_tests import document


def test_columns_are_read() -> None:
    row = parse_row(document(global_media=["./data/T/a.png"], answer={"a": "1", "b": {"c": "d"}}))
    assert row.answer == {"a": "1", "b": {"c": "d"}}
    assert row.answer_text == "{'a': '1', 'b': {'c': 'd'}}"
    assert row.media == ("./data/T/a.png", "./data/T/plain.png", "./data/T/plain.png")
    assert row.segments[0].text == "Describe."
    assert tuple(document()) == COLUMNS


@pytest.mark.parametrize(
    ("media", "kind"),
    [
        ([], "image"), (["./data/a.png"], "image"), (["./data/a.mp4", "./data/b.mp4"], "video"),
        (["./data/a.png", "./data/b.mp4"], "mixed"),
    ],
)  # fmt: skip
def test_kind(media: list[str], kind: str) -> None:
    assert parse_row(document(example_media=[], query_media=media)).kind == kind


def test_videos_are_known_by_their_name() -> None:
    assert is_video("./data/x.MP4") and is_video("a.webm") and is_video("a.mov")
    assert not is_video("a.png") and not is_video("a") and not is_video("mp4")


@pytest.mark.parametrize(
    "changes",
    [
        {"query_media": "not a literal"}, {"query_media": "{'a': 1}"}, {"query_media": "[1]"},
        {"query_media": "__import__('os').getcwd()"}, {"answer": "['a']"}, {"answer": "open('/etc/passwd')"},
        {"query_media": ["/etc/passwd.png"]}, {"query_media": ["./data/../../secret.png"]},
        {"global_media": ["..\\secret.png"]},
    ],
)  # fmt: skip
def test_damaged_rows_are_refused_by_name(changes: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=f"'7' of task 'some_task'.*{next(iter(changes))}"):
        parse_row(document(**changes))


def test_a_missing_column_is_named() -> None:
    doc = document()
    del doc["query_media"]
    with pytest.raises(DataError, match="query_media"):
        parse_row(doc)


def test_values_that_are_read_already_are_taken_as_they_are() -> None:
    doc: dict[str, Any] = {**document(), "query_media": ["./data/a.png"], "answer": {"answer": "x"}}
    row = parse_row(doc)
    assert row.query.media == ("./data/a.png",) and row.answer == {"answer": "x"}
