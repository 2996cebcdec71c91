"""Scores of documents that were asked with several prompts: the mean over prompts, and what its variance comes from.

Documents and prompts are crossed: score = mean + question + prompt + rest, where the rest is the interaction of
question and prompt together with the variance between answers (two-way random effects; Searle, Casella and McCulloch
1992, "Variance Components", section 4.3). ``docs/statistics.md`` explains the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.errors import UsageError
from lmms_eval.stats.interval import (
    ANY_NUMBER,
    Interval,
    MeanSpread,
    NoInterval,
    quantile,
)
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

LEAST_PROMPTS = 3
"""With fewer prompts, two or one, their variance is hardly known: no interval for prompts like these."""
RANDOM_PROMPTS = "t, random prompts"
FEW_PROMPTS = f"fewer than {LEAST_PROMPTS} prompts"
_STEPS = 50
SpreadOf = Callable[[Sequence[float]], MeanSpread]


class PromptSplit(Struct, frozen=True):
    """Components of the variance of a document's score with a prompt, by analysis of variance; at least 0 each."""

    questions: float
    """Variance between questions, of their expected scores over prompts."""
    prompts: float
    """Variance between prompts, of their expected scores over questions."""
    rest: float
    """Interaction of questions with prompts, and variance between answers to one request."""


class PromptMean(Struct, frozen=True):
    """The mean over prompts of a score, and its errors."""

    value: float
    means: tuple[float, ...]
    """The score with each prompt."""
    these: MeanSpread
    """Error for these prompts and questions like these."""
    of_prompts: float
    """Standard error that the choice of the prompts adds, with one degree of freedom fewer than there are prompts."""
    split: PromptSplit
    n: int
    """Documents."""

    @property
    def spread(self) -> float:
        """Standard deviation of the scores with the prompts; NaN for one prompt."""
        return _deviation(self.means)

    @property
    def has_prompts(self) -> bool:
        """Whether there are enough prompts to know their variance."""
        return len(self.means) >= LEAST_PROMPTS

    def like_these(
        self, these: Interval | NoInterval, within: ScoreRange = ANY_NUMBER, level: float = 0.95
    ) -> Interval | NoInterval:
        """Return the interval for prompts and questions like these; it contains that for these prompts.

        It is mean ± √((q se)² + (t sp)²), cut to the range: se and q are the error for these prompts and its quantile,
        sp and t the error from the choice of prompts and Student's quantile. Each source keeps its own degrees of
        freedom (Zou and Donner 2008, "Construction of confidence limits about effect measures: a general approach",
        Statistics in Medicine 27).

        Args:
            these: the interval for these prompts and questions like these.
            within: the range of the score.
            level: probability that such an interval contains the true mean.
        """
        if not self.has_prompts:
            return NoInterval(FEW_PROMPTS)
        if isinstance(these, NoInterval) or self.of_prompts == 0:
            return these
        half = self._half(level)
        low, high = max(within.low, self.value - half), min(within.high, self.value + half)
        return Interval(min(low, these.low), max(high, these.high), RANDOM_PROMPTS)

    def p(self, these: float | None) -> float | None:
        """Return the two-sided p-value of the hypothesis that the mean over prompts like these is 0.

        Args:
            these: the p-value for these prompts. The result is not smaller.
        """
        if these is None or not self.has_prompts or self.of_prompts == 0:
            return these if self.has_prompts else None
        least, most = 0.0, 1.0
        for _ in range(_STEPS):  # the level whose interval ends at 0
            middle = (least + most) / 2
            least, most = (least, middle) if self._half(1 - middle) < abs(self.value) else (middle, most)
        return max(these, most)

    def _half(self, level: float) -> float:
        those = quantile(len(self.means) - 1, level) * self.of_prompts
        return math.hypot(quantile(self.these.freedom, level) * self.these.error, those)


def prompt_mean(scores: NDArray[float64], spread_of: SpreadOf, weights: Sequence[float] | None = None) -> PromptMean:
    """Compute the mean over prompts with its errors.

    The error for these prompts is that of the mean over documents of their means over prompts. The choice of K prompts
    adds √((s² − r (K − 1) / (K + 1)) / K): s² is the variance of the prompts' scores, and r the part of it that comes
    from the rest. To subtract all of r, as the component ``prompts`` does, leaves too short intervals with few prompts,
    since the difference is then often 0 although prompts differ: coverage down to 91 % with three prompts, where this
    has 94 to 98 %.

    Args:
        scores: documents × prompts.
        spread_of: returns the spread of the mean of a value for each document: over documents, clusters or strata.
        weights: weight of each document in the mean, 1 on average, for a mean of strata.

    Raises:
        UsageError: fewer than two documents, or no prompt.
    """
    import numpy as np

    n, count = scores.shape
    if n < 2 or count < 1:
        raise UsageError(f"prompts: {n} documents with {count} prompts; give at least two documents and one prompt")
    share = np.ones(n) if weights is None else np.asarray(weights, np.float64)
    of_questions = scores.mean(axis=1)
    means = np.array([_between(math.fsum(column * share) / n, column) for column in scores.T])
    value = _between(math.fsum(means) / count, means)
    these = spread_of(of_questions.tolist())
    rest = scores - of_questions[:, None] - means[None, :] + value
    noise = 0.0
    if count > 1:  # the variance of a prompt's mean that comes from the rest, with its clusters
        noise = math.fsum(spread_of(column.tolist()).error ** 2 for column in rest.T) / (count - 1)
    observed = _deviation(means.tolist()) ** 2 if count > 1 else math.nan
    between = max(0.0, observed - noise) if count > 1 else 0.0
    of_prompts = math.sqrt(max(0.0, observed - noise * (count - 1) / (count + 1)) / count) if count > 1 else math.nan
    return PromptMean(value, tuple(means.tolist()), these, of_prompts, _split(scores, between), n)


def _split(scores: NDArray[float64], prompts: float) -> PromptSplit:
    """Return the components by the mean squares of the two-way layout with one score in each cell."""
    n, count = scores.shape
    of_questions, of_prompts = scores.mean(axis=1), scores.mean(axis=0)
    questions = count * float(of_questions.var(ddof=1))
    if count < 2:
        return PromptSplit(questions, 0.0, 0.0)
    residuals = scores - of_questions[:, None] - of_prompts[None, :] + scores.mean()
    rest = float((residuals**2).sum()) / ((n - 1) * (count - 1))
    return PromptSplit(max(0.0, questions - rest) / count, prompts, rest)


def spread_over(
    clusters: Sequence[Hashable] | None, strata: Sequence[Hashable] = (), within: ScoreRange = ANY_NUMBER
) -> SpreadOf:
    """Return a function for ``prompt_mean``: the spread of a mean over documents, clusters or strata.

    Args:
        clusters: the cluster of each document; ``None`` for independent documents.
        strata: the stratum of each document, if the mean is a mean of strata.
        within: range of a document's value.
    """

    def one(values: Sequence[float], names: Sequence[Hashable] | None) -> MeanSpread:
        inside = within if min(values) in within and max(values) in within else ANY_NUMBER  # residuals have no range
        return MeanSpread.of_scores(values, inside) if names is None else MeanSpread.clustered(values, names)

    def spread(values: Sequence[float]) -> MeanSpread:
        if not strata:
            return one(values, clusters)
        places: dict[Hashable, list[int]] = {}
        for place, stratum in enumerate(strata):
            places.setdefault(stratum, []).append(place)
        parts = [
            one([values[place] for place in own], None if clusters is None else [clusters[place] for place in own])
            for own in places.values()
        ]
        return MeanSpread.stratified(parts, [1.0] * len(parts))

    return spread


def _between(value: float, parts: NDArray[float64]) -> float:
    """Return a mean of parts, which rounding must not move beyond all of them."""
    return min(float(parts.max()), max(float(parts.min()), value))


def _deviation(values: Sequence[float]) -> float:
    if len(values) < 2:
        return math.nan
    centre = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))
