from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from loguru import logger

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils import file_utils
from lmms_eval.tasks._task_utils.submissions import write_whole
from lmms_eval.tasks.milebench import submission
from lmms_eval.tasks.milebench.prompts import FinishedPrompt
from lmms_eval.tasks.milebench.submission import read_predictions, sample_number
from tests.cases import for_each
from tests.tasks.milebench import made

KEYS = ["sample_id", "image", "question", "gt_response", "gen_model_id", "pred_response", "gen_kwargs"]


def record(number: int, images: int, answer: str = "x") -> dict[str, Any]:
    doc = made.document(sample_id=number, images_path=["a.png"] * images)
    return submission.record(doc, FinishedPrompt("Ä?", ("T/images/a.png",), ("Ä?",)), answer)


def test_keys_order_and_form() -> None:
    text = submission.dumps([record(1, 2, "ö")], "m", {"max_new_tokens": 5})
    (found,) = json.loads(text)
    assert list(found) == KEYS
    assert found == {
        "sample_id": 1, "image": ["T/images/a.png"], "question": "Ä?", "gt_response": "down", "gen_model_id": "m",
        "pred_response": "ö", "gen_kwargs": {"max_new_tokens": 5},
    }  # fmt: skip
    assert text.startswith('[\n    {\n        "sample_id": 1,') and "Ä" in text


def test_samples_stand_by_number_of_pictures() -> None:
    records = [record(4, 2), record(1, 3), record(3, 2), record(2, 1), record(0, 3)]
    assert [item["sample_id"] for item in submission.in_order(records)] == [4, 3, 1, 0, 2]


def test_of_a_repeated_number_the_last_counts_at_the_place_of_the_first() -> None:
    lines: list[str] = []
    sink = logger.add(lines.append, level="WARNING", format="{message}")
    try:
        found = submission.in_order([record(1, 2, "first"), record(2, 2), record(1, 2, "last")])
    finally:
        logger.remove(sink)
    assert [(item["sample_id"], item["pred_response"]) for item in found] == [(1, "last"), (2, "x")]
    assert "sample_id 1 occurs twice" in "".join(lines)


@for_each(
    ("arguments", "marks", "wanted"),
    [
        ({"model": "hf", "model_args": "pretrained=me/toy,dtype=auto"}, [], "me__toy"),
        ({"model": "hf", "model_args": {"pretrained": "me/toy"}}, ["adv", "combined_1"], "me__toy-adv-combined_1"),
        ({"model": "baseline", "model_args": "strategy=gold"}, [], "baseline"),
        ({"model": "baseline", "model_args": ""}, ["adv"], "baseline-adv"),
    ],
)
def test_the_folder_of_a_model(arguments: dict[str, Any], marks: list[str], wanted: str) -> None:
    folder = file_utils.model_folder("out", SimpleNamespace(**arguments), marks, "milebench")
    assert folder == Path("out/milebench") / wanted


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    with pytest.raises(DataError, match=r"predictions .*pred\.json cannot be written"):
        write_whole(tmp_path / "taken" / "pred.json", "[]", "predictions ")


def test_missing_predictions_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"pred\.json; a run writes them"):
        read_predictions(tmp_path / "pred.json")


@for_each(("text", "problem"), [("[]", "no predictions"), ("{}", "no predictions"), ("[{", "complete")])
def test_files_without_predictions(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "pred.json").write_text(text)
    with pytest.raises(DataError, match=problem):
        read_predictions(tmp_path / "pred.json")


@for_each("record", [3, {}, {"sample_id": None}, {"sample_id": 1.0}, {"sample_id": "x"}])
def test_records_without_a_number(tmp_path: Path, record: Any) -> None:
    (tmp_path / "pred.json").write_text(json.dumps([{"sample_id": 1}, record]))
    with pytest.raises(DataError, match="record 1"):
        read_predictions(tmp_path / "pred.json")


def test_numbers_of_samples() -> None:
    assert [sample_number(value) for value in (3, "07", "x", True, None, 1.5, "٣", "-1", "9" * 5000)] == [
        3, 7, None, None, None, None, None, None, None,
    ]  # fmt: skip
