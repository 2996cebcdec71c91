from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from datasets import Dataset, Features, Value
from loguru import logger

from lmms_eval.api.task import Group, Selection, Task
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.errors import AbsentDataError, DataError, MissingDataError, TaskError
from lmms_eval.evaluation.collect import load_tasks, with_files
from lmms_eval.evaluator import simple_evaluate
from tests.cases import for_each


class Loading:
    def __init__(self, name: str, error: Exception | None = None) -> None:
        self.name, self.error = name, error
        self.data_files = ()

    def load(self) -> None:
        if self.error is not None:
            raise self.error

    def check_files(self, doc_ids: range) -> None:
        self.load()


def selection(*tasks: Loading, direct: frozenset[str] = frozenset()) -> Selection:
    groups = (
        Group("all", "all", ("left", "right")),
        Group("left", "left", ("a",)),
        Group("right", "right", ("b", "c")),
    )
    return Selection(cast(tuple[Task, ...], tasks), groups, direct)


ABSENT = AbsentDataError("no folder")


def test_tasks_without_data_leave_their_groups_and_empty_groups_go() -> None:
    found = load_tasks(selection(Loading("a", ABSENT), Loading("b"), Loading("c", ABSENT)))
    assert [task.name for task in found.tasks] == ["b"]
    assert [(group.name, group.children) for group in found.groups] == [("all", ("right",)), ("right", ("b",))]


def test_nothing_changes_where_all_is_there() -> None:
    given = selection(Loading("a"), Loading("b"), Loading("c"))
    assert load_tasks(given) is given


@for_each("direct", [frozenset({"a"}), frozenset({"a", "b"})])
def test_a_task_that_was_named_itself_must_have_data(direct: frozenset[str]) -> None:
    with pytest.raises(AbsentDataError, match="no folder"):
        load_tasks(selection(Loading("a", ABSENT), Loading("b"), direct=direct))


def test_some_task_must_have_data() -> None:
    with pytest.raises(AbsentDataError):
        load_tasks(selection(Loading("a", ABSENT), Loading("b", ABSENT)))


@for_each(("error", "raised"), [(DataError("torn"), DataError), (ZeroDivisionError(), TaskError)])
def test_damaged_data_end_the_run(error: Exception, raised: type[Any]) -> None:
    with pytest.raises(raised):
        load_tasks(selection(Loading("a", error), Loading("b")))


def test_what_is_left_out_is_counted_by_kind_with_the_rarest_first() -> None:
    said: list[str] = []
    sink = logger.add(said.append, level="WARNING", format="{message}")
    try:
        unknown = AbsentDataError("its keys are not known", "of unknown keys")
        load_tasks(selection(Loading("a", ABSENT), Loading("b", unknown), Loading("c", ABSENT), Loading("d")))
    finally:
        logger.remove(sink)
    assert said == [
        "3 of 4 tasks are left out: 1 of unknown keys (b: its keys are not known); 2 no data here (a: no folder, ...)\n"
    ]


def test_where_no_task_has_data_for_several_reasons_all_are_said() -> None:
    made = AbsentDataError("its answers are files", "answered by files")
    with pytest.raises(AbsentDataError, match=r"not one of 2 tasks.*1 answered by files \(b: its answers are files\)"):
        load_tasks(selection(Loading("a", ABSENT), Loading("b", made)))


def planned(given: Selection) -> list[TaskPlan]:
    return [TaskPlan(task, range(2), 2) for task in given.tasks]


def test_tasks_without_files_leave_their_groups_too() -> None:
    given = selection(Loading("a", ABSENT), Loading("b"), Loading("c"))
    found = with_files(given, planned(given))
    assert [task.name for task in found.tasks] == ["b", "c"]
    assert [(group.name, group.children) for group in found.groups] == [("all", ("right",)), ("right", ("b", "c"))]


def test_all_tasks_that_were_named_themselves_and_lack_files_are_said_at_once() -> None:
    other = AbsentDataError("no video")
    given = selection(Loading("a", ABSENT), Loading("b"), Loading("c", other), direct=frozenset({"a", "b", "c"}))
    with pytest.raises(AbsentDataError, match="no folder\nno video"):
        with_files(given, planned(given))


def _chartqa(path: Path) -> None:
    """A set with the columns of ChartQA, which other benchmarks have in part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    features = Features({"type": Value("string"), "question": Value("string"), "answer": Value("string")})
    rows = [{"type": "human_test", "question": "How many?", "answer": "4"}]
    Dataset.from_list(rows, features=features).to_parquet(path)


def test_a_benchmark_without_a_folder_below_data_root_is_not_scored_on_another_ones_data(tmp_path: Path) -> None:
    _chartqa(tmp_path / "ChartQA" / "data" / "test-00000-of-00001.parquet")
    with pytest.raises(MissingDataError, match=r"task 'realworldqa': no data files found.*RealWorldQA"):
        simple_evaluate(model="baseline", tasks=["realworldqa"], data_root=str(tmp_path))


def test_a_file_in_data_root_itself_counts_only_with_the_tasks_columns(tmp_path: Path) -> None:
    _chartqa(tmp_path / "test-00000-of-00001.parquet")
    with pytest.raises(DataError, match=r"no column 'image'.*may be another one's"):
        simple_evaluate(model="baseline", tasks=["realworldqa"], data_root=str(tmp_path))
