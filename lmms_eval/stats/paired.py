"""Paired comparison of two runs over the same documents (harness specification §6.6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval.errors import UsageError
from lmms_eval.stats.error import mean_stderr
from lmms_eval.stats.student import t_ppf, two_sided_p


@dataclass(frozen=True, slots=True)
class PairedResult:
    """Mean of (current − baseline), its error, interval, t statistic and two-sided p; NaN for fewer than two pairs."""

    mean_diff: float
    se_diff: float
    ci_lower: float
    ci_upper: float
    t_stat: float
    p_value: float
    n: int


def paired_ttest(current: Sequence[float], baseline: Sequence[float], level: float = 0.95) -> PairedResult:
    """Paired t-test with n − 1 degrees of freedom.

    Without any spread of the differences t is ±∞ (p = 0), or 0 (p = 1) where they are all 0.

    Raises:
        UsageError: the two lists differ in length.
    """
    if len(current) != len(baseline):
        raise UsageError(f"paired comparison: {len(current)} values against {len(baseline)}; pair them by document")
    n = len(current)
    if n < 2:
        return PairedResult(math.nan, math.nan, math.nan, math.nan, math.nan, math.nan, n)
    differences = [a - b for a, b in zip(current, baseline, strict=True)]
    mean, error = math.fsum(differences) / n, mean_stderr(differences)
    if error == 0.0:
        t_stat = math.copysign(math.inf, mean) if mean else 0.0
        return PairedResult(mean, error, mean, mean, t_stat, 0.0 if mean else 1.0, n)
    t_stat = mean / error
    half = t_ppf(0.5 + level / 2, n - 1) * error
    return PairedResult(mean, error, mean - half, mean + half, t_stat, two_sided_p(t_stat, n - 1), n)
