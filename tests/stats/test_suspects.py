from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import false_discovery_control, pointbiserialr
from statsmodels.stats.multitest import multipletests

from lmms_eval.errors import UsageError
from lmms_eval.stats.suspects import suspicion, vote_against, vote_weights


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def test_the_correlation_is_the_point_biserial_one_with_the_mean_over_the_other_documents() -> None:
    scores = (np.random.default_rng(0).random((40, 6)) < np.linspace(0.2, 0.9, 6)) * 1.0
    found = suspicion(scores)
    for number, own in enumerate(scores):
        others = np.delete(scores, number, axis=0).mean(axis=0)
        if own.min() == own.max():
            assert math.isnan(found.correlation[number]) and found.p[number] is None and found.q[number] is None
        else:
            assert found.correlation[number] == pytest.approx(pointbiserialr(own, others).statistic, abs=1e-12)
    known = [p for p in found.p if p is not None]
    assert [q for q in found.q if q is not None] == pytest.approx(false_discovery_control(known))
    assert [q for q in found.q if q is not None] == pytest.approx(multipletests(known, method="fdr_bh")[1])


@pytest.mark.parametrize("levels", [[0.0, 1.0], [0.0, 0.5, 1.0], [0.1, 0.25, 0.7, 1.0]])
def test_p_is_the_share_of_all_orders_with_as_low_a_covariance(levels: list[float]) -> None:
    scores = np.random.default_rng(1).choice(levels, (30, 5)) * np.linspace(0.5, 1, 5).round(1)
    ability = scores.mean(axis=0)
    for own, p in zip(scores, suspicion(scores).p, strict=True):
        if p is not None:
            sums = [np.dot(order, ability) for order in itertools.permutations(own)]
            assert p == pytest.approx(np.mean([one <= own @ ability + 1e-9 for one in sums]))


def test_p_is_valid_for_documents_that_better_runs_are_no_worse_at() -> None:
    """Of hard documents with guesses, easy ones and flat ones at most the promised share is below each level."""
    generator = np.random.default_rng(2)
    ability, hard = np.linspace(-2, 3, 10), generator.normal(0, 2, (20_000, 1))
    slope = generator.choice([0.0, 0.5, 2.0], (20_000, 1))
    chance = 0.25 + 0.75 * sigmoid(slope * (ability - hard))
    ps = np.array([p for p in suspicion((generator.random(chance.shape) < chance) * 1.0).p if p is not None])
    for level in (0.001, 0.01, 0.05, 0.2):
        assert (ps <= level).mean() <= level + 3 * math.sqrt(level / len(ps))


def test_more_orders_than_can_be_enumerated_are_drawn_and_agree() -> None:
    scores = (np.random.default_rng(3).random((60, 16)) < np.linspace(0.3, 0.9, 16)) * 1.0
    scores[0] = [1, 1, 0, 1, 1, 0, 0, 0] * 2
    exact = suspicion(scores).p[0]
    graded = scores.copy()
    graded[0, 0] = 0.999  # three values: drawn
    drawn = suspicion(graded).p[0]
    assert exact is not None and drawn is not None and 0.02 < exact < 0.5
    assert drawn == pytest.approx(exact, abs=0.015)
    assert suspicion(graded).p[0] == drawn
    assert suspicion(graded, seed=1).p[0] != drawn


def test_equal_runs_have_no_test() -> None:
    found = suspicion(np.tile([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]], (4, 1)))
    assert set(found.p) == {None} and suspicion(np.empty((0, 4))).p == []


def test_what_is_no_matrix_of_runs_is_refused() -> None:
    with pytest.raises(UsageError, match="3 runs; give at least 4"):
        suspicion(np.zeros((5, 3)))
    with pytest.raises(UsageError, match="finite"):
        suspicion(np.full((5, 4), np.nan))


def test_votes_are_weighted_by_log_odds() -> None:
    weights = vote_weights([0.9, 0.5, 0.1], 1_000_000)
    assert weights == pytest.approx([math.log(9), 0.0, -math.log(9)], abs=1e-4)
    assert vote_against("ABA", [False, False, True], [2.0, 1.0, 0.5]) == ("A", 1.5)
    assert vote_against("AAA", [True] * 3, [1.0] * 3) == ("", -math.inf)
    assert all(map(math.isfinite, vote_weights([0.0, 1.0], 10)))
