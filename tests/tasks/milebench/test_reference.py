from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.milebench.reference import annotation_path, load_reference, parse_reference
from tests.cases import for_each


def sample(number: Any = 1, **instance: Any) -> dict[str, Any]:
    instance = {"images_path": [], "choice_list": ["a"]} | instance
    return {"sample_id": number, "image_quantity_level": "Few", "task_instance": instance}


def annotation(*samples: Any, question_type: str = "multi-choice") -> dict[str, Any]:
    return {"meta_data": {"question_type": question_type}, "data": list(samples)}


def test_where_annotations_lie() -> None:
    assert annotation_path(Path("d"), "OCR-VQA") == Path("d/OCR-VQA/OCR-VQA.json")
    assert annotation_path(Path("d"), "OCR-VQA", is_adversarial=True) == Path("d/OCR-VQA/OCR-VQA-adv.json")


def test_samples_are_found_by_number() -> None:
    found = parse_reference(annotation(sample("12"), sample(3)), "TQA", "file")
    assert list(found.samples) == [12, 3]
    assert (found.facts.name, found.facts.rule) == ("TQA", "choice")


@for_each(
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
        parse_reference(content, "TQA", "the/file.json")
    assert "the/file.json" in str(error.value)


def test_other_data_sets_need_no_options() -> None:
    content = annotation(sample(choice_list=None), question_type="open-ended")
    assert parse_reference(content, "IEdit", "file").facts.metric == "Rouge-L f"


def test_a_missing_annotation_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"TQA\.json; --data-dir"):
        load_reference(tmp_path, "TQA")
