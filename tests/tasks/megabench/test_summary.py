import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks.megabench.summary import TaskTotals, score_task, summarise


def test_an_excluded_query_stays_in_the_denominator() -> None:
    assert score_task("t", "rule", [1.0, -1, 0.5]) == TaskTotals("t", "rule", 3, 1.5, 0.5)


def test_a_query_that_was_not_evaluated_takes_the_mean_away() -> None:
    assert score_task("t", "llm", [1.0, None]) == TaskTotals("t", "llm", 2, None, None)


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
