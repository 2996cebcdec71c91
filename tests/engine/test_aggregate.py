from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from lmms_eval import stats
from lmms_eval.api.outcome import Estimate, Withheld
from lmms_eval.api.task import Answer, MetricDefinition, PipelineScore
from lmms_eval.engine.aggregate import MetricResult, aggregate_task
from lmms_eval.engine.outcomes import AggregateOptions, AnswerCounts
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.uncertainty import NOT_AVAILABLE
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.tasks._task_utils import estimates
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each
from tests.engine.fakes import FakeTask, mean
from tests.engine.journaled import aggregated, answer, failed, metric, scored, store_of, values_of

SHARE = ScoreRange(0.0, 1.0)
VALUES = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.5, 1.0]


def one(
    folder: Path,
    function: Any,
    values: Sequence[Any] = VALUES,
    registered: str | None = None,
    cluster: str = "",
    within: ScoreRange | None = None,
    **options: Any,
) -> MetricResult:
    """One metric over documents with these values."""
    task = FakeTask(len(values))
    task.metrics = (structs.replace(metric("m", function, registered), score_range=within),)
    task.cluster_key = cluster or None
    return aggregated(folder, task, values_of(task, "m", values), **options).metrics[0]


def test_the_mean_has_its_errors_and_interval(tmp_path: Path) -> None:
    result = one(tmp_path, mean, registered="mean")
    error = stats.mean_stderr(VALUES)
    assert (result.value, result.n) == (mean(VALUES), 8)
    assert result.stderr == result.stderr_clt == pytest.approx(error)
    assert result.stderr_clustered == NOT_AVAILABLE
    assert result.interval == stats.score_interval(mean(VALUES), stats.MeanSpread(error, 7, 8))
    assert result.interval is not None and result.interval.method == "t"


@for_each(
    ("values", "low", "high"),
    [([1.0, 0.0], 0.0256, 0.9744), ([1.0] * 59, 0.9389, 1.0), ([1.0, 0.0, 1.0, 0.0], 0.0888, 0.9112)],
)
@for_each("factor", [1, 100])
def test_right_or_wrong_scores_have_wilsons_interval(
    tmp_path: Path, values: list[float], low: float, high: float, factor: int
) -> None:
    result = one(tmp_path, lambda values: factor * mean(values), values)
    assert result.interval is not None
    assert result.interval.low == pytest.approx(factor * low, abs=1e-4 * factor)
    assert result.interval.high == pytest.approx(factor * high, abs=1e-4 * factor)


@for_each(
    ("values", "within"),
    [([0.0, 0.5, 0.5, 1.0], ScoreRange(0.0, 1.0)), ([0.0, 6.0, 6.0], ScoreRange(0.0, 6.0)), ([0.2] * 4, SHARE)],
)
def test_the_range_of_the_metric_bounds_the_interval(tmp_path: Path, values: list[float], within: ScoreRange) -> None:
    result = one(tmp_path, mean, values, "mean", within=within)
    assert result.interval is not None
    assert within.low <= result.interval.low < result.value < result.interval.high <= within.high


def test_a_score_outside_of_the_range_is_told(tmp_path: Path) -> None:
    result = one(tmp_path, mean, [0.5, 55.0], "mean", within=SHARE)
    assert (result.value, result.interval) == (27.75, None)
    assert result.certainty.no_interval == "a score lies outside of the range, 0 to 1"


@for_each("value", [0.0, 1.0])
def test_all_right_or_all_wrong_has_wilsons_interval(tmp_path: Path, value: float) -> None:
    result = one(tmp_path, mean, [value] * 20, "mean")
    assert result.stderr == 0.0
    assert result.interval is not None
    assert result.interval.high - result.interval.low == pytest.approx(0.1611, abs=1e-4)


def test_f1_has_the_interval_of_its_share(tmp_path: Path) -> None:
    """F1 = 2J / (1 + J) with J = TP / (TP + FP + FN) = 8 / 10."""
    pairs = [(1, 1)] * 8 + [(1, 0), (0, 1)] + [(0, 0)] * 30
    result = one(tmp_path, AGGREGATIONS["f1"].function(), pairs, "f1", within=SHARE)
    share = stats.score_interval(0.8, stats.MeanSpread.of_scores([1.0] * 8 + [0.0] * 2, SHARE), SHARE)
    assert isinstance(share, stats.Interval) and result.interval is not None
    ends = [2 * end / (1 + end) for end in (share.low, share.high)]
    assert [result.interval.low, result.interval.high] == pytest.approx(ends)
    perfect = one(tmp_path / "all", AGGREGATIONS["f1"].function(), [(1, 1)] * 9 + [(0, 0)] * 9, "f1", within=SHARE)
    assert perfect.value == 1.0 and perfect.interval is not None and perfect.interval.low < 0.9
    none = one(tmp_path / "none", AGGREGATIONS["f1"].function(), [(0, 0)] * 9, "f1", within=SHARE)
    assert (none.interval, none.certainty.no_interval) == (None, "no positive label")


def test_correlations_over_few_labels_have_no_interval(tmp_path: Path) -> None:
    function, within = AGGREGATIONS["matthews_corrcoef"].function(), ScoreRange(-1.0, 1.0)
    pairs = [(1, 1)] * 40 + [(0, 0)] * 39 + [(1, 0)]
    few = one(tmp_path / "few", function, pairs, "matthews_corrcoef", within=within)
    assert few.certainty.no_interval == "n = 80, 39 of the rarest label: too few for a correlation"
    rare = [(1, 1)] * 8 + [(0, 0)] * 100 + [(1, 0)]
    assert one(tmp_path / "rare", function, rare, "matthews_corrcoef", within=within).interval is None
    enough = [(1, 1)] * 50 + [(0, 0)] * 50 + [(1, 0)] * 4
    assert one(tmp_path / "enough", function, enough, "matthews_corrcoef", within=within).interval is not None


def test_equal_values_without_a_range_have_no_interval(tmp_path: Path) -> None:
    result = one(tmp_path, mean, [0.5] * 20, "mean")
    assert (result.interval, result.certainty.no_interval) == (None, "no spread")


def test_one_value_has_no_error(tmp_path: Path) -> None:
    result = one(tmp_path, mean, [1.0], "mean")
    assert (result.value, result.stderr, result.stderr_clt) == (1.0, NOT_AVAILABLE, NOT_AVAILABLE)
    assert (result.interval, result.certainty.no_interval) == (None, "n = 1")


def test_a_custom_aggregation_is_called_once_and_gets_no_bootstrap(tmp_path: Path) -> None:
    calls: list[list[float]] = []

    def once(values: list[float]) -> float:
        calls.append(values)
        return max(values)

    result = one(tmp_path, once)
    assert calls == [VALUES]
    assert (result.value, result.stderr) == (1.0, NOT_AVAILABLE)


def test_the_command_line_goes_to_those_that_take_args_alone(tmp_path: Path) -> None:
    seen: list[Any] = []

    def with_args(values: list[float], args: Any) -> float:
        seen.append(args)
        return 1.0

    def without(values: list[float], more: Any = "untouched") -> float:
        seen.append(more)
        return 1.0

    def with_task(values: list[float], args: Any, task: Any) -> float:
        seen.append((args, task.name))
        return 1.0

    one(tmp_path / "a", with_args, arguments="command line")
    one(tmp_path / "b", without, arguments="command line")
    result = one(tmp_path / "c", with_task, arguments="command line")
    assert seen == ["command line", "untouched", ("command line", "fake")]
    assert result.value == 1.0


@for_each(("factor", "scale"), [(1.0, 1.0), (100.0, 100.0), (7.0, None)], ids=["same scale", "percent", "neither"])
def test_errors_of_the_mean_follow_the_scale_of_the_aggregate(
    tmp_path: Path, factor: float, scale: float | None
) -> None:
    result = one(tmp_path, lambda values: factor * mean(values))
    if scale is None:
        assert (result.stderr_clt, result.interval) == (NOT_AVAILABLE, None)
    else:
        assert result.stderr_clt == pytest.approx(scale * stats.mean_stderr(VALUES))
        assert result.interval is not None
        half = stats.quantile(7) * scale * stats.mean_stderr(VALUES)
        assert result.interval.high == pytest.approx(factor * mean(VALUES) + half)


def test_a_sum_that_equals_the_mean_by_chance_has_no_interval(tmp_path: Path) -> None:
    """MME's kind of score: percent of right questions, and of pairs that are right as a whole, added up."""
    rows = [{"score": float(number % 2), "category": "a", "pair": number // 2} for number in range(4)]

    def sum_of_percentages(values: list[dict[str, Any]]) -> float:
        right = mean([value["score"] for value in values])
        pairs = [[value["score"] for value in values if value["pair"] == pair] for pair in (0, 1)]
        return 100 * right + 100 * mean([float(all(pair)) for pair in pairs])

    result = one(tmp_path / "few", sum_of_percentages, rows)
    assert (result.value, result.interval, result.scale) == (50.0, None, 0.0)
    alike = [{**row, "score": 0.0} for row in rows] * 10
    assert one(tmp_path / "alike", sum_of_percentages, alike).interval is None


def test_a_mean_over_documents_with_facts_has_an_interval(tmp_path: Path) -> None:
    rows = [{"score": float(number % 3 > 0), "category": "a"} for number in range(30)]
    result = one(tmp_path, lambda values: mean([value["score"] for value in values]), rows)
    assert result.interval is not None and result.interval.low < 2 / 3 < result.interval.high


def test_clusters_widen_the_interval_and_scale_with_it(tmp_path: Path) -> None:
    rows = [{"score": float(number < 4), "video": number // 2} for number in range(8)]

    def percent(values: list[dict[str, Any]]) -> float:
        return 100 * mean([value["score"] for value in values])

    result = one(tmp_path, percent, rows, cluster="video")
    expected = 100 * stats.clustered_stderr([row["score"] for row in rows], [row["video"] for row in rows])
    assert result.stderr_clustered == pytest.approx(expected)
    assert isinstance(result.stderr_clt, float) and result.stderr_clt < expected
    alone = one(tmp_path / "alone", percent, [{"score": row["score"]} for row in rows])
    assert result.interval is not None and alone.interval is not None
    assert 0 < result.interval.low < alone.interval.low < alone.interval.high < result.interval.high < 100


def test_one_cluster_is_one_draw(tmp_path: Path) -> None:
    rows = [{"score": float(number < 4), "video": "a"} for number in range(8)]
    result = one(tmp_path, lambda values: mean([value["score"] for value in values]), rows, cluster="video")
    assert (result.interval, result.certainty.no_interval) == (None, "n = 1")
    assert result.stderr_clustered == NOT_AVAILABLE


def test_registered_aggregations_get_a_bootstrap_error(tmp_path: Path) -> None:
    values = [1.0, 2.0, 4.0, 8.0, 16.0, 3.0]
    median = AGGREGATIONS["median"].function()
    result = one(tmp_path / "a", median, values, "median", bootstrap_iters=500)
    assert result.stderr == pytest.approx(stats.bootstrap_stderr("median", values, 500))
    assert result.interval is not None
    assert result.interval.high == pytest.approx(result.value + stats.quantile(5) * float(result.stderr))
    alike = one(tmp_path / "alike", median, [2.0] * 6, "median", bootstrap_iters=500, within=ScoreRange(0.0, 5.0))
    assert (alike.stderr, alike.interval, alike.certainty.no_interval) == (0.0, None, "no spread")
    assert one(tmp_path / "b", median, values, "median", bootstrap_iters=0).stderr == NOT_AVAILABLE


def test_an_estimate_brings_its_own_error_and_parts_of_the_results(tmp_path: Path) -> None:
    estimate = Estimate(np.float32(0.5), np.float32(0.25), {"tasks": {"a": 1}})  # type: ignore[arg-type]
    result = one(tmp_path / "a", lambda values: estimate)
    assert (result.value, result.stderr, result.stderr_clt) == (0.5, 0.25, NOT_AVAILABLE)
    assert type(result.value) is float and type(result.stderr) is float
    assert result.details == {"tasks": {"a": 1}}
    assert result.interval is not None and result.interval.low == pytest.approx(0.5 - stats.quantile(7) * 0.25)
    bounded = one(tmp_path / "c", lambda values: estimate, within=SHARE)
    assert bounded.interval is not None and bounded.interval.low > 0 and bounded.interval.high < 1
    undefined = one(tmp_path / "b", lambda values: Estimate(0.5, None))
    assert (undefined.value, undefined.stderr, undefined.interval) == (0.5, NOT_AVAILABLE, None)


def test_a_withheld_total_shows_its_partial_value_apart(tmp_path: Path) -> None:
    result = one(tmp_path, lambda values: Withheld(Estimate(0.7, 0.1, {"part": 1}), "3 tasks need a judge"))
    assert (result.value, result.partial, result.withheld_reason) == (None, 0.7, "3 tasks need a judge")
    assert (result.stderr, result.details) == (0.1, {"part": 1})


@for_each(
    ("made", "plain"),
    [(np.float32(0.5), 0.5), (np.int64(7), 7), (np.array([1, 2]), [1, 2]), ({"a": 1}, {"a": 1}), (None, None)],
)
def test_values_of_numpy_become_plain_numbers(tmp_path: Path, made: Any, plain: Any) -> None:
    result = one(tmp_path, lambda values: made)
    assert result.value == plain and type(result.value) is type(plain)
    assert not result.withheld_reason


def test_failures_beyond_the_budget_withhold(tmp_path: Path) -> None:
    task = FakeTask(10)
    records = [*values_of(task, "acc", [1.0] * 8), failed(task, 8, "timeout"), failed(task, 9, "timeout")]
    strict = aggregated(tmp_path / "a", task, records)
    assert (strict.metrics[0].value, strict.metrics[0].partial) == (None, 1.0)
    assert strict.metrics[0].withheld_reason == "2 of 10 failed"
    assert strict.outcome.reasons == {"failed: timeout": 2}
    lenient = aggregated(tmp_path / "b", task, records, error_budget=0.2)
    assert (lenient.metrics[0].value, lenient.metrics[0].n, lenient.outcome.withheld) == (1.0, 8, "")


def test_documents_never_asked_are_not_asked_for_the_reason_given(tmp_path: Path) -> None:
    task = FakeTask(5)
    result = aggregated(tmp_path, task, values_of(task, "acc", [1.0, 1.0]), "given up", error_budget=1.0)
    assert (result.outcome.scored, result.outcome.failed, result.outcome.not_asked) == (2, 0, 3)
    assert result.outcome.reasons == {"not asked: given up": 3}
    assert (result.metrics[0].value, result.metrics[0].partial) == (None, 1.0)
    assert result.metrics[0].withheld_reason == "0 failed and 3 not asked of 5"


def test_an_interrupted_run_has_no_score_even_where_all_is_scored(tmp_path: Path) -> None:
    task = FakeTask(2)
    result = aggregated(tmp_path, task, values_of(task, "acc", [1.0, 0.0]), interrupted=True)
    assert (result.metrics[0].value, result.metrics[0].partial) == (None, 0.5)
    assert result.metrics[0].withheld_reason == "the run was interrupted"


def test_unscored_documents_lower_the_coverage_not_the_score(tmp_path: Path) -> None:
    task = FakeTask(4)
    absent = scored(task, 3, PipelineScore("none", None, {}, "unscored", "no judge"))
    result = aggregated(tmp_path, task, [*values_of(task, "acc", [1.0] * 3), absent])
    assert (result.metrics[0].value, result.outcome.coverage) == (1.0, 0.75)
    assert result.outcome.reasons == {"unscored: no judge": 1}


def test_nothing_scored_is_no_zero(tmp_path: Path) -> None:
    task = FakeTask(1)
    absent = scored(task, 0, PipelineScore("none", None, {}, "unscored", "no judge"))
    result = aggregated(tmp_path, task, [absent]).metrics[0]
    assert (result.value, result.n, result.withheld_reason) == (None, 0, "nothing was scored")


def test_a_broken_aggregation_keeps_the_others(tmp_path: Path) -> None:
    def broken(values: list[float]) -> float:
        raise ZeroDivisionError("no weights")

    task = FakeTask(2)
    task.metrics = (metric("bad", broken), metric("good", mean, "mean"))
    records = [scored(task, n, PipelineScore("none", "x", {"bad": 1.0, "good": 1.0})) for n in range(2)]
    bad, good = aggregated(tmp_path, task, records).metrics
    assert good.value == 1.0 and not good.broken
    assert bad.broken and bad.value is None
    assert "'bad' raised ZeroDivisionError: no weights" in bad.withheld_reason


def test_every_pipeline_has_its_own_row_and_documents_stand_in_order(tmp_path: Path) -> None:
    seen: dict[str, list[float]] = {}

    def note(values: list[float]) -> float:
        seen[f"{len(seen)}"] = values
        return values[0]

    task = FakeTask(3)
    task.pipelines, task.metrics = ("first", "second"), (metric("m", note),)
    records = [
        scored(task, n, PipelineScore("first", "x", {"m": float(n)}), PipelineScore("second", "x", {"m": 10.0 + n}))
        for n in (2, 0, 1)
    ]
    result = aggregated(tmp_path, task, records)
    assert [(row.filter, row.value) for row in result.metrics] == [("first", 0.0), ("second", 10.0)]
    assert seen == {"0": [0.0, 1.0, 2.0], "1": [10.0, 11.0, 12.0]}


def test_repeats_have_stability_and_errors_over_documents(tmp_path: Path) -> None:
    task = FakeTask(3, repeats=2)
    each = [[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
    records = [
        scored(
            task, n, PipelineScore("none", "x", {"acc": mean(row)}, per_answer=tuple({"acc": v} for v in row)),
            answers=(answer(), answer()),
        )
        for n, row in enumerate(each)
    ]  # fmt: skip
    result = aggregated(tmp_path, task, records)
    row = result.metrics[0]
    assert row.stability == stats.stability(each)
    assert row.stability is not None and row.stability.consistency_rate == pytest.approx(2 / 3)
    assert row.stderr == pytest.approx(stats.mean_stderr([1.0, 0.5, 0.0]))
    assert result.tally.answers == 6


def test_tokens_and_right_answers_are_added_up(tmp_path: Path) -> None:
    task = FakeTask(3)
    records = values_of(task, "acc", [1.0, -1.0, 0.5])
    records[2]["answers"] = [{"value": "said", "input": "asked"}]
    tally = aggregated(tmp_path, task, records).tally
    assert (tally.documents, tally.documents_with_tokens) == (3, 2)
    assert (tally.input_tokens, tally.output_tokens, tally.reasoning_tokens) == (6, 4, 0)
    assert tally.correct == 1.5


def test_the_hash_of_the_task_depends_on_its_documents(tmp_path: Path) -> None:
    task = FakeTask(2)
    records = values_of(task, "acc", [1.0, 1.0])
    same = aggregated(tmp_path / "a", task, records).task_hash
    assert aggregated(tmp_path / "b", task, list(reversed(records))).task_hash == same
    records[1]["doc_hash"] = "f" * 64
    assert aggregated(tmp_path / "c", task, records).task_hash != same


def test_a_value_that_is_no_number_has_no_error(tmp_path: Path) -> None:
    assert one(tmp_path / "a", lambda values: {"by": "type"}).stderr_clt == NOT_AVAILABLE
    result = one(tmp_path / "b", lambda values: math.nan)
    assert result.stderr_clt == NOT_AVAILABLE and result.interval is None


def records_of(task: FakeTask, *answers: Answer) -> list[dict[str, Any]]:
    score = PipelineScore("none", "said", {"acc": 0.0})
    return [scored(task, number, score, answers=(one,)) for number, one in enumerate(answers)]


def test_answers_that_are_none_or_cut_off_are_counted(tmp_path: Path) -> None:
    task = FakeTask(7)
    answers = [
        answer(),
        answer(" \n"),
        answer("", finish_reason="length"),
        answer("", finish_reason="content_filter"),
        answer("I cannot", finish_reason="content_filter"),
        answer("and so", finish_reason="length"),
        answer([(-1.0, False)], finish_reason=None),
    ]
    result = aggregated(tmp_path, task, records_of(task, *answers))
    assert result.outcome.answers == AnswerCounts(total=7, blank=2, filtered=2, truncated=2)
    assert result.outcome.answers.described() == "2 blank (28.6%), 2 filtered (28.6%), 2 truncated (28.6%)"
    assert result.metrics[0].value == 0.0


def test_completed_and_truncated_answers_are_scored_apart_with_the_bounds_of_what_is_not_known(tmp_path: Path) -> None:
    task = FakeTask(4)
    values = [(1.0, "stop"), (0.0, "stop"), (1.0, "length"), (0.0, "length")]
    records = [
        scored(
            task, number, PipelineScore("none", "said", {"acc": value}), answers=(answer("x", finish_reason=reason),)
        )
        for number, (value, reason) in enumerate(values)
    ]
    found = aggregated(tmp_path / "a", task, records).metrics[0].truncation
    assert found is not None
    assert found.completed is not None
    assert (found.completed.value, found.completed.n, found.truncated.value, found.truncated.n) == (0.5, 2, 0.5, 2)
    assert (found.low, found.high) == (0.25, 0.75)
    alone = aggregated(tmp_path / "b", task, records[2:]).metrics[0].truncation
    assert alone is not None
    assert (alone.completed, alone.low, alone.high) == (None, 0.0, 1.0)
    assert aggregated(tmp_path / "c", task, records[:2]).metrics[0].truncation is None


def test_a_number_that_is_no_mean_over_documents_has_no_bounds(tmp_path: Path) -> None:
    task = FakeTask(3)
    task.metrics = (MetricDefinition("acc", max, None, True),)
    records = records_of(task, answer(finish_reason="length"), answer(), answer())
    for number, record in enumerate(records):
        record["scores"][0]["metrics"]["acc"] = [0.1, 0.9, 0.3][number]
    assert aggregated(tmp_path, task, records).metrics[0].truncation is None


def with_missing(folder: Path, right: int, of: int, *absent: str, **facts: Any) -> MetricResult:
    """A metric over right and wrong answers, and documents that failed or could not be scored."""
    task = FakeTask(of + len(absent))
    function = facts.pop("function", mean)
    task.metrics = (structs.replace(metric("m", function), score_range=facts.pop("within", SHARE)),)
    task.cluster_key = facts.pop("cluster_key", None)
    values = facts.pop("values", [float(number < right) for number in range(of)])
    records = values_of(task, "m", values)
    for number, how in enumerate(absent, start=of):
        unscored = PipelineScore("none", "said", {}, "unscored", "no judge")
        records.append(failed(task, number, "timeout") if how == "failed" else scored(task, number, unscored))
    return aggregated(folder, task, records, error_budget=0.5, **facts).metrics[0]


def test_bounds_hold_whatever_documents_without_a_score_would_score(tmp_path: Path) -> None:
    absent = ["failed"] * 35 + ["unscored"] * 5
    found = with_missing(tmp_path / "a", 295, 360, *absent)
    bounds = found.missing_bounds
    assert bounds is not None and bounds.low is not None and bounds.high is not None
    least, greatest = (
        stats.score_interval(
            right / 400, stats.MeanSpread.of_scores([1.0] * right + [0.0] * (400 - right), SHARE), SHARE
        )
        for right in (295, 335)
    )
    assert isinstance(least, stats.Interval) and isinstance(greatest, stats.Interval)
    assert (bounds.n, bounds.low, bounds.high) == (40, pytest.approx(least.low), pytest.approx(greatest.high))
    assert found.interval is not None and bounds.low < found.interval.low < found.interval.high < bounds.high
    assert with_missing(tmp_path / "b", 295, 360).missing_bounds is None


def test_bounds_of_clusters_are_wider(tmp_path: Path) -> None:
    values = [{"score": float(number < 240), "video": number // 8} for number in range(360)]
    bounds = []
    for key in (None, "video"):
        facts = {"values": values, "cluster_key": key, "function": lambda found: mean([one["score"] for one in found])}
        bounds.append(with_missing(tmp_path / str(key), 0, 360, "failed", "failed", **facts).missing_bounds)
    ends = [(one.low, one.high) for one in bounds if one is not None and one.low is not None and one.high is not None]
    assert len(ends) == 2 and ends[1][0] < ends[0][0] - 0.03 and ends[1][1] > ends[0][1] + 0.03


@for_each(
    ("facts", "reason"),
    [
        ({"within": ScoreRange(0.0, math.inf), "values": [0.5] * 9 + [2.0]}, "no range with two ends is stated"),
        ({"within": SHARE, "values": [0.5] * 9 + [2.0]}, "a score lies outside of the range, 0 to 1"),
    ],
)
def test_scores_without_a_range_have_no_bounds(tmp_path: Path, facts: dict[str, Any], reason: str) -> None:
    bounds = with_missing(tmp_path, 0, 10, "failed", **facts).missing_bounds
    assert bounds is not None
    assert (bounds.n, bounds.low, bounds.high, bounds.reason) == (1, None, None, reason)


def test_other_numbers_than_means_and_withheld_scores_have_no_bounds(tmp_path: Path) -> None:
    task = FakeTask(4)
    task.metrics = (structs.replace(metric("m", max), score_range=SHARE),)
    records = [*values_of(task, "m", [0.1, 0.9, 0.3]), failed(task, 3, "timeout")]
    bounds = aggregated(tmp_path / "a", task, records, error_budget=0.5).metrics[0].missing_bounds
    assert bounds is not None and (bounds.low, bounds.reason) == (None, "not a mean over documents")
    assert aggregated(tmp_path / "b", task, records).metrics[0].missing_bounds is None


@for_each("finish", ["stop", "content_filter", "tool_calls", "length", None])
def test_a_score_that_rests_on_no_answer_is_withheld(tmp_path: Path, finish: str | None) -> None:
    task = FakeTask(2)
    records = records_of(task, answer("", finish_reason=finish), answer("\t", finish_reason=finish))
    result = aggregated(tmp_path / "a", task, records)
    assert (result.metrics[0].value, result.metrics[0].partial) == (None, 0.0)
    assert result.metrics[0].withheld_reason == "all 2 answers are blank or filtered"
    allowed = aggregated(tmp_path / "b", task, records, allow_blank=True)
    assert (allowed.metrics[0].value, allowed.outcome.withheld) == (0.0, "")


def test_models_that_were_served_are_counted(tmp_path: Path) -> None:
    task = FakeTask(3)
    result = aggregated(tmp_path, task, records_of(task, answer(model="m"), answer(model="m-2026"), answer()))
    assert result.tally.served == {"m": 1, "m-2026": 1}


def declared(task: FakeTask, *names: str) -> FakeTask:
    task.metrics = tuple(metric(name, mean, "mean") for name in names)
    return task


def test_a_declared_metric_that_no_document_emitted_is_an_error(tmp_path: Path) -> None:
    task = declared(FakeTask(3), "exact_match")
    (found,) = aggregated(tmp_path, task, values_of(task, "exactmatch", [1.0, 0.0, 1.0])).metrics
    assert (found.value, found.broken) == (None, True)
    assert "declares 'exact_match'" in found.withheld_reason and "returned 'exactmatch'" in found.withheld_reason


def test_a_metric_of_documents_that_a_limit_left_out_is_none(tmp_path: Path) -> None:
    task = declared(FakeTask(9), "perception", "cognition")
    store = store_of(tmp_path, *values_of(task, "perception", [1.0, 0.0]))
    first, second = aggregate_task(plan_task(task, 2, 0), store, AggregateOptions()).metrics
    store.close()
    assert first.value == 0.5
    assert (second.value, second.broken) == (None, False)
    assert "no document asked has it" in second.withheld_reason


@for_each("others", [(), ("undeclared",)])
def test_a_metric_that_only_other_data_have_is_not_available_and_noted(tmp_path: Path, others: tuple[str, ...]) -> None:
    task = declared(FakeTask(2), "perception", "cognition", "planning")
    records = [
        scored(task, number, PipelineScore("none", "x", {"perception": 1.0, **dict.fromkeys(others, 0.0)}))
        for number in (0, 1)
    ]
    first, *rest = aggregated(tmp_path, task, records).metrics
    assert (first.value, first.notes) == (1.0, ())
    for one, name in zip(rest, ("cognition", "planning"), strict=True):
        assert (one.metric, one.value, one.broken, one.n) == (name, None, False, 0)
        (note,) = one.notes
        assert (
            f"'{name}' is declared" in note and "'perception'" in note and all(repr(other) in note for other in others)
        )


def test_a_metric_whose_parts_are_missing_everywhere_is_no_error(tmp_path: Path) -> None:
    task = declared(FakeTask(2), "acc", "judged")
    lacking = [
        scored(task, number, PipelineScore("none", "x", {"acc": 1.0}, "unscored", "no judge")) for number in (0, 1)
    ]
    result = aggregated(tmp_path, task, lacking)
    assert [(one.value, one.broken) for one in result.metrics] == [(1.0, False), (None, False)]


def _named(scores: Sequence[float], clusters: Sequence[str] = (), scale: float = 100.0) -> Any:
    """An aggregation of values without a number that the engine knows, as popular tasks have."""
    return lambda values: estimates.mean(scores, scale, clusters=clusters)


@for_each(("scale", "right"), [(100.0, 1.0), (100.0, 0.0), (1.0, 1.0), (1.0, 0.0)])
def test_an_estimate_over_documents_all_right_or_all_wrong_has_wilsons_interval(
    tmp_path: Path, scale: float, right: float
) -> None:
    result = one(tmp_path, _named([right] * 59, scale=scale), [{"answer": "A"}] * 59)
    assert (result.value, result.stderr, result.certainty.no_interval) == (scale * right, 0.0, "")
    assert result.interval is not None and result.interval.method == "wilson"
    near, far = (0.9389, 1.0) if right else (0.0, 0.0611)
    assert (result.interval.low / scale, result.interval.high / scale) == pytest.approx((near, far), abs=1e-4)


def test_an_estimate_over_scores_has_the_interval_of_the_scores(tmp_path: Path) -> None:
    values = [{"answer": "A"}] * 8
    mixed = one(tmp_path / "mixed", _named([1.0, 0, 1, 1, 0, 1, 1, 1]), values).interval
    plain = stats.score_interval(0.75, stats.MeanSpread(math.nan, 7, 8, is_binary=True), SHARE)
    assert mixed is not None and isinstance(plain, stats.Interval)
    assert (mixed.low, mixed.high) == pytest.approx((100 * plain.low, 100 * plain.high))
    inner = one(tmp_path / "inner", _named([0.5] * 8), values)
    assert (inner.interval, inner.certainty.no_interval) == (None, "no spread")
    stated = one(tmp_path / "stated", _named([0.5] * 8), values, within=ScoreRange(0.0, 100.0))
    assert stated.interval is not None and stated.interval.low < 50 < stated.interval.high
    wrong = one(tmp_path / "wrong", _named([0.5, 0.7] * 4), values, within=SHARE)
    assert (wrong.interval, wrong.certainty.no_interval) == (None, "a score lies outside of the range, 0 to 1")


def test_an_estimate_over_clusters_has_their_interval(tmp_path: Path) -> None:
    clusters, values = [name for name in "abcdefgh" for _ in range(4)], [{"answer": "A"}] * 32
    alike = one(tmp_path / "alike", _named([1.0] * 32, clusters), values).interval
    eight = stats.score_interval(100.0, stats.MeanSpread(0.0, 7, 8, silent=1 / 8), ScoreRange(0.0, 100.0))
    assert isinstance(eight, stats.Interval) and alike == eight
    scores = [1.0, 1, 1, 0] * 4 + [0.0, 0, 1, 0] * 4
    mixed = one(tmp_path / "mixed", _named(scores, clusters), values)
    wide = stats.score_interval(
        50.0, stats.MeanSpread.clustered([100 * score for score in scores], clusters), ScoreRange(0.0, 100.0)
    )
    assert mixed.interval == wide


def test_reduced_metrics_keep_within_the_range_of_right_and_wrong_answers(tmp_path: Path) -> None:
    task = FakeTask(3)
    reduced = [MetricDefinition(f"m_{name}", mean, "mean", True, reduces="m") for name in ("pass@2", "maj@2")]
    task.metrics = (metric("m", mean, "mean"), *reduced)
    records = [
        scored(task, number, PipelineScore("none", "said", values, per_answer=[{"m": one} for one in (1, 0, right)]))
        for number, (right, values) in enumerate(
            [(1, {"m": 2 / 3, "m_pass@2": 1.0}), (0, {"m": 1 / 3, "m_pass@2": 2 / 3}), (0, {"m": 1 / 3})]
        )
    ]
    whole, first = aggregated(tmp_path, task, records).metrics
    assert (first.metric, first.value, first.n) == ("m_pass@2", pytest.approx(5 / 6), 2)
    assert first.interval is not None and first.interval.high <= 1.0
    assert whole.notes == (
        "'m_pass@2' is based on 2 of 3 documents: scoring gave the answers of 1 documents no number each, or extracted "
        "no answer",
        "'m_maj@2' is left out: scoring gave the answers of 3 documents no number each, or extracted no answer",
    )


def repeated(folder: Path, documents: Sequence[Sequence[Sequence[float]]], name: str = "none") -> MetricResult:
    """One metric over documents with these scores, by document, answer and asking of the judge."""
    task = FakeTask(len(documents))
    task.metrics, task.pipelines = (structs.replace(metric("m", mean, "mean"), score_range=SHARE),), (name,)
    records = []
    for number, answers in enumerate(documents):
        first = [each[0] for each in answers]
        value = sum(first) / len(first) if name == "none" else max(first)
        score = PipelineScore(
            name, "said", {"m": value},
            per_answer=[{"m": one} for one in first] if len(answers) > 1 else (),
            per_verdict=[[{"m": one} for one in each] for each in answers] if len(answers[0]) > 1 else (),
        )  # fmt: skip
        records.append(scored(task, number, score))
    return aggregated(folder, task, records).metrics[0]


def test_the_variance_is_split_by_its_sources(tmp_path: Path) -> None:
    answers = [[[1.0], [0.0]], [[1.0], [1.0]], [[0.0], [0.0]], [[1.0], [0.0]]]
    found = repeated(tmp_path / "a", answers)
    variance = found.variance
    assert variance is not None
    assert (variance.split.answers, variance.split.judge) == (0.25, None)
    assert variance.like_these == found.certainty
    assert variance.again.spread is not None and variance.again.interval is not None
    assert variance.again.spread.error == pytest.approx(math.sqrt(0.5) / 4)
    assert variance.rejudged.no_interval == "no repeats of the judge"
    assert repeated(tmp_path / "b", answers, "best of them").variance is None  # not the mean over the answers
    assert repeated(tmp_path / "c", [[[1.0]], [[0.0]]]).variance is None


def test_a_judge_asked_twice_about_one_answer_has_a_variance(tmp_path: Path) -> None:
    variance = repeated(tmp_path / "a", [[[1.0, 0.0]], [[1.0, 1.0]], [[0.0, 0.0]]]).variance
    assert variance is not None
    assert (variance.split.answers, variance.split.judge) == (None, pytest.approx(0.5 / 3))
    assert variance.again.no_interval == "no repeats"
    assert variance.rejudged.spread is not None
    assert variance.rejudged.spread.error == pytest.approx(math.sqrt(0.5) / 3)
    both = repeated(tmp_path / "b", [[[1.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]).variance
    assert both is not None and both.split.answers is not None
    assert both.again.spread is not None and both.again.spread.error == 0.0
    assert both.rejudged.spread is not None and both.rejudged.spread.error == pytest.approx(math.sqrt(0.5) / 4)


def test_documents_without_a_value_are_counted_by_stratum(tmp_path: Path) -> None:
    class Strata(FakeTask):
        def strata(self, doc_ids: Sequence[int]) -> Sequence[str]:
            return ["ab"[doc_id % 2] for doc_id in doc_ids]

    for kind, expected in ((FakeTask, {"": 3}), (Strata, {"a": 2, "b": 1})):
        task = kind(8)
        records = [
            failed(task, number, "timeout") if number in (0, 2, 5)
            else scored(task, number, PipelineScore("none", "x", {"acc": 1.0}))
            for number in range(8)
        ]  # fmt: skip
        store = store_of(tmp_path / kind.__name__, *records)
        found = aggregate_task(plan_task(task, None, 0), store, AggregateOptions(error_budget=0.5))
        store.close()
        assert found.missing == expected
