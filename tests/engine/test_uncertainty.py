"""Sources of the variance of a score."""

from __future__ import annotations

import random

import pytest

from lmms_eval.engine.uncertainty import Certainty, Variance, variance_of
from lmms_eval.stats import MeanSpread
from lmms_eval.utils.numbers import SHARES

RIGHT, WRONG = 0.7, 0.1
"""Share of right answers, and how often the judge errs about an answer."""


def judged(source: random.Random, n: int, replies: int) -> tuple[Variance, float]:
    """Verdicts on ``n`` answers, the first of which score them, and the judge's expected score of these answers."""
    chances = [1 - WRONG if source.random() < RIGHT else WRONG for _ in range(n)]
    verdicts = [[float(source.random() < chance) for _ in range(replies)] for chance in chances]
    firsts = [each[0] for each in verdicts]
    value = sum(firsts) / n
    whole = Certainty.of(value, MeanSpread.of_scores(firsts, SHARES), SHARES)
    found = variance_of(value, [[first] for first in firsts], [[each] for each in verdicts], whole)
    assert found is not None
    return found, sum(chances) / n


@pytest.mark.parametrize(("n", "replies"), [(40, 2), (150, 3)])
def test_intervals_of_judged_scores_hold_the_judges_expected_scores(n: int, replies: int) -> None:
    source, draws, new, again = random.Random(n), 400, 0, 0
    truth = RIGHT * (1 - WRONG) + (1 - RIGHT) * WRONG
    for _ in range(draws):
        found, expected = judged(source, n, replies)
        like_these, rejudged = found.like_these.interval, found.rejudged.interval
        assert like_these is not None
        assert rejudged is not None
        new += like_these.low <= truth <= like_these.high
        again += rejudged.low <= expected <= rejudged.high
    assert 0.93 <= new / draws <= 0.985
    assert 0.93 <= again / draws <= 0.999


def test_the_error_of_the_score_contains_the_judges_part() -> None:
    source = random.Random(3)
    found, _ = judged(source, 20_000, 2)
    split = found.split
    assert split.judge == pytest.approx(WRONG * (1 - WRONG), rel=0.05)
    assert split.questions == pytest.approx(RIGHT * (1 - RIGHT) * (1 - 2 * WRONG) ** 2, rel=0.05)
    assert found.like_these.spread is not None
    assert found.like_these.spread.error**2 * 20_000 == pytest.approx(split.questions + split.judge, rel=0.02)
