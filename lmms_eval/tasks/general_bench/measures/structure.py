"""Structure measure of a saliency map (Fan et al., "Structure-measure: A New Way to Evaluate Foreground Maps").

In two variants: as published, and the simplified one of the benchmark's authors (General-Bench specification §5.2).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_TINY = 2.220446049250313e-16
_OBJECT_WEIGHT = 0.5
_AUTHORS_TINY = 1e-8
_LEVEL_CONSTANT, _SPREAD_CONSTANT = 1e-4, 9e-4
"""Of the authors' structural similarity."""


def structure_measure(prediction: NDArray[Any], truth: NDArray[Any]) -> float:
    """S-measure with equal weights of object and region, from 0 to 1.

    Quarters without a pixel (the centroid lies on the border) are left out.

    Args:
        prediction: Saliency from 0 to 1, shape (height, width).
        truth: The object, bool, same shape.
    """
    return _weighted(prediction, truth, (_object_score, _similarity), lambda centre: math.floor(centre + 1.5))


def _weighted(
    prediction: NDArray[Any], truth: NDArray[Any], parts: tuple[Callable[..., float], ...], cut: Callable[[float], int]
) -> float:
    """Weigh object and region alike.

    Args:
        prediction: as ``structure_measure`` has it.
        truth: likewise.
        parts: the score of one side of the object's border, and the similarity of a quarter.
        cut: from the mean row or column of the object to the place where the quarters meet.
    """
    object_score, similarity = parts
    share = float(truth.mean())
    if share == 0:
        return 1 - float(prediction.mean())
    if share == 1:
        return float(prediction.mean())
    inside = share * object_score(prediction[truth]) + (1 - share) * object_score(1 - prediction[~truth])
    row, column = (cut(float(places.mean())) for places in truth.nonzero())  # of the object's centroid
    quarters = [
        (down, across)
        for down in (slice(None, row), slice(row, None))
        for across in (slice(None, column), slice(column, None))
    ]
    region = math.fsum(
        truth[quarter].size / truth.size * similarity(prediction[quarter], truth[quarter])
        for quarter in quarters
        if truth[quarter].size
    )
    return max(0.0, _OBJECT_WEIGHT * inside + (1 - _OBJECT_WEIGHT) * region)


def _object_score(values: NDArray[Any]) -> float:
    """Object-aware score: level and evenness of the values on one side of the object's border."""
    level = float(values.mean())
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return 2 * level / (level * level + 1 + spread + _TINY)


def _similarity(prediction: NDArray[Any], truth: NDArray[Any]) -> float:
    """Structural similarity of a quarter, without constants."""
    x, y = prediction, truth.astype(prediction.dtype)
    mean_x, mean_y = float(x.mean()), float(y.mean())
    count = x.size - 1 + _TINY
    spread = (float(((x - mean_x) ** 2).sum()) + float(((y - mean_y) ** 2).sum())) / count
    shared = float(((x - mean_x) * (y - mean_y)).sum()) / count
    above = 4 * mean_x * mean_y * shared
    below = (mean_x**2 + mean_y**2) * spread
    if above != 0:
        return above / (below + _TINY)
    return 1.0 if below == 0 else 0.0


def authors_structure_measure(prediction: NDArray[Any], truth: NDArray[Any]) -> float:
    """The authors' simplified S-measure, from 0 to 1; NaN where a quarter has no pixel.

    Object: spreads of the population. Region: quarters around the rounded centroid, compared by the structural
    similarity with constants. A centroid in the first row or column leaves a quarter without a pixel.

    Args:
        prediction: Saliency from 0 to 1, shape (height, width).
        truth: The object, bool, same shape.
    """
    is_divided = 0 < float(truth.mean()) < 1
    if is_divided and any(not round(float(places.mean())) for places in truth.nonzero()):
        return math.nan
    return _weighted(prediction, truth, (_authors_object, _authors_similarity), round)


def _authors_object(values: NDArray[Any]) -> float:
    level, spread = float(values.mean()), float(values.std())
    return 2 * level / (level * level + 1 + spread + _AUTHORS_TINY)


def _authors_similarity(prediction: NDArray[Any], truth: NDArray[Any]) -> float:
    x, y = prediction, truth.astype(prediction.dtype)
    mean_x, mean_y = float(x.mean()), float(y.mean())
    shared = float(((x - mean_x) * (y - mean_y)).mean())
    above = (2 * mean_x * mean_y + _LEVEL_CONSTANT) * (2 * shared + _SPREAD_CONSTANT)
    levels = mean_x**2 + mean_y**2 + _LEVEL_CONSTANT
    return above / (levels * (float(x.var()) + float(y.var()) + _SPREAD_CONSTANT) + _AUTHORS_TINY)
