from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import false_discovery_control, pointbiserialr
from statsmodels.stats.multitest import multipletests

from benchmarks.wrong_labels import SCENARIOS, Questions, kinds_of, precision
from lmms_eval.errors import UsageError
from lmms_eval.stats import suspects
from lmms_eval.stats.suspects import WrongLabels, suspicion, wrong_labels


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


@cache
def found(questions: Questions, runs: int) -> tuple[WrongLabels, np.ndarray]:
    """Return the findings and the reference answers, which are right if they are 0."""
    answers, labels, _ = questions.draw(runs, 7)
    return wrong_labels(kinds_of(answers, labels), questions.choices - 1), labels


@pytest.mark.parametrize(
    ("scenario", "runs", "least"),
    [("uniform guesses", 8, 0.95), ("popular wrong answers", 12, 0.9), ("300 documents, 12 wrong", 8, 0.6)],
)
def test_wrong_labels_come_first_and_their_expected_share_is_true(scenario: str, runs: int, least: float) -> None:
    model, labels = found(SCENARIOS[scenario], runs)
    is_wrong = labels > 0
    first = min(100, int(is_wrong.sum()))
    share = precision(model.probability, is_wrong)
    assert share >= least and model.misfit is None
    assert model.expected(first) / first == pytest.approx(share, abs=0.05 + 1 / first)
    assert model.expected() == pytest.approx(is_wrong.sum(), abs=2 * math.sqrt(is_wrong.sum()))
    for low, high in ((0.2, 0.8), (0.8, 1.0)):  # documents that are so likely to be wrong
        inside = (model.probability >= low) & (model.probability < high)
        error = 3.5 * math.sqrt(0.25 / max(1, inside.sum()))
        assert is_wrong[inside].mean() == pytest.approx(model.probability[inside].mean(), abs=error + 0.03)


def test_the_other_answer_is_the_true_one() -> None:
    model, labels = found(SCENARIOS["uniform guesses"], 8)
    sure = (labels > 0) & (model.probability > 0.9)
    # kinds_of gives the true answer the number of the label that replaces it
    assert sure.sum() > 50 and (model.other[sure] == labels[sure]).mean() > 0.98


def test_right_labels_are_not_expected_to_be_wrong() -> None:
    model, _ = found(Questions(documents=2_000, wrong=0), 8)
    assert model.expected() < 4 and (model.probability > 0.9).sum() == 0


def test_runs_that_share_mistakes_are_named() -> None:
    model, labels = found(Questions(documents=2_000, wrong=80, copied=0.3), 8)
    assert model.misfit is not None
    first, second, observed, expected = model.misfit
    assert second == first + 1 and first % 2 == 0 and observed > 1.3 * expected  # the pairs that copy
    assert model.expected() > 1.2 * (labels > 0).sum()  # which is why the expected numbers are not stated


def test_scores_alone_find_fewer_and_correlations_fewer_still() -> None:
    answers, labels, is_wrong = SCENARIOS["uniform guesses"].draw(8, 7)
    kinds = kinds_of(answers, labels)
    by_scores = wrong_labels((kinds > 0) * 1, None)
    assert precision(by_scores.probability, is_wrong) >= 0.7 and set(by_scores.other.tolist()) == {0}
    assert precision(-np.nan_to_num(suspicion((kinds == 0) * 1.0).correlation), is_wrong) <= 0.6


def test_the_model_is_fitted_to_some_of_many_documents() -> None:
    answers, labels, is_wrong = Questions(documents=25_000, wrong=1_000).draw(6, 7)
    model = wrong_labels(kinds_of(answers, labels), 3)
    assert precision(model.probability, is_wrong) >= 0.9
    assert model.expected() == pytest.approx(1_000, rel=0.15)


@pytest.mark.parametrize("answers", [3, None])
def test_probabilities_of_all_answers_add_up_to_one(answers: int | None) -> None:
    """Enumerate what four runs can answer: right or not, and equal or different wrong answers."""
    patterns = np.array([one for one in itertools.product(range(4), repeat=4) if is_numbered(one)])
    if answers is None:
        patterns = np.unique(np.minimum(patterns, 1), axis=0)
    model = suspects.Likelihood(patterns, answers)
    generator = np.random.default_rng(5)
    for _ in range(3):
        vector = generator.normal(0, 1, model.parameters)
        assert np.exp(model.of_patterns(vector)).sum() == pytest.approx(1.0)
        gradient = approx_fprime(vector, lambda one: model.value(one)[0], 1e-6)
        assert model.value(vector)[1] == pytest.approx(gradient, abs=1e-3)


def is_numbered(kinds: tuple[int, ...]) -> bool:
    """Return whether kinds above 0 are numbered in the order of their first runs."""
    wrong = [kind for kind in kinds if kind]
    return list(dict.fromkeys(wrong)) == list(range(1, len(set(wrong)) + 1))


def test_what_is_no_matrix_of_kinds_is_refused() -> None:
    with pytest.raises(UsageError, match="3 runs; give at least 4"):
        wrong_labels(np.zeros((5, 3), int), 3)
    for kinds in (np.zeros((0, 4), int), np.full((5, 4), -1), np.zeros(4, int)):
        with pytest.raises(UsageError, match="kinds of answers"):
            wrong_labels(kinds, 3)
