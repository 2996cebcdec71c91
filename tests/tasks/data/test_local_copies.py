"""Data sets that a task's own code loads are found below ``--data_root``."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import datasets.load
import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import DataError
from lmms_eval.tasks.data.local_copies import LocalCopies
from tests.tasks.kit import Function, make_task, turns_of

LIBRARY = datasets.load.load_dataset_builder
PROCESS = """
from datasets import load_dataset
import datasets

NAMES = None

def process_docs(rows):
    names = load_dataset("other/names", split="test[:2]")
    also = datasets.load_dataset("other/names", split="test")
    assert len(also) == 3
    return rows.select(range(2)).add_column("name", [row["name"] for row in names])

def prompt(doc):
    last = load_dataset("other/names")["test"][2]["name"]
    return f"{doc['name']} {last}"
"""
IMPORTED = """
from datasets import load_dataset

NAMES = load_dataset("names", split="test")["name"]

def prompt(doc):
    return NAMES[0]
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    folder = tmp_path / "data" / "other__names"
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text("".join(json.dumps({"name": name}) + "\n" for name in ("Ada", "Bo", "Cy")))
    return tmp_path / "data"


def test_process_docs_and_prompt_functions(tmp_path: Path, root: Path) -> None:
    keys = {"process_docs": Function("utils.process_docs"), "doc_to_text": Function("utils.prompt")}
    task = make_task(tmp_path / "task", keys, PROCESS, TaskOptions(data_root=str(root)))
    task.load()
    (request,) = task.exchange(1, 0).open()
    assert turns_of(request) == [("user", ["Bo Cy"])]
    assert datasets.load.load_dataset_builder is LIBRARY


def test_a_module_that_loads_when_it_is_imported(tmp_path: Path, root: Path) -> None:
    (root / "other__names").rename(root / "names")
    task = make_task(
        tmp_path / "task", {"doc_to_text": Function("utils.prompt")}, IMPORTED, TaskOptions(data_root=str(root))
    )
    task.load()
    assert task.prompts.text({}) == "Ada"


def test_a_data_set_that_is_not_there_is_said(tmp_path: Path, root: Path) -> None:
    (root / "other__names").rename(root / "elsewhere")
    task = make_task(
        tmp_path / "task", {"process_docs": Function("utils.process_docs")}, PROCESS, TaskOptions(data_root=str(root))
    )
    with pytest.raises(DataError, match=r"loads the data set 'other/names'; --data_root .* has no copy"):
        task.load()
    assert datasets.load.load_dataset_builder is LIBRARY


def test_another_thread_loads_as_ever(tmp_path: Path, root: Path) -> None:
    (tmp_path / "utils.py").write_text("load_dataset")
    inside, done = threading.Event(), threading.Event()
    copies = LocalCopies(str(root), str(tmp_path / "t.yaml"), "own/data")

    def hold() -> None:
        with copies.offered():
            inside.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    assert inside.wait(10)
    with pytest.raises(Exception, match="other/names") as raised:
        datasets.load_dataset("other/names")
    assert not isinstance(raised.value, DataError)
    with copies.offered():
        assert datasets.load_dataset("other/names", split="test")["name"] == ["Ada", "Bo", "Cy"]
        done.set()
        holder.join()
        assert len(datasets.load_dataset("json", data_files=str(root / "other__names/test.jsonl"))["train"]) == 3
    assert datasets.load.load_dataset_builder is LIBRARY


def test_the_folder_itself_is_taken_for_the_tasks_own_data_alone(tmp_path: Path, root: Path) -> None:
    copies = LocalCopies(str(root / "other__names"), str(tmp_path / "t.yaml"), "own/data")
    assert copies.folder("own/data") == root / "other__names"
    assert copies.folder("another/set") is None
