from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import DataError, TaskError
from tests.cases import for_each
from tests.tasks.kit import Function, loaded, make_task

CODE = """
from pathlib import Path
from lmms_eval.tasks.data.splits import Rows

FILE = Path(__file__).parent / "rows.jsonl"

def rows(name, split, data_root, lmms_eval_specific_kwargs, first=1):
    seen = f"{name} {split} {data_root} {lmms_eval_specific_kwargs['size']}"
    return Rows([{"question": seen, "answer": str(first + number), "maybe": None} for number in range(3)], [FILE])

def mixed():
    return Rows([{"question": 1}, {"question": "x"}], [FILE])

def listed():
    return []
"""


def changes(function: str, **more: Any) -> dict[str, Any]:
    return {
        "dataset_path": Function(f"utils.{function}"), "dataset_kwargs": {"first": 5}, "dataset_name": "toys",
        "lmms_eval_specific_kwargs": {"size": "small"}, **more,
    }  # fmt: skip


def test_a_function_gives_the_documents(tmp_path: Path) -> None:
    task = loaded(tmp_path, changes("rows"), CODE, TaskOptions(data_root=str(tmp_path)))
    assert len(task) == 3
    assert task.document(2) == {"question": f"toys test {tmp_path} small", "answer": "7", "maybe": None}
    assert task.costs([0, 1]) == task.costs([1, 2])
    before = task.fingerprint()["data"]
    (tmp_path / "rows.jsonl").write_text("changed", encoding="utf-8")
    assert loaded(tmp_path / "b", changes("rows"), CODE).fingerprint()["data"] != before


@for_each(
    ("function", "error", "message"),
    [("mixed", DataError, "not one type for each column"), ("listed", TaskError, "must return Rows, not a list")],
)
def test_what_it_returns_must_be_rows(tmp_path: Path, function: str, error: Any, message: str) -> None:
    task = make_task(tmp_path, changes(function), CODE)
    with pytest.raises(error, match=message):
        task.load()
