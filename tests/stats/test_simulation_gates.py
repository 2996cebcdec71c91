"""A few hundred of the comparisons of ``benchmarks/statistics.py``, with room for their noise: 3.5 standard errors."""

from __future__ import annotations

import math

import pytest

from benchmarks import statistics as simulated
from benchmarks.statistics import Scenario, Simulation, graded, right_or_wrong, shifted
from lmms_eval.stats.power import detectable
from tests.cases import for_each

FEW = Simulation(draws=300, redraws=199)


def noise(share: float) -> float:
    return 3.5 * math.sqrt(share * (1 - share) / FEW.draws)


@for_each("scenario", [right_or_wrong(0.5, 0.5), right_or_wrong(0.5, 0.5, 0.3), graded(2.0)])
def test_coverage(scenario: Scenario) -> None:
    assert simulated.coverage(FEW, scenario, 60) == pytest.approx(0.95, abs=noise(0.95))


@for_each("scenario", [right_or_wrong(0.5, 0.5), right_or_wrong(0.5, 0.5, 0.3), graded(1.0)])
def test_errors_of_the_first_kind(scenario: Scenario) -> None:
    assert simulated.rejections(FEW, scenario, 30) <= 0.05 + noise(0.05)


def test_power() -> None:
    spread = simulated.true_spread(shifted(0.0))
    found = simulated.rejections(FEW, shifted(detectable(spread, 50)), 50)
    assert found == pytest.approx(0.8, abs=noise(0.8))


def test_a_model_that_fails_on_wrong_answers_is_not_called_better() -> None:
    failures = list(simulated._with_failures(FEW, right_or_wrong(0.7, 0.7), 500, 1 / 3))
    by_scored, by_verdict = (FEW.share(iter(claims)) for claims in zip(*failures, strict=True))
    assert by_scored > 0.3
    assert by_verdict <= 0.05 + noise(0.05)


def test_bounds_hold_the_score_over_all_documents() -> None:
    assert FEW.share(simulated._bounds_hold(FEW, 400, 1 / 3)) >= 0.95 - noise(0.05)
