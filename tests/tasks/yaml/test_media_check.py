"""Files that documents name, looked up before anything is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import AbsentDataError
from tests.tasks.kit import Function, loaded

ROWS = [{"question": "What happens?", "answer": "rain", "video": f"v{number}.mp4"} for number in (0, 1, 1, 2)]
CODE = """
from pathlib import Path
from lmms_eval.errors import ItemError, MediaError

def path(doc):
    return [str(Path(__file__).parent / doc["video"])]

def found(doc):
    if not Path(*path(doc)).is_file():
        raise MediaError(f"{doc['video']} is nowhere")
    return path(doc)

def damaged(doc):
    raise ItemError("column 'video' is empty")

def addresses(doc):
    return ["https://example.org/v.mp4", {"array": [], "sampling_rate": 1}]
"""


def checked(folder: Path, function: str, documents: range = range(4), size: str | None = "2 GB") -> None:
    keys: dict[str, Any] = {"doc_to_visual": Function(f"utils.{function}")}
    task = loaded(folder, {**keys, "media_archive": size}, CODE, rows=ROWS)
    task.check_files(documents)


def is_complete(folder: Path, function: str, documents: range = range(4), size: str | None = "2 GB") -> bool:
    try:
        checked(folder, function, documents, size)
    except AbsentDataError:
        return False
    return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "v0.mp4").touch()
    return tmp_path


@pytest.mark.parametrize(("function", "said"), [("path", "{}/v1.mp4 is not there"), ("found", "v1.mp4 is nowhere")])
def test_missing_files_are_counted_and_the_first_is_named_with_what_to_do(
    folder: Path, function: str, said: str
) -> None:
    with pytest.raises(AbsentDataError) as caught:
        checked(folder, function)
    assert str(caught.value) == (
        f"task 'probe': the files of 3 of 4 documents are missing; the first, of document 1: {said.format(folder)}; "
        "`lmms-eval fetch probe` gets them (2 GB)"
    )


@pytest.mark.parametrize("function", ["path", "found"])
def test_only_the_documents_that_are_asked_need_files(folder: Path, function: str) -> None:
    assert is_complete(folder, function, range(1))
    assert not is_complete(folder, function, range(2, 4))
    (folder / "v2.mp4").touch()
    assert is_complete(folder, function, range(3, 4))


@pytest.mark.parametrize("function", ["damaged", "addresses"])
def test_a_damaged_document_and_media_that_are_no_files_are_passed_over(folder: Path, function: str) -> None:
    assert is_complete(folder, function)


def test_a_task_without_the_key_is_not_checked(folder: Path) -> None:
    assert is_complete(folder, "path", size=None)
    assert not is_complete(folder, "path")
