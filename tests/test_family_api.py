"""The steps that programs of the family take in Python, one case for each, over a folder of two tasks.

Every step uses names and arguments as the family documents them, and a model object of the class interface.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cases import for_each

YAML = """
task: steps_{name}
tag: steps_tag
dataset_path: json
dataset_kwargs: {{data_files: {{test: rows.jsonl, train: rows.jsonl}}}}
test_split: test
training_split: train
doc_to_text: !function utils.text
doc_to_target: answer
doc_to_visual: !function utils.visual
generation_kwargs: {{max_new_tokens: 4, temperature: 0}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
metadata: {{version: 3.0}}
"""
UTILS = """
def text(doc, lmms_eval_specific_kwargs=None):
    return doc["question"]


def visual(doc):
    return []
"""
ROWS = [{"question": f"question {i}", "answer": "ab"[i % 2]} for i in range(4)]
STEPS: dict[str, Callable[[Any], None]] = {}


def step(function: Callable[[Any], None]) -> Callable[[Any], None]:
    STEPS[function.__name__] = function
    return function


def tools(folder: Path) -> Any:
    """What the steps share: the folder of tasks, a model, a place to write."""
    from lmms_eval.api.model import lmms

    (folder / "tasks").mkdir(parents=True)
    (folder / "tasks/rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    (folder / "tasks/utils.py").write_text(UTILS)
    for name in ("one", "two"):
        text = YAML.format(name=name).replace("rows.jsonl", str(folder / "tasks/rows.jsonl"))
        (folder / f"tasks/{name}.yaml").write_text(text)
    (folder / "tasks/group.yaml").write_text("group: steps_group\ntask: [steps_one, steps_two]\n")

    class Says(lmms):
        def __init__(self, answer: str = "a", batch_size: int = 1, device: str | None = None) -> None:
            super().__init__()
            self.answer, self.batch_size, self.device = answer, batch_size, device or "cpu"

        def generate_until(self, requests: list[Any]) -> list[Any]:
            return [self.answer for _ in requests]

        def loglikelihood(self, requests: list[Any]) -> list[Any]:
            return [(0.0, True) for _ in requests]

        def generate_until_multi_round(self, requests: list[Any]) -> list[Any]:
            return [[self.answer] for _ in requests]

    from lmms_eval.tasks import TaskManager

    return SimpleNamespace(
        folder=folder,
        include=str(folder / "tasks"),
        kind=Says,
        model=Says,
        manager=lambda: TaskManager(include_path=str(folder / "tasks"), include_defaults=False),
    )


def evaluated(given: Any, **arguments: Any) -> Any:
    from lmms_eval.evaluator import simple_evaluate

    return simple_evaluate(
        model=given.model(), task_manager=given.manager(), **{"tasks": ["steps_one"], "bootstrap_iters": 0, **arguments}
    )


def loaded(given: Any) -> Any:
    from lmms_eval.tasks import get_task_dict

    return get_task_dict(["steps_one"], given.manager())["steps_one"]


def configuration(given: Any) -> dict[str, Any]:
    return {
        "task": "steps_mapping",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": f"{given.include}/rows.jsonl"}},
        "test_split": "test",
        "doc_to_text": lambda doc: doc["question"],
        "doc_to_target": "answer",
        "doc_to_visual": lambda doc: [],
        "generation_kwargs": {"max_new_tokens": 4},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }


@step
def evaluate_by_name(given: Any) -> None:
    assert evaluated(given)["results"]["steps_one"]["exact_match,none"] == 0.5


@step
def evaluate_with_samples(given: Any) -> None:
    rows = evaluated(given, log_samples=True)["samples"]["steps_one"]
    assert [row["doc_id"] for row in rows] == [0, 1, 2, 3] and [row["target"] for row in rows] == list("abab")
    assert rows[0]["exact_match"] == 1.0


@step
def evaluate_a_configuration(given: Any) -> None:
    made = evaluated(given, tasks=[configuration(given)])
    assert made["results"]["steps_mapping"]["exact_match,none"] == 0.5


@step
def evaluate_a_task_object(given: Any) -> None:
    assert evaluated(given, tasks=[loaded(given)])["results"]["steps_one"]["exact_match,none"] == 0.5


@step
def evaluate_without_the_request_cache(given: Any) -> None:
    arguments = {"cache_requests": False, "rewrite_requests_cache": False, "delete_requests_cache": False}
    assert evaluated(given, **arguments)["results"]["steps_one"]["exact_match,none"] == 0.5


@step
def evaluate_predictions_only(given: Any) -> None:
    assert len(evaluated(given, predict_only=True, log_samples=True)["samples"]["steps_one"]) == 4


@step
def evaluate_with_limit_and_offset(given: Any) -> None:
    rows = evaluated(given, limit=2, offset=1, log_samples=True)["samples"]["steps_one"]
    assert [row["doc_id"] for row in rows] == [1, 2]


@step
def evaluate_with_generation_options_and_seeds(given: Any) -> None:
    arguments = {"gen_kwargs": "max_new_tokens=2", "random_seed": 1, "numpy_random_seed": 2, "torch_random_seed": 3}
    assert evaluated(given, **arguments)["results"]["steps_one"]["exact_match,none"] == 0.5


@step
def evaluate_a_group(given: Any) -> None:
    assert {"steps_one", "steps_two"} <= set(evaluated(given, tasks=["steps_group"])["results"])


@step
def evaluate_a_task_dict(given: Any) -> None:
    from lmms_eval.evaluator import evaluate
    from lmms_eval.tasks import get_task_dict

    found = get_task_dict(["steps_one", "steps_two"], given.manager())
    made = evaluate(lm=given.model(), task_dict=found, bootstrap_iters=0, log_samples=True)
    assert made["results"]["steps_two"]["exact_match,none"] == 0.5 and len(made["samples"]["steps_two"]) == 4


@step
def evaluate_with_a_tracker(given: Any) -> None:
    from lmms_eval.loggers import EvaluationTracker

    tracker = EvaluationTracker(output_path=str(given.folder / "out"))
    made = evaluated(given, evaluation_tracker=tracker, log_samples=True)
    samples = made.pop("samples")
    tracker.save_results_aggregated(results=made, samples=samples, datetime_str="20260101_000000")
    tracker.save_results_samples("steps_one", samples["steps_one"])
    (file,) = (given.folder / "out").rglob("*_results.json")
    assert json.loads(file.read_text())["results"]["steps_one"]["exact_match,none"] == 0.5
    (file,) = (given.folder / "out").rglob("*_samples_steps_one.jsonl")
    assert len(file.read_text().splitlines()) == 4


@step
def results_as_json_and_table(given: Any) -> None:
    from lmms_eval.utils import handle_non_serializable, make_table

    made = evaluated(given)
    assert json.loads(json.dumps(made, default=handle_non_serializable))["results"]
    assert "steps_one" in make_table(made)


@step
def manager_lists(given: Any) -> None:
    manager = given.manager()
    assert manager.all_subtasks == ["steps_one", "steps_two"] and manager.all_groups == ["steps_group"]
    assert manager.all_tags == ["steps_tag"] and "steps_one" in manager.list_all_tasks()


@step
def manager_matches(given: Any) -> None:
    assert sorted(given.manager().match_tasks(["steps_o*", "steps_two"])) == ["steps_one", "steps_two"]


@step
def manager_index(given: Any) -> None:
    index = given.manager().task_index["steps_one"]
    assert index["type"] == "task" and str(index["yaml_path"]).endswith("one.yaml")


@step
def manager_configuration(given: Any) -> None:
    found = given.manager()._get_config("steps_one")
    assert found["task"] == "steps_one" and found["test_split"] == "test"


@step
def manager_loads(given: Any) -> None:
    assert set(given.manager().load_task_or_group(["steps_one"])) == {"steps_one"}


@step
def task_of_a_configuration(given: Any) -> None:
    from lmms_eval.tasks import get_task_dict

    assert len(get_task_dict([configuration(given)], given.manager())["steps_mapping"].eval_docs) == 4


@step
def task_documents(given: Any) -> None:
    task = loaded(given)
    assert [doc["answer"] for doc in task.eval_docs] == list("abab") and task.eval_docs[1]["question"] == "question 1"
    assert len(task.test_docs()) == len(task.training_docs()) == 4


@step
def task_splits(given: Any) -> None:
    task = loaded(given)
    assert task.has_test_docs() and task.has_training_docs() and not task.has_validation_docs()


@step
def task_functions(given: Any) -> None:
    task, doc = loaded(given), ROWS[1]
    assert (task.doc_to_text(doc), task.doc_to_target(doc), task.doc_to_visual(doc)) == ("question 1", "b", [])


@step
def task_results(given: Any) -> None:
    task = loaded(given)
    assert [dict(task.process_results(ROWS[1], [answer])) for answer in "ba"] == [
        {"exact_match": 1.0}, {"exact_match": 0.0}
    ]  # fmt: skip


@step
def task_aggregations(given: Any) -> None:
    task = loaded(given)
    assert task.aggregation()["exact_match"]([1, 0]) == 0.5 and task.higher_is_better() == {"exact_match": True}


@step
def task_configuration(given: Any) -> None:
    dumped = loaded(given).dump_config()
    assert dumped["task"] == "steps_one" and dumped["generation_kwargs"]["max_new_tokens"] == 4
    json.dumps(dumped, default=str)


@step
def task_attributes(given: Any) -> None:
    task = loaded(given)
    assert task.config.test_split == "test" and task.OUTPUT_TYPE == "generate_until"
    assert [doc_id for doc_id, _ in task.doc_iterator(rank=1, limit=None, world_size=2)] == [1, 3]


@step
def model_tables(given: Any) -> None:
    from lmms_eval.models import AVAILABLE_CHAT_TEMPLATE_MODELS, AVAILABLE_SIMPLE_MODELS

    assert "qwen2_5_vl" in AVAILABLE_SIMPLE_MODELS and "qwen3_vl" in AVAILABLE_CHAT_TEMPLATE_MODELS


@step
def model_names(given: Any) -> None:
    from lmms_eval.models import get_model_manifest, list_available_models

    assert "openai" in list_available_models() and "openai_compatible" in list_available_models(include_aliases=True)
    assert get_model_manifest("openai_compatible").model_id == "openai"


@step
def model_registry(given: Any) -> None:
    from lmms_eval.models import MODEL_REGISTRY_V2
    from lmms_eval.models.registry_v2 import ModelManifest

    manifest = ModelManifest("steps_model", chat_class_path="json.decoder.JSONDecoder")
    MODEL_REGISTRY_V2.register_manifest(manifest, overwrite=True)
    assert MODEL_REGISTRY_V2.resolve("steps_model").class_path == "json.decoder.JSONDecoder"
    assert "openai" in MODEL_REGISTRY_V2.list_canonical_model_ids()


@step
def model_from_arguments(given: Any) -> None:
    made = given.kind.create_from_arg_string("answer=b", {"batch_size": 2, "device": None})
    assert (made.answer, made.batch_size) == ("b", 2)


@step
def model_of_the_package_from_arguments(given: Any) -> None:
    from lmms_eval.models import get_model

    kind = get_model("openai")
    made = kind.create_from_arg_string(
        "model_version=m,base_url=http://127.0.0.1:9/v1,api_key=k", {"batch_size": 1, "device": None}
    )
    assert isinstance(made, kind)


@step
def registry_functions(given: Any) -> None:
    import lmms_eval.api.metrics  # noqa: F401 - registers the metrics
    from lmms_eval.api.registry import get_aggregation, get_metric, is_higher_better

    assert get_aggregation("mean")([1, 2]) == 1.5 and is_higher_better("exact_match") is True
    assert get_metric("exact_match")(references=["a"], predictions=["a"])["exact_match"] == 1.0


@step
def samplers(given: Any) -> None:
    from lmms_eval.api.samplers import ContextSampler, get_sampler

    settings = SimpleNamespace(
        target_delimiter=" ", fewshot_delimiter="\n\n", test_split="test", fewshot_split="train", doc_to_choice=None,
        doc_to_text=None, doc_to_target=None,
    )  # fmt: skip
    task = SimpleNamespace(
        config=settings, _config=settings, doc_to_choice=lambda doc: None, doc_to_text=lambda doc: doc["question"],
        doc_to_target=lambda doc: doc["answer"],
    )  # fmt: skip
    first = get_sampler("first_n")(ROWS[1:], task, rnd=random.Random(0))
    assert first.get_context(ROWS[0], 2) == "question 1 b\n\nquestion 2 a\n\n"
    assert get_sampler("default") is ContextSampler
    assert len(ContextSampler(ROWS, task, rnd=random.Random(0)).sample(3)) == 3


@step
def response_cache(given: Any) -> None:
    from lmms_eval.api.instance import Instance
    from lmms_eval.caching.response_cache import ResponseCache

    cache = ResponseCache(str(given.folder / "c.db"), str(given.folder / "c.jsonl"), model_fingerprint="m")
    requests = [
        Instance("generate_until", (f"q{i}", {"temperature": i // 2}, i, "t", "test"), 0, {"task": "t", "doc_id": i})
        for i in range(3)
    ]
    for _ in range(2):
        assert cache.execute(given.model(), "generate_until", requests) == ["a"] * 3
    stats = cache.get_stats()
    assert (stats["hits"], stats["misses"], stats["skipped_non_deterministic"]) == (2, 2, 2)
    cache.close()


@step
def filters(given: Any) -> None:
    from lmms_eval.api.instance import Instance
    from lmms_eval.filters import build_filter_ensemble

    request = Instance("generate_until", ("q",), 0, {"task": "t", "doc_id": 0, "repeats": 1})
    request.resps = ["YES"]
    build_filter_ensemble("mine", [["lowercase", None], ["take_first", None]]).apply([request], [{}])
    assert request.filtered_resps == {"mine": "yes"}


@step
def reasoning(given: Any) -> None:
    from lmms_eval.api.reasoning import parse_reasoning_tags_config, strip_reasoning_tags

    pairs = parse_reasoning_tags_config('[["<t>", "</t>"]]')
    assert strip_reasoning_tags("<t>so</t> yes", pairs) == "yes"


@for_each("name", STEPS)
def test_a_step(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    STEPS[name](tools(tmp_path / "given"))


def test_there_are_as_many_steps_as_are_told() -> None:
    assert len(STEPS) == 35
