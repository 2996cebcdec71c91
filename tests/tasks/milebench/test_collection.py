from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.milebench.collection import collect, table, taxonomy, write_collection
from lmms_eval.tasks.milebench.submission import fingerprint
from tests.cases import for_each

LEVELS = {"image_quantity_level-Accuracy": {"Few": 1}, "image_quantity_level-Result": {"Few": [1, 1]}}


def result(root: Path, model: str, name: str, content: Any) -> Path:
    path = root / model / name / "eval.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_the_taxonomy_of_the_reference() -> None:
    found = taxonomy()
    assert [(category, len(names)) for category, names in found.items()] == [
        ("Realistic Temporal", 13), ("Realistic Semantic", 13), ("Diagnostic", 3),
    ]  # fmt: skip
    assert found["Realistic Temporal"][:2] == ("ActionLocalization", "ActionPrediction")
    assert found["Realistic Semantic"][5:8] == ("MultiModalQA", "nuscenes", "OCR-VQA")
    assert found["Diagnostic"] == ("TextNeedleInAHaystack", "ImageNeedleInAHaystack", "GPR1200")


def test_columns_stand_in_order_of_first_use(tmp_path: Path) -> None:
    result(tmp_path, "a", "TQA", {"Accuracy": 0.12345, **LEVELS})
    result(tmp_path, "b", "IEdit", {"Rouge-L f": 1 / 3, "Diff-Accuracy": {"x": 1}})
    result(tmp_path, "b", "TQA", {"Accuracy": 0.5})
    assert table(collect(tmp_path, ["a", "b", "a"])[0]) == [
        ["Model", "TQA (Accuracy)", "IEdit (Rouge-L f)"], ["a", "12.35", ""], ["b", "50.0", "33.33"],
    ]  # fmt: skip
    assert table(collect(tmp_path, ["b"])[0])[0] == ["Model", "IEdit (Rouge-L f)", "TQA (Accuracy)"]


def test_whole_numbers_stay_whole_in_a_full_column(tmp_path: Path) -> None:
    result(tmp_path, "a", "TQA", {"Accuracy": 0})
    assert table(collect(tmp_path, ["a"])[0])[1] == ["a", "0"]
    assert table(collect(tmp_path, ["a", "ghost"])[0])[1:] == [["a", "0.0"], ["ghost", ""]]


def test_the_files(tmp_path: Path) -> None:
    result(tmp_path, "a,b", "TQA", {"Accuracy": 1.0})
    models, absent = collect(tmp_path, ["a,b"])
    write_collection(models, tmp_path)
    assert (tmp_path / "result.csv").read_text() == 'Model,TQA (Accuracy)\n"a,b",100.0\n'
    written = json.loads((tmp_path / "result.json").read_text())
    assert written["a,b"]["Realistic Semantic"]["TQA"] == {"Accuracy": 1.0}
    assert written["a,b"]["Diagnostic"]["GPR1200"] == {}
    assert len(absent["a,b"]) == 28


@for_each(
    ("content", "problem"),
    [
        ("{bad", "no complete JSON"),
        ("", "no complete JSON"),
        ("[1]", "holds no object"),
        ({"Accuracy": 0.5, "Note": "text"}, "has no number as 'Note'"),
        ({"Accuracy": True}, "has no number as 'Accuracy'"),
        ('{"Accuracy": NaN}', "has no number as 'Accuracy'"),
        ({"Accuracy": None}, "has no number as 'Accuracy'"),
    ],
)
def test_unusable_results_are_errors_that_name_the_file(tmp_path: Path, content: Any, problem: str) -> None:
    result(tmp_path, "a", "DocVQA", {"Accuracy": 0.5})
    path = result(tmp_path, "a", "TQA", content)
    with pytest.raises(DataError, match=problem) as error:
        collect(tmp_path, ["a"])
    assert str(path) in str(error.value)


def test_all_unusable_results_are_named(tmp_path: Path) -> None:
    paths = [result(tmp_path, model, "TQA", "{") for model in ("a", "b")]
    with pytest.raises(DataError, match="2 unusable files") as error:
        collect(tmp_path, ["a", "b"])
    assert all(str(path) in str(error.value) for path in paths)


def test_a_result_of_other_predictions_is_an_error(tmp_path: Path) -> None:
    folder = result(tmp_path, "a", "TQA", {"Accuracy": 0.5}).parent
    (folder / "pred.json").write_text("[1]")
    (folder / "eval_fixed.json").write_text(json.dumps({"pred_sha256": fingerprint(folder / "pred.json")}))
    assert len(table(collect(tmp_path, ["a"])[0])[0]) == 2
    (folder / "pred.json").write_text("[2]")
    with pytest.raises(DataError, match="computed from other predictions"):
        collect(tmp_path, ["a"])


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--result-dir"):
        collect(tmp_path / "no", ["a"])
