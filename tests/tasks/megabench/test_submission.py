from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.megabench import submission, utils
from lmms_eval.tasks.megabench.data import parse_row
from lmms_eval.tasks.megabench.scoring.query import read_context
from tests.cases import for_each
from tests.tasks.megabench.rows_for_tests import document
from tests.tasks.megabench.submissions import entry, query


def records(*specs: tuple[str, str]) -> list[dict[str, object]]:
    return [recorded(f"Antwört {id_}", id=id_, task_name=task) for id_, task in specs]


def recorded(reply: str | None, **columns: object) -> dict[str, object]:
    row = parse_row(document(**columns))
    return submission.record(row, read_context(row.eval_context), reply)


def test_shape_and_order_of_keys() -> None:
    made = submission.group(records(("1", "a"), ("2", "a"), ("3", "b")))
    assert [task["task_name"] for task in made] == ["a", "b"]
    assert list(made[0]) == ["task_name", "global_images", "global_description", "example_info", "query_response"]
    assert list(made[0]["example_info"]) == ["image_paths", "example_text"]
    assert list(made[0]["query_response"][0]) == ["response", "correct_answer", "global_idx", "images", "query_text"]
    assert [query["global_idx"] for query in made[0]["query_response"]] == ["1", "2"]


def test_record_holds_the_evaluation_context_and_missing_replies_are_empty() -> None:
    made = recorded(None, eval_context={"a": [1]})
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


@for_each("task", ["core", "open", "core_si", "open_si", "demo"])
def test_every_task_has_a_file_of_its_own(task: str, tmp_path: Path) -> None:
    args, named = SimpleNamespace(output_path=str(tmp_path)), SimpleNamespace(name=f"megabench_{task}")
    told = utils.aggregate_submission(records(("1", "a")), args, named)
    assert told.value is None
    assert told.details["submission_files"] == [str(path) for path in (tmp_path / "submissions").iterdir()]
    assert [path.name for path in (tmp_path / "submissions").iterdir()] == [
        f"megabench_{task}_all_query_responses.json"
    ]


def test_without_an_output_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    args, task = SimpleNamespace(output_path=None), SimpleNamespace(name="megabench_core")
    made = utils.aggregate_submission(records(("1", "a")), args, task)
    assert made.value is None and made.notes == ("without --output_path no file is written",)
    assert list(tmp_path.iterdir()) == []


@for_each(
    ("content", "message"),
    [
        ('[{"task_name": "t"', "no complete JSON file"),
        ("{}", "must hold a list of tasks, not dict"),
        ("[3]", "entry 0"),
        ('[{"name": "t"}]', "entry 0"),
        ("[" * 100_000, "no complete JSON file"),
    ],
)
def test_a_file_that_is_no_submission_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "submission.json"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        submission.read_submission(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.json cannot be read"):
        submission.read_submission(tmp_path / "nowhere.json")


def test_a_submission_is_read(tmp_path: Path) -> None:
    path = tmp_path / "submission.json"
    path.write_text(json.dumps([entry(query(1))]))
    assert submission.read_submission(path) == [entry(query(1))]
