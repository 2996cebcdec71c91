"""Confidence sequences: they hold the number of the whole task at all looks at once, and end at it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.stats import Sampled, StratifiedSampled
from lmms_eval.stats.sequence import Floor, rates
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each

SHARE = ScoreRange(0, 1)
DIFFERENCE = ScoreRange(-1, 1)
ROUNDING = 1e-9


def simulation_slack(draws: int) -> float:
    """Three standard errors of a share of 5 %."""
    return 3 * math.sqrt(0.05 * 0.95 / draws)


def held_at_all_looks(values, draws: int, within: ScoreRange = SHARE, unknown=None) -> float:
    """Share of random orders in which no look misses the mean; documents in ``unknown`` count from end to end."""
    source = np.random.default_rng(7)
    mean, held = values.mean(), 0
    for _ in range(draws):
        order = source.permutation(len(values))
        lows, highs = values[order], values[order]
        if unknown is not None:
            lows, highs = (np.where(unknown[order], end, values[order]) for end in (within.low, within.high))
        ends = np.array(Sampled(len(values), within).after_each(lows.tolist(), highs.tolist()))
        held += bool(np.all((ends[:, 0] <= mean + ROUNDING) & (mean - ROUNDING <= ends[:, 1])))
    return held / draws


POPULATIONS = {
    "right in 20 %": np.arange(150) < 30,
    "right in half": np.arange(150) < 75,
    "right in 98 %": np.arange(150) < 147,
    "graded": np.linspace(0, 1, 150) ** 3,
    "nearly alike": 0.5 + 0.02 * np.sin(np.arange(150)),
}


@for_each("name", POPULATIONS)
def test_all_looks_hold_the_mean(name) -> None:
    draws = 250
    assert held_at_all_looks(POPULATIONS[name].astype(float), draws) >= 0.95 - simulation_slack(draws)


@for_each("draw", [lambda source: source.random(300) < 0.2, lambda source: source.beta(0.2, 0.6, 300)])
def test_all_looks_hold_the_mean_of_a_population(draw) -> None:
    """Documents are drawn from many more; at the last one of the list the mean of the population is not yet known."""
    source, held, at_end = np.random.default_rng(5), 0, 0
    for _ in range(200):
        values, truth = draw(source).astype(float), 0.2 if draw(np.random.default_rng(0)).dtype == bool else 0.25
        ends = np.array(Sampled(300, SHARE, is_of_list=False).after_each(values.tolist()))
        held += bool(np.all((ends[:, 0] <= truth) & (truth <= ends[:, 1])))
        at_end += bool(ends[-1, 1] - ends[-1, 0] > 0.05)
    assert held / 200 >= 0.95 - simulation_slack(200)
    assert at_end == 200


def test_all_looks_hold_the_mean_of_differences() -> None:
    values = np.repeat([-1.0, 0.0, 0.5, 1.0], [20, 100, 10, 20])
    assert held_at_all_looks(values, 250, DIFFERENCE) >= 0.95 - simulation_slack(250)


def test_all_looks_hold_the_mean_where_some_numbers_are_never_known() -> None:
    """The documents that fail are just those that would have been right: left out, the mean would be too low."""
    values = (np.arange(150) < 75).astype(float)
    assert held_at_all_looks(values, 250, unknown=np.arange(150) < 15) >= 0.95 - simulation_slack(250)
    left_out = Sampled(150, SHARE)
    left_out.after_each([0.0, 1.0] * 60)
    assert left_out.interval().high < 1


def test_the_capital_against_the_mean_stays_small_and_the_test_can_fail() -> None:
    """Limits are out in at most 2.5 % on either side; the same limits with half the error allowed would be not."""
    source, misses = np.random.default_rng(3), np.zeros(2)
    values = (np.arange(100) < 50).astype(float)
    for _ in range(400):
        x = source.permutation(values)
        misses += Floor(100, 0.025).add(x)[-1] > 0.5, Floor(100, 0.5).add(x)[-1] > 0.5
    assert misses[0] / 400 <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 400)
    assert misses[1] / 400 > 0.05


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=300),
    st.sampled_from([SHARE, DIFFERENCE, ScoreRange(0, 100)]),
    st.randoms(use_true_random=False),
)
@settings(max_examples=40, deadline=None)
def test_intervals_are_never_empty_and_end_at_the_mean(shares, within, source) -> None:
    values = [within.low + share * (within.high - within.low) for share in shares]
    source.shuffle(values)
    task = Sampled(len(values), within)
    ends = np.array(task.after_each(values))
    seen, total = np.cumsum(values), len(values)
    rest = total - np.arange(1, total + 1)
    slack = 1e-9 * (within.high - within.low)
    assert np.all(ends[:, 0] <= ends[:, 1] + slack)
    assert np.all(ends[:, 0] >= (seen + rest * within.low) / total - slack)
    assert np.all(ends[:, 1] <= (seen + rest * within.high) / total + slack)
    mean = math.fsum(values) / total
    assert task.interval().low == pytest.approx(mean, abs=slack)
    assert task.interval().high == pytest.approx(mean, abs=slack)
    if np.all((ends[:, 0] <= mean + slack) & (mean - slack <= ends[:, 1])):
        assert np.all(np.diff(ends[:, 0]) >= -slack) and np.all(np.diff(ends[:, 1]) <= slack)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=200), st.integers(1, 60))
@settings(max_examples=25, deadline=None)
def test_the_interval_does_not_depend_on_when_one_looks(pairs, step) -> None:
    pairs = [(min(pair), max(pair)) for pair in pairs]
    at_once, looked_at = Sampled(len(pairs) + 5, SHARE), Sampled(len(pairs) + 5, SHARE)
    for number, pair in enumerate(pairs):
        at_once.add(*pair)
        looked_at.add(*pair)
        if number % step == 0:
            looked_at.interval()
    assert at_once.interval().low == pytest.approx(looked_at.interval().low, abs=1e-12)
    assert at_once.interval().high == pytest.approx(looked_at.interval().high, abs=1e-12)


def test_limits_are_those_of_the_capital_itself_rounded_outwards() -> None:
    """The capital at a limit and a little beyond it, computed from the whole history at that very candidate."""
    source = np.random.default_rng(5)
    for total, chance in ((300, 0.5), (2000, 0.9)):
        x = (source.random(total) < chance).astype(float)
        task = Sampled(total, SHARE)
        ends = task.after_each(x[: total // 2].tolist())
        low = max(low for low, _ in ends)
        assert capital_ever(total, x[: total // 2], low) >= 40 * (1 - 1e-6)
        width = ends[-1][1] - ends[-1][0]
        assert capital_ever(total, x[: total // 2], low + 0.005 * width) < 40


def capital_ever(total: int, x, mean: float) -> float:
    """Greatest capital of all gamblers against a candidate, document by document (the plain formula)."""
    each = np.array(rates(total, 0.025))
    capital, most, before = np.ones(len(each)), 0.0, 0.0
    for number, value in enumerate(x):
        left = total - number
        expected = (total * mean - before) / left
        stake = np.minimum(each * total / left, np.maximum(each, 0.95))
        capital *= 1 + np.minimum(stake, 0.95 / max(expected, 1e-12)) * (value - expected)
        most, before = max(most, float(capital.mean())), before + value
    return most


def test_half_widths_are_about_one_and_a_half_times_those_of_a_single_look() -> None:
    source = np.random.default_rng(11)
    for total in (500, 6500):
        x = (np.arange(total) < total // 2).astype(float)
        ends = np.array(Sampled(total, SHARE).after_each(source.permutation(x).tolist()))
        for share in (0.2, 0.5, 0.8):
            single = 1.96 * 0.5 * math.sqrt((1 - share) / (share * total))
            look = int(share * total)
            assert 1.2 < (ends[look, 1] - ends[look, 0]) / 2 / single < 1.75


@for_each(
    ("total", "within", "level"),
    [(10, ScoreRange(), 0.95), (10, ScoreRange(0, math.inf), 0.95), (0, SHARE, 0.95), (10, SHARE, 1.0)],
)
def test_questions_without_an_answer_are_refused(total, within, level) -> None:
    with pytest.raises(UsageError, match=r"range with two ends|at least one|between 0 and 1"):
        Sampled(total, within, level)
    with pytest.raises(UsageError, match=r"range with two ends|at least one|between 0 and 1"):
        StratifiedSampled([total, 5], [1, 1], within, level)


@for_each("value", [(math.nan,), (1.2,), (0.5, 0.4), (-0.1, 0.5), (0.2, math.nan)])
def test_scores_outside_of_the_range_are_refused(value) -> None:
    for add in (Sampled(3, SHARE).add, lambda *pair: StratifiedSampled([3], [1], SHARE).add(0, *pair)):
        with pytest.raises(UsageError, match="in a range from 0 to 1"):
            add(*value)


def test_more_documents_than_there_are_are_refused() -> None:
    task, group = Sampled(1, SHARE), StratifiedSampled([1, 2], [1, 1], SHARE)
    task.add(1)
    group.add(0, 1)
    with pytest.raises(UsageError, match="more than 1 documents"):
        task.add(1)
    with pytest.raises(UsageError, match="more than 1 documents of stratum 0"):
        group.add(0, 1)
    with pytest.raises(UsageError, match="stratum 2 of 2"):
        group.add(2, 1)
    assert (task.seen, group.seen) == (1, 1)


@for_each("weights", [[1], [0, 0], [1, -1], [1, math.nan], [1, math.inf]])
def test_weights_that_are_none_are_refused(weights) -> None:
    with pytest.raises(UsageError, match="weights"):
        StratifiedSampled([3, 3], weights, SHARE)


def evenly(totals):
    """Strata in the order in which all of them are at the same share of their documents."""
    times = [((place + 0.5) / total, stratum) for stratum, total in enumerate(totals) for place in range(total)]
    return [stratum for _, stratum in sorted(times)]


def strata_of(sizes, chances):
    return [(np.arange(size) < round(size * chance)).astype(float) for size, chance in zip(sizes, chances, strict=True)]


def looks(strata, weights, order, source, every: int, unknown: float = 0.0):
    """Ends of the interval at each look, for a fresh random order within each stratum."""
    group = StratifiedSampled([len(each) for each in strata], weights, SHARE)
    waiting = [iter(source.permutation(each).tolist()) for each in strata]
    found = []
    for number, stratum in enumerate(order, 1):
        value = next(waiting[stratum])
        if value == 1 and source.random() < unknown:
            group.add(stratum, 0.0, 1.0)
        else:
            group.add(stratum, value)
        if number % every == 0 or number == len(order):
            found.append((group.interval().low, group.interval().high))
    return np.array(found)


STRATA = {
    "3 of different sizes and weights": ([20, 60, 90], [0.9, 0.2, 0.5], [1, 3, 1]),
    "20 of 8": ([8] * 20, [0.1 + 0.04 * k for k in range(20)], [1] * 20),
    "20 small ones, chances 0 or 1": ([7] * 20, [0, 1] * 10, [1] * 20),
}


@for_each("unknown", [0.0, 0.2])
@for_each("name", STRATA)
def test_all_looks_hold_the_weighted_mean(name, unknown) -> None:
    sizes, chances, weights = STRATA[name]
    strata, source, draws, held = strata_of(sizes, chances), np.random.default_rng(2), 100, 0
    truth = np.average([each.mean() for each in strata], weights=weights)
    orders = evenly(sizes), sorted(evenly(sizes)), list(source.permutation(evenly(sizes)))
    for draw in range(draws):
        ends = looks(strata, weights, orders[draw % 3], source, 10, unknown)
        held += bool(np.all((ends[:, 0] <= truth + ROUNDING) & (truth - ROUNDING <= ends[:, 1])))
        assert np.all(ends[:, 0] <= ends[:, 1] + ROUNDING)
        if not unknown:
            assert ends[-1] == pytest.approx([truth, truth])
    assert held / draws >= 0.95 - simulation_slack(draws)


def test_five_hundred_strata_are_as_one_sample_and_not_as_five_hundred() -> None:
    source, sizes = np.random.default_rng(4), [13] * 500
    strata = strata_of(sizes, source.beta(2, 2, 500))
    ends = looks(strata, [1] * 500, evenly(sizes), source, 6500 // 2)
    variance = sum(each.var() for each in strata) / 500
    single = 1.96 * math.sqrt(variance * (7 / 6) / 6500)  # after 6 of 13 rounds
    assert (ends[0, 1] - ends[0, 0]) / 2 < 2.2 * single


def test_strata_of_which_nothing_is_known_count_from_end_to_end() -> None:
    group = StratifiedSampled([100, 100], [3, 1], SHARE)
    for _ in range(100):
        group.add(0, 1)
    assert (group.interval().low, group.interval().high) == pytest.approx((0.75, 1.0))


@for_each("empty", [0, 1])
def test_a_stratum_without_weight_changes_nothing(empty: int) -> None:
    weights = [float(stratum != empty) for stratum in range(3)]
    group, alone = StratifiedSampled([90, 90, 90], weights, SHARE), StratifiedSampled([90, 90], [1, 1], SHARE)
    others = [stratum for stratum in range(3) if stratum != empty]
    for number in range(100):
        group.add(others[number % 2], float(number % 5 > 0))
        alone.add(number % 2, float(number % 5 > 0))
    assert (group.interval().low, group.interval().high) == pytest.approx((alone.interval().low, alone.interval().high))
    assert alone.interval().high - alone.interval().low < 0.4


def test_a_few_tiny_strata_do_not_hold_up_the_others() -> None:
    """One document among 4,000: the range bounds it, and there are rounds as for the others."""
    sizes = [1, 2000, 2000]
    group, source = StratifiedSampled(sizes, [0.001, 0.5, 0.499], SHARE), np.random.default_rng(0)
    for stratum in evenly([2000, 2000])[:2000]:
        group.add(stratum + 1, float(source.random() < 0.5))
    assert group.interval().high - group.interval().low < 0.09
    group.add(0, 1)
    narrower = group.interval()
    assert narrower.high - narrower.low < 0.09


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_small_groups_end_at_their_mean(sizes, source) -> None:
    strata = [[source.random() for _ in range(size)] for size in sizes]
    weights = [source.random() + 0.01 for _ in sizes]
    order = [stratum for stratum, size in enumerate(sizes) for _ in range(size)]
    source.shuffle(order)
    group, waiting = StratifiedSampled(sizes, weights, SHARE), [iter(each) for each in strata]
    for stratum in order:
        group.add(stratum, next(waiting[stratum]))
        assert group.interval().low <= group.interval().high + ROUNDING
    truth = np.average([np.mean(each) for each in strata], weights=weights)
    assert (group.interval().low, group.interval().high) == pytest.approx((truth, truth))
