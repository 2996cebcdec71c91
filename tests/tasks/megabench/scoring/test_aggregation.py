import math

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks.megabench.scoring.task_spec import AGGREGATIONS, minimum, weighted_mean
from tests.cases import for_each


def test_excluded_fields_take_their_weights_with_them() -> None:
    assert weighted_mean({"a": 1, "b": 0.5, "c": -1}, {"a": 1, "b": 3, "c": 10}) == pytest.approx(0.625)
    assert weighted_mean({"a": math.nan, "b": 1}, {"a": 1, "b": 1}) == 1


def test_nothing_left_is_minus_one() -> None:
    assert weighted_mean({"a": -1}, {}) == minimum({"a": math.nan}, {}) == -1
    assert AGGREGATIONS["unsupported"]({"a": 1}, {"a": 1}) == -1


def test_minimum_ignores_weights() -> None:
    assert minimum({"a": 0.5, "b": -1, "c": 1}, {}) == 0.5


@for_each(("weights", "message"), [({}, "no weight for 'a'"), ({"a": 0}, "sum to zero")])
def test_unusable_weights_are_refused(weights: dict[str, float], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        weighted_mean({"a": 1}, weights)


def test_scores_must_be_numbers() -> None:
    with pytest.raises(TaskError, match="'a' must be a number"):
        minimum({"a": "1"}, {})  # type: ignore[dict-item]
