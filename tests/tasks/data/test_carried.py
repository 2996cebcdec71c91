from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.storage import codec
from lmms_eval.tasks import build_from_spec
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.data.documents import Documents, can_be_carried
from lmms_eval.tasks.data.sources import TableSource, described
from lmms_eval.tasks.selection import select_tasks
from lmms_eval.tasks.yaml.task import YamlTask
from tests.cases import for_each
from tests.tasks.kit import Function, loaded

NAN = float("nan")


@for_each(
    ("value", "wanted"),
    [
        ({"a": [1, "x", None, True, 0.5]}, True),
        ([b"bytes", NAN], True),
        (datetime.date(2024, 1, 2), False),
        ({"a": [datetime.date(2024, 1, 2)]}, False),
    ],
)
def test_values_that_can_be_carried(value: Any, wanted: bool) -> None:
    assert can_be_carried(value) == wanted
    if wanted:
        assert repr(codec.loads(codec.dumps(value))) == repr(value)


def test_documents_with_media_are_not_carried() -> None:
    table = pa.table({"image": [{"bytes": b"x", "path": None}]})
    assert described(Documents(TableSource(table, [], {"image": {"_type": "Image"}}))) is None


def test_the_whole_split_is_opened_where_scoring_needs_it(tmp_path: Path) -> None:
    changes = {"full_docs": True, "process_results": Function("utils.process_results")}
    code = "def process_results(doc, results, full_docs):\n    return {'exact_match': len(full_docs)}\n"
    task = loaded(tmp_path, changes, code)
    assert task.carried_document(0) is None and task.spec()["documents"] is None


def test_what_is_not_carried_is_read(tmp_path: Path) -> None:
    task = loaded(tmp_path)
    other = build_from_spec(codec.loads(codec.dumps(task.spec())))
    other.load()
    assert other.score(1, [Answer("green")]) == task.score(1, [Answer("green")])


@for_each("name", ["general_bench_demo", "megabench_demo", "milebench_demo", "mmie_demo"])
def test_a_scoring_process_opens_no_data_of_a_benchmark(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = select_tasks([name], Catalogue(), TaskOptions()).tasks[0]
    assert isinstance(task, YamlTask)
    task.load()
    answers = [Answer(task.gold_answer(0))]
    carried = codec.loads(codec.dumps({"spec": task.spec(), "document": task.carried_document(0)}))
    wanted = task.score(0, answers)

    def refuse(*_: Any) -> None:
        raise AssertionError("the data were opened")

    monkeypatch.setattr("lmms_eval.tasks.yaml.task.open_data", refuse)
    other = build_from_spec(carried["spec"])
    other.load()
    other.take_document(0, carried["document"])
    assert len(other) == len(task)
    assert other.score(0, answers) == wanted
