"""A task as a whole: what is checked before a run, and what the results record of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.errors import DataError, TaskError, UsageError
from tests.cases import for_each
from tests.tasks.kit import ROWS, Function, loaded, make_task

PROCESS = """
def keep_two(dataset):
    return dataset.filter(lambda row: row["label"] == 1).map(lambda row: {"question": row["question"].upper()})

def rows(dataset):
    return [{"question": "made", "answer": "up"}]

def nothing(dataset):
    return None
"""


def no_column(key: str, name: str) -> str:
    return rf"probe\.yaml: key '{key}': there is no column '{name}' in .*rows\.jsonl; there is: question, answer"


def files(name: str) -> dict[str, Any]:
    return {"dataset_kwargs": {"data_files": {"test": name}}}


CHOICE = {"output_type": "multiple_choice", "metric_list": None}


@for_each(
    ("changes", "message"),
    [
        ({"doc_to_text": "qestion"}, no_column("doc_to_text", "qestion")),
        ({"doc_to_text": "{{qestion}}"}, r"probe\.yaml: doc_to_text: .*'qestion' is undefined.*question, answer.*rows"),
        ({"doc_to_target": "anwser"}, no_column("doc_to_target", "anwser")),
        ({"doc_to_visual": "image"}, no_column("doc_to_visual", "image")),
        ({"doc_to_choice": "choices", **CHOICE}, no_column("doc_to_choice", "choices")),
        ({"test_split": "dev"}, r"probe\.yaml: there is no split 'dev' in the data; there is: test"),
        (files("rwos.jsonl"), r"probe\.yaml: data file .*rwos\.jsonl.*holds: rows\.jsonl"),
        ({"dataset_kwargs": None}, r"probe\.yaml: dataset_path 'json' needs dataset_kwargs\.data_files"),
    ],
)
def test_wrong_data_is_named_before_the_run(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    task = make_task(tmp_path, changes)
    with pytest.raises(DataError, match=message):
        task.load()


def test_a_column_that_the_tasks_own_code_misses_is_named_before_the_run(tmp_path: Path) -> None:
    code = "def ask(doc):\n    return doc['question'] + doc['hint']\n"
    task = make_task(tmp_path, {"doc_to_text": Function("utils.ask")}, code)
    with pytest.raises(DataError, match=no_column("doc_to_text", "hint")):
        task.load()


def test_other_errors_of_the_tasks_own_code_wait_for_the_documents_that_they_concern(tmp_path: Path) -> None:
    code = "def ask(doc):\n    return {'a': 1}['question']\n"  # a key that is a column, but of something else
    task = make_task(tmp_path, {"doc_to_text": Function("utils.ask")}, code)
    task.load()
    assert len(task) > 0


@for_each(
    ("changes", "message"),
    [
        ({"doc_to_text": "{{ question"}, r"probe\.yaml: key 'doc_to_text': template"),
        ({"process_results": Function("utils.score")}, r"key 'process_results': .*utils\.py has no function 'score'"),
        ({"doc_to_text": Function("helpers.text")}, r"key 'doc_to_text': there is neither .*helpers\.py"),
        ({"docs_to_text": "x"}, r"probe\.yaml: unknown key 'docs_to_text'; the nearest valid key is 'doc_to_text'"),
    ],
)
def test_wrong_yaml_is_named_before_data_is_read(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        make_task(tmp_path, changes)


def test_a_target_that_is_not_in_the_data_may_stay_if_the_task_scores_itself(tmp_path: Path) -> None:
    code = "def score(doc, results):\n    return {'submission': results[0]}\n"
    metrics = [{"metric": "submission", "aggregation": "bypass", "higher_is_better": True}]
    changes = {"doc_to_target": "hidden", "process_results": Function("utils.score"), "metric_list": metrics}
    scored = loaded(tmp_path, changes, code).score(0, [Answer("x")])
    assert (scored.target, scored.scores[0].metrics) == ("hidden", {"submission": "x"})


def test_an_empty_split(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"probe\.yaml: split 'test' has no documents"):
        loaded(tmp_path, rows=[])


def test_process_docs_gets_a_real_dataset(tmp_path: Path) -> None:
    task = loaded(tmp_path / "a", {"process_docs": Function("utils.keep_two")}, PROCESS)
    assert len(task) == 2
    assert task.exchange(1, 0).open()[0].context == "SNOW COLOUR?"
    assert task.dataset_dict()["test"][0]["question"] == "SKY COLOUR"
    assert list(task.costs([0, 1])) == [14 / 4, 16 / 4]
    assert loaded(tmp_path / "b", {"process_docs": Function("utils.rows")}, PROCESS).target(0) == "up"
    with pytest.raises(TaskError, match=r"process_docs must return a datasets\.Dataset, not a NoneType"):
        loaded(tmp_path / "c", {"process_docs": Function("utils.nothing")}, PROCESS)


def test_scoring_sees_pictures_only_if_asked(tmp_path: Path) -> None:
    import datasets

    features = datasets.Features({"question": datasets.Value("string"), "image": datasets.Image()})
    from PIL import Image

    made = datasets.Dataset.from_list([{"question": "q", "image": Image.new("RGB", (2, 3))}], features=features)
    made.to_parquet(str(tmp_path / "d.parquet"))
    code = "def score(doc, results):\n    return {'size': doc['image'].size if 'image' in doc else None}\n"
    changes = {
        "dataset_path": "parquet", "dataset_kwargs": {"data_files": {"test": str(tmp_path / "d.parquet")}},
        "doc_to_target": None, "process_results": Function("utils.score"),
        "metric_list": [{"metric": "size", "aggregation": "bypass", "higher_is_better": True}],
    }  # fmt: skip
    for name, more, options, wanted in (
        ("a", {}, TaskOptions(), None),
        ("b", {"process_results_use_image": True}, TaskOptions(), (2, 3)),
        ("c", {}, TaskOptions(process_with_media=True), (2, 3)),
    ):
        scored = loaded(tmp_path / name, {**changes, **more}, code, options).score(0, [Answer("x")])
        assert scored.scores[0].metrics == {"size": wanted}
        assert scored.doc == {"question": "q"} and scored.target == ""
        assert len(scored.media) == 1 and scored.media[0].startswith("sha256:")


def test_what_is_recorded(tmp_path: Path) -> None:
    options = TaskOptions(model_name="m", repeats=2, gen_kwargs={"top_p": 0.5})
    code = "def score(doc, results):\n    return {}\n"
    changes = {"process_results": Function("utils.score"), "metadata": [{"version": 2}], "tag": "t", "repeats": 7}
    recorded = make_task(tmp_path, changes, code, options).describe()
    assert recorded == {
        "task": "probe", "tag": "t", "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(tmp_path / "rows.jsonl")}}, "test_split": "test",
        "full_docs": False, "process_results_use_image": False, "doc_to_text": "{{question}}?",
        "doc_to_target": "answer", "process_results": "<function utils.score>", "description": "",
        "target_delimiter": " ", "fewshot_delimiter": "\n\n", "num_fewshot": 0,
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
        "output_type": "generate_until",
        "generation_kwargs": {"until": ["\n\n"], "do_sample": False, "top_p": 0.5}, "repeats": 2,
        "should_decontaminate": False, "score_key": "score", "metadata": [{"version": 2}],
        "auto_strip_thinking": False, "scoring": "inline",
    }  # fmt: skip
    assert json.loads(json.dumps(recorded)) == recorded


def test_facts_of_the_task(tmp_path: Path) -> None:
    task = make_task(
        tmp_path / "a", {"task_alias": "Probe", "metadata": {"version": 1.5, "num_fewshot": 4}, "cluster_key": "c"}
    )
    assert (task.alias, task.version, task.num_fewshot, task.cluster_key, task.score_key) == (
        "Probe",
        1.5,
        4,
        "c",
        "score",
    )
    assert make_task(tmp_path / "b").version == "Yaml"
    assert make_task(tmp_path / "c", {"scoring": "process"}).scoring == "process"


def test_the_fingerprint_follows_what_can_change_an_answer(tmp_path: Path) -> None:
    code = "def text(doc):\n    return doc['question']\n"
    text = {"doc_to_text": Function("utils.text")}
    prints = {
        "base": loaded(tmp_path / "a", text, code).fingerprint(),
        "code": loaded(tmp_path / "b", text, code + "# other\n").fingerprint(),
        "config": loaded(tmp_path / "a", {**text, "description": "d"}, code).fingerprint(),
        "data": loaded(tmp_path / "a", text, code, rows=[*ROWS, *ROWS]).fingerprint(),
    }
    base = prints["base"]
    assert set(base) == {"config", "functions", "scoring", "data"}
    assert prints["code"]["functions"] != base["functions"]
    assert prints["config"]["config"] != base["config"] and prints["config"]["functions"] == base["functions"]
    assert prints["data"]["data"] != base["data"]


def test_documents_are_hashed(tmp_path: Path) -> None:
    task = loaded(tmp_path)
    hashes = [task.score(number, [Answer("x")]).doc_hash for number in (0, 1, 0)]
    assert hashes[0] == hashes[2] != hashes[1]
    assert len(hashes[0]) == 64


def test_nothing_before_load(tmp_path: Path) -> None:
    task = make_task(tmp_path)
    with pytest.raises(UsageError, match=r"task 'probe' is used before load\(\)"):
        len(task)


def test_choices_and_gold_answers_for_baselines(tmp_path: Path) -> None:
    changes = {
        "output_type": "multiple_choice",
        "doc_to_choice": "options",
        "doc_to_target": "label",
        "metric_list": None,
    }
    task = loaded(tmp_path, changes)
    assert (task.target(0), task.gold_answer(0)) == (1, "blue")
    assert task.document(0)["options"] == ["red", "blue"]


def test_gold_answers_with_the_tasks_settings(tmp_path: Path) -> None:
    code = 'def gold(doc, settings=None):\n    return f\'{doc["answer"]}{settings["mark"]}\'\n'
    changes = {"doc_to_gold": Function("utils.gold"), "lmms_eval_specific_kwargs": {"mark": "!"}}
    assert loaded(tmp_path, changes, code).gold_answer(0) == "blue!"


def test_targets_with_the_tasks_settings(tmp_path: Path) -> None:
    code = (
        "def target(doc, lmms_eval_specific_kwargs=None):\n    return f\"{doc['answer']}{lmms_eval_specific_kwargs}\"\n"
    )
    changes = {"doc_to_target": Function("utils.target"), "lmms_eval_specific_kwargs": {"mark": 1}}
    assert loaded(tmp_path / "a", changes, code).target(0) == "blue{'mark': 1}"
    told = {**changes, "model_specific_target_kwargs": {"default": "?"}}
    assert loaded(tmp_path / "b", told, code).target(0) == "blue?"


def test_a_corrupt_parquet_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"question": ["a"], "answer": ["b"]}), tmp_path / "d.parquet")
    data = (tmp_path / "d.parquet").read_bytes()
    (tmp_path / "d.parquet").write_bytes(data[: len(data) // 2])
    changes = {"dataset_path": "parquet", "dataset_kwargs": {"data_files": {"test": "d.parquet"}}}
    with pytest.raises(DataError, match=r"d\.parquet: not a readable parquet file"):
        loaded(tmp_path, changes)
