"""The number of documents that a paired comparison needs (harness specification §6.7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from msgspec import Struct

from lmms_eval.errors import UsageError
from lmms_eval.utils.numbers import SHARES

_DEFAULT_STD = 0.5
_SMALLEST_N = 2


class PowerQuestion(Struct, frozen=True):
    """A planned comparison: the smallest difference that matters, and spread and correlation of the models' scores.

    A standard deviation that is not given equals the other one, or 0.5 if neither is given.
    """

    effect_size: float = 0.03
    std_a: float | None = None
    std_b: float | None = None
    alpha: float = 0.05
    power: float = 0.8
    correlation: float = 0.5
    tests: int = 1
    """Tests that are corrected together: each is planned at ``alpha`` / ``tests``, the first step of Holm's method."""
    cluster_size: float = 1.0
    icc: float = 1.0
    """Intraclass correlation of the differences within a cluster."""

    @property
    def design_effect(self) -> float:
        """Factor of the variance of a mean over clusters of one size (Kish 1965, "Survey Sampling", section 5.4)."""
        return 1 + (self.cluster_size - 1) * self.icc

    def check(self) -> None:
        """Raise ``UsageError`` if a parameter is out of its range."""
        complaints = {
            "effect size must be a number above 0": 0 < self.effect_size < math.inf,
            "alpha must lie between 0 and 1": 0 < self.alpha < 1,
            "power must lie between 0 and 1": 0 < self.power < 1,
            "correlation must lie between -1 and 1": -1 <= self.correlation <= 1,
            "standard deviations must be numbers of at least 0": all(
                std is None or 0 <= std < math.inf for std in (self.std_a, self.std_b)
            ),
            "the number of tests must be at least 1": self.tests >= 1,
            "the size of clusters must be a number of at least 1": 1 <= self.cluster_size < math.inf,
            "the correlation within clusters must lie between 0 and 1": 0 <= self.icc <= 1,
        }
        for complaint, is_fine in complaints.items():
            if not is_fine:
                raise UsageError(f"power analysis: {complaint}")

    def quantiles(self) -> tuple[float, float]:
        """Return the normal quantiles of the level of one test and of the power."""
        normal = NormalDist()
        return normal.inv_cdf(1 - self.alpha / self.tests / 2), normal.inv_cdf(self.power)


class PowerResult(Struct, frozen=True):
    """``min_n`` documents give the wanted power; the last three fields are set if a number of documents was given."""

    min_n: int
    effect_size: float
    std_a: float
    std_b: float
    alpha: float
    power: float
    correlation: float
    current_n: int | None = None
    current_power: float | None = None
    min_detectable_effect: float | None = None


def power_analysis(question: PowerQuestion, current_n: int | None = None) -> PowerResult:
    """n = ⌈((z_{1−α/2} + z_power) σ_d / effect)²⌉ with σ_d² = (σ_a² + σ_b² − 2ρσ_aσ_b) · design effect.

    For ``current_n`` documents: power = Φ(effect √n/σ_d − z_{1−α/2}) and the smallest detectable effect
    (z + z) σ_d/√n, both rounded to 4 digits. If the differences have no spread (σ_d = 0), two documents show any
    difference.

    Raises:
        UsageError: a parameter is out of its range.
    """
    question.check()
    if current_n is not None and current_n < 1:
        raise UsageError("power analysis: the number of documents must be at least 1")
    given_a, given_b = question.std_a, question.std_b
    std_a = given_a if given_a is not None else given_b if given_b is not None else _DEFAULT_STD
    std_b = given_b if given_b is not None else std_a
    squares = std_a**2 + std_b**2 - 2 * question.correlation * std_a * std_b
    spread = math.sqrt(max(0.0, squares) * question.design_effect)
    normal, (z_alpha, z_power) = NormalDist(), question.quantiles()
    needed = math.ceil(((z_alpha + z_power) * spread / question.effect_size) ** 2) if spread else _SMALLEST_N
    current_power = smallest = None
    if current_n is not None:
        reach = question.effect_size / spread * math.sqrt(current_n) if spread else math.inf
        current_power = round(normal.cdf(reach - z_alpha), 4) if spread else 1.0
        smallest = round((z_alpha + z_power) * spread / math.sqrt(current_n), 4)
    return PowerResult(
        needed, question.effect_size, std_a, std_b, question.alpha, question.power, question.correlation,
        current_n, current_power, smallest,
    )  # fmt: skip


class RepeatPlan(Struct, frozen=True):
    """Questions and answers that give a paired comparison its power."""

    repeats: int
    """Answers to each question."""
    documents: int
    price: float
    """Price of both the questions and their answers, for one model."""


def repeat_plans(
    question: PowerQuestion, questions: float, answers: float, prices: tuple[float, float] = (0.0, 1.0), most: int = 64
) -> list[RepeatPlan]:
    """Return a plan for each number of repeats k from 1 to ``most``.

    The variance of a question's difference between two models is 2 σ²_questions (1 − ρ) · design effect +
    2 σ²_answers / k: the expected scores of questions correlate by ρ between the models, their answers are drawn
    independently. With the price c of a question and c' of an answer a plan costs n (c + k c'), as two-stage samples do
    (Cochran 1977, "Sampling Techniques", section 10.6).

    Args:
        question: the planned comparison; ``correlation`` is that of the questions' expected scores.
        questions: variance between the expected scores of questions.
        answers: variance between answers to one question, with the judge's verdicts.
        prices: price of a question, and of each answer to it.
        most: greatest number of repeats.

    Raises:
        UsageError: a parameter is out of its range.
    """
    question.check()
    if not (all(0 <= price < math.inf for price in prices) and sum(prices) > 0 and most >= 1):
        raise UsageError("power analysis: prices must be numbers of at least 0 that are not both 0")
    shared = 2 * max(0.0, questions) * (1 - question.correlation) * question.design_effect
    factor = (sum(question.quantiles()) / question.effect_size) ** 2
    plans = []
    for k in range(1, most + 1):
        n = max(_SMALLEST_N, math.ceil(factor * (shared + 2 * answers / k)))
        plans.append(RepeatPlan(k, n, n * (prices[0] + k * prices[1])))
    return plans


def asked_until(
    total: int, score: float, holds: Callable[[float, float], bool], orders: int = 40, seed: int = 0
) -> list[int]:
    """Simulate after how many documents of a list the live interval of a score first meets a condition.

    The list has right-or-wrong documents with this score, in random orders, with a look after every document.

    Args:
        total: documents of the list.
        score: share of right ones.
        holds: the condition, called with the ends of the interval.
        orders: number of random orders.
        seed: seed of the orders.

    Returns:
        For each order the number of documents; ``total`` if the condition is not met before the last one.

    Raises:
        UsageError: a parameter is out of its range.
    """
    if not (total >= 2 and 0 <= score <= 1 and orders >= 1):
        raise UsageError(f"power: {total} documents with a score of {score}: give at least 2, and a score from 0 to 1")
    from random import Random

    from lmms_eval.stats.sequence import Sampled

    right = round(score * total)
    values = [1.0] * right + [0.0] * (total - right)
    generator, found = Random(seed), []
    for _ in range(orders):
        generator.shuffle(values)
        ends = Sampled(total, SHARES).after_each(values)
        found.append(next((n for n, (low, high) in enumerate(ends, 1) if holds(low, high)), total))
    return found


def detectable(spread: float, n: int, alpha: float = 0.05, power: float = 0.8, step: float = 0.0) -> float:
    """Return the smallest true difference that a two-sided paired test of ``n`` documents detects with that power.

    The root of P(|T| > t_{1−α/2}) = power, T Student's noncentral t with n − 1 degrees of freedom and the difference
    over its standard error, spread / √n, as noncentrality (Cohen 1988, "Statistical Power Analysis for the Behavioral
    Sciences", chapter 2). 0 if the differences have no spread.

    McNemar's exact test sees whole documents, and so rejects less often than the t-test. Its power is that of the
    t-test for a difference that is smaller by one document of ``n`` (the continuity correction of Fleiss, Levin and
    Paik 2003, "Statistical Methods for Rates and Proportions", section 2.4).

    Args:
        spread: standard deviation of a document's difference (``PairedFinding.spread``: clusters included).
        n: documents, at least two.
        alpha: level of the test.
        power: probability of detecting the difference.
        step: the score of a right answer if McNemar's exact test is used, else 0.

    Raises:
        UsageError: a parameter is out of its range.
    """
    _check_plan(spread, alpha, power)
    if n < 2:
        raise UsageError(f"detectable difference: {n} documents; needs at least 2")
    from scipy.optimize import brentq

    farthest = 10.0
    while power_of_test(farthest, n - 1, alpha) < power:
        farthest *= 2
    shift = brentq(lambda shift: power_of_test(shift, n - 1, alpha) - power, 0.0, farthest, xtol=1e-13, rtol=1e-14)
    return float(shift) * spread / math.sqrt(n) + step / n


def documents_needed(
    spread: float,
    effect: float,
    alpha: float = 0.05,
    power: float = 0.8,
    margin: float | None = None,
    step: float = 0.0,
) -> int:
    """Return the number of documents that show a true difference of ``effect`` with that power; at least two.

    With a ``margin``, return the number that shows by two one-sided tests that the difference is smaller than the
    margin if it truly is ``effect``. The power is P(T₊ > t_{1−α}) + P(T₋ < −t_{1−α}) − 1, with noncentral T of n − 1
    degrees of freedom and (effect ± margin) √n / spread (Phillips 1990, "Power of the two one-sided tests procedure in
    bioequivalence", Journal of Pharmacokinetics and Biopharmaceutics 18, by its usual approximation).

    ``step`` is that of ``detectable``; it does not apply with a margin, where the tests are not exact.

    Raises:
        UsageError: a parameter is out of its range: the effect is 0, or it does not lie within the margin.
    """
    _check_plan(spread, alpha, power)
    if margin is None and not 0 < abs(effect) < math.inf:
        raise UsageError(f"documents needed: an effect of {effect}; give a difference other than 0")
    if margin is not None and not abs(effect) < margin < math.inf:
        raise UsageError(f"documents needed: margin {margin} around an effect of {effect}; give a margin beyond it")
    if spread == 0:
        return _SMALLEST_N
    if margin is None:

        def reached(n: int) -> float:
            return power_of_test(max(0.0, abs(effect) - step / n) / spread * math.sqrt(n), n - 1, alpha)

        return _smallest(reached, power)
    low, high = (effect - margin) / spread, (effect + margin) / spread
    return _smallest(lambda n: _equivalence_power(low * math.sqrt(n), high * math.sqrt(n), n - 1, alpha), power)


def power_of_test(shift: float, freedom: float, alpha: float = 0.05) -> float:
    """Power of the two-sided t-test for a true difference of ``shift`` standard errors."""
    from scipy.special import nctdtr, stdtrit

    reach = float(stdtrit(freedom, 1 - alpha / 2))
    # For tails that far (from 4 errors on, below 1e-9) the library does not always return a number.
    other = float(nctdtr(freedom, shift, -reach))
    return 1 - float(nctdtr(freedom, shift, reach)) + (other if math.isfinite(other) else 0.0)


def _equivalence_power(low: float, high: float, freedom: float, alpha: float) -> float:
    from scipy.special import nctdtr, stdtrit

    reach = float(stdtrit(freedom, 1 - alpha))
    return 1 - float(nctdtr(freedom, -low, reach) + nctdtr(freedom, high, reach))


def _smallest(reached: Callable[[int], float], power: float) -> int:
    """Return the smallest number of documents (at least 2) with that power, which grows with the documents."""
    enough = _SMALLEST_N
    while reached(enough) < power:
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        too_few, enough = (middle, enough) if reached(middle) < power else (too_few, middle)
    return enough


def _check_plan(spread: float, alpha: float, power: float) -> None:
    complaints = {
        f"spread {spread}: give a number of at least 0": 0 <= spread < math.inf,
        f"alpha {alpha}: give a probability between 0 and 1": 0 < alpha < 1,
        f"power {power}: give a probability between alpha and 1": alpha < power < 1,
    }
    for complaint, is_fine in complaints.items():
        if not is_fine:
            raise UsageError(f"power: {complaint}")
