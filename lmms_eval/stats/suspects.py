"""Documents whose reference answer may be wrong: an item response model of answers, and item-rest correlations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.errors import UsageError
from lmms_eval.stats.differences import benjamini_hochberg

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.random import Generator
    from numpy.typing import ArrayLike, NDArray

    Values = NDArray[float64]
    Whole = NDArray[intp]
    Flags = NDArray[bool_]

LEAST_RUNS = 4
"""With fewer runs, no order of them is rare enough to mean anything."""
LEAST_DOCUMENTS = 200
"""With fewer documents, probabilities of wrong reference answers follow from the model's priors."""
_MOST_ORDERS = 200_000
"""Largest number of arrangements of a document's scores that are enumerated."""
_DRAWN = 20_000
"""Number of arrangements that are drawn if there are more."""
_MOST_FITTED = 5_000
"""Number of documents that the model is fitted to, drawn at random if there are more."""
_AT_ONCE = 20_000
"""Number of documents that are evaluated at once."""
_SLOPES = (0.6, 1.6)
_DIFFICULTIES = (-5.0, 6.0, 13)
"""First, last, and number of difficulties of the model's classes of documents."""
_OPEN = 1_000
"""Number of possible wrong answers if they are not of a few kinds."""
_MISFIT = 3.5
"""Largest distance in standard errors between how often two runs agree and how often the model expects it."""


class WrongLabels(Struct, frozen=True):
    """Inference about each document's reference answer."""

    probability: Values
    """Probability that the reference answer is wrong."""
    other: Whole
    """Kind of the most probable right answer if the reference answer is wrong; 0 if no run gave it."""
    misfit: tuple[int, int, int, float] | None
    """The two runs whose agreement fits the model worst, how often they agree, and how often the model expects it;
    ``None`` if all agree as the model expects."""

    def expected(self, most: int | None = None) -> float:
        """Return the expected number of wrong reference answers among the most probable ones, or among all."""
        return math.fsum(sorted(self.probability.tolist(), reverse=True)[:most])


def wrong_labels(kinds: ArrayLike, answers: int | None, seed: int = 0) -> WrongLabels:
    """Infer for each document the probability that its reference answer is wrong, by an item response model.

    A run with the ability θ knows the right answer of a document with the probability γ + (1 − γ) / (1 + exp(−a (θ −
    b))) (Birnbaum 1968, in Lord and Novick, "Statistical Theories of Mental Test Scores", chapter 17). The
    distribution of slopes a and difficulties b over documents is free on a grid, as by Bock and Aitkin (1981),
    "Marginal maximum likelihood estimation of item parameters". A run that does not know gives one of M wrong
    answers. Some are more popular than others: they follow a Dirichlet distribution of their own for each document, so
    that only the sizes of the groups of equal answers matter (Antoniak 1974). The reference answer is one of the wrong
    answers with the probability π; what the runs answer does not depend on it. Everything is estimated from all
    documents by maximum penalised likelihood. The probability of a wrong label is then Efron's local false discovery
    rate (2001), subtracted from 1: its mean over any list is the expected share of wrong ones in the list.

    Args:
        kinds: documents × runs; 0 is an answer that counts as right, equal numbers above 0 are equal wrong answers.
        answers: number M of possible wrong answers, or 0 if they are open. ``None`` if answers are not known, so that
            all wrong ones have the kind 1. A run that does not know then hits a wrong label with a probability that
            is estimated too.
        seed: seed of the documents that the model is fitted to, if there are more than 5,000.

    Raises:
        UsageError: not a matrix, or fewer than four runs.
    """
    import numpy as np

    matrix = np.asarray(kinds, dtype=np.intp)
    if matrix.ndim != 2 or not len(matrix) or matrix.min() < 0:
        raise UsageError("suspects: give documents × runs of kinds of answers")
    _check_runs(matrix.shape[1])
    fitted = matrix
    if len(matrix) > _MOST_FITTED:
        fitted = matrix[np.random.default_rng(seed).choice(len(matrix), _MOST_FITTED, replace=False)]
    wrong_answers = None if answers is None else answers or _OPEN
    model = Likelihood(fitted, wrong_answers)
    found = model.fit()
    parts = [
        Likelihood(matrix[first : first + _AT_ONCE], wrong_answers).posterior(found)
        for first in range(0, len(matrix), _AT_ONCE)
    ]
    probability, other = (np.concatenate(part) for part in zip(*parts, strict=True))
    return WrongLabels(probability, other, model.misfit(found))


class _Hypotheses:
    """Hypotheses about each distinct row of kinds, as rows; the first of each is that the label is right."""

    def __init__(self, kinds: Whole, answers: int | None) -> None:
        import numpy as np

        patterns, inverse, self.count = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)
        self.of_document = inverse.reshape(-1)
        number, runs = patterns.shape
        sizes = np.stack([(patterns == kind).sum(axis=1) for kind in range(patterns.max() + 1)], axis=1)
        # By hypothesis: pattern, kind of the right answer, runs that are right, sizes of the groups of wrong answers.
        made = [(np.arange(number), 0, patterns == 0)]
        if answers is None:
            made.append((np.arange(number), -1, patterns == 0))
        else:
            for kind in range(1, sizes.shape[1]):
                having = np.flatnonzero(sizes[:, kind])
                made.append((having, kind, patterns[having] == kind))
            made.append((np.arange(number), -1, np.zeros((number, runs), bool)))
        pattern = np.concatenate([rows for rows, _, _ in made])
        truth = np.repeat([kind for _, kind, _ in made], [len(rows) for rows, _, _ in made])
        groups = sizes[pattern] * (truth[:, None] != np.arange(sizes.shape[1]))
        order = np.lexsort((truth != 0, pattern))
        order = order[(groups[order] > 0).sum(axis=1) <= (answers or runs)]
        self.pattern, self.truth = pattern[order], truth[order]
        self.right = np.concatenate([right for _, _, right in made])[order].astype(np.float64)
        self.is_null = self.truth == 0
        self.start = np.flatnonzero(np.diff(self.pattern, prepend=-1))
        self.partition = _Partitions(groups[order], self.is_null, answers)


class _Partitions:
    """Probabilities of groups of equal wrong answers, from a symmetric Dirichlet distribution (Antoniak 1974)."""

    def __init__(self, groups: Whole, is_null: Flags, answers: int | None) -> None:
        import numpy as np
        from scipy.special import gammaln

        self.answers = answers
        has_label = (groups[:, 0] > 0) & ~is_null
        # The label's own group is one of the groups of wrong answers.
        table = np.column_stack([np.sort(groups, axis=1), has_label, is_null])
        distinct, inverse = np.unique(table, axis=0, return_inverse=True)
        self.inverse = inverse.reshape(-1)
        self.sizes, labelled, null = distinct[:, :-2], distinct[:, -2] > 0, distinct[:, -1] > 0
        self.total = self.sizes.sum(axis=1)
        if answers is None:
            return
        used = (self.sizes > 0).sum(axis=1)
        self.ways = gammaln(answers + 1) - gammaln(answers - used + 1)
        # The label is any of the wrong answers with equal probability: that of a group, or one that no run gave.
        unseen = np.log(np.maximum(answers - used, 1e-9) / answers)
        self.ways += np.where(null, 0.0, np.where(labelled, -math.log(answers), unseen))

    def log(self, concentration: float) -> tuple[Values, Values]:
        """Return log probabilities by row, and their derivatives by the logarithm of the concentration."""
        import numpy as np
        from scipy.special import digamma, gammaln

        if self.answers is None:
            zero = np.zeros(len(self.inverse))
            return zero, zero
        each = concentration / self.answers
        has = self.sizes > 0
        log = np.where(has, gammaln(self.sizes + each) - gammaln(each), 0).sum(axis=1) + self.ways
        log += gammaln(concentration) - gammaln(self.total + concentration)
        slope = np.where(has, digamma(self.sizes + each) - digamma(each), 0).sum(axis=1) * each
        slope += concentration * (digamma(concentration) - digamma(self.total + concentration))
        return log[self.inverse], slope[self.inverse]


class Likelihood:
    """The likelihood of kinds of answers, as a function of one vector of parameters.

    The vector holds the logarithm of each class's weight, each run's θ, and then logit γ, the logarithm of the
    Dirichlet concentration, logit π, and the logit of the chance to hit a wrong label.
    """

    def __init__(self, kinds: Whole, answers: int | None) -> None:
        import numpy as np

        self.kinds, self.answers = kinds, answers
        self.rows = _Hypotheses(kinds, answers)
        self.documents, self.runs = kinds.shape
        grid = np.array(list(itertools.product(_SLOPES, np.linspace(*_DIFFICULTIES))))
        self.slope, self.difficulty = grid[:, :1], grid[:, 1:]
        self.classes = len(grid)
        self.parameters = self.classes + self.runs + 4

    def fit(self) -> Values:
        """Return the parameters of greatest penalised likelihood."""
        import numpy as np
        from scipy.optimize import minimize

        share = ((self.kinds == 0).sum(axis=0) + 0.5) / (self.documents + 1)
        classes = -(self.difficulty[:, 0] ** 2) / 8
        centre = np.concatenate([classes, np.log(share / (1 - share)), [-1.4, 1.0, -3.5, -0.7]])
        width = np.concatenate([np.full(self.classes, 2.0), np.full(self.runs, 3.0), [1.5, 1.5, 2.0, 1.0]])
        free = [(None, None)] * (self.classes + self.runs)

        def objective(vector: Values) -> tuple[float, Values]:
            value, gradient = self.value(vector)
            away = (vector - centre) / width
            return -value + float(away @ away) / 2, away / width - gradient

        bounds = [*free, (-5.0, 1.0), (-3.0, 7.0), (-9.0, -1.0), (-4.0, 0.0)]
        found: Values = minimize(
            objective,
            centre,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": 150, "maxfun": 300, "ftol": 1e-8},
        ).x
        return found

    def _parts(self, vector: Values) -> tuple[Values, Values, Values, Values]:
        """Return the classes' weights, 1 / (1 + exp(−a (θ − b))), the chances to be right, and the last parameters."""
        import numpy as np
        from scipy.special import expit, softmax

        weights = softmax(vector[: self.classes])
        ability = vector[self.classes : self.classes + self.runs]
        last = vector[self.classes + self.runs :]
        rest = np.array([expit(last[0]), math.exp(last[1]), expit(last[2]), expit(last[3])])
        known = expit(self.slope * (ability - self.difficulty))
        return weights, known, np.clip(rest[0] + (1 - rest[0]) * known, 1e-7, 1 - 1e-7), rest

    def _joint(self, vector: Values) -> tuple[Values, Values, Values]:
        """Return log likelihood by pattern, posterior by row, and posterior of the classes in each row."""
        import numpy as np

        rows = self.rows
        weights, _, right, (_, concentration, share, hit) = self._parts(vector)
        log_weights = np.log(weights + 1e-300)
        each = _bernoulli(rows.right, right) + log_weights
        if self.answers is None:
            missed = ~rows.is_null
            each[missed] = _bernoulli(rows.right[missed], self._hits(right, hit)) + log_weights
        most = each.max(axis=1, keepdims=True)
        each = np.exp(each - most)
        total = each.sum(axis=1)
        log = np.log(total) + most[:, 0] + rows.partition.log(concentration)[0]
        log += np.where(rows.is_null, math.log1p(-share), math.log(share))
        top = np.maximum.reduceat(log, rows.start)
        inside = np.exp(log - top[rows.pattern])
        sums = np.add.reduceat(inside, rows.start)
        return top + np.log(sums), inside / sums[rows.pattern], each / total[:, None]

    @staticmethod
    def _hits(right: Values, hit: float) -> Values:
        """Return the chance that a run's answer is the label although the label is wrong."""
        return (1 - right) * hit

    def value(self, vector: Values) -> tuple[float, Values]:
        """Return the log likelihood and its gradient."""
        import numpy as np

        rows = self.rows
        weights, known, right, (guess, concentration, share, hit) = self._parts(vector)
        log, posterior, of_class = self._joint(vector)
        mass = posterior * rows.count[rows.pattern]
        of_class = of_class * mass[:, None]
        is_hit = ~rows.is_null & (self.answers is None)
        by_right = _score(of_class[~is_hit], rows.right[~is_hit], right)
        by_hit = 0.0
        if self.answers is None:
            by_chance = _score(of_class[is_hit], rows.right[is_hit], self._hits(right, hit))
            by_right = by_right - hit * by_chance
            by_hit = float((by_chance * (1 - right)).sum()) * hit * (1 - hit)
        wrong = float(mass[~rows.is_null].sum())
        gradient = [
            of_class.sum(axis=0) - self.documents * weights,
            (by_right * (1 - guess) * known * (1 - known) * self.slope).sum(axis=0),
            [
                float((by_right * (1 - known)).sum()) * guess * (1 - guess),
                float(mass @ rows.partition.log(concentration)[1]),
                wrong - self.documents * share,
                by_hit,
            ],
        ]
        return float(rows.count @ log), np.concatenate(gradient)

    def of_patterns(self, vector: Values) -> Values:
        """Return the log likelihood of each distinct row of kinds, in ascending order of the rows."""
        return self._joint(vector)[0]

    def posterior(self, vector: Values) -> tuple[Values, Whole]:
        """Return for each document the probability that its label is wrong, and the most probable right answer."""
        import numpy as np

        rows = self.rows
        posterior = self._joint(vector)[1]
        wrong = np.add.reduceat(np.where(rows.is_null, 0.0, posterior), rows.start)
        best = np.lexsort((np.where(rows.is_null, -1.0, posterior), rows.pattern))
        last = best[np.append(rows.start[1:], len(best)) - 1]
        other: Whole = np.maximum(rows.truth[last], 0)
        return wrong[rows.of_document], other[rows.of_document]

    def misfit(self, vector: Values) -> tuple[int, int, int, float] | None:
        """Return the two runs that give equal wrong answers most unexpectedly often or seldom, if beyond chance."""
        import numpy as np

        weights, _, right, (_, concentration, share, hit) = self._parts(vector)
        if self.answers is None:
            same = kept = 1.0
            others = 1 - self._hits(right, hit)
            agree_wrong = np.einsum("c,ci,cj->ij", weights, others, others)
        else:
            same = (concentration / self.answers + 1) / (concentration + 1)
            kept = same * (1 - 1 / self.answers)
            both = np.einsum("c,ci,cj->ij", weights, 1 - right, 1 - right)
            agree_wrong = np.einsum("c,ci,cj->ij", weights, right, right) + kept * both
        both = np.einsum("c,ci,cj->ij", weights, 1 - right, 1 - right)
        expected = self.documents * ((1 - share) * both * same + share * agree_wrong)
        observed = np.zeros((self.runs, self.runs))
        for first, second in itertools.combinations(range(self.runs), 2):
            own = self.kinds[:, first]
            observed[first, second] = ((own > 0) & (own == self.kinds[:, second])).sum()
        away = np.triu(observed - expected, 1) / np.sqrt(expected * (1 - expected / self.documents))
        first, second = divmod(int(np.abs(away).argmax()), self.runs)
        if abs(away[first, second]) <= _MISFIT:
            return None
        return first, second, int(observed[first, second]), float(expected[first, second])


def _bernoulli(right: Values, chance: Values) -> Values:
    """Return log likelihoods of rows × runs of right answers, by row and class."""
    import numpy as np

    wrong = np.log1p(-chance)
    found: Values = right @ (np.log(chance) - wrong).T + wrong.sum(axis=1)
    return found


def _score(of_class: Values, right: Values, chance: Values) -> Values:
    """Return the derivatives of the log likelihood by the chances to be right, classes × runs."""
    hits = of_class.T @ right
    found: Values = hits / chance - (of_class.sum(axis=0)[:, None] - hits) / (1 - chance)
    return found


class Suspicion(Struct, frozen=True):
    """Relation of each document's scores to the ability of the runs; one number for each document."""

    correlation: Values
    """Correlation over the runs; NaN if all runs have the same score."""
    p: Sequence[float | None]
    q: Sequence[float | None]
    """``p``, corrected for the number of documents."""


def suspicion(scores: ArrayLike, seed: int = 0) -> Suspicion:
    """Correlate each document's scores with the runs' means over the other documents.

    For right-or-wrong scores this is the point-biserial item-rest correlation (Lord and Novick 1968, "Statistical
    Theories of Mental Test Scores", 15.5). The hypothesis of a document's test is that better runs are at least as
    likely to be right about it, which holds for hard documents and for guesses. Its one-sided p is the share of all
    arrangements of the scores over the runs whose covariance with the runs' means is as low. The hypothesis makes low
    covariances rarer than equal chances do, so p is valid for each of its members. The means include the document
    itself, which can only raise p. Corrected by Benjamini and Hochberg.

    Args:
        scores: documents × runs, without NaN, more is better.
        seed: seed of the arrangements, if there are too many to enumerate.

    Raises:
        UsageError: not a matrix of finite numbers, or fewer than four runs.
    """
    import numpy as np

    matrix = np.asarray(scores, dtype=np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise UsageError("suspects: give documents × runs of finite numbers")
    _check_runs(matrix.shape[1])
    p = _tests(matrix, seed)
    return Suspicion(correlations(matrix), p, benjamini_hochberg(p))


def correlations(matrix: Values) -> Values:
    """Correlate each document's scores with the runs' means over the other documents; NaN if either do not vary."""
    import numpy as np

    rest = matrix.sum(axis=0) - matrix
    own, others = (part - part.mean(axis=1, keepdims=True) for part in (matrix, rest))
    size = np.sqrt((own**2).sum(axis=1) * (others**2).sum(axis=1))
    varies = (np.ptp(matrix, axis=1) > 0) & (np.ptp(rest, axis=1) > 0)
    found: Values = np.full(len(matrix), np.nan)
    found[varies] = np.clip((own * others).sum(axis=1)[varies] / size[varies], -1.0, 1.0)
    return found


def _tests(matrix: Values, seed: int) -> list[float | None]:
    """Return the one-sided p of each document; ``None`` if its scores, or the runs' means, are all equal."""
    import numpy as np

    if not len(matrix) or not np.ptp(matrix.sum(axis=0)) > 0:
        return [None] * len(matrix)
    ability = matrix.mean(axis=0) - matrix.mean()
    generator = np.random.default_rng(seed)
    kinds, of_kind = np.unique(np.sort(matrix, axis=1), axis=0, return_inverse=True)
    observed = matrix @ ability
    found: Values = np.full(len(matrix), np.nan)
    for number, kind in enumerate(kinds):
        if kind[0] < kind[-1]:
            here = np.flatnonzero(of_kind.reshape(-1) == number)
            sums, drawn = _arranged(kind, ability, generator)
            slack = 1e-9 * float(np.abs(kind).max()) * float(np.abs(ability).sum())
            lower = np.searchsorted(sums, observed[here] + slack, side="right")
            found[here] = (lower + drawn) / (len(sums) + drawn)
    return [None if math.isnan(one) else one for one in found.tolist()]


def _arranged(kind: Values, ability: Values, generator: Generator) -> tuple[Values, int]:
    """Return the ascending sums Σ score × ability over arrangements of the scores, and 1 if they are drawn, else 0."""
    import numpy as np

    values, counts = np.unique(kind, return_counts=True)
    total = math.factorial(len(kind)) // math.prod(map(math.factorial, counts.tolist()))
    if total > _MOST_ORDERS or (len(values) > 2 and total > _DRAWN):
        drawn = generator.permuted(np.tile(kind, (_DRAWN, 1)), axis=1)
        return np.sort(drawn @ ability), 1
    if len(values) > 2:
        orders = np.array(sorted(set(_orders(kind.tolist()))))
        return np.sort(orders @ ability), 0
    high = int(counts[1])
    chosen = np.fromiter(
        itertools.chain.from_iterable(itertools.combinations(ability.tolist(), high)), np.float64, total * high
    ).reshape(total, high)
    base = float(values[0]) * float(ability.sum())
    sums: Values = base + float(values[1] - values[0]) * chosen.sum(axis=1)
    return np.sort(sums), 0


def _orders(scores: Sequence[float]) -> Iterator[tuple[float, ...]]:
    """Yield the distinct orders of scores."""
    if not scores:
        yield ()
    for score in sorted(set(scores)):
        rest = list(scores)
        rest.remove(score)
        yield from ((score, *others) for others in _orders(rest))


def _check_runs(runs: int) -> None:
    if runs < LEAST_RUNS:
        raise UsageError(f"suspects: {runs} runs; give at least {LEAST_RUNS}")
