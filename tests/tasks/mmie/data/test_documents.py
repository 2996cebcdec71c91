from __future__ import annotations

import json
import os
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import DataError
from lmms_eval.tasks.manager import TaskManager
from lmms_eval.tasks.mmie.data import documents
from lmms_eval.tasks.mmie.data.routing import QUESTIONS
from lmms_eval.tasks.mmie.view import Missing, Picture
from tests.painting import png

QUESTION = [{"text": "What?", "image": "images/a.png"}]


def record(identity: str, **more: Any) -> dict[str, Any]:
    turns = [
        {"from": "human", "content": QUESTION},
        {"from": "gpt", "content": [{"text": "That.", "image": None}]},
    ]
    return {"id": identity, "catagory": "x", "field": "Art", "conversations": turns, **more}


def write(folder: Path, records: list[Any], name: str = "data.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(records))
    return folder


def options(folder: Path | None, **more: Any) -> dict[str, Any]:
    return {"data_root": None if folder is None else str(folder), **more}


@pytest.fixture(autouse=True)
def no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.delenv(documents.ROOT_VARIABLE, raising=False)


def test_rows_of_both_shapes_and_spellings(tmp_path: Path) -> None:
    evaluated = {"id": "PBL-1", "question": QUESTION, "gt_answer": [{"text": None, "image": "images/b.png"}]}
    write(tmp_path, [record("SA-1", sub_field="Sea"), {**evaluated, "category": "Project-based learning"}])
    rows = documents.documents(None, options(tmp_path)).rows
    assert [(row["id"], row["category"], row["position"]) for row in rows] == [("SA-1", "SA", 0), ("PBL-1", "PBL", 1)]
    assert [row["subfield"] for row in rows] == ["Sea", "not in data"]
    assert rows[0]["gt_answer"] == [{"text": "That.", "image": None}]
    assert rows[1]["gt_answer"] == [{"text": None, "image": "images/b.png"}]
    assert [row["id"] for row in documents.documents("PBL", options(tmp_path)).rows] == ["PBL-1"]


@pytest.mark.parametrize("place", ["", "MMIE/MMIE", "MMIE__MMIE", "MMIE"])
def test_places_of_local_data(tmp_path: Path, place: str) -> None:
    folder = write(tmp_path / place, [record("MSR-1")])
    assert documents.data_file(documents.Settings(data_root=str(tmp_path))) == folder / "data.json"


def test_the_excerpt_is_the_second_choice(tmp_path: Path) -> None:
    write(tmp_path, [record("MSR-1")], "overview.json")
    assert len(documents.documents(None, options(tmp_path)).rows) == 1
    write(tmp_path, [record("MSR-1"), record("MSR-2")])
    assert len(documents.documents(None, options(tmp_path)).rows) == 2


def test_the_hubs_cache_is_found(tmp_path: Path) -> None:
    write(tmp_path / "home" / "hub" / "datasets--MMIE--MMIE" / "snapshots" / "1a", [record("SA-1")])
    assert len(documents.documents(None, options(None)).rows) == 1


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
        DataError, match=r"3 records cannot be used: record 1: .*record 2: id 'x-3' holds none.*record 3"
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


def test_pictures_are_found_below_several_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "data", [record("SA-1")])
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.png").write_bytes(png(1))
    (tmp_path / "data" / "images").mkdir()
    (tmp_path / "data" / "images" / "a.png").write_bytes(png(2))
    monkeypatch.setenv("MMIE_IMAGE_ROOT", str(tmp_path / "more"))
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "d.png").write_bytes(png(4))
    settings = documents.Settings(data_root=str(tmp_path / "data"), media_root=str(tmp_path / "third"))
    finder = documents.image_finder(settings)
    assert finder.find("images/d.png") == str(tmp_path / "third" / "d.png")
    assert finder("images/a.png") == Picture(str(tmp_path / "data" / "images" / "a.png"))
    assert finder.find("images/b.png") == str(tmp_path / "more" / "b.png")
    assert finder.find(str(tmp_path / "more" / "b.png")) == str(tmp_path / "more" / "b.png")
    assert finder("images/c.png") == Missing("images/c.png")
    assert finder.find("") is None


def archive(folder: Path, names: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "one.png").write_bytes(png(3))
    with tarfile.open(folder / "images.tar.gz", "w:gz") as made:
        for name in names:
            made.add(folder / "one.png", name)
    return folder / "images.tar.gz"


@pytest.mark.parametrize("inside", ["images/deep/one.png", "deep/one.png"])
def test_the_archive_is_unpacked_once(tmp_path: Path, inside: str) -> None:
    write(tmp_path / "data", [record("SA-1")])
    archive(tmp_path / "data", [inside])
    settings = documents.Settings(data_root=str(tmp_path / "data"))
    found = documents.image_finder(settings).find("images/deep/one.png")
    assert found == str(tmp_path / "home" / "mmie_data" / "images" / "deep" / "one.png")
    assert sorted(os.listdir(tmp_path / "home" / "mmie_data")) == ["images"]


def test_a_damaged_archive_leaves_nothing(tmp_path: Path) -> None:
    file = archive(tmp_path, ["images/one.png"])
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(DataError, match=r"cannot be unpacked.*download it again"):
        documents.unpack(file, tmp_path / "target")
    archive(tmp_path, ["../outside.png"])
    with pytest.raises(DataError, match="leads outside"):
        documents.unpack(file, tmp_path / "target")
    assert not (tmp_path / "target" / "images").exists() and not (tmp_path / "outside.png").exists()


def test_the_whole_set_opens_quickly(tmp_path: Path) -> None:
    records = [record(f"{tag}-{number}") for tag, count in QUESTIONS.items() for number in range(count)]
    write(tmp_path, records)
    started = time.perf_counter()
    found = TaskManager().load_task_or_group("mmie", options=TaskOptions(data_root=str(tmp_path)))
    assert len(found["mmie"]) == 20_103
    assert time.perf_counter() - started < 15
