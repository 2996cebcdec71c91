from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lmms_eval import stats
from lmms_eval.api.task import Group, GroupMetric, PipelineScore
from lmms_eval.engine.aggregate import AggregateOptions, TaskResult, aggregate_task
from lmms_eval.engine.groups import aggregate_groups
from lmms_eval.engine.looks import LookStop
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.uncertainty import NOT_AVAILABLE
from lmms_eval.utils.numbers import ScoreRange
from tests.engine.fakes import FakeTask, mean
from tests.engine.journaled import aggregated, failed, metric, scored, store_of, values_of

LEFT, RIGHT = [1.0, 1.0, 0.0, 1.0], [0.0, 1.0]


def result(folder: Path, name: str, values: Sequence[Any], metric_name: str = "acc", missing: int = 0) -> TaskResult:
    task = FakeTask(len(values) + missing, name)
    task.metrics = (metric(metric_name, mean, "mean"),)
    lost = [failed(task, len(values) + number, "timeout") for number in range(missing)]
    return aggregated(folder / name, task, [*values_of(task, metric_name, values), *lost])


@pytest.fixture
def tasks(tmp_path: Path) -> dict[str, TaskResult]:
    return {"left": result(tmp_path, "left", LEFT), "right": result(tmp_path, "right", RIGHT)}


def group(*metrics: GroupMetric, children: tuple[str, ...] = ("left", "right"), name: str = "all") -> Group:
    return Group(name, name, children, metrics)


def test_the_plain_mean_counts_every_part_once(tasks: dict[str, TaskResult]) -> None:
    (made,) = aggregate_groups([group(GroupMetric("acc", "mean"))], tasks)
    row = made.metrics[0]
    error = math.sqrt(stats.mean_stderr(LEFT) ** 2 + stats.mean_stderr(RIGHT) ** 2) / 2
    assert (row.value, row.n) == (0.625, 6)
    assert row.stderr == pytest.approx(error)
    within = ScoreRange(0.0, 1.0)
    parts = [stats.MeanSpread.of_scores(scores, within) for scores in (LEFT, RIGHT)]
    assert row.interval == stats.score_interval(0.625, stats.MeanSpread.stratified(parts, [1, 1]), within)


def test_a_group_of_tasks_without_a_right_answer_is_not_certain(tmp_path: Path) -> None:
    """The expected count for 20 documents."""
    tasks = {name: result(tmp_path, name, [0.0] * 10) for name in ("left", "right")}
    (made,) = aggregate_groups([group(GroupMetric("acc", "mean"))], tasks)
    row = made.metrics[0]
    assert (row.value, row.stderr) == (0.0, 0.0)
    assert row.interval == stats.Interval(0.0, pytest.approx(0.1611, abs=1e-4), "wilson")


def test_a_group_of_single_documents_is_as_certain_as_these(tmp_path: Path) -> None:
    tasks = {name: result(tmp_path, name, [1.0]) for name in ("left", "right")}
    (made,) = aggregate_groups([group(GroupMetric("acc", "mean"))], tasks)
    assert made.metrics[0].interval == stats.Interval(pytest.approx(0.3424, abs=1e-4), 1.0, "wilson")
    (alone,) = aggregate_groups([group(GroupMetric("acc", "mean"), children=("left",))], tasks)
    assert (alone.metrics[0].interval, alone.metrics[0].certainty.no_interval) == (None, "n = 1")


def test_weights_by_size_give_the_mean_over_documents(tasks: dict[str, TaskResult]) -> None:
    (made,) = aggregate_groups([group(GroupMetric("acc", "mean", weight_by_size=True))], tasks)
    row = made.metrics[0]
    assert row.value == pytest.approx(mean([*LEFT, *RIGHT]))
    assert row.stderr == pytest.approx(
        stats.pooled_sample_stderr([stats.mean_stderr(LEFT), stats.mean_stderr(RIGHT)], [4, 2])
    )


def test_a_withheld_part_withholds_the_group(tasks: dict[str, TaskResult], tmp_path: Path) -> None:
    tasks["right"] = result(tmp_path / "again", "right", RIGHT, missing=1)
    (made,) = aggregate_groups([group(GroupMetric("acc", "mean"))], tasks)
    row = made.metrics[0]
    assert (row.value, row.stderr, row.interval) == (None, NOT_AVAILABLE, None)
    assert "1 parts are withheld" in row.withheld_reason


def test_a_leaf_without_the_metric_is_named_and_left_out(tasks: dict[str, TaskResult], tmp_path: Path) -> None:
    tasks["odd"] = result(tmp_path, "odd", [0.0, 0.0], metric_name="accuracy")
    (made,) = aggregate_groups([group(GroupMetric("acc", "mean"), children=("left", "odd", "right"))], tasks)
    assert made.metrics[0].value == 0.625
    assert made.left_out == {"acc,none": ("odd",)}
    (none,) = aggregate_groups([group(GroupMetric("f1", "mean"))], tasks)
    assert none.metrics == () and none.left_out == {"f1,none": ("left", "right")}


def test_the_filter_must_be_the_very_one(tmp_path: Path) -> None:
    task = FakeTask(2, "left")
    task.pipelines = ("loose", "strict")
    records = [
        scored(task, n, PipelineScore("loose", "x", {"acc": 1.0}), PipelineScore("strict", "x", {"acc": 0.0}))
        for n in range(2)
    ]
    tasks = {"left": aggregated(tmp_path, task, records)}
    wanted = GroupMetric("acc", "mean", filters=("strict", "loose", "none"))
    (made,) = aggregate_groups([group(wanted, children=("left",))], tasks)
    assert [(row.filter, row.value) for row in made.metrics] == [("strict", 0.0), ("loose", 1.0)]
    assert made.left_out == {"acc,none": ("left",)}


def test_nested_groups_are_taken_over_all_their_leaves(tasks: dict[str, TaskResult], tmp_path: Path) -> None:
    tasks["third"] = result(tmp_path, "third", [1.0, 1.0])
    inner = group(GroupMetric("acc", "mean"), name="inner")
    outer = group(GroupMetric("acc", "mean"), children=("inner", "third"), name="outer")
    first, second = aggregate_groups([outer, inner], tasks)
    assert first.leaves == ("left", "right", "third")
    assert first.metrics[0].value == pytest.approx((0.75 + 0.5 + 1.0) / 3)
    assert second.metrics[0].value == 0.625


def test_a_function_of_the_group_is_called_with_the_values_and_has_no_error(tasks: dict[str, TaskResult]) -> None:
    (made,) = aggregate_groups([group(GroupMetric("acc", max))], tasks)
    assert (made.metrics[0].value, made.metrics[0].stderr) == (0.75, NOT_AVAILABLE)


def test_a_registered_name_is_what_it_says(tasks: dict[str, TaskResult], tmp_path: Path) -> None:
    tasks["third"] = result(tmp_path, "third", [1.0, 1.0])
    children = ("left", "right", "third")
    (made,) = aggregate_groups([group(GroupMetric("acc", "median"), children=children)], tasks)
    assert made.metrics[0].value == 0.75


@pytest.mark.parametrize(
    ("aggregation", "says"),
    [(lambda values: 1 / 0, "ZeroDivisionError"), ("meen", "unknown aggregation 'meen'; did you mean mean")],
    ids=["raises", "unknown"],
)
def test_a_group_that_cannot_be_aggregated_is_broken_alone(
    tasks: dict[str, TaskResult], aggregation: Any, says: str
) -> None:
    wanted = [GroupMetric("acc", aggregation), GroupMetric("acc", "mean")]
    (made,) = aggregate_groups([group(*wanted)], tasks)
    bad, good = made.metrics
    assert bad.broken and bad.value is None and says in bad.withheld_reason
    assert good.value == 0.625


@pytest.mark.parametrize(("aggregation", "has_order"), [("median", True), ("mean", False), ("mean", True)])
def test_a_group_with_a_part_that_ended_early(tmp_path: Path, aggregation: str, has_order: bool) -> None:
    """The group has an interval if it is a mean, and the order of every part is known."""
    tasks = {}
    for name, asked in (("left", 10), ("right", 20)):
        task = FakeTask(20, name)
        task.metrics = (structs.replace(metric("acc", mean, "mean"), score_range=ScoreRange(0.0, 1.0)),)
        plan, store = plan_task(task, None, 0), store_of(tmp_path / name, *values_of(task, "acc", [1.0, 0.0] * 10))
        stop = LookStop("the rule", "random:0", 20, tuple(range(asked))) if asked < 20 else None
        order = range(20) if stop is not None or has_order else None
        tasks[name] = aggregate_task(plan, store, AggregateOptions(), order=order, stop=stop)
        store.close()
    (made,) = aggregate_groups([group(GroupMetric("acc", aggregation))], tasks)
    (row,) = made.metrics
    assert row.value == 0.5
    if aggregation == "mean" and has_order:
        assert row.interval is not None and row.interval.low < 0.5 < row.interval.high
    else:
        assert (row.interval, row.certainty.no_interval) == (None, "stopped early")


def test_parts_that_are_no_numbers_break_the_group_not_the_run(tmp_path: Path) -> None:
    task = FakeTask(1, "left")
    task.metrics = (metric("acc", lambda values: {"a": 1}),)
    tasks = {"left": aggregated(tmp_path, task, values_of(task, "acc", [1.0]))}
    (made,) = aggregate_groups([group(GroupMetric("acc", "mean"), children=("left",))], tasks)
    assert made.metrics[0].broken and "TypeError" in made.metrics[0].withheld_reason


def test_metrics_of_several_names_are_put_on_one_scale(tasks: dict[str, TaskResult], tmp_path: Path) -> None:
    tasks["other"] = result(tmp_path, "other", [10.0, 30.0, 50.0], "points")
    tasks["other"].task.metrics = (structs.replace(tasks["other"].task.metrics[0], score_range=ScoreRange(0.0, 50.0)),)
    tasks["left"].task.metrics = (structs.replace(tasks["left"].task.metrics[0], score_range=ScoreRange(0.0, 1.0)),)
    wanted = GroupMetric("whole", "mean", of={"left": "acc,none", "other": "points,none"})
    (made,) = aggregate_groups([group(wanted, children=("left", "other"))], tasks)
    row = made.metrics[0]
    assert (row.metric, row.value, row.n) == ("whole", pytest.approx((75 + 60) / 2), 7)
    errors = (100 * stats.mean_stderr(LEFT), 2 * stats.mean_stderr([10.0, 30.0, 50.0]))
    assert row.stderr == pytest.approx(math.hypot(*errors) / 2)
    assert row.interval is not None and row.interval.low < row.value < row.interval.high <= 100


def test_a_metric_without_a_range_has_no_place_on_a_scale(tasks: dict[str, TaskResult], tmp_path: Path) -> None:
    tasks["other"] = result(tmp_path, "other", [10.0, 30.0], "points")
    wanted = GroupMetric("whole", "mean", of={"other": "points,none"})
    (made,) = aggregate_groups([group(wanted, children=("left", "other"))], tasks)
    assert made.metrics[0].value is None
    assert made.left_out == {"whole,none": ("left",)}


def with_missing(folder: Path, name: str, values: Sequence[float], missing: int) -> TaskResult:
    """A task with scores from 0 to 1 of which some documents failed within the error budget."""
    task = FakeTask(len(values) + missing, name)
    task.metrics = (structs.replace(metric("acc", mean, "mean"), score_range=ScoreRange(0.0, 1.0)),)
    lost = [failed(task, len(values) + number, "timeout") for number in range(missing)]
    return aggregated(folder / name, task, [*values_of(task, "acc", values), *lost], error_budget=0.5)


def test_bounds_of_a_group_hold_whatever_missing_documents_of_its_tasks_would_score(tmp_path: Path) -> None:
    scores = [1.0] * 60 + [0.0] * 30
    tasks = {"left": with_missing(tmp_path, "left", scores, 10), "right": with_missing(tmp_path, "right", scores, 0)}
    (made,) = aggregate_groups([group(GroupMetric("acc", "mean"))], tasks)
    (row,) = made.metrics
    within, parts = ScoreRange(0.0, 1.0), []
    for end in (0.0, 1.0):
        spreads = [stats.MeanSpread.of_scores([*scores, *more], within) for more in ([end] * 10, [])]
        parts.append((((60 + 10 * end) / 100 + 60 / 90) / 2, stats.MeanSpread.stratified(spreads, [1, 1])))
    least, greatest = (stats.score_interval(*part, within) for part in parts)
    assert isinstance(least, stats.Interval) and isinstance(greatest, stats.Interval)
    bounds = row.missing_bounds
    assert bounds is not None
    assert (bounds.n, bounds.low, bounds.high) == (10, pytest.approx(least.low), pytest.approx(greatest.high))
    (other,) = aggregate_groups([group(GroupMetric("acc", "median"))], tasks)
    bounds = other.metrics[0].missing_bounds
    assert bounds is not None and (bounds.low, bounds.reason) == (None, "not a mean over tasks")
    (whole,) = aggregate_groups([group(GroupMetric("acc", "mean"), children=("right",))], tasks)
    assert whole.metrics[0].missing_bounds is None


def test_a_group_of_one_task_in_percent_has_its_interval_and_bounds(tmp_path: Path) -> None:
    tasks = {"left": with_missing(tmp_path, "left", [0.5, 0.25, 0.75, 0.5, 0.9], 1)}
    wanted = GroupMetric("acc", "mean", of={"left": "acc,none"})
    (made,) = aggregate_groups([group(wanted, children=("left",))], tasks)
    (own,), (row,) = tasks["left"].metrics, made.metrics
    assert own.interval is not None and row.interval is not None and own.interval.method == "gaffke"
    assert (row.interval.low, row.interval.high) == pytest.approx((100 * own.interval.low, 100 * own.interval.high))
    mine, its = row.missing_bounds, own.missing_bounds
    assert mine is not None and its is not None and mine.low is not None and its.low is not None
    assert mine.low == pytest.approx(100 * its.low, abs=1e-3) and mine.low < row.interval.low
