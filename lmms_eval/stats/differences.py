"""The mean difference of two runs over the same documents: interval and test (``docs/statistics.md``, Comparisons)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from lmms_eval.errors import UsageError
from lmms_eval.stats.flips import flip_test
from lmms_eval.stats.interval import ANY_NUMBER, MANY, Interval, NoInterval, quantile, variance_freedom
from lmms_eval.stats.redraws import count_blocks, unit_codes, unit_sums
from lmms_eval.stats.tango import Discordant, tango_interval
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from numpy import float64, uint16
    from numpy.typing import ArrayLike, NDArray

MOST_UNITS = 2_048
"""Units that are redrawn one by one; more of them are redrawn in groups made at random."""
GROUPS = 1_024
_MOST_KEPT = 10_000
"""Redraws of groups that are kept for the next comparison: 20 MB."""
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class PairOptions:
    """Parameters of a comparison."""

    level: float = 0.95
    """Probability with which such intervals are to hold the true difference."""
    draws: int = 10_000
    """Redraws of the bootstrap, and flips of the permutation test where there are too many to go through."""
    seed: int = 0
    within: ScoreRange = ANY_NUMBER
    """What a score of either run can be."""


USUAL = PairOptions()


@dataclass(frozen=True, slots=True)
class PairedFinding:
    """The mean of the differences first − second, in the units of the scores."""

    value: float
    """NaN over no documents."""
    n: int
    """Documents."""
    interval: Interval | NoInterval
    p: float | None
    """Two-sided; ``None`` over no documents."""
    test: str
    """``mcnemar exact``, ``permutation exact`` or ``permutation``; empty without a test."""
    spread: float
    """Standard deviation of a document's difference such that the standard error is spread / √n, clusters included. Of
    right-or-wrong scores whose differences are all alike, the one that their interval comes to."""
    units: int
    """Parts that are drawn independently: documents, or clusters of documents."""
    freedom: float
    """Degrees of freedom of the standard error."""
    discordant: Discordant | None = None
    """Of right-or-wrong scores whose interval is the score interval of paired proportions."""
    scale: float = 1.0
    """What a right answer counts, of such scores."""

    @property
    def stderr(self) -> float:
        """The standard error of the value."""
        return self.spread / math.sqrt(self.n) if self.n else math.nan


def compare_pairs(
    first: ArrayLike,
    second: ArrayLike,
    clusters: Sequence[str | None] | None = None,
    options: PairOptions = USUAL,
) -> PairedFinding:
    """Compare scores of two runs, paired by document.

    The interval: of right-or-wrong scores Tango's, of clusters with the effective n; of others the cluster-aware
    studentised bootstrap, and Student's t where the variance rests on fewer than 30 documents (clusters). It ends at
    the largest difference that the range allows. The test: McNemar's exact one of right-or-wrong scores without
    clusters, else the permutation test that flips the signs of whole clusters.

    More than 2,048 units are redrawn in 1,024 groups made at random, for the shape of the studentised mean only: its
    standard error is that of all units, and the skewness of a mean of groups is that of the mean of units.

    Args:
        first: scores, one for each document, no NaN.
        second: scores of the other run for the same documents.
        clusters: name of each document's cluster; those without a name (``None``) are one cluster.
        options: level, draws, seed and range.

    Raises:
        UsageError: the lists differ in length, or hold what is no finite number.
    """
    import numpy as np

    left, right = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    _check(left, right, clusters)
    n = len(left)
    if n == 0:
        return PairedFinding(math.nan, 0, NoInterval("n = 0"), None, "", math.nan, 0, 0.0)
    units = _Units.of(left - right, clusters)
    scale = right_counts(left, right, options.within)
    wins, losses = int(np.count_nonzero(left > right)), int(np.count_nonzero(left < right))
    if scale and clusters is None:
        p, test = mcnemar_exact(wins, losses), "mcnemar exact"
    else:
        p, test = flip_test(units.sums, options.draws, options.seed)
    found = PairedFinding(
        units.value, n, NoInterval("n = 1"), p, test, units.stderr * math.sqrt(n), units.count, units.freedom
    )
    if units.count < 2:
        return found
    if scale:
        return _proportions(found, _discordant(wins, losses, units, scale, clusters is not None), scale, options.level)
    return replace(found, interval=_interval(units, options))


def mcnemar_exact(first: int, second: int) -> float:
    """Two-sided p of McNemar's exact test, from the documents that only the first, only the second run has right."""
    from scipy.stats import binomtest

    return float(binomtest(first, first + second, 0.5).pvalue) if first + second else 1.0


@dataclass(frozen=True, slots=True)
class _Units:
    """Documents or clusters: sums of differences, and numbers of documents."""

    sums: NDArray[float64]
    sizes: NDArray[float64]
    value: float
    stderr: float
    """Of the ratio of the sums by linearisation, √(G / (G − 1) Σ (S − value · m)²) / n; the usual one where each of the
    G units is a document. NaN for one unit."""
    freedom: float
    is_alike: bool
    """All documents' differences are one number."""

    @property
    def count(self) -> int:
        return len(self.sums)

    @classmethod
    def of(cls, differences: NDArray[float64], clusters: Sequence[str | None] | None) -> _Units:
        import numpy as np

        columns = np.stack([differences, np.ones(len(differences))], axis=1)
        if clusters is not None:
            columns = unit_sums(columns, unit_codes(clusters))
        sums, sizes = columns[:, 0], columns[:, 1]
        n, count, value = len(differences), len(columns), math.fsum(differences) / len(differences)
        is_alike = bool(np.ptp(differences) <= _ROUNDING * np.abs(differences).max())
        if count < 2 or is_alike:
            return cls(sums, sizes, value, math.nan if count < 2 else 0.0, count - 1, is_alike)
        residuals = sums - value * sizes
        stderr = math.sqrt(count / (count - 1) * float(residuals @ residuals)) / n
        return cls(sums, sizes, value, stderr, _freedom(residuals.tolist()), is_alike)


def _freedom(residuals: Sequence[float]) -> float:
    """Number of units − 1, or fewer where a few far ones make most of the variance.

    The degrees by their kurtosis are themselves uncertain; half as many as there are units is no sign yet.
    """
    most = len(residuals) - 1
    by_kurtosis = variance_freedom(residuals)
    return most if by_kurtosis >= min(MANY - 1, most / 2) else by_kurtosis


def _check(left: NDArray[float64], right: NDArray[float64], clusters: Sequence[str | None] | None) -> None:
    import numpy as np

    if left.shape != right.shape or left.ndim != 1:
        raise UsageError(f"paired comparison: {left.size} values against {right.size}; pair them by document")
    if clusters is not None and len(clusters) != len(left):
        raise UsageError(f"paired comparison: {len(left)} values but {len(clusters)} clusters; give one for each")
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise UsageError("paired comparison: a score is no finite number; leave out documents without a score")


def right_counts(left: NDArray[float64], right: NDArray[float64], within: ScoreRange) -> float:
    """Return what a right answer counts where all scores are right or wrong (the ends of the range, or 0 and 1, or 0
    and 100), else 0."""
    import numpy as np

    values = set(np.unique(left).tolist()[:3]) | set(np.unique(right).tolist()[:3])
    if math.isfinite(within.high - within.low):
        return within.high - within.low if values <= {within.low, within.high} else 0.0
    if within != ANY_NUMBER:
        return 0.0
    return 1.0 if values <= {0.0, 1.0} else 100.0 if values <= {0.0, 100.0} else 0.0


def _discordant(wins: int, losses: int, units: _Units, scale: float, is_clustered: bool) -> Discordant:
    """Count them; of clusters over the effective number of documents, n over the design effect.

    Rao and Scott 1992, "A simple method for the analysis of clustered binary data", Biometrics 48. Documents that are
    all alike say nothing of the design effect: then a cluster counts as one document.
    """
    n = float(units.sizes.sum())
    if not is_clustered:
        return Discordant(wins, losses, n)
    share = (wins - losses) / n
    plain = ((wins + losses) / n - share**2) / (n - 1)
    effect = n / units.count if units.is_alike else max(1.0, (units.stderr / scale) ** 2 / plain)
    return Discordant(wins / effect, losses / effect, n / effect, units.count - 1)


def _proportions(found: PairedFinding, discordant: Discordant, scale: float, level: float) -> PairedFinding:
    low, high = tango_interval(discordant, level)
    method = "tango" if math.isinf(discordant.freedom) else "tango, effective n"
    spread = found.spread
    if not spread > 0:
        spread = scale * (high - low) / 2 / quantile(discordant.freedom, level) * math.sqrt(found.n)
    interval = Interval(scale * low, scale * high, method)
    return replace(found, interval=interval, spread=spread, discordant=discordant, scale=scale)


def _interval(units: _Units, options: PairOptions) -> Interval | NoInterval:
    """Interval of differences that are not those of right-or-wrong scores."""
    if units.is_alike or units.stderr == 0:
        return NoInterval("no spread")
    if units.freedom < MANY - 1:
        half = quantile(units.freedom, options.level) * units.stderr
        low, high, method = units.value - half, units.value + half, "t"
    else:
        least, greatest = _studentised(units, options)
        low, high = units.value - greatest * units.stderr, units.value - least * units.stderr
        method = "bootstrap-t"
    most = options.within.high - options.within.low
    return Interval(max(low, -most), min(high, most), method)


def _counts(units: int, options: PairOptions) -> Iterable[NDArray[float64]]:
    """Counts of each unit in each redraw; those of groups, which are as many in every comparison, are kept."""
    if units != GROUPS or options.draws > _MOST_KEPT:
        return count_blocks(units, options.draws, options.seed)
    return (counts.astype("float64") for counts in _group_counts(options.draws, options.seed))


@lru_cache(maxsize=1)
def _group_counts(draws: int, seed: int) -> tuple[NDArray[uint16], ...]:
    return tuple(counts.astype("uint16") for counts in count_blocks(GROUPS, draws, seed))


def _studentised(units: _Units, options: PairOptions) -> tuple[float, float]:
    """Quantiles of (value* − value) / stderr* over redrawn units.

    Hall 1992, "The Bootstrap and Edgeworth Expansion", section 1.3 and chapter 3.
    """
    import numpy as np

    sums, sizes = units.sums, units.sizes
    if units.count > MOST_UNITS:
        groups = np.random.default_rng(options.seed).permutation(units.count) % GROUPS
        sums, sizes = unit_sums(np.stack([sums, sizes], axis=1), groups).T
    columns = np.stack([sums, sizes, sums * sums, sums * sizes, sizes * sizes], axis=1)
    drawn = np.concatenate([counts @ columns for counts in _counts(len(sums), options)])
    value = drawn[:, 0] / drawn[:, 1]
    squares = drawn[:, 2] - 2 * value * drawn[:, 3] + value**2 * drawn[:, 4]
    error = np.sqrt(np.maximum(squares, 0.0) * len(sums) / (len(sums) - 1)) / drawn[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = np.nan_to_num((value - units.value) / error, nan=0.0, posinf=math.inf, neginf=-math.inf)
    tail = 0.5 - options.level / 2
    least, greatest = np.quantile(statistics, (tail, 1 - tail))
    return float(least), float(greatest)
