"""Scores of documents that were answered several times, and what their variance comes from (``docs/statistics.md``).

``pass_at``, ``all_of``, ``best_of``, ``worst_of`` and ``majority_at`` are exact expectations over the subsets of k of a
document's n answers, so that they are unbiased for a draw of k answers. ``reducers`` reads them from ``--reduce``.
``variance_split`` separates the variance of questions, of answers to the same question, and of the judge's verdicts on
the same answer. ``rerun_noise`` estimates the second one from a part of the questions that was asked twice.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction

from msgspec import Struct

from lmms_eval.errors import UsageError
from lmms_eval.stats.bounded import gaffke_limits
from lmms_eval.stats.interval import MeanSpread, mean_stderr, quantile
from lmms_eval.utils.numbers import ScoreRange


def _check_draw(k: int, n: int) -> None:
    if not 1 <= k <= n:
        raise UsageError(
            f"{k} of {n} answers of a document: give a k from 1 to the number of repeats, or more --repeats"
        )


def pass_at(k: int, right: int, n: int) -> float:
    """Return the probability that at least one of ``k`` answers, drawn from ``n`` with ``right`` right ones, is right.

    1 − C(n − right, k) / C(n, k) (Chen et al. 2021, "Evaluating large language models trained on code",
    arXiv:2107.03374, equation 1).

    Raises:
        UsageError: ``k`` is not between 1 and ``n``.
    """
    _check_draw(k, n)
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)


def all_of(k: int, right: int, n: int) -> float:
    """Return the probability that all of ``k`` drawn answers are right, C(right, k) / C(n, k).

    It is pass^k (Yao et al. 2024, "τ-bench", arXiv:2406.12045).

    Raises:
        UsageError: ``k`` is not between 1 and ``n``.
    """
    _check_draw(k, n)
    return math.comb(right, k) / math.comb(n, k)


def best_of(k: int, scores: Sequence[float]) -> float:
    """Return the expected greatest score among ``k`` scores that are drawn without replacement.

    Σ x₍ᵢ₎ C(i − 1, k − 1) / C(n, k) over the scores in ascending order; ``pass_at`` if all scores are 0 or 1.

    Raises:
        UsageError: ``k`` is not between 1 and the number of scores.
    """
    _check_draw(k, len(scores))
    draws = math.comb(len(scores), k)
    return math.fsum(score * (math.comb(i, k - 1) / draws) for i, score in enumerate(sorted(scores)))


def worst_of(k: int, scores: Sequence[float]) -> float:
    """Return the expected least score among ``k`` drawn ones; ``all_of`` if all scores are 0 or 1.

    Raises:
        UsageError: ``k`` is not between 1 and the number of scores.
    """
    return -best_of(k, [-score for score in scores])


def majority_at(k: int, answers: Sequence[tuple[Hashable, float]]) -> float:
    """Return the expected score of the most frequent one of ``k`` drawn answers; ties are broken at random.

    For each distinct answer and each number j of its copies in the draw, the other answers may have at most j copies,
    and m of them exactly j: it wins with probability 1 / (m + 1). Polynomials count these draws exactly.

    Args:
        k: number of answers that are drawn without replacement.
        answers: the extracted answer (equal answers are equal keys) and its score, for each repeat. Equal answers with
            different scores count with their mean score.

    Raises:
        UsageError: ``k`` is not between 1 and the number of answers.
    """
    _check_draw(k, len(answers))
    scores: dict[Hashable, list[float]] = {}
    for answer, score in answers:
        scores.setdefault(answer, []).append(score)
    counts = [len(each) for each in scores.values()]
    total = 0.0
    for place, own in enumerate(scores.values()):
        others = counts[:place] + counts[place + 1 :]
        share = sum(
            (math.comb(len(own), j) * _share_of_wins(others, j, k - j) for j in range(1, min(k, len(own)) + 1)),
            start=Fraction(0),
        )
        total += float(share / math.comb(len(answers), k)) * math.fsum(own) / len(own)
    return total


def _share_of_wins(others: Sequence[int], most: int, draws: int) -> Fraction:
    """Return Σ 1 / (m + 1) over the ways to draw from ``others``, at most ``most`` of each and m of them exactly so."""
    ways = {(0, 0): 1}  # by answers drawn and number of ties
    for count in others:
        following: dict[tuple[int, int], int] = {}
        for (drawn, ties), number in ways.items():
            for here in range(min(count, most, draws - drawn) + 1):
                key = (drawn + here, ties + (here == most))
                following[key] = following.get(key, 0) + number * math.comb(count, here)
        ways = following
    return sum((Fraction(n, ties + 1) for (drawn, ties), n in ways.items() if drawn == draws), start=Fraction(0))


class Reducer(Struct, frozen=True):
    """A number that ``--reduce`` makes of the scores of a document's answers."""

    kind: str
    """A key of ``_KINDS``."""
    k: int

    @property
    def name(self) -> str:
        """The reducer as it is given, such as ``pass@4``."""
        return f"{self.kind}{self.k}"

    @property
    def needs_answers(self) -> bool:
        """Whether the extracted answers count, in addition to their scores."""
        return self.kind == _MAJORITY

    def value(self, scores: Sequence[float], answers: Sequence[Hashable] = (), higher_is_better: bool = True) -> float:
        """Return the expected value of the reducer for ``k`` of these answers.

        Args:
            scores: the score of each answer.
            answers: the extracted answers, if ``needs_answers``.
            higher_is_better: ``pass@`` takes the best score, ``pass^`` the worst.

        Raises:
            UsageError: ``k`` is greater than the number of answers.
        """
        _check_draw(self.k, len(scores))
        if self.kind == _MAJORITY:
            return majority_at(self.k, list(zip(answers, scores, strict=True)))
        if self.kind == _MEAN:
            return math.fsum(scores) / len(scores)
        takes_greatest = (self.kind == _PASS) == higher_is_better
        found = best_of(self.k, scores) if takes_greatest else worst_of(self.k, scores)
        return min(max(found, min(scores)), max(scores))  # rounding


_PASS, _ALL, _MAJORITY, _MEAN = "pass@", "pass^", "maj@", "mean@"
_KINDS = (_PASS, _ALL, _MAJORITY, _MEAN)


def reducers(texts: Iterable[str]) -> tuple[Reducer, ...]:
    """Read reducers such as ``pass@4``, each once.

    Raises:
        UsageError: a text is not the name of a reducer with a number of answers.
    """
    found: dict[Reducer, None] = {}
    for text in texts:
        kind = next((kind for kind in _KINDS if text.startswith(kind)), "")
        number = text.removeprefix(kind)
        if not kind or not (number.isascii() and number.isdecimal() and int(number) > 0):
            known = ", ".join(f"{kind}K" for kind in _KINDS)
            raise UsageError(f"--reduce: {text!r} is not known; give {known} with K answers, K from 1 on")
        found[Reducer(kind, int(number))] = None
    return tuple(found)


class VarianceSplit(Struct, frozen=True):
    """Components of the variance of a score, by ANOVA of a nested random-effects model; the components are at least 0.

    Score of a verdict = mean + question + answer within the question + verdict within the answer.
    """

    questions: float
    """Variance between questions, of their expected scores."""
    answers: float | None
    """Variance between answers to one question; ``None`` without repeats. Without repeats of the judge it includes the
    variance of its verdicts."""
    judge: float | None
    """Variance between verdicts on one answer; ``None`` without repeats of the judge."""
    n: int
    """Questions."""


def variance_split(scores: Iterable[Sequence[Sequence[float]]]) -> VarianceSplit:
    """Split the variance of scores into questions, answers and verdicts of the judge.

    Numbers of answers and verdicts may differ between questions; the coefficients of the expected mean squares are
    those of the unbalanced design (Searle, Casella and McCulloch 1992, "Variance Components", section 5.6). The mean
    is the mean of the questions' means.

    Args:
        scores: for each question, for each answer, the scores of the judge's verdicts (one without a judge).

    Raises:
        UsageError: fewer than two questions, or a question without a score.
    """
    documents = [[list(answer) for answer in question if answer] for question in scores]
    documents = [question for question in documents if question]
    n = len(documents)
    if n < 2:
        raise UsageError(f"variance split: {n} questions with a score; give at least 2")
    answer_means = [[math.fsum(answer) / len(answer) for answer in question] for question in documents]
    means = [math.fsum(each) / len(each) for each in answer_means]
    judge = _pooled([answer for question in documents for answer in question])
    between_answers = _pooled(answer_means)
    verdicts = [[1 / len(answer) for answer in question] for question in documents]
    answers = between_answers
    if between_answers is not None and judge is not None:
        repeated = [question for question in verdicts if len(question) > 1]
        weight = sum((len(q) - 1) * math.fsum(q) / len(q) for q in repeated) / sum(len(q) - 1 for q in repeated)
        answers = max(0.0, between_answers - judge * weight)
    noise = [
        (answers or 0.0) / len(question) + (judge or 0.0) * math.fsum(question) / len(question) ** 2
        for question in verdicts
    ]
    whole = _sample_variance(means)
    return VarianceSplit(max(0.0, whole - math.fsum(noise) / n), answers, judge, n)


def spread_within(groups: Sequence[Sequence[float]], weights: Sequence[float], draws: Sequence[int]) -> MeanSpread:
    """Return the spread of a weighted mean over fixed groups whose values alone are drawn again.

    The error is √(Σ w² s² / d) with the variance s² within each group, which may differ between groups, and its degrees
    of freedom are Satterthwaite's (1946, "An approximate distribution of estimates of variance components", Biometrics
    Bulletin 2). Groups are the answers to one question, or the judge's verdicts on one answer.

    Args:
        groups: the values of each group.
        weights: the weight of each group's mean; they sum to 1.
        draws: the number of values of each group that count in the mean.

    Raises:
        UsageError: a group has fewer than two values.
    """
    if min(map(len, groups), default=0) < 2:
        raise UsageError("variance within groups: a group has fewer than two values; give each at least two")
    squares = [
        weight * weight * _sample_variance(group) / drawn
        for group, weight, drawn in zip(groups, weights, draws, strict=True)
    ]
    total = math.fsum(squares)
    below = math.fsum(square * square / (len(group) - 1) for square, group in zip(squares, groups, strict=True))
    size = 1 / math.fsum(weight * weight / drawn for weight, drawn in zip(weights, draws, strict=True))
    return MeanSpread(
        math.sqrt(total), total * total / below if below else math.inf, size, silent=0.0 if total else 1 / size
    )


def _sample_variance(values: Sequence[float]) -> float:
    centre = math.fsum(values) / len(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


def _pooled(groups: Iterable[Sequence[float]]) -> float | None:
    """Return the variance within the groups, pooled by their degrees of freedom; ``None`` if all have one value."""
    several = [group for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in several)
    return math.fsum((len(g) - 1) * _sample_variance(g) for g in several) / freedom if freedom else None


class ChangedShare(Struct, frozen=True):
    """Share of the questions whose second answer differs from the first one, with its exact 95 % interval."""

    n: int
    """Questions with two answers."""
    changed: int
    share: float
    low: float
    high: float

    @classmethod
    def of(cls, changed: int, n: int) -> ChangedShare:
        """Compute the interval of Clopper and Pearson (1934, Biometrika 26).

        Raises:
            UsageError: no questions, or more changed ones than there are.
        """
        from scipy.special import betaincinv

        if not 0 <= changed <= n or not n:
            raise UsageError(f"changed answers: {changed} of {n}; give at least one question, and at most n changed")
        low = float(betaincinv(changed, n - changed + 1, 0.025)) if changed else 0.0
        high = float(betaincinv(changed + 1, n - changed, 0.975)) if changed < n else 1.0
        return cls(n, changed, changed / n, low, high)


class RerunNoise(Struct, frozen=True):
    """Variation of the scores of single questions if the same requests are sent again."""

    scores: ChangedShare
    answers: float
    """Variance between two answers to one question, on average."""
    answers_high: float | None
    """Upper end of its 95 % interval; ``None`` without a range with two ends."""


_MANY_PAIRS, _MANY_CHANGED, _MOST_BOUNDED = 200, 100, 2000


def rerun_noise(pairs: Sequence[tuple[float, float]], within: ScoreRange) -> RerunNoise:
    """Estimate the variance between two answers to one question from questions that were asked twice.

    It is half the mean squared difference of the two scores. Its upper end is exact for right-or-wrong scores, which
    change or not (Clopper and Pearson), Gaffke's bound for fewer than 200 questions or 100 changed scores, and by the
    normal distribution for more.

    Raises:
        UsageError: no pairs.
    """
    squares = [(first - second) ** 2 for first, second in pairs]
    n, width = len(squares), within.high - within.low
    changed = ChangedShare.of(sum(square > 0 for square in squares), n)
    mean = math.fsum(squares) / n
    is_bounded = all(score in within for pair in pairs for score in pair)
    if not math.isfinite(width) or not is_bounded:
        return RerunNoise(changed, mean / 2, None)
    if all(score in (within.low, within.high) for pair in pairs for score in pair):
        return RerunNoise(changed, mean / 2, width * width * changed.high / 2)
    if n < _MANY_PAIRS or changed.changed < _MANY_CHANGED:
        taken = squares if n <= _MOST_BOUNDED else [squares[k * n // _MOST_BOUNDED] for k in range(_MOST_BOUNDED)]
        high = gaffke_limits(taken, ScoreRange(0.0, width * width))[1]
    else:
        high = mean + quantile(math.inf) * mean_stderr(squares)
    return RerunNoise(changed, mean / 2, max(mean, high) / 2)
