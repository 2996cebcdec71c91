"""Two one-sided tests: is a difference smaller than a margin?"""

from __future__ import annotations

import math
from statistics import NormalDist

from lmms_eval.errors import UsageError
from lmms_eval.stats.differences import PairedFinding
from lmms_eval.stats.interval import NoInterval
from lmms_eval.stats.student import t_cdf
from lmms_eval.stats.tango import score_statistic


def non_inferiority_p(found: PairedFinding, margin: float) -> float | None:
    """One-sided p of the hypothesis that the first run is worse than the second by ``margin`` or more.

    Of right-or-wrong scores by Tango's score test (1998), of others by Student's t; both use the standard error of the
    finding, clusters included. ``None`` where the finding has no interval: without a spread nothing can be tested.

    Raises:
        UsageError: ``margin`` is not a number above 0.
    """
    _check(margin)
    statistic = _statistic(found, -margin)
    return None if statistic is None else _upper_tail(statistic, found)


def equivalence_p(found: PairedFinding, margin: float) -> float | None:
    """P of the hypothesis that the true difference is ``margin`` or more, in either direction.

    The greater one of two one-sided tests (Schuirmann 1987, "A comparison of the two one-sided tests procedure and the
    power approach", Journal of Pharmacokinetics and Biopharmaceutics 15); below α, the runs are equivalent. ``None``
    and errors are those of ``non_inferiority_p``.
    """
    _check(margin)
    above, below = _statistic(found, -margin), _statistic(found, margin)
    if above is None or below is None:
        return None
    return max(_upper_tail(above, found), _upper_tail(-below, found))


def _check(margin: float) -> None:
    if not 0 < margin < math.inf:
        raise UsageError(f"margin {margin}: give a number above 0, in the units of the scores")


def _statistic(found: PairedFinding, bound: float) -> float | None:
    """Distance of the difference from ``bound``, in standard errors."""
    if isinstance(found.interval, NoInterval):
        return None
    if found.discordant is not None:
        return score_statistic(found.discordant, max(-1.0, min(1.0, bound / found.scale)))
    return (found.value - bound) / found.stderr


def _upper_tail(statistic: float, found: PairedFinding) -> float:
    freedom = found.freedom if found.discordant is None else found.discordant.freedom
    return NormalDist().cdf(-statistic) if math.isinf(freedom) else t_cdf(-statistic, freedom)
