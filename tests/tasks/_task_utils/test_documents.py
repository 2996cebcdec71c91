from __future__ import annotations

import pyarrow as pa
import pytest

from lmms_eval.tasks._task_utils.documents import Doc, once_per_document
from lmms_eval.tasks.data.documents import Documents
from lmms_eval.tasks.data.sources import TableSource

CALLS: list[object] = []


@once_per_document
def parsed(doc: Doc, mode: str = "a") -> tuple[str, str]:
    """Parses a document."""
    CALLS.append((doc["text"], mode))
    if doc["text"] == "bad":
        raise ValueError("bad")
    return str(doc["text"]), mode


@pytest.fixture
def documents() -> Documents:
    CALLS.clear()
    return Documents(TableSource(pa.table({"text": ["one", "two", "bad"], "list": [[1], [2], [3]]}), []))


def test_all_views_of_a_document_share_what_is_parsed(documents: Documents) -> None:
    assert parsed(documents.text_view(0)) is parsed(documents[0]) is parsed(documents.text_view(-3))
    assert parsed(documents[0], "b") == ("one", "b") == parsed(documents[0], mode="b")
    assert parsed(documents[1]) == ("two", "a")
    assert CALLS == [("one", "a"), ("one", "b"), ("one", "b"), ("two", "a")]
    assert parsed.__doc__ == "Parses a document."


def test_it_goes_with_the_document(documents: Documents) -> None:
    parsed(documents[0])
    documents.drop(0)
    parsed(documents[0])
    assert len(CALLS) == 2


def test_copies_and_plain_mappings_are_parsed_at_each_call(documents: Documents) -> None:
    for doc in (documents[0].copy(), dict(documents[0]), {"text": "one"}, next(iter(documents)), documents[0:1][0]):
        CALLS.clear()
        assert parsed(doc) == parsed(doc) == ("one", "a")
        assert len(CALLS) == 2


def test_an_exception_is_not_kept(documents: Documents) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="bad"):
            parsed(documents[2])
    assert len(CALLS) == 2


def test_a_reader_changes_its_own_document_only(documents: Documents) -> None:
    mine = documents[0]
    mine["list"].append(9)
    mine["text"] = "other"
    assert dict(documents[0]) == {"text": "one", "list": [1]}
    assert documents.stored(0) == {"text": "one", "list": [1]}
