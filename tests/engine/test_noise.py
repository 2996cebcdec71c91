from __future__ import annotations

import math
import random

import pytest

from lmms_eval.engine.noise import asked_again
from lmms_eval.stats.repeats import rerun_noise
from lmms_eval.utils.numbers import SHARES, ScoreRange


def test_the_interval_for_another_run_takes_the_upper_end_of_the_variance() -> None:
    noise = rerun_noise([(1.0, 1.0)] * 90 + [(1.0, 0.0)] * 10, SHARES)
    found = asked_again(0.7, 400, noise, SHARES)
    assert found.spread is not None and found.interval is not None
    assert found.spread.error == pytest.approx(math.sqrt(0.05 / 400))
    half = (found.interval.high - found.interval.low) / 2
    assert half == pytest.approx(1.96 * math.sqrt(noise.scores.high / 2 / 400), rel=0.02)


def test_percent_scales_error_and_interval() -> None:
    noise = rerun_noise([(1.0, 1.0)] * 90 + [(1.0, 0.0)] * 10, SHARES)
    plain = asked_again(0.7, 400, noise, SHARES)
    percent = asked_again(70.0, 400, noise, ScoreRange(0.0, 100.0), 100.0)
    assert plain.spread is not None and percent.spread is not None
    assert plain.interval is not None and percent.interval is not None
    assert percent.spread.error == pytest.approx(100 * plain.spread.error)
    assert percent.interval.low == pytest.approx(100 * plain.interval.low)


def test_without_a_range_there_is_an_error_but_no_interval() -> None:
    found = asked_again(5.0, 100, rerun_noise([(4.0, 6.0)] * 20, ScoreRange(0.0, math.inf)), ScoreRange(0.0, math.inf))
    assert (found.interval, found.no_interval) == (None, "no range with two ends")
    assert found.spread is not None and found.spread.error == pytest.approx(math.sqrt(2 / 100))


def test_the_interval_holds_the_expected_score_of_the_list() -> None:
    source = random.Random(4)
    held = 0
    for _ in range(200):
        chances = [source.betavariate(0.5, 0.5) for _ in range(300)]
        first, second = ([float(source.random() < chance) for chance in chances] for _ in range(2))
        noise = rerun_noise(list(zip(first[:60], second[:60], strict=True)), SHARES)
        interval = asked_again(sum(first) / 300, 300, noise, SHARES).interval
        assert interval is not None
        held += interval.low <= sum(chances) / 300 <= interval.high
    assert held >= 186
