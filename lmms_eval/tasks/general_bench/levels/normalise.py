"""Mapping of a metric's value to a score from 0 to 100 (General-Bench specification §6, the same table as in the
paper).

``map_score`` and ``ranker_score`` follow the reference, faults included: names are compared exactly in upper case, zero
and infinity become 0, and values outside the domain are not clipped. ``paper_score`` is the mapping that the paper
describes: by metric, the limit at zero, clipped.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts.metrics import Metric, Rule, metrics

_RECOGNISED = {"abs_rel": "ABSREL", "ms_ssim": "MS-SSIM", "chamfer_distance": "CD"}
"""Names of mapped metrics that differ from their key in upper case."""
_BELOW_ONE = math.nextafter(1.0, 0.0)


def sigmoid(x: float) -> float:
    """Return the logistic function.

    Raises:
        DataError: ``x`` is so negative that the exponential overflows.
    """
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
    """Map a score by the reference's mapping.

    Raises:
        DataError: the name has no mapping, or the value is not above zero.
    """
    metric = mapped_names().get(name.upper())
    if metric is None:
        raise DataError(f"metric {name!r} has no mapping")
    if not x > 0:
        raise DataError(f"{name} of {x}: the mapping takes values above zero only")
    return _RULES[metric.mapping](x, metric.constant)


def ranker_score(name: str, x: float) -> float:
    """Map a score as the reference's ranker does. Plus infinity means "no score".

    A mapped metric without a score, or with zero, gets 0. Other metrics keep their score.

    Raises:
        DataError: a negative value of a mapped metric.
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
