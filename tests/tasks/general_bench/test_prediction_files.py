from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench import prediction_files
from lmms_eval.tasks.general_bench.submission import read_predictions
from tests.tasks.general_bench.demo_kit import SET, copied

DEFECTS = "nlp_code_defect_detection"
SIGNS = "image_comprehension_traffic_signs_detection"


def task(name: str, root: Path, **options: Any) -> Any:
    kwargs = {"data_root": str(root), **options}
    return SimpleNamespace(describe=lambda: {"dataset_name": name}, prompts=SimpleNamespace(kwargs=kwargs))


def args(out: Path | None, model_args: str = "") -> Any:
    return SimpleNamespace(output_path=None if out is None else str(out), model="toy", model_args=model_args)


def records(*predictions: Any) -> list[dict[str, Any]]:
    """In another order than that of the annotation."""
    made = [{"place": place, "record": {"id": place, "prediction": one}} for place, one in enumerate(predictions)]
    return made[1:] + made[:1]


def test_beside_the_annotation(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "image/comprehension/Sign-Detection")
    boxes = [[[1, 2, 3, 4, "é"]], [], "no list"]
    path = prediction_files.write(records(*boxes), args(None), task(SIGNS, root, predictions="beside"))
    assert path == (root / SET / "image/comprehension/Sign-Detection/prediction.json").resolve()
    assert json.loads(path.read_text("utf-8")) == [{"id": n, "prediction": one} for n, one in enumerate(boxes)]
    assert "é" in path.read_text("utf-8")


def test_a_name_of_its_own_for_each_model(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "image/comprehension/Sign-Detection")
    for place in ("beside", "output"):
        made = task(SIGNS, root, predictions=place, prediction_name="toy.json")
        path = prediction_files.write(records([], [], []), args(tmp_path / "out"), made)
        assert path is not None and path.name == "toy.json"
    assert not (root / SET / "image/comprehension/Sign-Detection/prediction.json").exists()


def test_the_object_that_submissions_have(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "image/comprehension/Sign-Detection")
    path = prediction_files.write(
        records(1), args(tmp_path / "out", "model=Org/Toy"), task(SIGNS, root, prediction_form="object")
    )
    assert path is not None
    expected = tmp_path / "out" / "general_bench" / "Org__Toy" / "Image" / "comprehension" / "Sign-Detection"
    assert path == (expected / "prediction.json").resolve()
    content = json.loads(path.read_text("utf-8"))
    assert list(content) == ["task", "skill", "type", "data"]
    assert (content["task"], content["type"]) == ("Traffic Signs Detection", "comprehension")
    assert "Detection" in content["skill"]
    assert read_predictions(path).values == {"0": 1}


def test_language_tasks_have_no_paradigm(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "nlp/Defects")
    path = prediction_files.write(records("0"), args(tmp_path / "out"), task(DEFECTS, root))
    assert path == (tmp_path / "out" / "general_bench" / "toy" / "NLP" / "Defects" / "prediction.json").resolve()


def test_no_place_for_them(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "nlp/Defects")
    assert prediction_files.write(records("0"), args(None), task(DEFECTS, root)) is None
    assert not list(root.rglob("prediction.json"))


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "nlp/Defects")
    (tmp_path / "out").write_text("a file")
    with pytest.raises(DataError, match=r"prediction\.json cannot be written"):
        prediction_files.write(records("0"), args(tmp_path / "out"), task(DEFECTS, root))


def test_replies_that_are_no_text_of_unicode(tmp_path: Path) -> None:
    root = copied(tmp_path / "data", "nlp/Defects")
    path = prediction_files.write(records("\ud800", "ok"), args(tmp_path / "out"), task(DEFECTS, root))
    assert path is not None
    assert read_predictions(path).values == {"0": "\ud800", "1": "ok"}
