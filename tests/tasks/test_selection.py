from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import TaskError, UnknownNameError, UsageError
from lmms_eval.tasks import TaskManager, build_from_spec, get_task_dict
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.manager import groups_table, subtasks_table, tags_table
from lmms_eval.tasks.selection import select_tasks
from lmms_eval.tasks.yaml.task import YamlTask
from tests.tasks.kit import BASE, Function, write_rows, write_yaml


def task(folder: Path, name: str, **more: Any) -> None:
    write_yaml(folder / f"{name}.yaml", {**BASE, "task": name, **more})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rows(tmp_path)
    for name in ("a1", "a2", "b1"):
        task(tmp_path, name, tag="letters" if name != "b1" else ["letters", "bs"])
    return tmp_path


def group(folder: Path, name: str, members: list[Any], **more: Any) -> None:
    write_yaml(folder / f"{name}.yaml", {"group": name, "task": members, **more})


def choose(folder: Path, *names: str, **options: Any) -> Any:
    return select_tasks(names, Catalogue([folder], include_defaults=False), TaskOptions(**options))


def names(selection: Any) -> list[str]:
    return [chosen.name for chosen in selection.tasks]


def test_names_wildcards_and_tags(folder: Path) -> None:
    assert names(choose(folder, "b1,a1", "a1")) == ["b1", "a1"]
    assert names(choose(folder, "a?")) == ["a1", "a2"]
    selection = choose(folder, "letters")
    assert names(selection) == ["a1", "a2", "b1"]
    assert selection.direct == {"a1", "a2", "b1"} and selection.groups == ()


def test_groups_hold_their_direct_children(folder: Path) -> None:
    group(folder, "inner", ["a1", "bs"], group_alias="Inner", metadata={"version": 3})
    metrics = {"metric": "exact_match", "weight_by_size": True, "aggregation": "mean"}
    group(folder, "outer", ["inner", "a2"], aggregate_metric_list=metrics)
    selection = choose(folder, "outer")
    assert names(selection) == ["a1", "b1", "a2"]
    outer, inner = selection.groups
    assert (outer.name, outer.children, outer.metrics[0].weight_by_size) == ("outer", ("inner", "a2"), True)
    assert outer.metrics[0].filters == ("none",)
    assert (inner.alias, inner.children, inner.version) == ("Inner", ("a1", "b1"), 3)
    assert selection.direct == frozenset()


def test_a_task_beside_its_group_runs_once(folder: Path) -> None:
    group(folder, "g", ["a1", "a2"])
    for chosen in (("a1", "g"), ("g", "a1")):
        selection = choose(folder, *chosen)
        assert sorted(names(selection)) == ["a1", "a2"]
        assert selection.direct == {"a1"}


def test_one_task_through_two_groups_is_refused(folder: Path) -> None:
    group(folder, "g", ["a1"])
    group(folder, "h", ["a1", "a2"])
    with pytest.raises(UsageError, match="'a1' is reached through two groups, 'g' and 'h'; name one of them only"):
        choose(folder, "g,h")
    group(folder, "top", ["g"])
    group(folder, "other", ["g"])
    with pytest.raises(UsageError, match="'g' is reached through two groups"):
        choose(folder, "top,other")
    assert names(choose(folder, "top,g")) == ["a1"]


def test_a_group_within_itself(folder: Path) -> None:
    group(folder, "g", ["h"])
    group(folder, "h", ["g"])
    with pytest.raises(UsageError, match=r"'g'|itself"):
        choose(folder, "g")
    group(folder, "self", ["self"])
    with pytest.raises(TaskError, match="group 'self' contains itself"):
        choose(folder, "self")


def test_members_that_are_not_there(folder: Path) -> None:
    group(folder, "g", ["a1", "a3"])
    with pytest.raises(TaskError, match=r"g\.yaml: group 'g': unknown task 'a3'; did you mean"):
        choose(folder, "g")


def test_overrides_of_groups_and_inline_members(folder: Path) -> None:
    code = "def alias(doc):\n    return 'from the group'\n"
    (folder / "sub").mkdir()
    (folder / "sub" / "utils.py").write_text(code)
    members = [
        "a1",
        {"task": "a2", "repeats": 5},
        {"task": "a2", "doc_to_text": Function("utils.alias")},
        {"task": "a2"},
    ]
    group(folder / "sub", "g", members, repeats=2)
    selection = choose(folder, "g")
    assert names(selection) == ["a1", "a2", "a2-1", "a2-2"]
    assert [chosen.repeats for chosen in selection.tasks] == [2, 5, 2, 2]
    assert selection.groups[0].children == ("a1", "a2", "a2-1", "a2-2")
    rebuilt = build_from_spec(json.loads(json.dumps(selection.tasks[2].spec())))
    rebuilt.load()
    assert rebuilt.exchange(0, 0).open()[0].context == "from the group"
    assert (rebuilt.name, rebuilt.repeats) == ("a2-1", 2)


def test_whole_tasks_and_groups_inside_a_group_file(folder: Path) -> None:
    whole = {**BASE, "task": "inline_task"}
    group(folder, "g", [whole, {"group": "part", "task": ["a1"], "repeats": 3}])
    selection = choose(folder, "g")
    assert names(selection) == ["inline_task", "a1"]
    assert [g.name for g in selection.groups] == ["g", "part"]
    assert selection.tasks[1].repeats == 3
    rebuilt = build_from_spec(json.loads(json.dumps(selection.tasks[0].spec())))
    rebuilt.load()
    assert len(rebuilt) == 3


def test_folders_and_files(folder: Path, tmp_path: Path) -> None:
    write_yaml(folder / "_base.yaml", {"doc_to_text": "x"})
    group(folder, "g", ["a1"])
    empty = Catalogue(include_defaults=False)
    selection = select_tasks([str(folder)], empty, TaskOptions())
    assert sorted(names(selection)) == ["a1", "a2", "b1"] and [g.name for g in selection.groups] == ["g"]
    one = select_tasks([str(folder / "b1.yaml")], Catalogue(include_defaults=False), TaskOptions(chat=True))
    assert names(one) == ["b1"]
    by_group = select_tasks([str(folder / "g.yaml")], Catalogue(include_defaults=False), TaskOptions())
    assert names(by_group) == ["a1"]
    with pytest.raises(UsageError, match=r"none\.yaml: there is no such file"):
        choose(folder, str(folder / "none.yaml"))
    with pytest.raises(TaskError, match="holds neither a task"):
        choose(folder, str(folder / "_base.yaml"))
    (tmp_path / "bare").mkdir()
    with pytest.raises(UsageError, match="holds no YAML file with a task"):
        choose(folder, str(tmp_path / "bare"))


def test_a_broken_neighbour_does_not_matter(folder: Path) -> None:
    (folder / "broken.yaml").write_text("task: [x\n")
    assert names(select_tasks([str(folder / "a1.yaml")], Catalogue(include_defaults=False), TaskOptions())) == ["a1"]


def test_nothing_chosen_and_unknown_names(folder: Path) -> None:
    with pytest.raises(UsageError, match="--tasks: give at least one task"):
        choose(folder, " , ")
    with pytest.raises(UnknownNameError, match=r"unknown task 'a11'; did you mean a1"):
        choose(folder, "a11")
    with pytest.raises(UsageError, match=r"the wildcard matches no name"):
        choose(folder, "zz*")


PYTHON_TASK = """
from lmms_eval.tasks.yaml.task import YamlTask

class Mine(YamlTask):
    def __init__(self, config, options, source):
        super().__init__(source, options)
        self.alias = "built by " + config["task"]

class NoTask:
    pass

def needs_more(config, something):
    pass
"""


def test_tasks_that_are_python_classes(folder: Path) -> None:
    (folder / "utils.py").write_text(PYTHON_TASK)
    task(folder, "py", **{"class": Function("utils.Mine")})
    task(folder, "bad", **{"class": Function("utils.NoTask")})
    task(folder, "odd", **{"class": Function("utils.needs_more")})
    assert choose(folder, "py").tasks[0].alias == "built by py"
    with pytest.raises(TaskError, match=r"bad\.yaml: key 'class'.*is no lmms_eval\.api\.task\.Task"):
        choose(folder, "bad")
    with pytest.raises(TaskError, match=r"odd\.yaml: key 'class'.*cannot be built"):
        choose(folder, "odd")


def test_a_spec_builds_the_same_task(folder: Path) -> None:
    options = TaskOptions(
        model_name="m", reasoning_tags=(("<t>", "</t>"),), gen_kwargs={"top_p": 0.5}, repeats=2, seed=9, num_fewshot=1
    )
    made = select_tasks(["a1"], Catalogue([folder], include_defaults=False), options).tasks[0]
    again = build_from_spec(json.loads(json.dumps(made.spec())))
    assert isinstance(again, YamlTask) and again.options == options
    assert again.describe() == made.describe()
    made.load()
    again.load()
    assert again.fingerprint() == made.fingerprint()


def test_the_manager_of_the_python_interface(folder: Path) -> None:
    group(folder, "g", ["a1"])
    manager = TaskManager(include_path=str(folder), include_defaults=False, model_name="m")
    assert manager.all_tasks == ["a1", "a2", "b1", "bs", "g", "letters"]
    assert (manager.all_subtasks, manager.all_groups, manager.all_tags) == (
        ["a1", "a2", "b1"],
        ["g"],
        ["bs", "letters"],
    )
    assert manager.task_index["g"] == {"type": "group", "yaml_path": str(folder / "g.yaml")}
    assert manager.task_index["bs"]["task"] == ["b1"]
    assert manager.match_tasks(["b*", "a1"]) == ["a1", "b1", "bs"]
    assert "| a1" not in manager.list_all_tasks() and "|a1" in manager.list_all_tasks()
    assert len(manager.load_task_or_group("g")["a1"]) == 3


def test_tables_of_the_catalogue(folder: Path) -> None:
    group(folder, "g", ["a1"])
    index = Catalogue([folder], include_defaults=False)
    assert subtasks_table(index).splitlines()[0].split("|")[1:4] == [
        "Task", "Config Location".ljust(len(str(folder / "a1.yaml"))), "Output Type   ",
    ]  # fmt: skip
    assert subtasks_table(index).splitlines()[2].split("|")[1].strip() == "a1"
    assert groups_table(index).count("\n") == 2
    assert tags_table(index).splitlines() == ["|Tag    |", "|-------|", "|bs     |", "|letters|"]


def test_tasks_from_mappings_and_objects(folder: Path) -> None:
    manager = TaskManager(include_path=[str(folder)], include_defaults=False)
    whole = {**BASE, "task": "mine", "doc_to_text": lambda doc: "T " + doc["question"]}
    whole["dataset_kwargs"] = {"data_files": {"test": str(folder / "rows.jsonl")}}
    made = get_task_dict(["a1", whole, {"task": "a2", "repeats": 4}], manager, "chat")
    assert sorted(made) == ["a1", "a2", "mine"] and made["a2"].repeats == 4
    assert made["mine"].exchange(0, 0).open()[0].context == "T sky colour"
    assert made["mine"].scoring == "inline"
    with pytest.raises(TaskError, match=r"given as Python objects.*scoring: inline"):
        made["mine"].spec()
    assert get_task_dict(made["a1"], manager) == {"a1": made["a1"]}
    for wrong in (3, {"no": "name"}):
        with pytest.raises(UsageError):
            get_task_dict([wrong], manager)  # type: ignore[list-item]
    with pytest.raises(UsageError, match="'simple' or 'chat'"):
        get_task_dict("a1", manager, "video")
