"""The number of documents that a paired comparison needs (harness specification §6.7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from msgspec import Struct

from lmms_eval.errors import UsageError

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
    """n = ⌈((z_{1−α/2} + z_power) σ_d / effect)²⌉ with σ_d² = σ_a² + σ_b² − 2ρσ_aσ_b.

    For ``current_n`` documents: power = Φ(effect √n/σ_d − z_{1−α/2}) and the smallest detectable effect
    (z + z) σ_d/√n, both rounded to 4 digits. If the differences have no spread (σ_d = 0), two documents show any
    difference.

    Raises:
        UsageError: a parameter is out of its range.
    """
    complaints = {
        "effect size must be a number above 0": 0 < question.effect_size < math.inf,
        "alpha must lie between 0 and 1": 0 < question.alpha < 1,
        "power must lie between 0 and 1": 0 < question.power < 1,
        "correlation must lie between -1 and 1": -1 <= question.correlation <= 1,
        "standard deviations must be numbers of at least 0": all(
            std is None or 0 <= std < math.inf for std in (question.std_a, question.std_b)
        ),
        "the number of documents must be at least 1": current_n is None or current_n >= 1,
    }
    for complaint, is_fine in complaints.items():
        if not is_fine:
            raise UsageError(f"power analysis: {complaint}")
    given_a, given_b = question.std_a, question.std_b
    std_a = given_a if given_a is not None else given_b if given_b is not None else _DEFAULT_STD
    std_b = given_b if given_b is not None else std_a
    spread = math.sqrt(max(0.0, std_a**2 + std_b**2 - 2 * question.correlation * std_a * std_b))
    normal = NormalDist()
    z_alpha, z_power = normal.inv_cdf(1 - question.alpha / 2), normal.inv_cdf(question.power)
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
