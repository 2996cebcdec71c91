from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.config import TASK_KEYS, aggregate_metrics, group_config, task_config
from tests.cases import for_each
from tests.tasks.kit import BASE


def config(**changes: Any) -> Any:
    return task_config({**BASE, **changes}, "x.yaml")


def test_the_guide_explains_every_key() -> None:
    text = (Path(__file__).parents[3] / "docs" / "task_guide.md").read_text(encoding="utf-8")
    first_cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    explained = {key for cell in first_cells for key in re.findall(r"`(\w+)`", cell)}
    assert set(TASK_KEYS) <= explained


def test_defaults() -> None:
    made = config()
    assert made.output_type == "generate_until"
    assert (made.answer_delimiter, made.fewshot_delimiter, made.repeats, made.score_key) == (" ", "\n\n", 1, "score")
    assert made.split == "test"
    assert config(test_split=None, validation_split="val").split == "val"


@for_each("metadata", [{"version": 2}, [{"version": 2}], [{"version": 2}, {"other": 1}]])
def test_metadata_as_mapping_or_list(metadata: Any) -> None:
    assert config(metadata=metadata).facts["version"] == 2


def test_group_is_an_old_spelling_of_tag() -> None:
    assert config(group="g").tag == "g"
    with pytest.raises(TaskError, match=r"x\.yaml: give either tag or group"):
        config(group="g", tag="t")


@for_each(
    ("changes", "message"),
    [
        ({"doc_to_txt": "q"}, r"x\.yaml: unknown key 'doc_to_txt'; the nearest valid key is 'doc_to_text'"),
        ({"repeats": 0}, r"x\.yaml: key 'repeats'.*greater than or equal to 1"),
        ({"metric_list": "acc"}, r"key 'metric_list'.*list"),
        ({"output_type": "generate"}, r"key 'output_type'.*generate_until"),
        (
            {"output_type": "generate_visual_cot", "metric_list": None},
            r"x\.yaml: output_type generate_visual_cot has no metric",
        ),
        ({"task": "../../evil"}, r"x\.yaml: key 'task': a name holds no slash"),
        ({"task": "a/../../../home/me/rows"}, r"x\.yaml: key 'task': a name holds no slash"),
        ({"dataset_path": None}, r"key 'dataset_path' is missing"),
        ({"test_split": None}, r"give test_split or validation_split"),
        ({"doc_to_text": None}, r"give doc_to_text"),
        ({"output_type": "multiple_choice"}, r"needs doc_to_choice"),
        ({"output_type": "generate_until_agentic"}, r"needs a function for doc_to_text"),
        ({"process_results": "utils.f"}, r"key 'process_results' must be a function \(!function"),
        ({"num_fewshot": -1}, r"key 'num_fewshot'"),
    ],
)
def test_wrong_keys_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        config(**changes)


def test_groups_and_their_overrides() -> None:
    made, overrides = group_config(
        {"group": "g", "group_alias": "G", "task": ["a", {"task": "b", "num_fewshot": 2}], "num_fewshot": 1,
         "aggregate_metric_list": {"metric": "acc", "filter_list": ["x", "y"]}}, "g.yaml",
    )  # fmt: skip
    assert overrides == {"num_fewshot": 1}
    entry = aggregate_metrics(made, "g.yaml")[0]
    assert (entry.metric, entry.aggregation, entry.weight_by_size, entry.filter_list) == (
        "acc",
        "mean",
        False,
        ["x", "y"],
    )


def test_wrong_group_keys_are_named() -> None:
    with pytest.raises(TaskError, match=r"g\.yaml: unknown key 'group_alais'; the nearest valid key is 'group_alias'"):
        group_config({"group": "g", "task": [], "group_alais": "x"}, "g.yaml")
    made, _ = group_config({"group": "g", "task": [], "aggregate_metric_list": [{"metrics": "acc"}]}, "g.yaml")
    with pytest.raises(TaskError, match=r"aggregate_metric_list: unknown key 'metrics'.*'metric'"):
        aggregate_metrics(made, "g.yaml")


def test_a_group_is_aggregated_by_mean_or_a_function() -> None:
    made, _ = group_config(
        {"group": "g", "task": [], "aggregate_metric_list": [{"metric": "acc", "aggregation": "median"}]}, "g.yaml"
    )
    with pytest.raises(TaskError, match=r"g\.yaml: aggregate_metric_list: aggregation 'median'"):
        aggregate_metrics(made, "g.yaml")


@pytest.mark.parametrize(
    ("sample", "text"),
    [({}, "needs size"), ({"size": 0}, "needs size"), ({"size": 3, "sead": 1}, "unknown key 'sead'")],
)
def test_a_sample_needs_a_size(sample: dict[str, int], text: str) -> None:
    keys = {"task": "t", "dataset_path": "json", "test_split": "test", "doc_to_text": "q", "sample": sample}
    with pytest.raises(TaskError, match=text):
        task_config(keys, "t.yaml")
