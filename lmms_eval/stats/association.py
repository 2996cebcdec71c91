"""The slope of scores over a property of the answers, such as their length, and how certain it is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

from msgspec import Struct

from lmms_eval.stats.interval import Interval, NoInterval, t_ppf

LEAST_UNITS = 30
"""With fewer documents (clusters), there is no interval."""
LEAST_FREE = 12
"""Least number of units of one size and leverage with the same information."""
LEAST_CELL = 10
"""Least number of documents that are expected to differ from the most common score and value of the property."""
_ROUNDING = 1e-9
"""A sum of squares below this share of the whole one is due to rounding."""


class Slope(Struct, frozen=True):
    """A slope of scores over a property of the documents."""

    value: float
    """Change of the score for one unit of the property, at equal values of the control."""
    correlation: float
    """Standardised slope: correlation of what the control leaves of the scores and of the property."""
    interval: Interval | NoInterval
    """95 % interval of ``value``."""
    n: int
    """Documents."""

    @property
    def is_clear(self) -> bool:
        """Whether the interval lies on one side of 0."""
        found = self.interval
        return isinstance(found, Interval) and (found.low > 0 or found.high < 0)


class SlopeData(Struct, frozen=True):
    """Scores and a property of the same documents."""

    scores: Sequence[float]
    property: Sequence[float]
    control: Sequence[float] | None = None
    """A number at whose equal values scores and property are compared."""
    weights: Sequence[float] | None = None
    """Inverse probabilities with which the documents were drawn; ``None`` if they are equal."""
    clusters: Sequence[Hashable] | None = None
    """The cluster of each document; ``None`` if documents are independent."""


def slope(documents: SlopeData, level: float = 0.95) -> Slope | NoInterval:
    """Estimate a slope by weighted least squares, and its interval by leaving out one cluster after the other.

    With a control, it is the coefficient of the property in a regression of the scores on property and control. The
    interval is that of the jackknife (Efron and Stein 1981, "The jackknife estimate of variance", Annals of Statistics
    9) with Student's t. It assumes neither equal variances nor independent documents within a cluster. Its degrees of
    freedom are those of clusters of one size, (Σ m)² / Σ m² − 1, and of one leverage, (Σ d)² / Σ d² − 1 with d the
    cluster's part of the property's sum of squares, whichever is smaller.

    Returns:
        The slope, or the reason why it is missing.
    """
    n = len(documents.scores)
    weights = documents.weights or [1.0] * n
    y, x = _centred(documents.scores, weights), _centred(documents.property, weights)
    control = [0.0] * n if documents.control is None else _centred(documents.control, weights)
    rows = [
        (w, w * a, w * b, w * c, w * a * a, w * b * b, w * c * c, w * a * b, w * a * c, w * b * c)
        for w, a, b, c in zip(weights, x, y, control, strict=True)
    ]
    whole = _sums(rows)
    value = _fitted(whole, whole)
    if value is None:
        return NoInterval("the lengths or the scores do not vary")
    units: dict[Hashable, list[int]] = {}
    for place, name in enumerate(range(n) if documents.clusters is None else documents.clusters):
        units.setdefault(name, []).append(place)
    kind = "documents" if documents.clusters is None else "clusters"
    reason = f"{len(units)} {kind}" if len(units) < LEAST_UNITS else _few(documents)
    if reason:
        return Slope(*value, NoInterval(reason), n)
    sums = [_sums([rows[place] for place in places]) for places in units.values()]
    leverage = [_leverage(one, whole) for one in sums]
    sizes = [len(places) for places in units.values()]
    freedom = min(_alike(leverage), _alike(sizes)) - 1
    left = [_fitted([all_ - own for all_, own in zip(whole, one, strict=True)], whole) for one in sums]
    known = [one[0] for one in left if one is not None]
    if len(known) < len(left) or freedom < LEAST_FREE - 1:
        return Slope(*value, NoInterval(f"few {kind} of unusual length decide it"), n)
    centre = math.fsum(known) / len(known)
    error = math.sqrt((len(known) - 1) / len(known) * math.fsum((one - centre) ** 2 for one in known))
    if not error:
        return Slope(*value, NoInterval("no spread"), n)
    reach = t_ppf(0.5 + level / 2, freedom) * error
    return Slope(*value, Interval(value[0] - reach, value[0] + reach, "jackknife"), n)


def _centred(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    mean = math.fsum(w * each for w, each in zip(weights, values, strict=True)) / math.fsum(weights)
    return [each - mean for each in values]


_Row = tuple[float, ...]


def _sums(rows: Sequence[_Row]) -> list[float]:
    return [math.fsum(column) for column in zip(*rows, strict=True)]


def _products(sums: Sequence[float]) -> tuple[float, float, float, float, float, float]:
    """Return the centred sums xx, yy, hh, xy, xh, yh of weighted documents."""
    w, x, y, h, xx, yy, hh, xy, xh, yh = sums
    return xx - x * x / w, yy - y * y / w, hh - h * h / w, xy - x * y / w, xh - x * h / w, yh - y * h / w


def _fitted(sums: Sequence[float], whole: Sequence[float]) -> tuple[float, float] | None:
    """Return slope and standardised slope; ``None`` if a side does not vary at equal values of the control."""
    if sums[0] <= 0:
        return None
    xx, yy, hh, xy, xh, yh = _products(sums)
    if hh > _ROUNDING * whole[6] and whole[6] > 0:
        xx, yy, xy = xx - xh * xh / hh, yy - yh * yh / hh, xy - xh * yh / hh
    if xx <= _ROUNDING * whole[4] or yy <= _ROUNDING * whole[5] or not whole[4] or not whole[5]:
        return None
    return xy / xx, max(-1.0, min(1.0, xy / math.sqrt(xx * yy)))


def _leverage(sums: Sequence[float], whole: Sequence[float]) -> float:
    """Return a cluster's part of the property's sum of squares, without what the control explains."""
    _, _, hh, _, xh, _ = _products(whole)
    rate = xh / hh if hh > 0 else 0.0
    return max(0.0, sums[4] - 2 * rate * sums[8] + rate * rate * sums[6])


def _alike(parts: Sequence[float]) -> float:
    """Return the number of equal parts with the same information, (Σ p)² / Σ p²."""
    squares = math.fsum(part * part for part in parts)
    return math.fsum(parts) ** 2 / squares if squares > 0 else 0.0


def _few(documents: SlopeData) -> str:
    """Return why the documents are too alike for an interval; empty if they are not."""
    n = len(documents.scores)
    odd = [n - Counter(values).most_common(1)[0][1] for values in (documents.scores, documents.property)]
    expected = odd[0] * odd[1] / n
    return f"only {odd[0]} scores or {odd[1]} lengths differ from the most common one" if expected < LEAST_CELL else ""
