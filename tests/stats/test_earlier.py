"""Predictions from earlier runs: their mean, or a fit where runs differ in worth."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

from lmms_eval.stats.earlier import LEAST_RUNS, best_prediction, correlation, predicted
from tests.cases import for_each


def test_predictions_are_the_regression_on_the_mean_of_the_runs() -> None:
    source = random.Random(4)
    chances = [source.betavariate(1, 1) for _ in range(20_000)]
    runs = [{doc: float(source.random() < p) for doc, p in enumerate(chances)} for _ in range(4)]
    assert math.isclose(correlation(runs), 1 / 3, abs_tol=0.02)
    found = predicted(runs, range(len(chances)))
    means = [statistics.fmean(one[doc] for one in runs) for doc in range(len(chances))]
    target = [float(source.random() < p) for p in chances]
    slope, _ = statistics.linear_regression(means, target)
    assert math.isclose(statistics.linear_regression(means, [*found.values()])[0], slope, abs_tol=0.03)
    alone = predicted([{0: 1.0, 1: 0.0}], range(3))
    assert alone == {0: 0.75, 1: 0.25, 2: 0.5}
    assert set(predicted([{0: 1.0, 1: 0.0}, {0: 0.0, 1: 1.0}], range(2)).values()) == {0.5}
    assert correlation([{0: 1.0}, {1: 1.0}]) == 0.5  # no two runs share documents
    assert correlation([{0: 1.0, 1: 1.0}, {0: 1.0, 1: 1.0}]) == 0.0


def explained(scores: dict[int, float], shares: dict[int, float]) -> float:
    rest = [score - shares[doc] for doc, score in scores.items()]
    return 1 - statistics.pvariance(rest) / statistics.pvariance(scores.values())


def runs_of(
    count: int, make: Callable[[int, float, random.Random], float], documents: int = 400
) -> list[dict[int, float]]:
    source = random.Random(count)
    chances = [source.betavariate(0.7, 0.3) for _ in range(documents)]
    return [{doc: make(run, p, source) for doc, p in enumerate(chances)} for run in range(count)]


def half_noise(run: int, chance: float, source: random.Random) -> float:
    """Every second run is unrelated to the others."""
    return float(source.random() < (0.7 if run % 2 else chance))


def graded(run: int, chance: float, source: random.Random) -> float:
    return min(1.0, max(0.0, chance + source.gauss(0, 0.6 if run % 2 else 0.05)))


@for_each(("make", "name"), [(half_noise, "logit"), (graded, "ridge")])
def test_a_fit_is_used_where_runs_differ_in_worth(make: Callable[..., float], name: str) -> None:
    *runs, new = runs_of(7, make)  # the new run is a good one
    found = best_prediction(runs, range(401))
    assert found.fit == name and found.r_squared is not None and found.of_mean is not None
    assert found.r_squared > found.of_mean
    assert explained(new, dict(found.shares)) > explained(new, predicted(runs, range(400))) + 0.03
    assert all(0 <= share <= 1 for share in found.shares.values())
    assert min(found.shares.values()) < found.shares[400] < max(found.shares.values())  # no earlier score: the mean


def test_runs_alike_keep_their_mean() -> None:
    runs = runs_of(5, lambda _run, chance, source: float(source.random() < chance))
    found = best_prediction(runs, range(400))
    assert found.fit == "mean" and found.shares == predicted(runs, range(400))
    assert found.r_squared == found.of_mean and found.r_squared is not None and found.r_squared > 0.2


def test_few_runs_keep_their_mean_and_one_has_no_cross_validation() -> None:
    runs = runs_of(LEAST_RUNS - 1, half_noise)
    few = best_prediction(runs, range(400))
    assert few.fit == "mean" and few.r_squared is not None
    alone = best_prediction(runs[:1], range(400))
    assert (alone.fit, alone.r_squared, alone.shares) == ("mean", None, predicted(runs[:1], range(400)))


def test_documents_that_some_runs_lack_are_predicted_from_the_others() -> None:
    runs = runs_of(6, half_noise)
    for number, run in enumerate(runs):
        for doc in range(number * 40, number * 40 + 60):
            del run[doc]
    found = best_prediction(runs, range(400))
    assert set(found.shares) == set(range(400)) and all(map(math.isfinite, found.shares.values()))


def test_equal_scores_and_runs_without_shared_documents_have_predictions() -> None:
    equal = [dict.fromkeys(range(20), 1.0)] * 5
    assert set(best_prediction(equal, range(20)).shares.values()) == {1.0}
    apart = [{10 * run + doc: float(doc % 2) for doc in range(10)} for run in range(5)]
    found = best_prediction(apart, range(50))
    assert found.fit == "mean" and all(map(math.isfinite, found.shares.values()))
