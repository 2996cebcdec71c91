import math

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks.megabench.summary import (
    AGGREGATIONS,
    Means,
    TaskScore,
    minimum,
    score_task,
    summarise,
    weighted_mean,
)


def test_excluded_fields_take_their_weights_with_them() -> None:
    assert weighted_mean({"a": 1, "b": 0.5, "c": -1}, {"a": 1, "b": 3, "c": 10}) == pytest.approx(0.625)
    assert weighted_mean({"a": math.nan, "b": 1}, {"a": 1, "b": 1}) == 1


def test_nothing_left_is_minus_one() -> None:
    assert weighted_mean({"a": -1}, {}) == minimum({"a": math.nan}, {}) == -1
    assert AGGREGATIONS["unsupported"]({"a": 1}, {"a": 1}) == -1


def test_minimum_ignores_weights() -> None:
    assert minimum({"a": 0.5, "b": -1, "c": 1}, {}) == 0.5


@pytest.mark.parametrize(("weights", "message"), [({}, "no weight for 'a'"), ({"a": 0}, "sum to zero")])
def test_unusable_weights_are_refused(weights: dict[str, float], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        weighted_mean({"a": 1}, weights)


def test_scores_must_be_numbers() -> None:
    with pytest.raises(TaskError, match="'a' must be a number"):
        minimum({"a": "1"}, {})  # type: ignore[dict-item]


def test_an_excluded_query_stays_in_the_denominator() -> None:
    assert score_task("t", "rule", [1.0, -1, 0.5]) == TaskScore("t", "rule", 3, 1.5, 0.5)


def test_a_query_that_was_not_evaluated_takes_the_mean_away() -> None:
    assert score_task("t", "llm", [1.0, None]) == TaskScore("t", "llm", 2, None, None)


def test_a_task_needs_queries() -> None:
    with pytest.raises(TaskError, match="empty_task"):
        score_task("empty_task", "rule", [])


def test_summary() -> None:
    tasks = [score_task("a", "rule", [1.0]), score_task("b", "llm", [0.0, 0.0, 0.5])]
    summary = summarise(tasks)
    assert summary.as_dict() == {
        "macro_mean_score": pytest.approx((1 + 0.5 / 3) / 2),
        "micro_mean_score": pytest.approx(0.375),
        "num_tasks": 2,
        "num_queries": 4,
    }
    assert summary.rule == Means(1.0, 1.0, 1, 1)
    assert summary.llm.num_queries == 3


def test_a_task_without_a_mean_takes_the_headline_away() -> None:
    summary = summarise([score_task("a", "rule", [1.0]), score_task("b", "llm", [None])])
    assert summary.as_dict() == {
        "macro_mean_score": None,
        "micro_mean_score": None,
        "num_tasks": 1,
        "num_queries": 1,
        "partial": {"macro_mean_score": 1.0, "micro_mean_score": 1.0},
        "not_evaluated": ["b"],
    }


def test_an_empty_run_scores_zero() -> None:
    assert summarise([]).as_dict() == {"macro_mean_score": 0, "micro_mean_score": 0, "num_tasks": 0, "num_queries": 0}


def test_the_fixed_mean_replaces_only_the_queries_that_differ() -> None:
    score = score_task("t", "rule", [0, 0.5, -1, 1], {0: 1, 2: 0.5})
    assert (score.total, score.mean, score.fixed_mean) == (1.5, 0.375, 0.75)
    assert score_task("t", "rule", [1, 1], {1: -1}).fixed_mean == 0.5


def test_without_differences_or_with_a_missing_query_there_is_no_fixed_mean() -> None:
    assert score_task("t", "rule", [0, 1]).fixed_mean is None
    assert score_task("t", "rule", [0, 1], {}).fixed_mean is None
    assert score_task("t", "rule", [0, None], {0: 1}).fixed_mean is None


def test_the_summary_tells_the_fixed_mean_where_a_task_differs() -> None:
    tasks = [score_task("a", "rule", [0, 0], {1: 1}), score_task("b", "llm", [1])]
    summary = summarise(tasks).as_dict()
    assert summary["macro_mean_score"] == 0.5
    assert summary["fixed"] == {"macro_mean_score": 0.75, "num_tasks_affected": 1}
    assert "fixed" not in summarise([score_task("a", "rule", [0, 0])]).as_dict()
