from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import AbsentDataError, DataError
from lmms_eval.tasks.general_bench.data import documents
from lmms_eval.tasks.general_bench.data.documents import item_of
from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.settings import Settings
from tests.cases import for_each
from tests.tasks.general_bench.data.kit import write_task
from tests.tasks.general_bench.demo_kit import OPTIONS, SET, copied, edit, rows

DEMO = Settings.of(OPTIONS)
DEFECTS = "nlp_code_defect_detection"
DIALOGUES = "nlp_multi_turn_daily_dialogue_generation"
DETECTION = "image_comprehension_traffic_signs_detection"
RAIN = "image_generation_image_deraining"


def options(root: Path, **more: Any) -> dict[str, Any]:
    return {"data_root": str(root), **more}


def annotation_of(root: Path, folder: str) -> Path:
    return root / SET / folder / "annotation.json"


def test_a_language_document_is_an_item_again() -> None:
    found = rows(DEFECTS)
    assert [row["place"] for row in found] == [0, 1, 2]
    items = [item_of(row, DEMO) for row in found]
    assert [item.id for item in items] == ["q0", "q1", "q2"]
    assert {item.reference for item in items} == {"0", "1"}
    assert items[0].head["source"] == "made for the demonstration"
    assert all(not row["problem"] for row in found)


def test_a_document_of_media_is_an_item_again() -> None:
    item = item_of(rows(DETECTION)[1], DEMO)
    assert (item.form, item.reference) == ("boxes", [[30, 20, 14, 12, "shape"]])
    assert [path.is_file() for medium in item.media for path in medium.paths] == [True]
    assert item.folder == item.prediction_folder


def test_rows_have_the_same_columns_and_no_number_changes_its_type() -> None:
    for name in (DEFECTS, DETECTION, "video_comprehension_ball_tracking"):
        found = rows(name)
        assert len({tuple(row) for row in found}) == 1
        assert len({tuple(type(value) for value in row.values()) for row in found}) == 1


def test_the_labels_of_all_items_are_candidates() -> None:
    for row in rows(DETECTION):
        assert list(row["candidates"]) == ["shape"]
    assert all(not row["candidates"] for row in rows(DEFECTS))


def test_tasks_whose_answers_are_files_are_not_asked() -> None:
    with pytest.raises(AbsentDataError, match=r"its answers are files.*media_answers=ask"):
        rows(RAIN)
    assert len(rows(RAIN, {**OPTIONS, "media_answers": "ask"})) == 3


def test_no_folder_of_the_task(tmp_path: Path) -> None:
    root = copied(tmp_path, "nlp/Defects")
    with pytest.raises(AbsentDataError, match="has no folder whose annotation names the task"):
        rows(DIALOGUES, options(root))
    with pytest.raises(DataError, match="--data_root DIR"):
        rows(DEFECTS, {})
    with pytest.raises(DataError, match="no such folder"):
        rows(DEFECTS, options(root / "nothing"))


@for_each(("only", "is_taken"), [("Defects", True), ("/nlp/Defects/", True), ("fects", False)])
def test_only_one_folder(tmp_path: Path, only: str, is_taken: bool) -> None:
    root = copied(tmp_path, "nlp/Defects", "nlp/Dialogues")
    with pytest.raises(AbsentDataError, match="not of"):
        rows(DIALOGUES, options(root, only=only))
    if is_taken:
        assert len(rows(DEFECTS, options(root, only=only))) == 3
    else:
        with pytest.raises(AbsentDataError, match="not of fects"):
            rows(DEFECTS, options(root, only=only))


def test_the_subset_that_is_asked_for(tmp_path: Path) -> None:
    facts = find_task("Code Defect Detection")
    root = copied(tmp_path, "nlp/Defects")
    closed = [{"id": "c", "func": "int f;"}]
    write_task(root / "General-Bench-Closeset" / "nlp" / "Hidden", facts.name, closed, type="Code Defect Detection")
    assert len(rows(DEFECTS, options(root))) == 3
    (hidden,) = rows(DEFECTS, options(root, subset="closed"))
    assert item_of(hidden, Settings.of(options(root))).id == "c"


def test_an_item_that_cannot_be_read_is_a_document_that_says_so(tmp_path: Path) -> None:
    root = copied(tmp_path, "image/comprehension/Sign-Detection")

    def spoil(content: Any) -> None:
        content["data"][1]["output"] = {"boxes": "a lot"}
        del content["data"][2]["id"]

    edit(annotation_of(root, "image/comprehension/Sign-Detection"), spoil)
    good, boxes, no_id = rows(DETECTION, options(root))
    settings = Settings.of(options(root))
    assert not good["problem"] and item_of(good, settings).id == 0
    assert "item 1" in boxes["problem"] and "boxes" in boxes["problem"] and "no `id`" in no_id["problem"]
    for row in (boxes, no_id):
        with pytest.raises(DataError, match=r"annotation\.json"):
            item_of(row, settings)


@for_each("content", [b'{"task": "Code Defect Detection", "data": [{"id"', b'{"task": "Code Defect'])
def test_an_annotation_that_is_cut_short(tmp_path: Path, content: bytes) -> None:
    root = copied(tmp_path, "nlp/Defects")
    annotation_of(root, "nlp/Defects").write_bytes(content)
    if content.endswith(b'"id"'):  # what stands before `data` names the task
        (row,) = rows(DEFECTS, options(root))
        assert "no complete JSON" in row["problem"]
        with pytest.raises(DataError, match="no complete JSON"):
            item_of(row, Settings.of(options(root)))
    else:
        with pytest.raises(AbsentDataError):
            rows(DEFECTS, options(root))
        assert "no complete JSON" in documents.root(str(root), "")[1][0]


def test_an_annotation_without_items(tmp_path: Path) -> None:
    root = copied(tmp_path, "nlp/Defects")
    edit(annotation_of(root, "nlp/Defects"), lambda content: {**content, "data": []})
    (row,) = rows(DEFECTS, options(root))
    assert "no items in it" in row["problem"]


def test_dialogues_without_a_turn_are_left_out(tmp_path: Path) -> None:
    root = copied(tmp_path, "nlp/Dialogues")
    edit(annotation_of(root, "nlp/Dialogues"), lambda content: content["data"][1].update(dialog=[]))
    found = rows(DIALOGUES, options(root))
    assert [json.loads(row["item"])["id"] for row in found] == ["q0", "q2"]
    assert [row["place"] for row in found] == [0, 2]


def test_keys_of_no_known_schema_and_a_map_of_them(tmp_path: Path) -> None:
    folder = "image/comprehension/Sports-Classification"
    root = copied(tmp_path, folder)

    def rename(content: Any) -> None:
        for entry in content["data"]:
            entry["output"] = {"sport": entry["output"]["text"]}

    edit(annotation_of(root, folder), rename)
    name = "image_comprehension_sports_image_classification"
    with pytest.raises(AbsentDataError, match="schema unknown"):
        rows(name, options(root))
    own = tmp_path / "maps.yaml"
    own.write_text(f"{find_task('Sports Image Classification').name}:\n  output: [output.sport]\n")
    row = rows(name, options(root, field_maps=str(own)))[0]
    assert item_of(row, Settings.of(options(root, field_maps=str(own)))).reference == "red"


def test_folders_of_no_task_are_said(tmp_path: Path) -> None:
    root = copied(tmp_path, "nlp/Defects")
    write_task(root / SET / "nlp" / "Odd", "Basket Weaving", [{"id": 1}])
    folders, (problem,) = documents.root(str(root), "")
    assert len(folders) == 1
    assert "Odd" in problem and "Basket Weaving" in problem
