import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval.api.outcome import Withheld
from lmms_eval.errors import ItemError
from lmms_eval.metrics import captions
from lmms_eval.tasks.coco_cap.utils import cider_and_file as aggregate
from lmms_eval.tasks.coco_cap.utils import image_id, process_results, process_test_results, write_test_file

DOC: dict[str, Any] = {"question_id": "COCO_val2014_000000000042.jpg", "answer": ["a lamp", "the lamp"], "id": 42}


def test_the_number_of_a_picture_is_in_the_name_of_its_file() -> None:
    assert image_id(DOC) == image_id({"question_id": "000000000042.jpg"}) == 42
    with pytest.raises(ItemError, match="'question_id'"):
        image_id({"question_id": "lamp.jpg"})


def test_a_picture_without_captions_fails() -> None:
    with pytest.raises(ItemError, match="'answer'"):
        process_results({**DOC, "answer": None}, ["a lamp"])


def test_without_java_the_metrics_are_withheld_and_the_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent() -> str:
        raise captions.NotEvaluated(captions.JAVA)

    monkeypatch.setattr(captions, "require_java", absent)
    row = process_results({**DOC, "answer": ["a lamp without java"]}, ["a lamp!"])["coco_CIDEr"]
    made = aggregate([row], SimpleNamespace(output_path=str(tmp_path)))
    assert isinstance(made, Withheld)
    assert "Java" in made.reason
    written = json.loads((tmp_path / "submissions" / "coco_captions_val2014_alg_results.json").read_text("utf-8"))
    assert written == [{"image_id": 42, "caption": "a lamp!"}]


def test_captions_of_the_test_split_are_texts_in_the_file(tmp_path: Path) -> None:
    rows = [process_test_results(DOC, ["a lamp"])["coco_passthrough"]]
    write_test_file(rows, SimpleNamespace(output_path=str(tmp_path)))
    written = json.loads((tmp_path / "submissions" / "coco_captions_test2014_alg_results.json").read_text("utf-8"))
    assert written == [{"image_id": 42, "caption": "a lamp"}]
