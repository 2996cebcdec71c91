"""The mean that people would give to all documents, from a judge's scores of all and people's scores of a drawn part.

The part may be drawn within strata. How many documents each stratum gives is planned here too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, structs

from lmms_eval.stats.agreement import covariance
from lmms_eval.stats.interval import ANY_NUMBER, Interval, MeanSpread, NoInterval, sample_stddev, score_interval
from lmms_eval.utils.numbers import ScoreRange

FEW = 10
"""With fewer odd differences than this, their variance is not known well enough."""
MOST_STRATA = 5
LEAST_LABELS = 8
"""A further stratum is formed for each so many labels."""
_FLOOR = 0.5
"""Least share of a stratum's proportional part that an allocation leaves it."""
_WORTH = 0.9


class Stratum(Struct, frozen=True):
    """A part of the documents. Some of them were drawn for people to score."""

    size: int
    """Number of documents in the stratum."""
    judge: tuple[float, ...]
    """The judge's scores of the drawn documents that people scored."""
    human: tuple[float, ...]
    """People's scores of the same documents."""

    @property
    def sparse(self) -> float:
        """The share of the stratum that was not drawn, divided by the number drawn."""
        return max(0.0, 1 - len(self.human) / self.size) / len(self.human)


class LabelledMean(Struct, frozen=True):
    """A judged mean, corrected by people's scores of a part."""

    value: float
    stderr: float
    """Standard error for questions like these."""
    interval: Interval | NoInterval
    """For questions like these: the documents are a sample too."""
    on_list: Interval | NoInterval
    """For this list of documents: only the choice of the labelled ones varies."""
    weight: float
    """λ: the weight of the judge's scores within the strata, from 0 to 1."""


def labelled_mean(
    judge_mean: float, strata: Sequence[Stratum], within: ScoreRange = ANY_NUMBER, level: float = 0.95
) -> LabelledMean:
    """Estimate the mean human score of all documents: prediction-powered inference with known drawing probabilities.

    θ = λ f̄ + Σ W_h mean_h(y − λ f), f̄ the judge's mean over all N documents and W_h = N_h / N, which weights each label
    by the inverse of its probability n_h / N_h. The variance over the draws is Σ W_h² (1 − n_h / N_h) s_h²(y − λ f) /
    n_h; for questions like these, that of the documents, S²(y) / N, is added (Angelopoulos et al. 2023,
    "Prediction-powered inference", Science 382; the difference estimator of Särndal, Swensson and Wretman 1992, "Model
    Assisted Survey Sampling", section 6.3). λ minimises the variance within 0 … 1 (Angelopoulos, Duchi and Zrnic 2023,
    "PPI++"). Without strata this is ``corrected_mean`` with the list as population.

    If judge and people differ by the same amount (mostly 0) on all but fewer than ``FEW`` labelled documents, the
    variance of their differences says too little. Then λ is 1, all strata share one variance, and three more odd
    differences of the largest size are counted among n + 4 documents (after Agresti and Coull 1998, who count two).
    If people's scores are right or wrong and vary less than that, λ is 0.

    Args:
        judge_mean: the judge's mean over all documents.
        strata: all strata; each needs two labels, or one if that is all of its documents.
        within: the range of a score.
        level: the level of the intervals.
    """
    total = sum(one.size for one in strata)
    drawn_from = [one for one in strata if one.sparse]
    differences = [y - f for one in drawn_from for y, f in zip(one.human, one.judge, strict=True)]
    labels = len(differences) or total
    odd = _odd(differences)
    of_people, of_odd = _variance_of_people(strata, total), _sparse_variance(odd, labels, within)
    are_few = len(odd) < FEW and 2 * len(odd) < len(differences)
    are_binary = all(y in (within.low, within.high) for one in strata for y in one.human)
    is_sparse = are_few and (of_odd < of_people or not are_binary)
    weight = float(is_sparse) if are_few else _weight(strata, total)
    rests = [[y - weight * f for y, f in zip(one.human, one.judge, strict=True)] for one in strata]
    corrections = (one.size / total * math.fsum(rest) / len(rest) for one, rest in zip(strata, rests, strict=True))
    value = min(within.high, max(within.low, weight * judge_mean + math.fsum(corrections)))
    most = max(1.0, labels - len(drawn_from or strata) - (not is_sparse and weight > 0))
    if is_sparse:
        drawn, freedom = math.fsum((one.size / total) ** 2 * one.sparse for one in strata) * of_odd, most
    else:
        drawn, freedom = _variance_of_draws(strata, rests, total, most)
    error = math.sqrt(drawn + of_people / total)
    spread = MeanSpread(error, freedom, labels, silent=0.0 if drawn else 1 / labels)
    interval = score_interval(value, spread, within, level)
    on_list = score_interval(value, structs.replace(spread, error=math.sqrt(drawn)), within, level)
    if not drawn_from:
        on_list = Interval(value, value, "every document has a label")
    elif isinstance(on_list, NoInterval):
        interval = on_list
    return LabelledMean(value, error, interval, on_list, weight)


def _variance_of_draws(
    strata: Sequence[Stratum], rests: Sequence[Sequence[float]], total: int, most: float
) -> tuple[float, float]:
    """Return the variance over the draws, and its degrees of freedom by Satterthwaite (1946), at most ``most``."""
    used = [(one, rest) for one, rest in zip(strata, rests, strict=True) if one.sparse]
    parts = [((one.size / total) ** 2 * one.sparse * sample_stddev(rest) ** 2, len(rest) - 1) for one, rest in used]
    drawn = math.fsum(part for part, _ in parts)
    if not drawn:
        return 0.0, most
    freedom = drawn**2 / math.fsum(part**2 / each for part, each in parts)
    labels = sum(len(rest) for _, rest in used)
    return drawn * max(1.0, (labels - len(used)) / most), min(most, freedom)  # λ is estimated from the same labels


def _weight(strata: Sequence[Stratum], total: int) -> float:
    """Return the λ that makes the variance over the draws least, within 0 … 1."""
    both = alone = 0.0
    for one in strata:
        n = len(one.human)
        if n > 1:
            scale = (one.size / total) ** 2 * one.sparse * n / (n - 1)
            both += scale * covariance(one.human, one.judge)
            alone += scale * covariance(one.judge, one.judge)
    return max(0.0, min(1.0, both / alone)) if alone > 0 else 0.0


def _odd(differences: Sequence[float]) -> list[float]:
    """Return how far the differences between people and judge that are unlike the most common one are from it."""
    rounded = Counter(round(difference, 9) for difference in differences)
    if not rounded:
        return []
    usual = rounded.most_common(1)[0][0]
    return [difference - usual for difference in differences if round(difference, 9) != usual]


def _sparse_variance(odd: Sequence[float], labels: int, within: ScoreRange) -> float:
    """Return the variance of few odd differences, with three more of the largest size among four more documents."""
    width = within.high - within.low
    largest = max((abs(each) for each in odd), default=width if math.isfinite(width) else 0.0)
    return (math.fsum(each * each for each in odd) + 3 * largest**2) / (labels + 4)


def _variance_of_people(strata: Sequence[Stratum], total: int) -> float:
    """Return the variance of people's scores over all documents, by moments weighted by the strata."""
    first = math.fsum(one.size / total * math.fsum(one.human) / len(one.human) for one in strata)
    second = math.fsum(
        one.size / total * math.fsum((y - first) ** 2 for y in one.human) / len(one.human) for one in strata
    )
    n = sum(len(one.human) for one in strata)
    return second * n / (n - 1) if n > 1 else 0.0


def strata_of_scores(scores: Sequence[float], labels: int) -> list[int]:
    """Divide documents by their scores, and return the number of each one's stratum, from 0 for the lowest scores.

    There are at most ``MOST_STRATA`` strata of about equal size, and one for each ``LEAST_LABELS`` labels. Documents of
    one score stay together.
    """
    wanted = max(1, min(MOST_STRATA, labels // LEAST_LABELS))
    counts = sorted(Counter(scores).items())
    least = len(scores) / (2 * wanted)
    ends: dict[float, int] = {}
    stratum = filled = passed = 0
    for score, count in counts:
        ahead = len(scores) - passed
        if filled >= least and ahead >= least and (passed + count / 2) * wanted / len(scores) >= stratum + 1:
            stratum, filled = stratum + 1, 0
        ends[score] = stratum
        filled, passed = filled + count, passed + count
    return [ends[score] for score in scores]


class Allocation(Struct, frozen=True):
    """The number of documents to draw from each stratum."""

    labels: tuple[int, ...]
    is_neyman: bool
    """Strata whose scores may vary more give more."""


def allocate(
    labels: int,
    sizes: Sequence[int],
    means: Sequence[float],
    within: ScoreRange = ANY_NUMBER,
    worth: float = _WORTH,
) -> Allocation:
    """Distribute labels over strata: Neyman's allocation if it lowers the variance, else in proportion to their sizes.

    People's scores vary in a stratum by at most √((m − low) (high − m)) around the judge's mean m (Bhatia and Davis
    2000). With this as the standard deviation s_h, Neyman (1934) draws n_h in proportion to N_h s_h. Each stratum keeps
    at least half of its proportional part, so the variance at most doubles where the judge misses most.

    Args:
        labels: the number of documents to draw, at most all of them and at least two for each stratum.
        sizes: documents by stratum.
        means: the judge's mean score by stratum.
        within: the range of a score.
        worth: Neyman's allocation is used if it lowers the planned variance below this share of the proportional one's.
    """
    even = _whole(labels, [float(size) for size in sizes], sizes)
    if len(sizes) < 2 or not math.isfinite(within.high - within.low):
        return Allocation(even, False)
    spreads = [math.sqrt(max(0.0, (mean - within.low) * (within.high - mean))) for mean in means]
    centre = math.fsum(size * spread for size, spread in zip(sizes, spreads, strict=True)) / sum(sizes)
    if not centre:
        return Allocation(even, False)
    chosen = _whole(
        labels, [size * max(_FLOOR, spread / centre) for size, spread in zip(sizes, spreads, strict=True)], sizes
    )

    def variance(drawn: Sequence[int]) -> float:
        return math.fsum(
            (size * spread) ** 2 * (1 / n - 1 / size) for size, spread, n in zip(sizes, spreads, drawn, strict=True)
        )

    is_better = variance(chosen) < worth * variance(even)
    return Allocation(chosen if is_better else even, is_better)


def _whole(labels: int, weights: Sequence[float], sizes: Sequence[int]) -> tuple[int, ...]:
    """Divide labels by weights into whole numbers, at least two (or all) and at most the size of each stratum."""
    found = [min(2, size) for size in sizes]
    for _ in range(labels - sum(found)):
        open_ones = [number for number, size in enumerate(sizes) if found[number] < size]
        found[max(open_ones, key=lambda number: weights[number] / (found[number] + 0.5))] += 1
    return tuple(found)
