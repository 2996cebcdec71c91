"""Mapping of values to scores from 0 to 100, and the formulas of levels 2 to 5.

Sources are arXiv 2505.04620 (General-Level) and the General-Bench specification §6 (mapping), §8.2 and §8.3 (levels).
``map_score`` and ``ranker_score`` follow the reference, faults included: names are compared exactly in upper case, zero
and infinity become 0, and values outside the domain are not clipped. ``paper_score`` is the mapping that the paper
describes: by metric, the limit at zero, clipped.

``C`` and ``G`` are a modality's M comprehension and N generation rows. Divisors are always numbers of rows, so that a
task without a score counts as zero.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import LANGUAGE, MODALITIES, Metric, Rule, metrics

_RECOGNISED = {"abs_rel": "ABSREL", "ms_ssim": "MS-SSIM", "chamfer_distance": "CD"}
"""Names of mapped metrics that differ from their key in upper case."""
_BELOW_ONE = math.nextafter(1.0, 0.0)


def sigmoid(x: float) -> float:
    """Return the logistic function. Raises ``DataError`` if ``x`` is so negative that the exponential overflows."""
    try:
        return 1.0 / (1.0 + math.exp(-x))
    except OverflowError:
        raise DataError(f"logistic function of {x}: out of range") from None


def two_sigmoid_minus_one(x: float) -> float:
    """Return 2σ(x) - 1."""
    return 2.0 * sigmoid(x) - 1.0


def inverse(x: float, constant: float) -> float:
    """Return 100·(2σ(T/x) - 1): smaller is better, and 0 approaches 100."""
    return 100.0 * two_sigmoid_minus_one(constant / x)


def adjusted_rmse(x: float) -> float:
    """Map an NLP model's RMSE to a share as the reference does: 2σ(5/x) - 1.

    Raises:
        DataError: ``x`` is zero (the reference divides by it), or so small and negative that nothing can be computed.
    """
    if x == 0:
        raise DataError("an RMSE of 0 cannot be mapped by the reference's formula")
    return two_sigmoid_minus_one(5.0 / x)


_RULES: Mapping[Rule, Callable[[float, float], float]] = MappingProxyType(
    {
        "inverse": inverse,
        "tanh": lambda x, constant: 100.0 * math.tanh(x / constant),
        "complement": lambda x, _: 100.0 * (1.0 - x),
        "symmetric": lambda x, _: 100.0 * (x + 1.0) / 2.0,
        "opinion": lambda x, _: 100.0 * (x - 1.0) / 4.0,
    }
)


@functools.cache
def mapped_names() -> Mapping[str, Metric]:
    """Return the metrics that the reference maps, by the names that it knows."""
    mapped = (metric for metric in metrics().values() if metric.mapping)
    return MappingProxyType({_RECOGNISED.get(metric.key, metric.key.upper()): metric for metric in mapped})


def map_score(name: str, x: float) -> float:
    """Map a score by the reference's mapping. Raises ``DataError`` for a value or a name without one."""
    metric = mapped_names().get(name.upper())
    if metric is None:
        raise DataError(f"metric {name!r} has no mapping")
    if not x > 0:
        raise DataError(f"{name} of {x}: the mapping takes values above zero only")
    return _RULES[metric.mapping](x, metric.constant)


def ranker_score(name: str, x: float) -> float:
    """Map a score as the reference's ranker does. Plus infinity means "no score".

    A mapped metric without a score, or with zero, gets 0. Other metrics keep their score. Raises ``DataError`` for a
    negative value of a mapped metric.
    """
    if name.upper() not in mapped_names():
        return x
    return 0.0 if x in (0, math.inf) else map_score(name, x)


def paper_score(metric: Metric, x: float) -> float:
    """Map a score as in the paper: percentages are kept, others mapped, and the result is clipped to 0 to 100."""
    if not metric.mapping:
        value = x
    elif x == 0 and metric.mapping == "inverse":
        value = 100.0
    else:
        value = _RULES[metric.mapping](x, metric.constant)
    return min(100.0, max(0.0, value))


def paper_value(metric: Metric, score: float) -> float:
    """Return the value with the ``paper_score`` ``score`` (0 to 100), or infinity if only the limit has it."""
    share = score / 100.0
    match metric.mapping:
        case "":
            return score
        case "inverse":
            return math.inf if share <= 0 else metric.constant / (2.0 * math.atanh(min(share, _BELOW_ONE)))
        case "tanh":
            return metric.constant * math.atanh(min(share, _BELOW_ONE))
        case "complement":
            return 1.0 - share
        case "symmetric":
            return 2.0 * share - 1.0
        case "opinion":
            return 1.0 + 4.0 * share


REFERENCE_EPSILON = 1e-6
"""Constant that the reference adds to the denominator of level 4."""
WHOLE_LANGUAGE = 100.0
"""S_total of level 5. The paper does not define it; the reference uses 100."""


def mean_of_rows(scores: Sequence[float]) -> float:
    """Divide the sum of the finite scores by the number of rows. Without rows it is 0."""
    return math.fsum(score for score in scores if math.isfinite(score)) / len(scores) if scores else 0.0


def winning_mean(specialists: Sequence[float], scores: Sequence[float]) -> float:
    """Divide the sum of the scores that reach the specialist's (``>=``) by the number of the specialists' rows."""
    won = [score for theirs, score in zip(specialists, scores, strict=False) if is_win(theirs, score)]
    return math.fsum(won) / len(specialists) if specialists else 0.0


def is_win(specialist: float, score: float) -> bool:
    """Return whether both have a score and the model's is not below the specialist's."""
    return math.isfinite(specialist) and math.isfinite(score) and score >= specialist


def level4(comprehension: float, generation: float, epsilon: float = 0.0) -> float:
    """Return the harmonic mean of the winning means. It is 0 if one of them is 0."""
    if comprehension == 0 or generation == 0:
        return 0.0
    return 2.0 * comprehension * generation / (comprehension + generation + epsilon)


def reference_language(metrics: Sequence[str], specialists: Sequence[float], scores: Sequence[float]) -> float:
    """Return the reference's mean over won language rows (0 to 100).

    Only the model's first RMSE is mapped. The specialist's is not. Raises ``DataError`` if that RMSE is 0.
    """
    adjusted = list(scores)
    for row, metric in enumerate(metrics[: len(adjusted)]):
        if metric.upper() == "RMSE":
            raw = adjusted[row]
            adjusted[row] = 100.0 * adjusted_rmse(raw) if math.isfinite(raw) else 0.0
            break
    return winning_mean(specialists, adjusted)


def level5(level4_score: float, language: float) -> float:
    """Return level 4 weighted by the language tasks won: S4 · L / 100."""
    return level4_score * language / WHOLE_LANGUAGE


class GroupMeans(Struct, frozen=True):
    """Means of a sheet over all rows: of the scores, and with rows that are not won counted as 0."""

    mean: float
    winning: float


def modality_levels(groups: Sequence[GroupMeans], epsilon: float = 0.0) -> dict[int, float]:
    """Return levels 2 to 4 of a modality, by number, from its one or two paradigms.

    Levels 2 and 3 are the mean of the paradigms' means (not of all M + N tasks). A single paradigm has no level 4.
    """
    share = 1.0 / len(groups)
    fourth = level4(groups[0].winning, groups[1].winning, epsilon) if len(groups) > 1 else 0.0
    means = (math.fsum(group.mean for group in groups), math.fsum(group.winning for group in groups))
    return {2: share * means[0], 3: share * means[1], 4: fourth}


class AllLevels(Struct, frozen=True):
    """Levels of every modality, of language, and of the whole."""

    modalities: Mapping[str, Mapping[int, float]]
    """Levels 2 to 4 by number, for each modality."""
    language: float
    final: Mapping[int, float]


def combine(groups: Mapping[str, GroupMeans], epsilon: float = 0.0) -> AllLevels:
    """Compute all levels from the means of each sheet, by the sheets' names.

    Levels 2 to 4 are means of the modalities with sheets, equally weighted. Language enters level 5 only.
    """
    found: dict[str, Mapping[int, float]] = {}
    for modality in MODALITIES:
        own = [group for name, group in groups.items() if name.split("-")[0] == modality]
        if own:
            found[modality] = modality_levels(own, epsilon)
    language = groups[LANGUAGE].winning if LANGUAGE in groups else 0.0
    final = {number: mean_of_rows([levels[number] for levels in found.values()]) for number in (2, 3, 4)}
    return AllLevels(found, language, {**final, 5: level5(final[4], language)})
