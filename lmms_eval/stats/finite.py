"""Intervals for the mean over a finite list of documents after a random sample of them was asked.

They are about this list and answers like these, not about other documents: they become narrower with the share that
was asked, and end in a point if all were. Documents of one picture or video do no harm, since only the draw is random.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, structs

from lmms_eval.stats.interval import (
    COMBINED,
    Interval,
    MeanSpread,
    NoInterval,
    needs_bound,
    score_interval,
    variance_freedom,
)
from lmms_eval.utils.numbers import SHARES, ScoreRange

EXACT = "hypergeometric"
CONTINUITY = 1.75
"""Length in documents that each end of a combined interval gains: by enumeration, it then holds in 95 % for two to four
strata of 12 to 100 documents, 5 to 30 of them drawn."""
MOST_STRATA, LEAST_DRAWN = 5, 8
"""Most strata of ``strata_by_spread``, and the number of drawn documents that each needs."""
_LEAST_LEFT, _LEAST_AT_AN_END = 30, 10
"""Least number of documents that were not drawn, and least sum of the drawn scores' distances from either end in
ranges, for an interval by the standard error."""


class DrawnScores(Struct, frozen=True):
    """The scores of the documents that were drawn from a list, or from one stratum of it, in the order of the draw."""

    low: Sequence[float]
    """The least possible score of each document; a document without a score has the low end of the range."""
    high: Sequence[float]
    """The greatest possible score of each."""
    total: int
    """Number of documents of the list or stratum."""


def list_interval(strata: Sequence[DrawnScores], within: ScoreRange, level: float = 0.95) -> Interval | NoInterval:
    """Return the interval for the plain mean of the strata's means over the whole list.

    One stratum of right-or-wrong scores has the exact limits of the hypergeometric distribution (Wright 1991, "Exact
    confidence bounds when sampling from small finite universes"). Other scores have the interval of ``score_interval``
    with the error times √(1 − n / N) (Cochran 1977, "Sampling Techniques", chapters 2 and 5). Few or
    very skewed scores, scores near an end of the range, and samples of nearly the whole list have the betting interval
    without replacement of ``stats.sequence``, which holds for all scores.

    Args:
        strata: the scores, of one or several strata.
        within: finite range of a score.
        level: probability that such an interval contains the mean.
    """
    if any(len(one.low) < min(2, one.total) for one in strata):
        return NoInterval("a stratum has one drawn document" if len(strata) > 1 else "n = 1")
    low = _interval([(one.low, one.total) for one in strata], within, level)
    if all(list(one.low) == list(one.high) for one in strata):
        return low
    high = _interval([(one.high, one.total) for one in strata], within, level)
    if isinstance(low, NoInterval) or isinstance(high, NoInterval):
        return low if isinstance(low, NoInterval) else high
    return Interval(low.low, high.high, low.method)


def weighted_interval(
    strata: Sequence[DrawnScores], within: ScoreRange, level: float = 0.95
) -> tuple[float, Interval] | NoInterval:
    """Return the mean of a whole list that was drawn by strata, each weighted by its size, and its interval.

    The strata's own intervals (``list_interval``) are combined, so that few documents, shares near 0 or 1 and strata
    that were asked as a whole need no rule of their own.

    Args:
        strata: the scores of each stratum, in any number; documents without a score have two ends.
        within: finite range of a score.
        level: probability that such an interval contains the mean.
    """
    total = sum(one.total for one in strata)
    parts: list[tuple[float, float, Interval]] = []
    for one in strata:
        found = list_interval([one], within, level)
        if isinstance(found, NoInterval):
            return found
        known = [low for low, high in zip(one.low, one.high, strict=True) if low == high]
        if not known:
            return NoInterval("a stratum has no scored document")
        parts.append((one.total / total, math.fsum(known) / len(known), found))
    several = sum(len(one.low) < one.total for one in strata) > 1
    return combined_interval(parts, CONTINUITY * (within.high - within.low) / total if several else 0.0)


def combined_interval(parts: Sequence[tuple[float, float, Interval]], more: float = 0.0) -> tuple[float, Interval]:
    """Return a weighted sum of independent estimates, and its interval from theirs.

    The distances from the sum to its ends are the roots of the sums of the parts' squared distances (MOVER: Zou and
    Donner 2008, "Construction of confidence intervals about effect measures", Statistics in Medicine 27).

    Args:
        parts: weight, estimate and interval of each part.
        more: length to add at each end, within what all parts' ends allow.
    """
    value = math.fsum(weight * estimate for weight, estimate, _ in parts)
    below = math.hypot(*(weight * (estimate - found.low) for weight, estimate, found in parts))
    above = math.hypot(*(weight * (found.high - estimate) for weight, estimate, found in parts))
    least = math.fsum(weight * found.low for weight, _, found in parts)
    greatest = math.fsum(weight * found.high for weight, _, found in parts)
    return value, Interval(max(least, value - below - more), min(greatest, value + above + more), COMBINED)


def strata_by_spread(expected: Sequence[float], drawn: int) -> list[int]:
    """Divide documents by their expected scores, and return the number of each one's stratum, from 0 for the lowest.

    Each stratum has about the same sum of expected standard deviations √(g (1 − g)), so that Neyman's allocation draws
    about as many documents from each (after Dalenius and Hodges 1959, "Minimum variance stratification", Journal of the
    American Statistical Association 54). Documents of one expected score stay together.

    Args:
        expected: g, the expected score of each document as a share of the range.
        drawn: number of documents to draw; there is at most one stratum for each ``LEAST_DRAWN`` of them.
    """
    wanted = max(1, min(MOST_STRATA, drawn // LEAST_DRAWN))
    counts = sorted(Counter(expected).items())
    spreads = [count * math.sqrt(max(0.0, g * (1 - g))) for g, count in counts]
    whole = math.fsum(spreads)
    numbers: dict[float, int] = {}
    stratum, filled, passed, left = 0, 0, 0.0, len(expected)
    for (g, count), spread in zip(counts, spreads, strict=True):
        is_full = (passed + spread / 2) * wanted >= (stratum + 1) * whole
        if spread and is_full and min(filled, left) >= LEAST_DRAWN and stratum + 1 < wanted:
            stratum, filled = stratum + 1, 0
        numbers[g] = stratum
        filled, passed, left = filled + count, passed + spread, left - count
    return [numbers[g] for g in expected]


def _interval(strata: Sequence[tuple[Sequence[float], int]], within: ScoreRange, level: float) -> Interval | NoInterval:
    value = math.fsum(math.fsum(scores) / len(scores) for scores, _ in strata) / len(strata)
    width = within.high - within.low
    drawn = [score for scores, _ in strata for score in scores]
    left = sum(total for _, total in strata) - len(drawn)
    if not left:
        return Interval(value, value, "all documents")
    if len(strata) == 1 and all(score in (within.low, within.high) for score in drawn):
        right = sum(score == within.high for score in drawn)
        low, high = share_limits(right, len(drawn), strata[0][1], level)
        return Interval(within.low + width * low, within.low + width * high, EXACT)
    above = math.fsum(score - within.low for score in drawn) / width
    is_few = left < _LEAST_LEFT or min(above, len(drawn) - above) < _LEAST_AT_AN_END
    if is_few or (len(strata) == 1 and needs_bound(len(drawn), variance_freedom(drawn))):
        return _betting(strata, within, level)
    spreads = [_spread(scores, total, within) for scores, total in strata]
    found = score_interval(value, MeanSpread.stratified(spreads, [1.0] * len(spreads)), within, level)
    if isinstance(found, NoInterval):
        return found
    return Interval(found.low, found.high, f"{found.method}, finite list")


def _betting(strata: Sequence[tuple[Sequence[float], int]], within: ScoreRange, level: float) -> Interval:
    """Return the interval of the sequences that ``--until`` uses, which holds for any scores within the range."""
    from lmms_eval.stats.sequence import Sampled, StratifiedSampled

    width = within.high - within.low
    places = sorted(
        ((number + 0.5) / len(scores), stratum, (score - within.low) / width)
        for stratum, (scores, _) in enumerate(strata)
        for number, score in enumerate(scores)
    )
    if len(strata) == 1:
        one = Sampled(strata[0][1], SHARES, level)
        for _, _, share in places:
            one.add(share, share)
        found = one.interval()
    else:
        several = StratifiedSampled([total for _, total in strata], [1 / len(strata)] * len(strata), SHARES, level)
        for _, stratum, share in places:
            several.add(stratum, share, share)
        found = several.interval()
    return Interval(within.low + width * found.low, within.low + width * found.high, found.method)


def _spread(scores: Sequence[float], total: int, within: ScoreRange) -> MeanSpread:
    """Return the spread of the mean of scores that were drawn from ``total`` documents."""
    spread = structs.replace(MeanSpread.of_scores(scores, within), is_binary=False, graded=())
    left = 1 - len(scores) / total
    if not left:
        return structs.replace(spread, error=0.0, size=1e12, silent=0.0)
    size = len(scores) / left
    silent = 1 / size if spread.silent else 0.0
    return structs.replace(spread, error=spread.error * math.sqrt(left), size=size, silent=silent)


@functools.lru_cache(maxsize=4096)
def share_limits(right: int, asked: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact limits for the share of right answers over a list.

    A number of right answers over the list is refuted if it makes so few, or so many, among those asked less probable
    than (1 - level) / 2.

    Args:
        right: number of right answers among those asked.
        asked: number of documents drawn without replacement.
        total: number of documents of the list.
        level: least probability that the limits contain the share.
    """
    from scipy.stats import hypergeom

    error = (1 - level) / 2
    # Both probabilities are monotone in the number of right answers over the list, so each end is found by halving.
    least, most = right, total - (asked - right)
    low, high = least, most
    while low < high:
        middle = (low + high) // 2
        if hypergeom.sf(right - 1, total, middle, asked) >= error:
            high = middle
        else:
            low = middle + 1
    first, high = low, most
    while low < high:
        middle = (low + high + 1) // 2
        if hypergeom.cdf(right, total, middle, asked) >= error:
            low = middle
        else:
            high = middle - 1
    return first / total, low / total
