"""Score test and interval of a difference of paired proportions.

Tango 1998, "Equivalence test and confidence interval for the difference in proportions for the paired-sample design",
Statistics in Medicine 17. It is the paired counterpart of Wilson's interval: it holds where hardly any document or
none at all differs, and never leaves −1 to 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lmms_eval.stats.interval import quantile


@dataclass(frozen=True, slots=True)
class Discordant:
    """Documents that only one of two runs has right, of ``n``; not whole numbers where ``n`` is an effective one."""

    first: float
    second: float
    n: float
    freedom: float = math.inf
    """Degrees of freedom of the spread: infinite for documents drawn independently."""

    @property
    def share(self) -> float:
        """The difference of the shares of right answers."""
        return (self.first - self.second) / self.n


def score_statistic(found: Discordant, difference: float) -> float:
    """Tango's z of the hypothesis that the true shares differ by ``difference``, from −1 to 1; falls as that grows."""
    n, b, c = found.n, found.first, found.second
    linear = (2 * n - b + c) * difference - b - c
    constant = -c * difference * (1 - difference)
    likely = (math.sqrt(max(0.0, linear * linear - 8 * n * constant)) - linear) / (4 * n)
    variance = n * (2 * likely + difference * (1 - difference))
    excess = b - c - n * difference
    if abs(excess) <= 1e-12 * n:
        return 0.0
    return excess / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, excess)


def tango_interval(found: Discordant, level: float = 0.95) -> tuple[float, float]:
    """The differences that the score test does not reject."""
    reach = quantile(found.freedom, level)
    return _limit(found, reach, -1.0), _limit(found, -reach, 1.0)


def _limit(found: Discordant, wanted: float, end: float) -> float:
    """Difference between the observed one and ``end`` where the statistic is ``wanted``."""
    near, far = found.share, end
    for _ in range(60):  # halves 2 to less than the spacing of floating-point numbers
        middle = (near + far) / 2
        if abs(score_statistic(found, middle)) <= abs(wanted):
            near = middle
        else:
            far = middle
    return (near + far) / 2
