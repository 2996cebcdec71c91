from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.milebench.reference import parse_reference
from lmms_eval.tasks.milebench.standalone import JudgedDataset, evaluate_dataset, write_evaluation
from lmms_eval.tasks.milebench.submission import sample_number
from tests.cases import for_each

CHOICES = ["Left, then right", "Right"]


def evaluated(answers: dict[Any, Any], allow_partial: bool = False, gold: str = "Right", n: int = 3) -> JudgedDataset:
    data = [
        {
            "sample_id": number,
            "response": "Right",
            "image_quantity_level": "Few",
            "task_instance": {"images_path": ["a", "b"], "choice_list": CHOICES},
        }
        for number in range(1, n + 1)
    ]
    annotation = parse_reference({"meta_data": {"question_type": "multi-choice"}, "data": data}, "TQA", "TQA.json")
    records = [
        {"sample_id": number, "image": ["x/a"], "gt_response": gold, "pred_response": answer, "gen_kwargs": {}}
        for number, answer in answers.items()
    ]
    numbered = [(sample_number(record["sample_id"]) or 0, record) for record in records]
    return evaluate_dataset(annotation, "m/TQA/pred.json", numbered, allow_partial)


def test_scores_follow_the_prediction_file() -> None:
    found = evaluated({3: "B", 1: "A", 2: "B"})
    assert [one.score.score for one in found.judged] == [1, 0, 1]
    assert (found.coverage, found.warnings, found.failure_text()) == (1, (), "")


@for_each(
    ("answers", "problem"),
    [
        ({1: "B", 2: "B"}, r"1 of 3 samples without a prediction \(3\)"),
        ({1: "B", 2: "B", 9: "B"}, r"unknown \(9\)"),
        ({1: "B", 2: "B", 3: "B", 4: "B"}, r"unknown \(4\)"),
        ({1: "B", "1": "A", 2: "B"}, r"predicted repeatedly \(1\)"),
    ],
)
def test_predictions_that_do_not_fit_are_refused(answers: dict[Any, Any], problem: str) -> None:
    with pytest.raises(DataError, match=problem) as error:
        evaluated(answers)
    assert "m/TQA/pred.json" in str(error.value)
    assert "--allow_partial" in str(error.value)


def test_what_is_there_can_be_scored() -> None:
    found = evaluated({1: "A", "1": "B", 9: "B"}, allow_partial=True)
    assert (found.result.n_scored, found.coverage) == (1, pytest.approx(1 / 3))
    assert found.judged[0].score.score == 1  # the last of two
    assert len(found.warnings) == 3
    with pytest.raises(DataError, match="no prediction for any sample"):
        evaluated({9: "B"}, allow_partial=True)


def test_ids_may_be_texts_of_digits() -> None:
    assert evaluated({"1": "B", "2": "B", "3": "B"}).result.as_eval()["image_quantity_level-Result"]["Few"] == [3, 3]


def test_failed_samples_are_named() -> None:
    found = evaluated({1: None, 2: "B", 3: 4})
    assert found.failure_text() == (
        "sample 1: the prediction is null, not a text; sample 3: the prediction is a int, not a text"
    )
    many = evaluated(dict.fromkeys(range(1, 9)), n=8)
    assert many.failure_text().endswith("; and 3 more")


def test_another_reference_answer_is_a_warning() -> None:
    found = evaluated({1: "A", 2: "A", 3: "A"}, gold="Left, then right")
    assert (found.result.as_eval()["Accuracy"], found.result.as_fixed()["Accuracy"]) == (1, 0)
    assert "3 gt_response differ from the annotation, first in sample 1" in found.warnings[0]


def test_the_files(tmp_path: Path) -> None:
    write_evaluation(evaluated({"2": "The answer is B", 1: "é B", 3: ""}), tmp_path, "the source")
    texts = {path.name: path.read_text("ascii") for path in tmp_path.iterdir()}
    files = {name: json.loads(text) for name, text in texts.items()}
    assert set(files) == {"eval.json", "eval_score.json", "pred_with_extracted.json", "eval_fixed.json"}
    assert files["eval.json"]["Accuracy"] == pytest.approx(1 / 3)
    assert "\n" not in texts["eval.json"]
    assert files["eval_score.json"] == [
        {"id": id_, "score": score} for id_, score in (("2", "0"), ("1", "1"), ("3", "0"))
    ]
    assert list(files["pred_with_extracted.json"][0].items()) == [
        ("sample_id", "2"), ("image", ["a", "b"]), ("gt_response", "right"), ("pred_response", "the answer is b"),
        ("gen_kwargs", {}), ("choice_list", ["left then right", "right"]), ("image_quantity_level", "Few"),
        ("extracted", "AB"), ("result", 0),
    ]  # fmt: skip
    fixed = files["eval_fixed.json"]
    assert fixed["Accuracy"] == pytest.approx(1 / 3)
    assert (fixed["no_answer"], fixed["samples"], fixed["pred_sha256"]) == (1, 3, "the source")


def test_a_failed_sample_keeps_its_texts(tmp_path: Path) -> None:
    write_evaluation(evaluated({1: None, 2: "B", 3: "B"}, allow_partial=True), tmp_path, "")
    records = json.loads((tmp_path / "pred_with_extracted.json").read_text())
    assert (records[0]["choice_list"], records[0]["extracted"], records[0]["result"]) == (CHOICES, None, None)
    assert [one["id"] for one in json.loads((tmp_path / "eval_score.json").read_text())] == ["2", "3"]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"eval_score\.json cannot be written"):
        write_evaluation(evaluated({1: "B", 2: "B", 3: "B"}), tmp_path / "file", "")
