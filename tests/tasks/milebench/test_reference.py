from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.milebench.reference import (
    annotation_path,
    parse_annotation,
    read_annotation,
    read_predictions,
    sample_number,
)


def sample(number: Any = 1, **instance: Any) -> dict[str, Any]:
    instance = {"images_path": [], "choice_list": ["a"]} | instance
    return {"sample_id": number, "image_quantity_level": "Few", "task_instance": instance}


def annotation(*samples: Any, question_type: str = "multi-choice") -> dict[str, Any]:
    return {"meta_data": {"question_type": question_type}, "data": list(samples)}


def test_where_annotations_lie() -> None:
    assert annotation_path(Path("d"), "OCR-VQA") == Path("d/OCR-VQA/OCR-VQA.json")
    assert annotation_path(Path("d"), "OCR-VQA", is_adversarial=True) == Path("d/OCR-VQA/OCR-VQA-adv.json")


def test_samples_are_found_by_number() -> None:
    found = parse_annotation(annotation(sample("12"), sample(3)), "TQA", "file")
    assert list(found.samples) == [12, 3]
    assert (found.facts.name, found.facts.rule) == ("TQA", "choice")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "no annotation"),
        ({"data": {}}, "no annotation"),
        (annotation(sample(), question_type="yes-no"), "question_type"),
        (annotation(sample(), sample("1")), "a second sample 1"),
        (annotation(sample("x")), "entry 0 of data"),
        (annotation(sample(True)), "entry 0 of data"),
        (annotation("text"), "entry 0 of data"),
        (annotation({"sample_id": 4, "task_instance": {"images_path": []}}), "sample 4 has no image_quantity_level"),
        (annotation(sample(choice_list=None)), "sample 1 has no list task_instance.choice_list"),
        (annotation(sample(images_path=None)), "sample 1 has no list task_instance.images_path"),
    ],
)
def test_what_is_wrong_is_named(content: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem) as error:
        parse_annotation(content, "TQA", "the/file.json")
    assert "the/file.json" in str(error.value)


def test_other_data_sets_need_no_options() -> None:
    content = annotation(sample(choice_list=None), question_type="open-ended")
    assert parse_annotation(content, "IEdit", "file").facts.metric == "Rouge-L f"


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"TQA\.json; --data-dir"):
        read_annotation(tmp_path, "TQA")
    with pytest.raises(DataError, match=r"pred\.json; a run writes them"):
        read_predictions(tmp_path / "pred.json")


@pytest.mark.parametrize(("text", "problem"), [("[]", "no predictions"), ("{}", "no predictions"), ("[{", "complete")])
def test_files_without_predictions(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "pred.json").write_text(text)
    with pytest.raises(DataError, match=problem):
        read_predictions(tmp_path / "pred.json")


@pytest.mark.parametrize("record", [3, {}, {"sample_id": None}, {"sample_id": 1.0}, {"sample_id": "x"}])
def test_records_without_a_number(tmp_path: Path, record: Any) -> None:
    (tmp_path / "pred.json").write_text(json.dumps([{"sample_id": 1}, record]))
    with pytest.raises(DataError, match="record 1"):
        list(read_predictions(tmp_path / "pred.json").numbered())


def test_numbers_of_samples() -> None:
    assert [sample_number(value) for value in (3, "07", "x", True, None, 1.5, "٣", "-1", "9" * 5000)] == [
        3, 7, None, None, None, None, None, None, None,
    ]  # fmt: skip
