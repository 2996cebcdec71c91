import json

import pytest

from lmms_eval.tasks.megabench.facts import labels, tasks
from lmms_eval.tasks.megabench.metrics import METRICS
from lmms_eval.tasks.megabench.scoring.parsers import PARSERS
from lmms_eval.tasks.megabench.scoring.task_spec import AGGREGATIONS
from tests.cases import for_each
from tests.parity.vectors import DATA_DIR

TABLES = DATA_DIR / "megabench"
needs_tables = pytest.mark.skipif(not TABLES.is_dir(), reason=f"no facts tables in {TABLES}")


def of_subset(subset):
    return [task for task in tasks().values() if task.subset == subset]


def test_the_numbers_of_the_benchmark():
    core, judged = of_subset("core"), of_subset("open")
    assert (len(core), sum(task.queries for task in core)) == (440, 6531)
    assert (len(judged), sum(task.queries for task in judged)) == (65, 1158)
    single = [task for task in tasks().values() if task.single_image_first_id is not None]
    assert len(single) == 315
    assert sum(task.queries for task in single) == 4108 + 808


@for_each("subset", ["core", "open"])
def test_ids_follow_each_other(subset):
    expected = 1
    for task in of_subset(subset):
        assert task.first_id == expected, task.name
        expected += task.queries


def test_every_name_is_known():
    for task in tasks().values():
        assert {metric for metric in task.metrics.values() if metric is not None} <= set(METRICS), task.name
        assert task.parser in PARSERS
        assert task.aggregation in AGGREGATIONS


def test_a_judge_metric_makes_a_task_open():
    for task in tasks().values():
        is_judged = any(METRICS[metric].judged for metric in task.metrics.values())
        assert is_judged == (task.subset == "open"), task.name


@needs_tables
def test_labels_equal_the_published_table():
    published = json.loads((TABLES / "all_task_meta.json").read_bytes())
    assert set(published) == set(labels())
    for name, meta in published.items():
        found = labels()[name]
        assert list(found.skills) == meta["skills"]
        assert (found.input_format, found.output_format) == (meta["input_format"], meta["output_format"])
        assert (found.visual_inputs, found.application) == (meta["num_input"], meta["app"])


@needs_tables
def test_scoring_equals_the_published_table():
    for row in json.loads((TABLES / "task_table.json").read_bytes()):
        task = tasks()[row["task_name"]]
        assert (task.subset, task.first_id, task.queries) == (row["config"], row["first_id"], row["num_query"])
        assert task.demonstrations == row["num_demo"]
        assert task.single_image_first_id == row["single_image_first_id"]
        assert dict(task.metrics) == row["field_score_function"]
        assert dict(task.weights) == row["aggregation"]["field_weights"]
        assert (task.parser, task.aggregation) == (row["response_parse_function"], row["aggregation"]["function"])
