from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import DataError
from lmms_eval.tasks.manager import TaskManager
from lmms_eval.tasks.mmie.data import documents
from lmms_eval.tasks.mmie.facts import QUESTIONS
from tests.tasks.mmie.data.kit import QUESTION, options, record, write


def test_rows_of_both_shapes_and_spellings(tmp_path: Path) -> None:
    evaluated = {"id": "PBL-1", "question": QUESTION, "gt_answer": [{"text": None, "image": "images/b.png"}]}
    write(tmp_path, [record("SA-1", sub_field="Sea"), {**evaluated, "category": "Project-based learning"}])
    rows = documents.documents(None, options(tmp_path)).rows
    assert [(row["id"], row["category"], row["position"]) for row in rows] == [("SA-1", "SA", 0), ("PBL-1", "PBL", 1)]
    assert [row["subfield"] for row in rows] == ["Sea", "not in data"]
    assert rows[0]["gt_answer"] == [{"text": "That.", "image": None}]
    assert rows[1]["gt_answer"] == [{"text": None, "image": "images/b.png"}]
    assert [row["id"] for row in documents.documents("PBL", options(tmp_path)).rows] == ["PBL-1"]


def test_what_is_missing_is_said_with_the_way_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"gated.*accept the terms.*HF_TOKEN.*--data_root DIR"):
        documents.documents(None, options(tmp_path))

    def refused(**_: Any) -> None:
        raise PermissionError("403: access is restricted")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refused)
    with pytest.raises(DataError, match=r"403: access is restricted.*gated.*accept the terms"):
        documents.documents(None, options(None))


def test_records_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    broken = {key: value for key, value in record("SA-2").items() if key != "conversations"}
    write(tmp_path, [record("SA-1"), broken, record("x-3"), 7])
    with pytest.raises(
        DataError, match=r"3 records cannot be used: record 1: .*record 2: id 'x-3' does not hold.*record 3"
    ):
        documents.documents(None, options(tmp_path))
    write(tmp_path, [])
    with pytest.raises(DataError, match="holds no record"):
        documents.documents(None, options(tmp_path))
    (tmp_path / "data.json").write_text("{}")
    with pytest.raises(DataError, match="a JSON list"):
        documents.documents(None, options(tmp_path))


def test_the_category_by_name(tmp_path: Path) -> None:
    write(tmp_path, [record("SA-MSR-1", catagory="Multi-step reasoning")])
    assert documents.documents(None, options(tmp_path)).rows[0]["category"] == "SA"
    assert documents.documents(None, options(tmp_path, category_by="name")).rows[0]["category"] == "MSR"


def test_the_whole_set_opens_quickly(tmp_path: Path) -> None:
    records = [record(f"{tag}-{number}") for tag, count in QUESTIONS.items() for number in range(count)]
    write(tmp_path, records)
    started = time.perf_counter()
    found = TaskManager().load_task_or_group("mmie", options=TaskOptions(data_root=str(tmp_path)))
    assert len(found["mmie"]) == 20_103
    assert time.perf_counter() - started < 15
