"""The mean difference of two runs over the same documents: interval and test (``docs/statistics.md``, Comparisons)."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.errors import UsageError
from lmms_eval.stats.bootstrap import count_blocks, unit_codes, unit_sums
from lmms_eval.stats.bounded import gaffke_limits, gaffke_p
from lmms_eval.stats.interval import (
    ANY_NUMBER,
    MANY,
    Interval,
    NoInterval,
    dominant_share,
    exchangeable_variance,
    mean_stderr,
    needs_bound,
    quantile,
    t_cdf,
    t_ppf,
    two_sided_p,
    variance_freedom,
)
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from numpy import float64, uint16
    from numpy.typing import ArrayLike, NDArray


EXACT_UNITS = 14
"""Largest number of differing units whose flips (2^14) are all enumerated."""
LARGEST = 2_048
"""Number of units whose signs are drawn one by one."""
_BLOCK_ELEMENTS = 500_000
_OCTET = 8
"""Signs that are drawn as one number; a table holds the sums for its 256 values."""
_SUM_ROUNDING = 1e-9


def flip_test(sums: NDArray[float64], draws: int, seed: int) -> tuple[float, str]:
    """Return the two-sided p of the mean difference, and the name of the test.

    p is the share of all 2^units sign flips whose sum is at least as far from 0 as the observed one (Fisher 1935, "The
    Design of Experiments", section 21). From 15 units that differ on the flips are drawn, and p = (b + 1) / (draws + 1)
    with b of them as far (Phipson and Smyth 2010, "Permutation p-values should never be zero", Statistical
    Applications in Genetics and Molecular Biology 9). Only the 2,048 largest units are flipped one by one. The flipped
    sum of the others is drawn from the normal distribution with its variance: its excess kurtosis lies between
    −2 / units and 0 whatever the values, and no other cumulant up to the fifth differs, so that p changes by less than
    1e-5.

    Args:
        sums: sums of the differences, one for each unit that is flipped as a whole.
    """
    import numpy as np

    sizes = np.abs(sums[sums != 0])
    least = abs(math.fsum(sums)) - _SUM_ROUNDING * float(sizes.sum())
    if len(sizes) <= EXACT_UNITS:
        signs = 2.0 * ((np.arange(2 ** len(sizes))[:, None] >> np.arange(len(sizes))) & 1) - 1
        return float(np.mean(np.abs(signs @ sizes) >= least)), "permutation exact"
    further = sum(int(np.count_nonzero(np.abs(block) >= least)) for block in _flipped(sizes, draws, seed))
    return (further + 1) / (draws + 1), "permutation"


def _flipped(sizes: NDArray[float64], draws: int, seed: int) -> Iterator[NDArray[float64]]:
    """Yield sums of ``sizes`` with random signs, in blocks."""
    import numpy as np

    generator = np.random.default_rng(seed)
    rest = 0.0
    if len(sizes) > LARGEST:
        order = np.argpartition(sizes, len(sizes) - LARGEST)
        rest = float(np.linalg.norm(sizes[order[:-LARGEST]]))
        sizes = sizes[order[-LARGEST:]]
    total = float(sizes.sum())
    width = math.ceil(len(sizes) / _OCTET)
    heads = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64)
    tables = heads @ np.pad(sizes, (0, width * _OCTET - len(sizes))).reshape(width, _OCTET).T
    places = np.arange(width)
    rows = max(1, _BLOCK_ELEMENTS // len(sizes))
    for start in range(0, draws, rows):
        here = min(rows, draws - start)
        octets = generator.integers(0, 256, size=(here, width), dtype=np.uint8)
        yield 2 * tables[octets, places].sum(axis=1) - total + rest * generator.standard_normal(here)


class Discordant(Struct, frozen=True):
    """Documents that only one of two runs has right, of ``n``; fractions if ``n`` is an effective number."""

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
    """Tango's z for the hypothesis that the true shares differ by ``difference`` (−1 to 1); decreasing in it."""
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
    """Interval of the differences that the score test does not reject."""
    reach = quantile(found.freedom, level)
    return _limit(found, reach, -1.0), _limit(found, -reach, 1.0)


def _limit(found: Discordant, wanted: float, end: float) -> float:
    """Find the difference between the observed one and ``end`` that gives the statistic ``wanted``."""
    near, far = found.share, end
    for _ in range(60):  # halves 2 to less than the spacing of floating-point numbers
        middle = (near + far) / 2
        if abs(score_statistic(found, middle)) <= abs(wanted):
            near = middle
        else:
            far = middle
    return (near + far) / 2


class PairedResult(Struct, frozen=True):
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

    If the differences have no spread, t is ±∞ (p = 0), or 0 (p = 1) if they are all 0.

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


MOST_UNITS = 2_048
"""Largest number of units that are redrawn one by one; more units are redrawn in random groups."""
GROUPS = 1_024
_MOST_KEPT = 10_000
"""Redraws of groups that are cached for the next comparison: 20 MB."""
_ROUNDING = 1e-12


class PairOptions(Struct, frozen=True):
    """Parameters of a comparison."""

    level: float = 0.95
    """Probability that such an interval contains the true difference."""
    draws: int = 10_000
    """Redraws of the bootstrap, and flips of the permutation test if they cannot be enumerated."""
    seed: int = 0
    within: ScoreRange = ANY_NUMBER
    """Range of a score of either run."""


USUAL = PairOptions()


class PairedFinding(Struct, frozen=True):
    """The mean of the differences first − second, in the units of the scores."""

    value: float
    """NaN without documents."""
    n: int
    """Documents."""
    interval: Interval | NoInterval
    p: float | None
    """Two-sided; ``None`` without documents."""
    test: str
    """``mcnemar exact``, ``permutation exact``, ``permutation`` or ``gaffke``; empty without a test."""
    spread: float
    """Standard deviation of a document's difference, so that the standard error is spread / √n, clusters included. For
    right-or-wrong scores whose differences are all equal, the value that their interval implies."""
    units: int
    """Number of independently drawn parts: documents, or clusters of documents."""
    freedom: float
    """Degrees of freedom of the standard error."""
    discordant: Discordant | None = None
    """For right-or-wrong scores, whose interval is the score interval of paired proportions."""
    scale: float = 1.0
    """For such scores, the score of a right answer."""
    few: tuple[float, ...] = ()
    """The differences if they are too few or too skewed for their standard error; of documents in clusters the means of
    the clusters. Gaffke's bound then replaces it."""
    sizes: tuple[float, ...] = ()
    """Numbers of documents of these clusters; empty without clusters."""
    most: float = math.inf
    """The greatest difference that the range allows."""

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

    The interval of right-or-wrong scores is Tango's, with the effective n for clusters. Other scores get the
    cluster-aware studentised bootstrap, or Student's t if the variance rests on fewer than 30 documents (clusters). The
    interval ends at the largest difference that the range allows. The test of right-or-wrong scores without clusters is
    McNemar's exact test; otherwise it is the permutation test that flips the signs of whole clusters. Interval and test
    of few or very skewed graded scores within a range are Gaffke's, since flips of signs assume that the differences
    are symmetric.

    More than 2,048 units are redrawn in 1,024 random groups. This concerns only the shape of the studentised mean: its
    standard error is that of all units, and the skewness of a mean of groups equals that of the mean of units.

    Args:
        first: scores of one run, one for each document, without NaN.
        second: scores of the other run for the same documents.
        clusters: name of each document's cluster; documents without a name (``None``) are one cluster.
        options: level, draws, seed and range.

    Raises:
        UsageError: the lists differ in length, or contain a value that is not a finite number.
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
    if units.dominant:
        return replace(found, interval=NoInterval(f"one cluster holds {units.dominant:.0%} of the documents"))
    if units.count < 2:
        return found
    most = options.within.high - options.within.low
    if not scale and math.isfinite(most) and needs_bound(units.count, units.freedom):
        return _bounded(found, units, most, options.level)
    if scale:
        return _proportions(found, _discordant(wins, losses, units, scale, clusters is not None), scale, options.level)
    return replace(found, interval=_interval(units, options))


def _bounded(found: PairedFinding, units: _Units, most: float, level: float) -> PairedFinding:
    means = (units.sums / units.sizes).tolist()
    kept = tuple(min(most, max(-most, difference)) for difference in means)
    sizes = tuple(units.sizes.tolist()) if found.units < found.n else ()
    found = replace(found, few=kept, sizes=sizes, most=most, test="gaffke")
    limits = gaffke_limits(kept, ScoreRange(-most, most), level, sizes)
    interval = Interval(*limits, "gaffke, clusters" if sizes else "gaffke")
    p = min(1.0, 2 * min(_at_most_p(found, 0.0), _at_least_p(found, 0.0)))
    return replace(found, interval=interval, p=p)


def mcnemar_exact(first: int, second: int) -> float:
    """Two-sided p of McNemar's exact test, from the numbers of documents that only one of the runs has right."""
    from scipy.stats import binomtest

    return float(binomtest(first, first + second, 0.5).pvalue) if first + second else 1.0


class _Units(Struct, frozen=True):
    """Documents or clusters: sums of differences, and numbers of documents."""

    sums: NDArray[float64]
    sizes: NDArray[float64]
    value: float
    stderr: float
    """Error of the ratio of the sums by leaving out one unit after the other; the usual error if each unit is a
    document. NaN for one unit."""
    freedom: float
    is_alike: bool
    """All documents have the same difference."""
    effective: float
    """Number of units of one size with the same information, (Σ m)² / Σ m²."""
    dominant: float
    """Share of the documents in a unit that is so large that no interval holds; else 0."""

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
        effective = n * n / float(sizes @ sizes)
        dominant = dominant_share(int(sizes.max()), n, count, effective)
        is_alike = bool(np.ptp(differences) <= _ROUNDING * np.abs(differences).max())
        if count < 2 or is_alike:
            error = math.nan if count < 2 else 0.0
            return cls(sums, sizes, value, error, count - 1, is_alike, effective, dominant)
        residuals = sums - value * sizes
        moved = residuals / (n - sizes)
        moved -= moved.mean()
        variance = (count - 1) / count * float(moved @ moved)
        # The degrees of freedom are fewer if a few outliers make most of the variance. Those by kurtosis are themselves
        # uncertain, so half the number of units or more does not count as a sign.
        by_kurtosis, most = variance_freedom(residuals.tolist()), effective - 1
        freedom = most if by_kurtosis >= min(MANY - 1, most / 2) else by_kurtosis
        if clusters is not None:
            squares = float(np.sum((differences - value) ** 2))
            between = float(np.sum(residuals**2 / sizes))
            alike, of_alike = exchangeable_variance(squares, between, n, count, effective)
            if alike > variance:
                variance, freedom = alike, min(by_kurtosis, of_alike)
        return cls(sums, sizes, value, math.sqrt(variance), freedom, is_alike, effective, dominant)


def _check(left: NDArray[float64], right: NDArray[float64], clusters: Sequence[str | None] | None) -> None:
    import numpy as np

    if left.shape != right.shape or left.ndim != 1:
        raise UsageError(f"paired comparison: {left.size} values against {right.size}; pair them by document")
    if clusters is not None and len(clusters) != len(left):
        raise UsageError(f"paired comparison: {len(left)} values but {len(clusters)} clusters; give one for each")
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise UsageError("paired comparison: a score is no finite number; leave out documents without a score")


def right_counts(left: NDArray[float64], right: NDArray[float64], within: ScoreRange) -> float:
    """Return the score of a right answer if all scores are right or wrong, else 0.

    Such scores are the ends of the range, or 0 and 1, or 0 and 100.
    """
    import numpy as np

    values = set(np.unique(left).tolist()[:3]) | set(np.unique(right).tolist()[:3])
    if math.isfinite(within.high - within.low):
        return within.high - within.low if values <= {within.low, within.high} else 0.0
    if within != ANY_NUMBER:
        return 0.0
    return 1.0 if values <= {0.0, 1.0} else 100.0 if values <= {0.0, 100.0} else 0.0


def _discordant(wins: int, losses: int, units: _Units, scale: float, is_clustered: bool) -> Discordant:
    """Count the discordant documents; with clusters, relative to the effective number: n over the design effect.

    Rao and Scott 1992, "A simple method for the analysis of clustered binary data", Biometrics 48. Equal differences
    carry no information about the design effect; then a cluster counts as one document.
    """
    n = float(units.sizes.sum())
    if not is_clustered:
        return Discordant(wins, losses, n)
    share = (wins - losses) / n
    plain = ((wins + losses) / n - share**2) / (n - 1)
    effect = n / units.effective if units.is_alike else max(1.0, (units.stderr / scale) ** 2 / plain)
    return Discordant(wins / effect, losses / effect, n / effect, units.effective - 1)


def _proportions(found: PairedFinding, discordant: Discordant, scale: float, level: float) -> PairedFinding:
    low, high = tango_interval(discordant, level)
    method = "tango" if math.isinf(discordant.freedom) else "tango, effective n"
    spread = found.spread
    if not spread > 0:
        spread = scale * (high - low) / 2 / quantile(discordant.freedom, level) * math.sqrt(found.n)
    interval = Interval(scale * low, scale * high, method)
    return replace(found, interval=interval, spread=spread, discordant=discordant, scale=scale)


def _interval(units: _Units, options: PairOptions) -> Interval | NoInterval:
    """Interval of the mean difference of scores that are not right-or-wrong."""
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
    """Yield the counts of each unit in each redraw; counts of groups, equal in every comparison, are cached."""
    if units != GROUPS or options.draws > _MOST_KEPT:
        return count_blocks(units, options.draws, options.seed)
    return (counts.astype("float64") for counts in _group_counts(options.draws, options.seed))


@lru_cache(maxsize=1)
def _group_counts(draws: int, seed: int) -> tuple[NDArray[uint16], ...]:
    return tuple(counts.astype("uint16") for counts in count_blocks(GROUPS, draws, seed))


def _studentised(units: _Units, options: PairOptions) -> tuple[float, float]:
    """Return the quantiles of (value* − value) / stderr* over redrawn units.

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


def non_inferiority_p(found: PairedFinding, margin: float) -> float | None:
    """One-sided p of the hypothesis that the first run is worse than the second by ``margin`` or more.

    Right-or-wrong scores are tested by Tango's score test (1998), few or very skewed graded scores by Gaffke's, others
    by Student's t. The first and the last use the standard error of the finding, clusters included. ``None`` if the
    finding has no interval: without a spread there is no test.

    Raises:
        UsageError: ``margin`` is not a number above 0.
    """
    _check_margin(margin)
    return None if isinstance(found.interval, NoInterval) else _at_most_p(found, -margin)


def equivalence_p(found: PairedFinding, margin: float) -> float | None:
    """P of the hypothesis that the true difference is ``margin`` or more, in either direction.

    It is the greater p of two one-sided tests (Schuirmann 1987, "A comparison of the two one-sided tests procedure and
    the power approach", Journal of Pharmacokinetics and Biopharmaceutics 15). Below α the runs are equivalent. ``None``
    and errors as in ``non_inferiority_p``.
    """
    _check_margin(margin)
    if isinstance(found.interval, NoInterval):
        return None
    return max(_at_most_p(found, -margin), _at_least_p(found, margin))


def _check_margin(margin: float) -> None:
    if not 0 < margin < math.inf:
        raise UsageError(f"margin {margin}: give a number above 0, in the units of the scores")


def _at_most_p(found: PairedFinding, bound: float) -> float:
    """One-sided p of the hypothesis that the true difference is ``bound`` or less."""
    if found.few:
        return gaffke_p(found.few, bound, ScoreRange(-found.most, found.most), found.sizes)
    return _upper_tail(_statistic(found, bound), found)


def _at_least_p(found: PairedFinding, bound: float) -> float:
    """One-sided p of the hypothesis that the true difference is ``bound`` or more."""
    if found.few:
        return gaffke_p([-value for value in found.few], -bound, ScoreRange(-found.most, found.most), found.sizes)
    return _upper_tail(-_statistic(found, bound), found)


def _statistic(found: PairedFinding, bound: float) -> float:
    """Distance of the difference from ``bound``, in standard errors."""
    if found.discordant is not None:
        return score_statistic(found.discordant, max(-1.0, min(1.0, bound / found.scale)))
    return (found.value - bound) / found.stderr


def _upper_tail(statistic: float, found: PairedFinding) -> float:
    freedom = found.freedom if found.discordant is None else found.discordant.freedom
    return NormalDist().cdf(-statistic) if math.isinf(freedom) else t_cdf(-statistic, freedom)


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """P-values that keep the chance of any false rejection at α, if one rejects at α.

    Holm 1979, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6.

    Raises:
        UsageError: a p-value does not lie between 0 and 1.
    """
    from statsmodels.stats.multitest import multipletests

    gc.freeze()  # the library collects garbage, which takes half a second with runs of many documents in memory
    try:
        return _adjusted(ps, lambda known: multipletests(known, method="holm")[1])
    finally:
        gc.unfreeze()


def benjamini_hochberg(ps: Sequence[float | None]) -> list[float | None]:
    """P-values that keep the expected share of false ones among the rejections at α, if one rejects at α.

    Benjamini and Hochberg 1995, "Controlling the false discovery rate", Journal of the Royal Statistical Society B 57;
    for tests that are independent or positively dependent.

    Raises:
        UsageError: a p-value does not lie between 0 and 1.
    """
    from scipy.stats import false_discovery_control

    return _adjusted(ps, lambda known: false_discovery_control(known, method="bh"))


def _adjusted(ps: Sequence[float | None], adjust: Callable[[list[float]], Any]) -> list[float | None]:
    known = [p for p in ps if p is not None]
    wrong = [p for p in known if math.isnan(p) or not 0 <= p <= 1]
    if wrong:
        raise UsageError(f"adjusted p-values: {wrong[0]} is no p-value; give numbers from 0 to 1, or None for no test")
    adjusted = iter(adjust(known) if known else ())
    return [None if p is None else float(next(adjusted)) for p in ps]
