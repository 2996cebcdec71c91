"""Tests of ``lmms_eval.tasks.lm_eval.task``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.checks.findings import finding
from lmms_eval.errors import FunctionError, LmmsEvalError
from lmms_eval.tasks.controls.control import ControlTask
from lmms_eval.tasks.lm_eval.task import LmEvalTask, NoTokenizerError
from lmms_eval.tasks.selection import build_from_spec, rebuilt
from tests.cases import for_each
from tests.tasks.kit import Function
from tests.tasks.lm_eval.kit import CHOSEN, asked, opened, pack_task, values


@for_each(
    ("given", "sent"),
    [
        ({}, {"max_new_tokens": 9, "until": ["."], "do_sample": False}),
        ({"max_new_tokens": 5}, {"max_new_tokens": 5, "until": ["."], "do_sample": False}),
        ({"max_tokens": 5, "stop": "!"}, {"max_new_tokens": 5, "until": ["!"], "do_sample": False}),
        ({"temperature": 0.5}, {"max_new_tokens": 9, "until": ["."], "do_sample": True, "temperature": 0.5}),
    ],
)
def test_options_of_the_run_replace_those_of_the_task(tmp_path: Path, given: Any, sent: dict[str, Any]) -> None:
    changes = {"generation_kwargs": {"max_gen_toks": 9, "until": ["."], "do_sample": False}}
    for legacy in (False, True):
        task = opened(tmp_path / str(legacy), changes, options=TaskOptions(gen_kwargs=given, legacy=legacy))
        assert dict(asked(task)[0].generation) == sent and asked(task)[0].implied_stop == ""


def test_a_misspelt_generation_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LmmsEvalError, match="unknown generation option 'max_new_token'; did you mean 'max_new_tokens'"):
        pack_task(tmp_path, options=TaskOptions(gen_kwargs={"max_new_token": 5}))


MAKER = """
import random

import datasets


def make(**given):
    assert given.pop("config_source").endswith("probe.yaml")
    rows = [{"q": f"{given['size']} {given['tokenizer']} {random.random()}", "a": "x"} for _ in range(given["size"])]
    return {"test": datasets.Dataset.from_list(rows)}


def wrong(**given):
    return ["no split"]


def offline(**given):
    raise ConnectionError("no network")


def measured(**given):
    assert given.get("tokenizer"), "No tokenizer provided"
    raise ValueError("tokenizer of 9 tokens")


def odd(**given):
    raise ValueError("no rows")
"""


def test_a_task_makes_its_data_set_for_the_model(tmp_path: Path) -> None:
    changes = {
        "custom_dataset": Function("utils.make"), "dataset_path": "", "dataset_kwargs": {"size": 2},
        "metadata": {"version": 3, "tokenizer": "file's"},
    }  # fmt: skip
    options = TaskOptions(model_args={"tokenizer": "model's"}, task_kwargs={"size": 3})
    task, again = (opened(tmp_path / name, changes, MAKER, options) for name in "ab")
    assert len(task) == 3 and task.version == 3
    assert asked(task)[0].context.startswith("3 file's ")
    assert [task.document(number) for number in range(3)] == [again.document(number) for number in range(3)]


@for_each(
    ("name", "message"),
    [("wrong", "custom_dataset' must return data sets by split, not a list"), ("offline", "no network.*--data_root")],
)
def test_data_sets_that_a_task_cannot_make(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(LmmsEvalError, match=message):
        opened(tmp_path, {"custom_dataset": Function(f"utils.{name}"), "dataset_path": ""}, MAKER)


def test_documents_that_need_the_tokenizer_of_a_model(tmp_path: Path) -> None:
    changes = {"custom_dataset": Function("utils.measured"), "dataset_path": ""}
    with pytest.raises(NoTokenizerError, match=r"give --model_args tokenizer=NAME.*No tokenizer provided") as raised:
        opened(tmp_path / "a", changes, MAKER)
    assert finding("data", raised.value).cause.startswith("a tokenizer: --model_args")
    with pytest.raises(FunctionError, match="tokenizer of 9 tokens"):  # the model names one
        opened(tmp_path / "b", changes, MAKER, TaskOptions(model_args={"tokenizer": "model's"}))
    with pytest.raises(FunctionError, match="no rows"):
        opened(tmp_path / "c", {**changes, "custom_dataset": Function("utils.odd")}, MAKER)


def test_a_file_of_the_hub_is_read_from_a_local_copy(tmp_path: Path) -> None:
    copy = tmp_path / "copies" / "sums"
    copy.mkdir(parents=True)
    (copy / "data.csv").write_text("sky,blue\nsnow,white\n", encoding="utf-8")
    kwargs = {"data_files": {"test": "hf://datasets/someone/sums/data.csv"}, "column_names": ["q", "a"], "header": None}
    options = TaskOptions(data_root=str(tmp_path / "copies"))
    task = opened(tmp_path, {"dataset_path": "csv", "dataset_kwargs": kwargs}, options=options)
    assert [asked(task, number)[0].context for number in range(len(task))] == ["sky?", "snow?"]
    kwargs["data_files"] = {"test": "hf://datasets/someone/products/data.csv"}
    with pytest.raises(
        LmmsEvalError, match=r"has no copy of someone/products: make a folder .*products with data\.csv"
    ):
        opened(tmp_path / "b", {"dataset_path": "csv", "dataset_kwargs": kwargs}, options=options)


def test_columns_of_a_repository_without_a_header(tmp_path: Path) -> None:
    copy = tmp_path / "copies" / "sums"
    copy.mkdir(parents=True)
    (copy / "data.csv").write_text("sky,blue\n", encoding="utf-8")
    kwargs = {"data_files": {"test": "data.csv"}, "column_names": ["q", "a"], "header": None}
    options = TaskOptions(data_root=str(tmp_path / "copies"))
    task = opened(tmp_path, {"dataset_path": "someone/sums", "dataset_kwargs": kwargs}, options=options)
    assert asked(task)[0].context == "sky?"


def test_process_docs_gives_the_same_order_at_every_start(tmp_path: Path) -> None:
    code = "import random\n\ndef mixed(docs):\n    return docs.select(random.sample(range(len(docs)), len(docs)))\n"
    changes = {"process_docs": Function("utils.mixed")}
    first, second = (opened(tmp_path / name, changes, code) for name in "ab")
    orders = [[one.document(number)["q"] for number in range(4)] for one in (first, second)]
    assert orders[0] == orders[1]


def test_a_process_that_scores_builds_the_same_task(tmp_path: Path) -> None:
    options = TaskOptions(num_fewshot=2, model_args={"tokenizer": "t"})
    task = opened(tmp_path, options=options)
    spec = json.loads(json.dumps(dict(task.spec())))
    other = build_from_spec(spec)
    assert isinstance(other, LmEvalTask) and other.num_fewshot == 2
    other.load()
    other.take_document(1, task.carried_document(1))
    assert other.score(1, [Answer("green")]).scores[0].metrics == {"exact_match": 1.0}


def test_a_task_is_built_again_with_other_options(tmp_path: Path) -> None:
    task = pack_task(tmp_path)
    other = rebuilt(task, replace(task.options, num_fewshot=1))
    assert isinstance(other, LmEvalTask) and other.num_fewshot == 1


def test_shots_that_a_task_states_as_0_stay(tmp_path: Path) -> None:
    assert pack_task(tmp_path / "a", {"num_fewshot": 0}, options=TaskOptions(num_fewshot=5)).num_fewshot == 0
    assert pack_task(tmp_path / "b", {"num_fewshot": 3}, options=TaskOptions(num_fewshot=5)).num_fewshot == 5
    assert pack_task(tmp_path / "c", {"num_fewshot": 3}).num_fewshot == 3


def test_metrics_that_scoring_returns_beyond_the_list(tmp_path: Path) -> None:
    code = "def score(doc, results):\n    return {'stated': 1, 'other': 2.0}\n"
    changes = {
        **CHOSEN, "process_results": Function("utils.score"),
        "metric_list": [{"metric": "stated", "higher_is_better": False}],
    }  # fmt: skip
    task = opened(tmp_path, changes, code)
    task.add_metrics(["stated", "other"])
    assert [(one.name, one.aggregation_name, one.higher_is_better) for one in task.metrics] == [
        ("stated", "mean", False), ("other", "mean", True)
    ]  # fmt: skip


def test_a_function_that_gives_several_metrics(tmp_path: Path) -> None:
    code = "def both(references, predictions):\n    return {'first': 1.0, 'second': 0.0}\n"
    entry = {"metric": Function("utils.both"), "aggregation": "median", "higher_is_better": False}
    task = opened(tmp_path, {"metric_list": [entry]}, code)
    assert values(task, 0, "x") == {"first": 1.0, "second": 0.0}
    task.add_metrics(["first", "second"])
    assert [(one.name, one.aggregation_name, one.higher_is_better) for one in task.metrics] == [
        ("first", "upper_median", False), ("second", "upper_median", False)
    ]  # fmt: skip


def test_a_control_keeps_the_form_of_the_prompt(tmp_path: Path) -> None:
    task = opened(tmp_path, CHOSEN)
    request = ControlTask(task, "blank-media").exchange(0, 0).open()[0]
    assert request.build_messages().is_plain
