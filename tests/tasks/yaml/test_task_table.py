from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import TaskError, UsageError
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.manager import TaskManager, get_task_dict
from lmms_eval.tasks.selection import build_from_spec, select_tasks
from lmms_eval.tasks.yaml.loader import YamlReader
from lmms_eval.tasks.yaml.task_table import filled, keys_of
from lmms_eval.utils.files import read_table
from tests.cases import for_each
from tests.tasks.kit import BASE, write_rows, write_yaml

TABLE = "id\tskill\tword\n" + "".join(
    f"t{number}\t{'see' if number < 2 else 'hear'}\tw{number}\n" for number in range(4)
)
SPEC: dict[str, Any] = {
    "file": "facts.tsv",
    "task": "toy_{id}",
    "groups": [{"group": "toy_{skill}", "group_alias": "Skill {skill}"}, "toy"],
    "set": {"doc_to_text": "{{question}} {word}?", "tag": "tag_{skill}", "dataset_kwargs": {
        "data_files": {"test": "{id}.jsonl"},
    }},
}  # fmt: skip


def write(folder: Path, table: str = TABLE, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "facts.tsv").write_text(table, encoding="utf-8")
    for number in range(4):
        write_rows(folder, name=f"t{number}.jsonl")
    common = {key: value for key, value in BASE.items() if key not in ("task", "doc_to_text", "dataset_kwargs")}
    return write_yaml(folder / "toy.yaml", {**common, "task_table": {**SPEC, **changes}})


def catalogue(folder: Path) -> Catalogue:
    return Catalogue([folder], include_defaults=False)


def test_every_row_is_a_task_and_columns_make_groups(tmp_path: Path) -> None:
    write(tmp_path)
    made = catalogue(tmp_path)
    assert sorted(made.tasks) == ["toy_t0", "toy_t1", "toy_t2", "toy_t3"]
    assert list(made.groups) == ["toy_see", "toy", "toy_hear"]
    assert made.members("tag_hear") == ["toy_t2", "toy_t3"]
    selection = select_tasks(["toy"], made, TaskOptions())
    assert [task.name for task in selection.tasks] == ["toy_t0", "toy_t1", "toy_t2", "toy_t3"]
    found = {group.name: (group.alias, group.children) for group in selection.groups}
    assert found["toy"] == ("toy", ("toy_see", "toy_hear"))
    assert found["toy_see"] == ("Skill see", ("toy_t0", "toy_t1"))


def test_cells_fill_texts_and_jinja_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path)
    (task,) = select_tasks(["toy_t3"], catalogue(tmp_path), TaskOptions()).tasks
    task.load()
    (request,) = task.exchange(0, 0).open()
    assert request.context == "sky colour w3?"
    assert task.describe()["dataset_kwargs"]["data_files"]["test"] == str(tmp_path / "t3.jsonl")


def test_a_worker_builds_the_same_task(tmp_path: Path) -> None:
    write(tmp_path)
    write_yaml(tmp_path / "twice.yaml", {"group": "twice", "task": ["toy_t1", {"task": "toy_t1", "doc_to_text": "?"}]})
    selection = select_tasks(["twice"], catalogue(tmp_path), TaskOptions())
    assert [task.name for task in selection.tasks] == ["toy_t1", "toy_t1-1"]
    for task, wanted in zip(selection.tasks, ("sky colour w1?", "?"), strict=True):
        again = build_from_spec(task.spec())
        again.load()
        assert again.name == task.name and again.exchange(0, 0).open()[0].context == wanted


def test_a_part_of_the_table(tmp_path: Path) -> None:
    write(tmp_path, where={"skill": "hear"})
    assert sorted(catalogue(tmp_path).tasks) == ["toy_t2", "toy_t3"]


def test_a_file_or_folder_gives_all_of_its_table(tmp_path: Path) -> None:
    file = write(tmp_path)
    for named in (file, tmp_path):
        selection = select_tasks([str(named)], Catalogue(include_defaults=False), TaskOptions())
        assert [task.name for task in selection.tasks] == ["toy_t0", "toy_t1", "toy_t2", "toy_t3"]


def test_the_python_interface_changes_one_of_them(tmp_path: Path) -> None:
    write(tmp_path)
    manager = TaskManager(include_path=str(tmp_path), include_defaults=False)
    made = get_task_dict([{"task": "toy_t2", "doc_to_text": "changed {{question}}"}], manager)
    assert made["toy_t2"].exchange(0, 0).open()[0].context == "changed sky colour"


def test_a_group_below_its_own_group_may_be_named_too(tmp_path: Path) -> None:
    write(tmp_path)
    selection = select_tasks(["toy_see", "toy"], catalogue(tmp_path), TaskOptions())
    assert len(selection.tasks) == 4
    write_yaml(tmp_path / "other.yaml", {"group": "other", "task": ["toy_t0"]})
    with pytest.raises(UsageError, match="two groups"):
        select_tasks(["other", "toy"], catalogue(tmp_path), TaskOptions())


@for_each(
    ("table", "changes", "message"),
    [
        (TABLE, {"task": "same"}, "two tasks the name 'same'"),
        (TABLE, {"task": "toy_{nothing}"}, "no column 'nothing'; there is: id, skill, word"),
        (TABLE, {"rows": 3}, "unknown key 'rows'"),
        (TABLE, {"file": "gone.tsv"}, "gone.tsv: cannot be read"),
        (TABLE, {"task": None}, "needs file"),
        (TABLE, {"where": {"age": "3"}}, "where must map columns"),
        (TABLE, {"groups": "toy"}, "must be a list"),
        (TABLE, {"groups": [{"name": "toy"}]}, "a mapping with 'group'"),
        ("id\tskill\nt0\n", {}, "line 2: 1 cells in a table of 2 columns"),
        ("\n", {}, "the table is empty"),
    ],
)
def test_a_wrong_table_is_left_out_with_its_reason(
    tmp_path: Path, table: str, changes: dict[str, Any], message: str
) -> None:
    write(tmp_path, table, **changes)
    made = catalogue(tmp_path)
    assert not made.tasks and not made.groups
    assert message in made.broken[tmp_path / "toy.yaml"]


def test_a_missing_column_in_a_key_ends_the_selection(tmp_path: Path) -> None:
    write(tmp_path, set={"doc_to_text": "{gone}"})
    with pytest.raises(TaskError, match=r"task_table\.set: the table has no column 'gone'"):
        select_tasks(["toy_t0"], catalogue(tmp_path), TaskOptions())


def test_filled_keeps_what_is_no_text() -> None:
    value = {"a": ["{x}", 3, None], "b": {"c": True}}
    assert filled(value, {"x": "1"}, "here") == {"a": ["1", 3, None], "b": {"c": True}}


def test_a_changed_table_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("x\n1\n", encoding="utf-8")
    assert [dict(row) for row in read_table(file)] == [{"x": "1"}]
    file.write_text("x\n1\n22\n", encoding="utf-8")
    assert [dict(row) for row in read_table(file)] == [{"x": "1"}, {"x": "22"}]


def test_hundreds_of_tasks_are_indexed_in_no_time(tmp_path: Path) -> None:
    rows = "".join(f"t{number}\tskill{number % 150}\tw\n" for number in range(700))
    write(tmp_path, "id\tskill\tword\n" + rows)
    catalogue(tmp_path)  # the first one imports
    begun = time.process_time()
    made = catalogue(tmp_path)
    assert len(made.tasks) == 700 and len(made.groups) == 151
    assert time.process_time() - begun < 0.1


def test_hundreds_of_tasks_find_their_rows_in_no_time(tmp_path: Path) -> None:
    rows = "".join(f"t{number}\tskill{number % 150}\tw\n" for number in range(700))
    file = write(tmp_path, "id\tskill\tword\n" + rows)
    begun = time.process_time()
    assert len({keys_of(YamlReader(("task_table",)), file, f"toy_t{number}")["tag"] for number in range(700)}) == 150
    assert time.process_time() - begun < 2
