from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from lmms_eval import stats
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError, LmmsEvalError
from lmms_eval.tasks.general_bench import summary
from lmms_eval.tasks.general_bench.facts import Metric, metrics
from lmms_eval.tasks.general_bench.levels.formulas import paper_score, paper_value
from lmms_eval.tasks.general_bench.measures.contract import mean
from lmms_eval.tasks.general_bench.scoring import ItemOutcome
from lmms_eval.tasks.general_bench.summary import TaskScore
from tests.cases import for_each
from tests.tasks.general_bench.toy_measures import (
    ACCURACY,
    BARE,
    ERROR,
    MEAN,
    NOISE,
    answered,
    facts_of,
    item,
    measure,
    raises,
    unanswered,
)

MAPPED = [metric for metric in metrics().values() if metric.mapping]


def test_what_is_not_there_is_counted() -> None:
    outcomes = [ItemOutcome(0, "answered", 100.0), ItemOutcome(1, "absent", 0.0, "gone"), unanswered(0.0)]
    found = summary.combine(item().facts, MEAN, outcomes)
    assert (found.answered, found.absent, found.expected, found.status) == (1, 1, 3, "partially answered")


# --- all items: official and strict


def test_a_mean() -> None:
    outcomes = [*answered(100.0, 100.0, 0.0), unanswered(0.0), unanswered(0.0, "no path")]
    found = summary.combine(ACCURACY, MEAN, outcomes)
    assert found.official == pytest.approx(200 / 3)
    assert found.strict == 40.0
    assert found.stderr == pytest.approx(stats.mean_stderr([100.0, 100.0, 0.0, 0.0, 0.0]))
    assert (found.answered, found.expected, found.failed, found.status) == (3, 5, 0, "partially answered")
    assert set(found.notes) == {"no prediction", "no path"}


def test_a_measure_with_a_state_for_unanswered_items() -> None:
    found = summary.combine(ACCURACY, measure(unanswered=lambda *_: 0.0), [*answered(80.0), unanswered(10.0)])
    assert (found.official, found.strict) == (80.0, 45.0)


def test_without_such_a_state_the_score_is_shared() -> None:
    found = summary.combine(ACCURACY, BARE, [*answered(80.0, 60.0), unanswered(), unanswered()])
    assert (found.official, found.strict) == (70.0, 35.0)
    assert found.stderr is not None and 0 < found.stderr < 10


@for_each("metric", MAPPED, ids=lambda metric: metric.key)
def test_the_mapped_score_of_a_metric_is_shared(metric: Metric) -> None:
    facts, value = facts_of(metric.key), 3.0 if metric.mapping != "complement" else 0.2
    found = summary.combine(facts, BARE, [*answered(value, value, value), unanswered()])
    assert found.official == pytest.approx(value)
    assert found.strict is not None
    assert paper_score(metric, found.strict) == pytest.approx(0.75 * paper_score(metric, value))
    assert (found.strict < value) == metric.higher_is_better


def test_an_unanswered_share_never_improves_a_value() -> None:
    """Beyond the domain of the mapping, too, where the score is 0 or 100."""
    wer, cider = facts_of("wer"), facts_of("cider")
    assert summary.combine(wer, BARE, [*answered(2.0), unanswered()]).strict == 2.0
    assert summary.combine(NOISE, BARE, [*answered(-4.0), unanswered()]).strict == -4.0
    assert summary.combine(cider, BARE, [*answered(150.0), unanswered()]).strict == 75.0
    assert summary.combine(ERROR, BARE, [*answered(0.0), unanswered()]).strict == pytest.approx(50 / math.log(3))


def test_no_answer_at_all() -> None:
    nothing = [unanswered(), unanswered()]
    assert summary.combine(ACCURACY, BARE, nothing).strict == 0.0
    assert summary.combine(ACCURACY, MEAN, [unanswered(0.0)] * 2).strict == 0.0
    error = summary.combine(ERROR, BARE, nothing)
    assert (error.official, error.strict, error.result(), error.status) == (None, None, None, "unanswered")
    for metric in (ACCURACY, ERROR):
        assert summary.combine(metric, BARE, nothing).official is None


def test_failed_items_withhold_the_value() -> None:
    outcomes = [*answered(100.0, 0.0), ItemOutcome("f", "failed", note="the mask is damaged")]
    found = summary.combine(ACCURACY, MEAN, outcomes)
    assert (found.official, found.strict, found.result()) == (None, None, None)
    assert (found.status, found.failed, found.answered) == ("failed", 1, 2)
    assert found.withheld == "1 of 3 items failed: the mask is damaged"


@for_each("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_a_failure(value: float) -> None:
    found = summary.combine(ACCURACY, measure(value=lambda _: value), answered(1.0, 2.0))
    assert (found.status, found.strict) == ("failed", None)
    assert "no number" in found.withheld


def test_a_value_that_cannot_be_computed_is_a_failure() -> None:
    found = summary.combine(ACCURACY, measure(value=raises(DataError("one class only"))), answered(1.0))
    assert (found.status, found.withheld) == ("failed", "one class only")
    found = summary.combine(ACCURACY, measure(value=raises(IndexError("list"))), answered(1.0))
    assert (found.status, found.withheld) == ("failed", "measure own: IndexError: list")
    with pytest.raises(NotEvaluated):
        summary.combine(ACCURACY, measure(value=raises(NotEvaluated("codebleu"))), answered(1.0))


def test_notes_are_the_commonest_three() -> None:
    notes = ["a", "b", "b", "c", "c", "c", "d", "d"]
    found = summary.combine(ACCURACY, MEAN, [unanswered(0.0, note) for note in notes])
    assert found.notes[0] == "c (3 items)"
    assert len(found.notes) == 3 and "a" not in found.notes


# --- errors and intervals


def test_the_error_of_a_value_that_is_no_mean_is_drawn() -> None:
    states = [float(number) for number in range(50)]
    found = summary.combine(ACCURACY, BARE, answered(*states))
    assert found.stderr == pytest.approx(stats.mean_stderr(states), rel=0.3)
    assert summary.combine(ACCURACY, BARE, answered(*states)) == found  # the same draws


def test_where_there_is_no_error() -> None:
    assert summary.combine(ACCURACY, BARE, answered(1.0)).stderr is None
    assert summary.combine(ACCURACY, measure(is_costly=True), answered(1.0, 2.0)).stderr is None
    assert summary.combine(ERROR, BARE, [*answered(1.0, 2.0), unanswered()]).stderr is None

    def one_class(states: Sequence[float]) -> float:
        if len(set(states)) == 1:
            raise LmmsEvalError("one class only")
        return mean(states)

    found = summary.combine(ACCURACY, measure(value=one_class), answered(1.0, 2.0))
    assert (found.strict, found.stderr) == (1.5, None)


def test_many_items_are_drawn_less_often() -> None:
    calls: list[int] = []

    def counted(states: Sequence[float]) -> float:
        calls.append(len(states))
        return mean(states)

    for size, draws in ((5, 100), (4000, 50), (20_000, 0)):
        calls.clear()
        summary.combine(ACCURACY, measure(value=counted), answered(*([1.0] * size)))
        assert len(calls) == draws + 1


# --- what becomes of a score


def test_the_result_for_the_table() -> None:
    found = summary.combine(ERROR, BARE, [*answered(10.0), unanswered()])
    strict, official = found.result(), found.result(is_strict=False)
    assert strict is not None and official is not None
    assert (strict.task_name, strict.metric, strict.unit) == (ERROR.name, ERROR.spelling, "raw")
    assert (strict.modality, strict.task_type) == (ERROR.modality, ERROR.paradigm)
    assert (strict.score, official.score) == (found.strict, 10.0)


def test_scores_survive_json() -> None:
    for found in (
        summary.combine(ACCURACY, MEAN, [*answered(100.0, 0.0), unanswered(0.0)]),
        summary.not_evaluated(ERROR, "mae", "weights", 7),
        summary.broken(NOISE, "psnr", "cut short"),
    ):
        assert TaskScore.from_dict(json.loads(json.dumps(found.as_dict()))) == found


def test_absent_and_broken_tasks() -> None:
    absent = summary.evaluated(raises(NotEvaluated("not evaluated: no weights")), NOISE, "psnr", 5)
    assert (absent.status, absent.withheld, absent.expected) == ("not evaluated", "not evaluated: no weights", 5)
    broken = summary.broken(NOISE, "psnr", "cut short", 5)
    assert (broken.status, broken.withheld, broken.failed) == ("failed", "cut short", 5)
    assert summary.broken(NOISE, "", "cut short").status == "failed"
    assert absent.result() is None and broken.result() is None


# --- the mapping and its inverse


@pytest.mark.parametrize("metric", MAPPED, ids=lambda metric: metric.key)
@given(share=st.floats(0.001, 0.999))
def test_a_score_has_the_value_that_scores_it(metric: Metric, share: float) -> None:
    value = paper_value(metric, 100 * share)
    assert metric.low <= value <= metric.high
    assert paper_score(metric, value) == pytest.approx(100 * share, rel=1e-9)


@for_each("metric", MAPPED, ids=lambda metric: metric.key)
def test_ends_of_the_scale(metric: Metric) -> None:
    assert paper_score(metric, paper_value(metric, 100.0)) == pytest.approx(100.0)
    worst = paper_value(metric, 0.0)
    assert worst == math.inf if metric.mapping == "inverse" else paper_score(metric, worst) == 0.0


@pytest.mark.parametrize("metric", MAPPED, ids=lambda metric: metric.key)
@settings(max_examples=30)
@given(states=st.lists(st.floats(0.01, 60), min_size=1, max_size=5), missing=st.integers(1, 5))
def test_strict_is_never_better_than_official(metric: Metric, states: list[float], missing: int) -> None:
    by = structs.replace(BARE, is_costly=True)
    found = summary.combine(facts_of(metric.key), by, [*answered(*states), *[unanswered()] * missing])
    assert found.official is not None and found.strict is not None
    slack = 1e-9 * abs(found.official)
    better = found.strict - found.official if metric.higher_is_better else found.official - found.strict
    assert better <= slack
    assert paper_score(metric, found.strict) <= paper_score(metric, found.official) + 1e-9
