from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from lmms_eval.compare.comparing import compare_runs
from lmms_eval.compare.runs import TaskRows
from lmms_eval.compare.verdicts import CompareOptions, Difference
from lmms_eval.errors import DataError, UsageError
from lmms_eval.stats.differences import PairOptions, compare_pairs
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each
from tests.compare.runs import column, run, task

FAST = {"draws": 500}


def rows(first: Any, second: Any, **options: Any) -> Sequence[Difference]:
    """The rows of two runs that have one task each."""
    compared = compare_runs([run("a", first), run("b", second)], CompareOptions(**{**FAST, **options}))
    return compared.pairs[0].rows


def right(count: int, of: int) -> list[float | None]:
    return [float(number < count) for number in range(of)]


def test_a_difference_with_interval_and_p_of_the_pairs() -> None:
    first, second = right(30, 40), right(20, 40)
    (row,) = rows(task(first), task(second))
    expected = compare_pairs(first, second, None, PairOptions(draws=500, within=ScoreRange(0, 1)))
    assert (row.first, row.second, row.value) == (0.75, 0.5, 0.25)
    assert row.interval is not None
    assert (row.interval.low, row.interval.high, row.p) == (expected.interval.low, expected.interval.high, expected.p)
    assert (row.unit, row.test, row.changed) == ("percent", "mcnemar exact", (10, 0))
    assert row.detectable is not None and 0 < row.detectable < 0.5


@for_each(
    ("first", "second", "facts", "verdict"),
    [
        (right(35, 40), right(15, 40), {}, "better"),
        (right(15, 40), right(35, 40), {}, "worse"),
        (right(35, 40), right(15, 40), {"higher_is_better": False}, "worse"),
        (right(15, 40), right(35, 40), {"higher_is_better": False}, "better"),
        (right(21, 40), right(20, 40), {}, "cannot tell"),
    ],
)
def test_verdicts_follow_the_direction(first: Any, second: Any, facts: dict[str, Any], verdict: str) -> None:
    (row,) = rows(task([column(first, **facts)]), task([column(second, **facts)]))
    assert row.verdict == verdict
    assert (row.needed is not None) == (verdict == "cannot tell")


def test_a_direction_of_one_run_holds_and_two_that_disagree_are_an_error() -> None:
    lower, unknown = (column(right(30, 40), higher_is_better=known) for known in (False, None))
    (row,) = rows(task([lower]), task([unknown]))
    assert row.higher_is_better is False
    with pytest.raises(DataError, match="higher is better in one of a and b"):
        rows(task([lower]), task([column(right(30, 40), higher_is_better=True)]))


def nearly_alike(count: int = 400) -> tuple[list[float | None], list[float | None]]:
    first = [float(number % 2) for number in range(count)]
    second = list(first)
    second[0], second[1], second[3] = 1.0, 0.0, 0.0
    return [*first], [*second]


def test_equivalent_within_the_margin() -> None:
    first, second = nearly_alike()
    (row,) = rows(task(first), task(second), margin=0.02)
    assert row.verdict == "equivalent"
    (row,) = rows(task(first), task(second))
    assert row.verdict == "cannot tell"
    (row,) = rows(task(first), task(second), margin=0.003)
    assert row.verdict == "cannot tell"
    assert row.needed is not None and row.needed > 400


def test_a_real_difference_within_the_margin_is_equivalent_and_says_so() -> None:
    count = 3000
    second = [float(number % 2) for number in range(count)]
    first = [1.0 if number in range(0, 40, 2) else score for number, score in enumerate(second)]
    (row,) = rows(task([*first]), task([*second]), margin=0.05)
    assert row.p is not None and row.p < 0.001
    assert row.verdict == "equivalent"
    assert "there is a difference, but within the margin" in row.notes


def test_documents_needed_would_tell() -> None:
    first, second = right(24, 40), [*right(20, 37), 0.0, 1.0, 1.0]
    (row,) = rows(task(first), task(second))
    assert row.verdict == "cannot tell" and row.needed is not None
    times = math.ceil(row.needed / 40) * 2
    (more,) = rows(task(first * times), task(second * times))
    assert more.verdict == "better"


def test_holm_and_benjamini_hochberg_over_all_rows() -> None:
    tasks = [
        [task(right(count, 40), name) for name, count in (("x", 30), ("y", 27), ("z", 21))],
        [task(right(20, 40), name) for name in "xyz"],
    ]
    compared = compare_runs([run("a", *tasks[0]), run("b", *tasks[1])], CompareOptions(**FAST))
    ps = [row.p for row in compared.pairs[0].rows]
    assert ps == sorted(ps)  # type: ignore[type-var]
    assert [row.p_holm for row in compared.pairs[0].rows] == pytest.approx([3 * ps[0], 2 * ps[1], 1.0])  # type: ignore[operator]
    assert compared.pairs[0].rows[1].p_bh == pytest.approx(1.5 * ps[1])  # type: ignore[operator]


def test_the_verdict_follows_the_corrected_p() -> None:
    first, second = task(right(26, 40)), task(right(20, 40))
    (row,) = rows(first, second)
    assert row.p is not None and 0.02 < row.p < 0.05 and row.verdict == "better"
    many = [[task(right(count, 40), f"t{number}") for number in range(3)] for count in (26, 20)]
    compared = compare_runs([run("a", *many[0]), run("b", *many[1])], CompareOptions(**FAST))
    assert {row.verdict for row in compared.pairs[0].rows} == {"cannot tell"}


def test_all_pairs_of_three_runs_are_one_family_or_those_with_the_reference() -> None:
    runs = [run(name, task(right(count, 40))) for name, count in (("a", 30), ("b", 20), ("c", 21))]
    compared = compare_runs(runs, CompareOptions(**FAST))
    assert [(pair.first, pair.second) for pair in compared.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert compared.pairs[0].rows[0].p_holm == pytest.approx(3 * compared.pairs[0].rows[0].p)  # type: ignore[operator]
    against = compare_runs(runs, CompareOptions(**FAST, reference="c"))
    assert [(pair.first, pair.second) for pair in against.pairs] == [("a", "c"), ("b", "c")]
    by_path = compare_runs(runs, CompareOptions(**FAST, reference="/runs/b.jsonl"))
    assert [pair.second for pair in by_path.pairs] == ["b", "b"]
    with pytest.raises(UsageError, match="--reference d: name one of the runs: a, b, c"):
        compare_runs(runs, CompareOptions(reference="d"))


def test_documents_without_a_score_are_counted_and_never_paired_as_0() -> None:
    first = task([1, 1, None, None, 1, 0], statuses=["scored"] * 2 + ["failed", "unscored"] + ["scored"] * 2)
    second = task([1, 0, 1, 1, 1])
    (row,) = rows(first, second)
    assert (row.first, row.second, row.pairing.paired, row.pairing.only_first) == (1.0, 2 / 3, 3, 1)
    assert (row.pairing.failed, row.pairing.unscored) == ((1, 0), (1, 0))
    assert row.sensitivity is not None
    assert (row.sensitivity.difference, row.sensitivity.n) == (pytest.approx(3 / 5 - 4 / 5), 5)


def test_sensitivity_takes_the_worst_score_of_the_range_and_is_silent_without_one() -> None:
    graded = {"score_range": ScoreRange(1, 5)}
    (row,) = rows(task([column([5, None, 4, 3], **graded)]), task([column([5, 2, 4, 2], **graded)]))
    assert row.sensitivity is not None and row.sensitivity.difference == pytest.approx((13 - 13) / 4)
    errors = {"score_range": ScoreRange(0, 1), "higher_is_better": False}
    (row,) = rows(task([column([0, None, 0.5], **errors)]), task([column([0, 0, 0.25], **errors)]))
    assert row.sensitivity is not None and row.sensitivity.difference == pytest.approx((1.5 - 0.25) / 3)
    free = {"score_range": None, "higher_is_better": False}
    (row,) = rows(task([column([10, None, 11], **free)]), task([column([9, 10, 12], **free)]))
    assert row.sensitivity is None
    (row,) = rows(task(right(3, 5)), task(right(2, 5)))
    assert row.sensitivity is None


def without(scores: Sequence[float | None], *missing: int) -> TaskRows:
    """A task in which some documents failed."""
    kept = [None if number in missing else score for number, score in enumerate(scores)]
    return task(kept, statuses=["failed" if number in missing else "scored" for number in range(len(scores))])


@for_each(
    ("missing", "verdict"),
    [((), "better"), ((39,), "better"), (tuple(range(30, 40)), "better"), (tuple(range(10)), "cannot tell")],
    ids=["none", "one wrong answer", "ten wrong answers", "ten right answers"],
)
def test_a_verdict_survives_whatever_missing_documents_would_score(missing: tuple[int, ...], verdict: str) -> None:
    (row,) = rows(without(right(30, 40), *missing), task(right(20, 40)))
    assert (row.verdict, row.p_holm is not None and row.p_holm < 0.01) == (verdict, True)
    note = "depends on 10 documents without a score: better over the others"
    assert (note in row.notes, row.needed) == (verdict == "cannot tell", None)
    (reverse,) = rows(task(right(20, 40)), without(right(30, 40), *missing))
    assert reverse.verdict == ("worse" if verdict == "better" else verdict)


def test_missing_documents_of_the_other_run_count_as_its_best_ones() -> None:
    (row,) = rows(task(right(30, 40)), without(right(20, 40), *range(30, 37)))
    assert row.verdict == "cannot tell"
    assert "depends on 7 documents without a score: better over the others" in row.notes
    assert row.sensitivity is not None and row.sensitivity.low is not None and row.sensitivity.high is not None
    assert (row.sensitivity.low, row.sensitivity.high) == (pytest.approx(3 / 40), pytest.approx(10 / 40))


def test_lower_scores_that_are_better_and_ranges_without_an_end() -> None:
    facts = {"higher_is_better": False, "statuses": ["scored"] * 39 + ["failed"]}
    few = task([column([*right(10, 39), None], higher_is_better=False)], statuses=facts["statuses"])
    (row,) = rows(few, task([column(right(30, 40), higher_is_better=False)]))
    assert row.verdict == "better"
    free = {"higher_is_better": False, "score_range": ScoreRange(0, math.inf)}
    few = task([column([*right(10, 39), None], **free)], statuses=facts["statuses"])
    (row,) = rows(few, task([column(right(30, 40), **free)]))
    assert row.verdict == "cannot tell" and row.sensitivity is None
    reason = "better over the others; scores have no range with two ends"
    assert f"depends on 1 document without a score: {reason}" in row.notes


def test_equivalence_survives_missing_documents_in_both_directions() -> None:
    first, second = nearly_alike()
    (row,) = rows(without(first, 50), task(second), margin=0.02)
    assert row.verdict == "equivalent"
    for sides in ((without(first, *range(50, 70)), task(second)), (task(first), without(second, *range(50, 70)))):
        (row,) = rows(*sides, margin=0.02)
        assert row.verdict == "cannot tell"
        assert "depends on 20 documents without a score: equivalent over the others" in row.notes


def test_documents_that_do_not_have_a_metric_are_not_missing() -> None:
    absent: list[float | None] = [None] * 40
    (row,) = rows(task([*right(30, 40), *absent]), task([*right(20, 40), *absent]))
    assert (row.verdict, row.sensitivity) == ("better", None)


def test_a_missing_document_is_in_the_cluster_that_the_other_run_names() -> None:
    names = [str(number // 4) for number in range(80)]
    first = structs.replace(without(right(60, 80), 79), clusters=[*names[:79], None])
    (row,) = rows(first, task(right(10, 80), clusters=names))
    assert row.verdict == "better"


def test_scores_outside_of_the_stated_range_are_said_and_need_none() -> None:
    (row,) = rows(task([0.5, 1.5, 0.2, 0.1]), task([0.4, 1.0, 0.3, 0.7]))
    assert row.unit == "" and row.interval is not None
    assert any("scores from 0.1 to 1.5 lie outside the stated range 0 to 1" in note for note in row.notes)


def test_ranges_that_differ_are_said() -> None:
    (row,) = rows(
        task([column([5, 3, 1], score_range=ScoreRange(0, 5))]), task([column([5, 5, 5], score_range=ScoreRange(1, 5))])
    )
    assert any("different ranges" in note for note in row.notes)


def test_constant_scores_one_document_and_nan_give_a_clear_row() -> None:
    (alike,) = rows(task([1.0] * 5), task([1.0] * 5))
    assert (alike.value, alike.verdict) == (0.0, "cannot tell") and alike.needed is None
    (one,) = rows(task([1.0]), task([0.0]))
    assert one.interval is None and one.no_interval == "n = 1" and one.verdict == "cannot tell"
    (gaps,) = rows(task([1.0, math.nan, 0.0, math.inf]), task([0.0, 1.0, 1.0, 1.0]))
    assert gaps.pairing.paired == 2 and "infinite scores count as none" in gaps.notes


def test_what_cannot_be_compared_is_an_error() -> None:
    with pytest.raises(UsageError, match="a and b cannot be compared: quiz: a and b have no document in common"):
        rows(task([1.0], ids=["x"]), task([1.0], ids=["y"]))
    with pytest.raises(UsageError, match=r"no metric in common \(a: acc,none; b: f1,none\)"):
        rows(task([1.0]), task([column([1.0], "f1")]))
    with pytest.raises(UsageError, match="nothing can be compared: quiz: no document has acc both"):
        rows(task([None, 1.0]), task([1.0, None]))
    with pytest.raises(UsageError, match="at least two runs"):
        compare_runs([run("a", task([1.0]))], CompareOptions())
    with pytest.raises(UsageError, match="--tasks: no run has w; they have: quiz"):
        rows(task([1.0]), task([1.0]), tasks=("w",))


def test_a_task_that_cannot_be_compared_is_a_note_where_others_can() -> None:
    runs = [
        run("a", task([1.0, 0.0]), task([1.0], "x"), task([0.0], "v")),
        run("b", task([1.0, 1.0]), task([None], "x")),
    ]
    compared = compare_runs(runs, CompareOptions(**FAST))
    assert [row.name for row in compared.pairs[0].rows] == ["quiz"]
    assert "x: no document has acc both in a and in b" in compared.notes
    assert "only a has v" in compared.notes


def test_columns_without_numbers_on_either_side_are_no_note() -> None:
    first, second = (task([column([1.0, 0.0]), column([None, None], "submission")]) for _ in "ab")
    compared = compare_runs([run("a", first), run("b", second)], CompareOptions(**FAST))
    assert compared.notes == ()


def test_columns_that_are_no_number_of_the_results_are_no_tests() -> None:
    first, second = (task([column([1.0, 0.0], reported=0.5), column([1.0, 0.0], "scored")]) for _ in "ab")
    compared = compare_runs([run("a", first), run("b", second)], CompareOptions(**FAST))
    assert [row.metric for row in compared.pairs[0].rows] == ["acc"]


def test_metrics_and_filters_are_chosen_and_mapped() -> None:
    first = task([column(right(3, 5)), column(right(4, 5), "f1")])
    second = task([column(right(2, 5), "hit", filter="strict")])
    (row,) = rows(first, second, metrics={"acc": "hit"})
    assert (row.metric, row.value) == ("acc", pytest.approx(0.2))
    assert "filter none of a is paired with strict of b" in row.notes


def test_numbers_that_are_no_means_are_said() -> None:
    (row,) = rows(task([column(right(3, 5), scale=0.0)]), task([column(right(2, 5))]))
    assert "means over documents, not the task's own number" in row.notes


def by(values: Sequence[str | None], scores: Any, **facts: Any) -> Any:
    return task(scores, metadata={"app": values}, **facts)


def test_cells_of_a_metadata_column_are_a_family_of_their_own() -> None:
    values = ["x"] * 40 + ["y"] * 40 + [None] * 5
    first = by(values, right(35, 40) + right(20, 40) + right(2, 5))
    second = task(right(15, 40) + right(19, 40) + right(2, 5))
    compared = compare_runs([run("a", first), run("b", second)], CompareOptions(**FAST, by=("app",)))
    cells = {row.cell: row for row in compared.pairs[0].cells["app"]}
    assert list(cells) == ["(none)", "x", "y"]
    assert cells["x"].verdict == "better" and cells["y"].verdict == "cannot tell"
    assert cells["x"].p_holm == pytest.approx(3 * cells["x"].p)  # type: ignore[operator]
    assert cells["x"].pairing.paired == 40
    assert cells["(none)"].notes == ("few documents (below 30)",) and cells["x"].notes == ()
    assert len(compared.pairs[0].rows) == 1


def test_a_column_of_the_second_run_alone_divides_too() -> None:
    compared = compare_runs(
        [run("a", task(right(2, 4), ids=["3", "2", "1", "0"])), run("b", by(["x", "x", "y", "y"], right(1, 4)))],
        CompareOptions(**FAST, by=("app",)),
    )
    cells = {row.cell: row for row in compared.pairs[0].cells["app"]}
    assert (cells["x"].first, cells["x"].second) == (0.0, 0.5)


def test_unknown_and_too_fine_columns_are_errors() -> None:
    with pytest.raises(UsageError, match="--by size: no task has such a column; they have: app"):
        rows(by(["x", "y"], right(1, 2)), task(right(1, 2)), by=("size",))
    fine = [str(number) for number in range(1001)]
    with pytest.raises(UsageError, match="--by app: 1001 different values in quiz"):
        rows(by(fine, right(9, 1001)), task(right(1, 1001)), by=("app",))


@for_each(
    ("choice", "message"),
    [
        ({"alpha": 0.0}, "--alpha 0"),
        ({"alpha": 1.5}, "--alpha 1.5"),
        ({"margin": 0.0}, "--margin 0"),
        ({"margin": math.nan}, "--margin nan"),
        ({"draws": 5}, "--draws 5"),
        ({"seed": -1}, "--seed -1"),
    ],
)
def test_numbers_out_of_their_range(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CompareOptions(**choice)


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    shift = np.repeat(rng.normal(size=60), 5)
    scores = {"score_range": None}
    first = task([column(list(shift), **scores)], clusters=[str(number // 5) for number in range(300)])
    second = task([column([0.0] * 300, **scores)])
    (clustered,) = rows(first, second)
    (plain,) = rows(task([column(list(shift), **scores)]), second)
    widths = [row.interval.high - row.interval.low for row in (clustered, plain) if row.interval]
    assert widths[0] > 1.8 * widths[1]


def test_numbers_of_documents_are_no_tests() -> None:
    def told(count: float, whole: float) -> TaskRows:
        columns = [column([1.0, 0.0, 1.0], reported=2 / 3), column([count] * 3, "scored", reported=whole)]
        return task(columns)

    assert [row.metric for row in rows(told(1.0, 3.0), told(1.0, 3.0))] == ["acc"]
    assert [row.metric for row in rows(told(1.0, 3.0), told(1.0, 3.0), metrics={"scored": "scored"})] == ["scored"]
    for first, second in (((1.0, 1.0), (1.0, 1.0)), ((1.0, 100.0), (1.0, 100.0)), ((1.0, 3.0), (0.5, 1.5))):
        assert [row.metric for row in rows(told(*first), told(*second))] == ["acc", "scored"]
    only = task([column([1.0] * 3, "scored", reported=3.0)])
    assert [row.metric for row in rows(only, only)] == ["scored"]
