"""A task of the family whose class opens its own data runs from the YAML file to a score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import TaskError
from lmms_eval.evaluation.run import run
from lmms_eval.tasks import build_from_spec
from tests.cases import for_each
from tests.evaluation.kit import config
from tests.tasks.kit import Function, make_task, write_rows, write_yaml

CODE = """
import datasets
from lmms_eval.api.task import ConfigurableTask


def process_docs(rows):
    return rows.filter(lambda row: row["answer"] != "skip")


class Clips(ConfigurableTask):
    def __init__(self, *args, **kwargs):
        config = kwargs.pop("config")
        config.pop("class")
        super().__init__(*args, config=config, **kwargs)

    def download(self, dataset_kwargs=None):
        assert self.config.dataset_path == "owner/clips" and self.config.training_split is None
        rows = datasets.Dataset.from_list([{"question": q, "answer": a} for q, a in dataset_kwargs["pairs"]])
        split = self.config.test_split
        self.dataset = datasets.DatasetDict({split: self.config.process_docs(rows)})
        self.dataset_no_image = self.dataset


class Plain(ConfigurableTask):
    pass


class Empty(ConfigurableTask):
    def download(self, dataset_kwargs=None):
        pass


class Broken(Clips):
    def __init__(self, config):
        raise ValueError("no clips here")


class Calling(Clips):
    def download(self, dataset_kwargs=None):
        super(Clips, self).download(dataset_kwargs)
"""
PAIRS = [["sky?", "blue"], ["mud?", "skip"], ["grass?", "green"]]
KEYS: dict[str, Any] = {
    "class": Function("utils.Clips"),
    "dataset_path": "owner/clips",
    "dataset_kwargs": {"pairs": PAIRS},
    "process_docs": Function("utils.process_docs"),
}


@pytest.mark.parametrize("scoring", ["inline", "process"])
def test_a_task_that_downloads_by_itself_is_scored(tmp_path: Path, scoring: str) -> None:
    folder = tmp_path / "tasks"
    keys = {
        "task": "clips", "test_split": "test", "doc_to_text": "question", "doc_to_target": "answer",
        "scoring": scoring, "metric_list": [{"metric": "exact_match"}], **KEYS,
    }  # fmt: skip
    write_yaml(folder / "clips.yaml", keys)
    (folder / "utils.py").write_text(CODE, encoding="utf-8")
    report = run(config(tmp_path, tasks="clips", model_args="strategy=constant,text=blue"))
    assert report.exit_code == 0
    assert report.results["results"]["clips"]["exact_match,none"] == 0.5
    assert report.results["n-samples"]["clips"] == {"original": 2, "effective": 2}
    assert report.results["configs"]["clips"]["dataset_path"] == "owner/clips"


def test_it_is_the_same_task_on_another_start_and_in_another_process(tmp_path: Path) -> None:
    task = make_task(tmp_path, KEYS, CODE)
    task.load()
    other = make_task(tmp_path, KEYS, CODE)
    other.load()
    assert task.fingerprint() == other.fingerprint()
    again = build_from_spec(json.loads(json.dumps(task.spec())))
    again.load()
    assert again.fingerprint() == task.fingerprint() and len(again) == 2


def test_without_download_it_is_an_ordinary_task(tmp_path: Path) -> None:
    task = make_task(tmp_path, {"class": Function("utils.Plain")}, CODE)
    task.load()
    assert len(task) == 3


@for_each(
    ("name", "says"),
    [
        ("Broken", "Broken cannot be built: ValueError: no clips here"),
        ("Empty", "Empty.download must set self.dataset to a datasets.DatasetDict, not a NoneType"),
        ("Calling", "Calling.download: the data are not opened by the base class"),
    ],
)
def test_what_a_class_does_not_do_is_said(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(TaskError, match=says):
        make_task(tmp_path, {**KEYS, "class": Function(f"utils.{name}")}, CODE).load()


def test_its_keys_are_checked_as_ever(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="there is no prompt"):
        make_task(tmp_path, {**KEYS, "doc_to_text": None}, CODE)


def test_data_sets_that_it_loads_are_looked_up_below_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    code = """
from datasets import DatasetDict, load_dataset
from lmms_eval.api.task import ConfigurableTask

class Hub(ConfigurableTask):
    def download(self, dataset_kwargs=None):
        self.dataset = DatasetDict(load_dataset(self.config.dataset_path))
"""
    (tmp_path / "data/clips").mkdir(parents=True)
    write_rows(tmp_path / "data/clips", name="test.jsonl")
    keys = {**KEYS, "class": Function("utils.Hub"), "process_docs": None}
    task = make_task(tmp_path / "task", keys, code, TaskOptions(data_root=str(tmp_path / "data")))
    task.load()
    assert len(task) == 3
