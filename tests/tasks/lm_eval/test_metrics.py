"""Tests of ``lmms_eval.tasks.lm_eval.metrics``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.lm_eval.metrics import exact_match
from tests.cases import for_each
from tests.tasks.kit import Function
from tests.tasks.lm_eval.kit import CHOSEN, opened, pack_task, values


@for_each(
    ("golds", "answers", "arguments", "value"),
    [
        (["a"], ["a"], {}, 1.0),
        (["a"], [" a"], {}, 0.0),
        (["A."], ["a"], {"ignore_case": True, "ignore_punctuation": "yes"}, 1.0),
        (["1,234"], ["1234"], {"regexes_to_ignore": [","]}, 1.0),
        (["b12"], ["b"], {"ignore_numbers": True}, 1.0),
        (["a", "b"], ["a", "c"], {}, 0.5),
        ([7], ["7"], {}, 0.0),
    ],
)
def test_exact_match(golds: list[Any], answers: list[Any], arguments: dict[str, Any], value: float) -> None:
    assert exact_match(golds, answers, **arguments) == {"exact_match": value}


def test_defaults_and_directions(tmp_path: Path) -> None:
    task = pack_task(tmp_path / "a", CHOSEN)
    assert [(one.name, one.aggregation_name) for one in task.metrics] == [("acc", "mean"), ("acc_norm", "mean")]
    rolling = {"output_type": "loglikelihood_rolling", "metric_list": None}
    found = pack_task(tmp_path / "b", rolling).metrics
    assert [(one.name, one.aggregation_name, one.higher_is_better) for one in found] == [
        ("word_perplexity", "weighted_perplexity", False), ("byte_perplexity", "weighted_perplexity", False),
        ("bits_per_byte", "bits_per_byte", False),
    ]  # fmt: skip


@for_each(
    ("entry", "low", "high"),
    [
        ({"metric": "acc_bytes"}, 0, 1), ({"metric": "acc_mutual_info"}, 0, 1), ({"metric": "brier_score"}, 0, 2),
        ({"metric": "f1"}, 0, 1), ({"metric": "mcc"}, -1, 1),
    ],
)  # fmt: skip
def test_ranges_of_metrics_of_choices(tmp_path: Path, entry: dict[str, Any], low: float, high: float) -> None:
    (metric,) = pack_task(tmp_path, {**CHOSEN, "metric_list": [entry]}).metrics
    assert metric.score_range is not None and (metric.score_range.low, metric.score_range.high) == (low, high)


def test_arguments_that_mean_nothing_are_dropped(tmp_path: Path) -> None:
    entry = {"metric": "acc", "ignore_case": True, "average": "macro", "weight_by_size": True}
    assert [one.name for one in pack_task(tmp_path, {**CHOSEN, "metric_list": [entry]}).metrics] == ["acc"]


def test_a_function_as_metric(tmp_path: Path) -> None:
    code = """
def longer(references, predictions, by=0):
    return float(len(predictions[0]) > len(references[0]) + by)

def pair(items):
    return float(items[0] == items[1])
"""
    entries = [{"metric": Function("utils.longer"), "by": 1}, {"metric": Function("utils.pair")}]
    task = opened(tmp_path, {"metric_list": entries}, code)
    assert values(task, 0, "bluest") == {"longer": 1.0, "pair": 0.0}
    assert values(task, 0, "blue") == {"longer": 0.0, "pair": 1.0}


def test_hf_evaluate_scores_each_answer(tmp_path: Path) -> None:
    entries = [{"metric": "accuracy", "hf_evaluate": True}, {"metric": "f1", "hf_evaluate": True, "average": "micro"}]
    filters = [
        {"name": "n", "filter": [{"function": "map", "mapping_dict": {"A": 0, "B": 1}}, {"function": "take_first"}]}
    ]
    task = opened(tmp_path, {"doc_to_target": "label", "metric_list": entries, "filter_list": filters})
    assert values(task, 0, "B") == {"accuracy": 1.0, "f1": 1.0}
    assert values(task, 0, "A") == {"accuracy": 0.0, "f1": 0.0}


def test_the_word_error_rate_of_each_answer(tmp_path: Path) -> None:
    task = opened(tmp_path, {"doc_to_target": "one two", "metric_list": [{"metric": "wer"}]})
    assert (values(task, 0, "one Two"), values(task, 0, "one two")) == ({"wer": 0.5}, {"wer": 0.0})
    (metric,) = task.metrics
    assert (metric.aggregation_name, metric.higher_is_better, metric.score_range) == ("mean", False, None)


@for_each(
    ("entry", "message"),
    [
        ({"aggregation": "mean"}, "an entry without 'metric'"),
        ({"metric": "accuracy"}, "unknown metric 'accuracy'"),
        ({"metric": "rouge", "hf_evaluate": True}, "unknown metric 'rouge'"),
        ({"metric": "exact_match", "aggregation": "meen"}, "unknown aggregation 'meen'; did you mean mean"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, entry: dict[str, Any], message: str) -> None:
    with pytest.raises(LmmsEvalError, match=message):
        pack_task(tmp_path, {"metric_list": [entry]})
