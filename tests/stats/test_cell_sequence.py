"""Intervals of cells of a list in random order: they hold at whatever look somebody stops."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.stats import Interval, MeanSpread, Sampled, score_interval
from lmms_eval.stats.cells import sampled_cells
from lmms_eval.stats.sequence import GREATEST_STAKE, rates
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each
from tests.stats.test_sequence import simulation_slack

SHARES = ScoreRange(0, 1)
ROUNDING = 1e-9
TOTAL, DRAWS = 500, 400


def capital(values, inside, total: int, mean: float) -> float:
    """The capital against one mean, document by document as its definition says (stakes step by 5 %)."""
    found = []
    for rate in rates(total, 0.025):
        log, before = 0.0, 0.0
        for number, (value, is_in) in enumerate(zip(values, inside, strict=True)):
            left = total - number
            stretch = math.floor(math.log(total / left) / math.log(1.05))
            stake = min(rate * 1.05**stretch, GREATEST_STAKE)
            z = value - mean if is_in else 0.0
            log += math.log1p(stake * z) + stake * before / left
            before += z
        found.append(math.exp(log))
    return sum(found) / len(found)


@for_each("seed", range(5))
def test_ends_are_where_the_capital_reaches_its_limit(seed: int) -> None:
    source = np.random.default_rng(seed)
    values, inside = source.random(60).round(2), source.random(60) < 0.4
    lows, highs = sampled_cells(values, values, np.where(inside, 0, -1), 1, 100)
    assert capital(values, inside, 100, lows[0] - 1e-6) >= 40 - 1e-6
    assert capital(values, inside, 100, lows[0] + 2e-3) < 40
    assert capital(1 - values, inside, 100, 1 - highs[0] - 1e-6) >= 40 - 1e-6
    assert capital(1 - values, inside, 100, 1 - highs[0] + 2e-3) < 40


def most_striking_look(values, codes, truth: float) -> int:
    """The number of documents at which the cell's mean is farthest from the truth, in errors."""
    inside = codes == 0
    count = np.cumsum(inside)
    with np.errstate(invalid="ignore", divide="ignore"):
        far = np.abs(np.cumsum(values * inside) / count - truth) * np.sqrt(count)
    far[(count < 10)] = 0
    return int(np.argmax(far[: TOTAL * 9 // 10])) + 1


@for_each("chance", [0.5, 0.8])
def test_a_cell_that_somebody_stopped_at_its_most_striking_look(chance: float) -> None:
    """The interval of a single look, for a number of documents that was fixed before, is wrong far too often there."""
    source = np.random.default_rng(3)
    scores = (np.arange(TOTAL) < TOTAL * chance).astype(float)
    cell = np.where(source.random(TOTAL) < 0.4, 0, 1)
    truth = scores[cell == 0].mean()
    ours = single = 0
    for _ in range(DRAWS):
        order = source.permutation(TOTAL)
        values, codes = scores[order], cell[order]
        seen = most_striking_look(values, codes, truth)
        values, codes = values[:seen], codes[:seen]
        lows, highs = sampled_cells(values, values, codes, 2, TOTAL)
        ours += bool(lows[0] <= truth + ROUNDING and truth <= highs[0] + ROUNDING)
        inside = values[codes == 0].tolist()
        plain = score_interval(math.fsum(inside) / len(inside), MeanSpread.of_scores(inside, SHARES), SHARES)
        assert isinstance(plain, Interval)
        single += plain.low <= truth <= plain.high
    assert ours / DRAWS >= 0.95 - simulation_slack(DRAWS)
    assert single / DRAWS < 0.85


def test_a_cell_of_all_documents_is_as_certain_as_the_task() -> None:
    values = np.random.default_rng(1).permutation(np.arange(2000) < 1200).astype(float)[:600]
    whole = Sampled(2000, SHARES)
    for value in values.tolist():
        whole.add(value)
    ((low,), (high,)) = sampled_cells(values, values, np.zeros(600, dtype=np.intp), 1, 2000)
    assert (
        whole.interval().high - whole.interval().low < high - low < 1.2 * (whole.interval().high - whole.interval().low)
    )


ROWS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(-1, 2)), min_size=1, max_size=30)


@given(ROWS, st.integers(0, 20))
def test_limits_keep_to_what_is_possible(rows, left: int) -> None:
    lows, highs = (np.array([pick(a, b) for a, b, _ in rows]) for pick in (min, max))
    codes = np.array([code for _, _, code in rows], dtype=np.intp)
    floors, ceilings = sampled_cells(lows, highs, codes, 3, len(rows) + left)
    for code in range(3):
        inside = codes == code
        assert 0 <= floors[code] <= ceilings[code] <= 1 + ROUNDING
        if not inside.any() and left:
            assert (floors[code], ceilings[code]) == (0, 1)
        elif inside.any():
            size = inside.sum() + left
            assert floors[code] >= lows[inside].sum() / size - ROUNDING
            assert ceilings[code] <= (highs[inside].sum() + left) / size + ROUNDING
