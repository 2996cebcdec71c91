"""The number of documents that a paired comparison needs (harness specification §6.7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from lmms_eval.errors import UsageError

_DEFAULT_STD = 0.5
_SMALLEST_N = 2


@dataclass(frozen=True, slots=True)
class PowerQuestion:
    """A planned comparison: the smallest difference that matters, and spread and correlation of the models' scores.

    A standard deviation that is not given equals the other one, or 0.5 where neither is.
    """

    effect_size: float = 0.03
    std_a: float | None = None
    std_b: float | None = None
    alpha: float = 0.05
    power: float = 0.8
    correlation: float = 0.5


@dataclass(frozen=True, slots=True)
class PowerResult:
    """``min_n`` documents give the wanted power; the last three are filled where a number of documents was given."""

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
    (z + z) σ_d/√n, both rounded to 4 digits. Where the differences do not spread at all (σ_d = 0), two
    documents show any difference.

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
