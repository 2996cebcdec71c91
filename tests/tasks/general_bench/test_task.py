from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import AbsentDataError, TaskError
from lmms_eval.tasks import Catalogue, select_tasks
from lmms_eval.tasks.general_bench.facts import metrics, tasks
from tests.cases import for_each
from tests.tasks.general_bench.demo_kit import SET, copied, edit

CATALOGUE = Catalogue()


def selected(*names: str, **options: Any) -> dict[str, Any]:
    found = select_tasks(list(names), CATALOGUE, TaskOptions(**options))
    return {task.name: task for task in found.tasks}


def test_names_and_groups() -> None:
    names = set(CATALOGUE.names())
    assert {f"general_bench_{facts.id}" for facts in tasks()} <= names
    groups = {"general_bench", "general_bench_nlp", "general_bench_image", "general_bench_image_generation"}
    assert groups | {"general_bench_demo", "general_bench_demo_3d_comprehension"} <= names


def test_larger_is_better_where_the_metric_says_so() -> None:
    found = selected("general_bench_demo_nlp")
    directions = {
        metric.name: metric.higher_is_better
        for task in found.values()
        for metric in task.metrics
        if metric.name != "predictions"
    }
    assert directions["rmse"] is False and directions["bleu1"] is True
    assert directions == {name: metrics()[name].higher_is_better for name in directions}


def test_tasks_without_data_are_absent(tmp_path: Path) -> None:
    root = copied(tmp_path, "nlp/Defects", "image/comprehension/Captioning", "image/generation/Deraining")
    names = [
        "general_bench_nlp_code_defect_detection",
        "general_bench_image_comprehension_coco_image_captioning",
        "general_bench_image_generation_image_deraining",
        "general_bench_nlp_time_series",
    ]
    assert loaded(selected(*names, data_root=str(root))) == names[:2]
    assert loaded(selected(*names, data_root=str(root), task_kwargs={"media_answers": "ask"})) == names[:3]


def loaded(found: dict[str, Any]) -> list[str]:
    """Tasks whose data are there."""
    names = []
    for name, task in found.items():
        with contextlib.suppress(AbsentDataError):
            task.load()
            names.append(name)
    return names


def test_how_long_answers_may_be() -> None:
    found = selected("general_bench_demo_nlp")
    limits = {}
    for name in ("code_defect_detection", "person_recognition", "story_generation", "abstractive_summarization"):
        task = found[f"general_bench_demo_nlp_{name}"]
        task.load()
        limits[name] = task.generation["max_new_tokens"]
    assert list(limits.values()) == [16, 128, 512, 256]
    own = selected("general_bench_demo_nlp_story_generation", gen_kwargs={"max_new_tokens": 7})
    (task,) = own.values()
    task.load()
    assert task.generation["max_new_tokens"] == 7


def test_the_limit_is_that_of_an_item_that_can_be_read(tmp_path: Path) -> None:
    folder = "image/comprehension/Sign-Detection"
    root = copied(tmp_path, folder)
    limits = []
    for spoil in (None, lambda content: content["data"].insert(0, 5), lambda content: content.update(data=[5])):
        if spoil is not None:
            edit(root / SET / folder / "annotation.json", spoil)
        (task,) = selected("general_bench_image_comprehension_traffic_signs_detection", data_root=str(root)).values()
        task.load()
        limits.append(task.generation["max_new_tokens"])
    assert limits[0] == limits[1] > limits[2] == 16


def test_only_the_judged_task_has_questions_to_a_judge() -> None:
    judged = [facts for facts in tasks() if facts.metric == "gpt_score"]
    (name,) = (f"general_bench_{facts.id}" for facts in judged)
    assert CATALOGUE.names().count(name) == 1
    for task in selected("general_bench_demo_nlp_time_series").values():
        assert task.config.doc_to_judge is None


@for_each("option", ["subsett=open", "subset=both"])
def test_wrong_options_are_refused(option: str) -> None:
    name, _, value = option.partition("=")
    with pytest.raises(TaskError, match=name):
        loaded(selected("general_bench_demo_nlp_time_series", task_kwargs={name: value}))
