from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.megabench import submission, utils
from lmms_eval.tasks.megabench.rows import parse_row
from tests.tasks.megabench.rows_for_tests import document


def records(*specs: tuple[str, str]) -> list[dict[str, object]]:
    return [submission.record(parse_row(document(id=id_, task_name=task)), f"Antwört {id_}") for id_, task in specs]


def test_shape_and_order_of_keys() -> None:
    made = submission.group(records(("1", "a"), ("2", "a"), ("3", "b")))
    assert [task["task_name"] for task in made] == ["a", "b"]
    assert list(made[0]) == ["task_name", "global_images", "global_description", "example_info", "query_response"]
    assert list(made[0]["example_info"]) == ["image_paths", "example_text"]
    assert list(made[0]["query_response"][0]) == ["response", "correct_answer", "global_idx", "images", "query_text"]
    assert [query["global_idx"] for query in made[0]["query_response"]] == ["1", "2"]


def test_record_holds_the_evaluation_context_and_missing_replies_are_empty() -> None:
    made = submission.record(parse_row(document(eval_context={"a": [1]})), None)
    assert made["eval_context"] == {"a": [1]} and made["response"] == ""


def test_text_is_indented_and_escaped() -> None:
    text = submission.dumps(records(("1", "a")))
    assert text.startswith('[\n    {\n        "task_name": "a"') and "Antw\\u00f6rt 1" in text
    assert submission.dumps([]) == "[]"


def test_rows_come_in_the_order_of_the_data_set() -> None:
    text = submission.dumps(records(("10", "b"), ("9", "a"), ("2", "a")))
    tasks = json.loads(text)
    assert [task["task_name"] for task in tasks] == ["a", "b"]
    assert [query["global_idx"] for query in tasks[0]["query_response"]] == ["2", "9"]
    named = submission.in_dataset_order(records(("x", "b"), ("1", "a")))
    assert [item["global_idx"] for item in named] == ["x", "1"]


def test_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "file.json"
    submission.write(records(("1", "a")), path)
    before = path.read_text()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(DataError, match="No space left"):
        submission.write(records(("2", "a")), path)
    assert path.read_text() == before
    assert [item.name for item in path.parent.iterdir()] == ["file.json"]


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        submission.write([], tmp_path / "taken" / "x.json")


@pytest.mark.parametrize("task", ["core", "open", "core_si", "open_si", "demo"])
def test_every_task_has_a_file_of_its_own(task: str, tmp_path: Path) -> None:
    aggregate = getattr(utils, f"aggregate_submission_{task}")
    told = aggregate(records(("1", "a")), SimpleNamespace(output_path=str(tmp_path)))
    assert told.value is None
    assert told.details["submission_files"] == [str(path) for path in (tmp_path / "submissions").iterdir()]
    assert [path.name for path in (tmp_path / "submissions").iterdir()] == [
        f"megabench_{task}_all_query_responses.json"
    ]


def test_without_an_output_path_the_current_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    utils.aggregate_submission_core(records(("1", "a")), SimpleNamespace(output_path=None))
    assert (tmp_path / "submissions" / "megabench_core_all_query_responses.json").is_file()
