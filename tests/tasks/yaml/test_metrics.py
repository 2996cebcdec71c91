from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.registry import METRICS, register_metric
from lmms_eval.errors import TaskError
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each
from tests.tasks.kit import make_task

SHARE = ScoreRange(0.0, 1.0)


def range_of(folder: Path, **entry: Any) -> ScoreRange | None:
    return make_task(folder, {"metric_list": [{"metric": "exact_match", **entry}]}).metrics[0].score_range


@for_each(
    ("entry", "expected"),
    [
        ({}, SHARE),
        ({"aggregation": "mean"}, SHARE),
        ({"aggregation": "median"}, None),
        ({"aggregation": "f1"}, SHARE),
        ({"aggregation": "ter"}, ScoreRange(0.0, math.inf)),
        ({"aggregation": "mean", "range": [0, 100]}, ScoreRange(0.0, 100.0)),
        ({"range": [None, 0.5]}, ScoreRange(-math.inf, 0.5)),
    ],
)
def test_the_range_is_the_stated_one_else_that_of_the_registry(
    tmp_path: Path, entry: dict[str, Any], expected: ScoreRange | None
) -> None:
    assert range_of(tmp_path, **entry) == expected


@for_each("stated", ["0-100", [0], [1, 0], [0, "x"], [0, True], [0, math.nan], 100])
def test_a_range_that_is_none_is_named_before_data_is_read(tmp_path: Path, stated: Any) -> None:
    with pytest.raises(TaskError, match=r"probe\.yaml: key 'metric_list', range of metric exact_match: give \[least"):
        range_of(tmp_path, range=stated)


def test_a_metric_of_a_plugin_states_its_range(tmp_path: Path) -> None:
    @register_metric(metric="probe_score", aggregation="mean", score_range=ScoreRange(0.0, 5.0))
    def probe(references: list[str], predictions: list[str]) -> float:
        return 5.0 * (references == predictions)

    try:
        made = make_task(tmp_path, {"metric_list": [{"metric": "probe_score"}]})
        assert made.metrics[0].score_range == ScoreRange(0.0, 5.0)
    finally:
        METRICS._values.pop("probe_score", None)
