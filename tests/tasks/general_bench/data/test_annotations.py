from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data import annotations
from lmms_eval.tasks.general_bench.data.annotations import annotation_file, read_annotation, read_head
from tests.cases import for_each
from tests.tasks.general_bench.data.kit import write_task


def test_a_whole_annotation(tmp_path: Path) -> None:
    file = write_task(tmp_path / "t", "Ball Tracking", [{"id": 1}, 2], type="comprehension", skill="V-1", source=None)
    found = read_annotation(file)
    assert (found.folder, found.file, found.task, found.type) == (
        tmp_path / "t",
        file,
        "Ball Tracking",
        "comprehension",
    )
    assert found.head == {"task": "Ball Tracking", "type": "comprehension", "skill": "V-1", "source": None}
    assert found.data == ({"id": 1}, 2)


@for_each("head", [{}, {"task": None, "type": None}])
def test_task_and_type_may_be_missing(tmp_path: Path, head: dict[str, None]) -> None:
    found = read_annotation(write_task(tmp_path, **head))
    assert (found.task, found.type, found.data) == ("", "", ())
    assert read_head(tmp_path / "annotation.json").get("task") is None


@for_each("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "annotation.json"
    file.write_text('{"task": "Чтение 题", "data": [1]}', encoding=encoding)
    assert read_annotation(file).task == read_head(file)["task"] == "Чтение 题"


@for_each(
    ("text", "message"),
    [
        ("[]", r"holds a list; an object"),
        ("3", r"holds a number; an object"),
        ("{not json", r"no complete JSON file"),
        ('{"task": "a", "data": [{"id": 1}', r"no complete JSON file"),
        ('{"task": "a", "data": {"x": 1}}', r"`data` is an object; a list"),
        ('{"task": "a"}', r"`data` is missing; a list"),
        ('{"task": 3, "data": []}', r"`task` is a number; text"),
        ('{"type": ["x"], "data": []}', r"`type` is a list; text"),
        ("[" * 100_000, r"no complete JSON file"),
        ("", r"no complete JSON file"),
    ],
)
def test_unreadable_annotations_are_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "annotation.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"annotation\.json.*{message}"):
        read_annotation(file)


def test_a_missing_file() -> None:
    for read in (read_annotation, read_head):
        with pytest.raises(DataError, match="cannot be read: No such file"):
            read(Path("/nowhere/annotation.json"))


def test_the_head_needs_the_first_bytes_only(tmp_path: Path) -> None:
    file = tmp_path / "annotation.json"
    file.write_text('\n {"skill": {"a": [1, 2]}, "task" : "Ball \\u0041", "n": 12, "data": [' + '{"id": 1}, ' * 9999)
    assert read_head(file) == {"skill": {"a": [1, 2]}, "task": "Ball A", "n": 12}


def test_a_long_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotations, "_FIRST_BYTES", 7)
    labels = {str(number): "é" * 9 for number in range(500)}
    file = write_task(tmp_path, "Intent Classification", [{"id": 1}] * 900, intent_label=labels)
    monkeypatch.setattr(annotations, "read_json", None)
    assert read_head(file) == {"task": "Intent Classification", "intent_label": labels}


def test_a_head_that_is_too_long_for_the_first_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotations, "_FIRST_BYTES", 7)
    monkeypatch.setattr(annotations, "_MOST_BYTES", 50)
    file = write_task(tmp_path, "Ball Tracking", note="n" * 99)
    assert read_head(file) == {"task": "Ball Tracking", "note": "n" * 99}


def test_a_task_behind_the_items(tmp_path: Path) -> None:
    file = tmp_path / "annotation.json"
    file.write_text(json.dumps({"type": "x", "data": [1], "task": "Ball Tracking"}))
    assert read_head(file) == {"type": "x", "task": "Ball Tracking"}


def test_a_head_before_no_list(tmp_path: Path) -> None:
    file = tmp_path / "annotation.json"
    file.write_text('{"task": "a", "data": 3}')
    with pytest.raises(DataError, match="`data` is a number"):
        read_head(file)


def test_which_file_is_the_annotation(tmp_path: Path) -> None:
    for name in ("prediction.json", "Predictions_x.json", ".a.json", "notes.txt"):
        (tmp_path / name).write_text("{}")
    assert annotation_file(tmp_path) is None
    (tmp_path / "a.json").mkdir()
    (tmp_path / "c.JSON").write_text("{}")
    (tmp_path / "b.json").write_text("{}")
    assert annotation_file(tmp_path) == tmp_path / "b.json"
    (tmp_path / "annotation.json").write_text("{}")
    assert annotation_file(tmp_path) == tmp_path / "annotation.json"
