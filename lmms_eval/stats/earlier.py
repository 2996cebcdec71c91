"""Scores of a run's documents, predicted from the scores of earlier runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

Scores = Mapping[int, float]
"""Scores of a run by document, as shares of the range."""
ALONE = 0.5
"""Assumed correlation of a run's scores with those of the next run, if there is only one run."""
LEAST_RUNS = 4
"""Least number of runs for a fit: one to hold out, one to predict, and two to predict it from."""
PENALTIES = (1.0, 10.0, 100.0, 1000.0)
_WORTH = 0.01
"""A fit is used only if its cross-validated R² is greater than that of the mean by so much."""
_MOST_CHECKED = 2000
"""Most documents for the choice between mean and fit, at even distances."""
_STEPS, _MOST_LOGIT = 12, 30.0


Fit = Literal["mean", "ridge", "logit"]


class Prediction(Struct, frozen=True):
    """Predicted scores of a run, and how they were made."""

    shares: Mapping[int, float]
    """By document."""
    fit: Fit = "mean"
    r_squared: float | None = None
    """R² over earlier runs that were held out, each predicted from the others; ``None`` for a single run."""
    of_mean: float | None = None
    """The same of the mean."""


def predicted(runs: Sequence[Scores], doc_ids: Sequence[int]) -> dict[int, float]:
    """Predict the score of another run on each document by the mean of earlier runs.

    The mean score of a document is moved towards the mean of all documents, by the reliability of a mean of n runs
    that correlate with r: n r / (1 + (n − 1) r). r is the mean covariance of two runs divided by their mean variance;
    a single run is assumed to have r = 0.5. A document without a score gets the mean.

    Sources: T. Kelley, Interpretation of educational measurements, 1927 (regressed estimate); C. Spearman and W. Brown,
    British Journal of Psychology 3, 1910 (reliability of a mean).
    """
    by_document: dict[int, list[float]] = {}
    for scores in runs:
        for doc_id, score in scores.items():
            by_document.setdefault(doc_id, []).append(score)
    means = {doc_id: math.fsum(scores) / len(scores) for doc_id, scores in by_document.items()}
    middle = math.fsum(means.values()) / len(means)
    r = correlation(runs)

    def anchor(doc_id: int) -> float:
        if doc_id not in means:
            return middle
        n = len(by_document[doc_id])
        return middle + n * r / (1 + (n - 1) * r) * (means[doc_id] - middle)

    return {doc_id: anchor(doc_id) for doc_id in doc_ids}


def correlation(runs: Sequence[Scores]) -> float:
    """Return the mean covariance of two runs over their shared documents, divided by their mean variance; 0 to 1."""
    if len(runs) < 2:
        return ALONE
    covariances, variances = [], []
    for number, first in enumerate(runs):
        for second in runs[number + 1 :]:
            shared = [doc_id for doc_id in first if doc_id in second]
            if len(shared) < 2:
                continue
            left, right = (_centred([run[doc_id] for doc_id in shared]) for run in (first, second))
            covariances.append(math.fsum(a * b for a, b in zip(left, right, strict=True)) / len(shared))
            variances += [math.fsum(a * a for a in one) / len(shared) for one in (left, right)]
    if not covariances:  # no two runs share documents
        return ALONE
    variance = math.fsum(variances) / len(variances)
    covariance = math.fsum(covariances) / len(covariances)
    return min(1.0, max(0.0, covariance / variance)) if variance > 0 else 0.0


def _centred(numbers: Sequence[float]) -> list[float]:
    mean = math.fsum(numbers) / len(numbers)
    return [number - mean for number in numbers]


def best_prediction(runs: Sequence[Scores], doc_ids: Sequence[int]) -> Prediction:
    """Predict the score of another run on each document by the mean of earlier runs, or by a fit if that is better.

    The fit weights runs that resemble the others: each earlier run is predicted from the others, by a ridge regression
    (Hoerl and Kennard 1970) or, if all scores are right or wrong, a logistic one (le Cessie and van Houwelingen 1992),
    and the predictions are averaged. Mean and fits with several penalties are compared by cross-validation over runs:
    each is held out once and predicted without its scores. The new run's scores are never seen.

    Args:
        runs: earlier runs, one at least; with fewer than ``LEAST_RUNS`` the mean is used.
        doc_ids: documents to predict.
    """
    if len(runs) < 2:
        return Prediction(predicted(runs, doc_ids))
    known = sorted({doc_id for one in runs for doc_id in one})
    checked = known[:: max(1, len(known) // _MOST_CHECKED)]

    def held_out(predict: Callable[[Sequence[Scores]], Mapping[int, float]]) -> float:
        found = [
            _r_squared(one, predict([*runs[:number], *runs[number + 1 :]]), checked) for number, one in enumerate(runs)
        ]
        usable = [each for each in found if each is not None]
        return math.fsum(usable) / len(usable) if usable else 0.0

    of_mean = held_out(lambda others: predicted(others, checked))
    if len(runs) < LEAST_RUNS:
        return Prediction(predicted(runs, doc_ids), r_squared=of_mean, of_mean=of_mean)
    is_binary = all(score in (0.0, 1.0) for one in runs for score in one.values())
    tried = [
        (held_out(lambda others, penalty=penalty: _fitted(others, checked, penalty, is_binary)), penalty)  # type: ignore[misc]
        for penalty in PENALTIES
    ]
    r_squared, penalty = max(tried)
    if r_squared < of_mean + _WORTH:
        return Prediction(predicted(runs, doc_ids), r_squared=of_mean, of_mean=of_mean)
    shares = _fitted(runs, known, penalty, is_binary)
    middle = math.fsum(shares.values()) / len(shares)
    return Prediction(
        {doc_id: shares.get(doc_id, middle) for doc_id in doc_ids},
        "logit" if is_binary else "ridge", r_squared, of_mean,
    )  # fmt: skip


def _r_squared(scores: Scores, shares: Mapping[int, float], doc_ids: Sequence[int]) -> float | None:
    """Return the share of the scores' variance that predictions explain; ``None`` if the scores do not vary."""
    both = [(scores[doc_id], shares[doc_id]) for doc_id in doc_ids if doc_id in scores]
    if len(both) < 2:
        return None
    whole = math.fsum(x * x for x in _centred([score for score, _ in both]))
    left = math.fsum(x * x for x in _centred([score - share for score, share in both]))
    return 1 - left / whole if whole > 0 else None


def _fitted(runs: Sequence[Scores], doc_ids: Sequence[int], penalty: float, is_binary: bool) -> dict[int, float]:
    """Return the mean of the predictions of each run from the others, within 0 and 1."""
    import numpy as np

    scores = np.array([[one.get(doc_id, math.nan) for one in runs] for doc_id in doc_ids])
    filled = _filled(scores)
    fit = _logit if is_binary else _ridge
    total = np.zeros(len(doc_ids))
    for place in range(len(runs)):
        has = np.isfinite(scores[:, place])
        features = _standardised(np.delete(filled, place, axis=1))
        total += fit(features, scores[:, place], has, penalty)
    return dict(zip(doc_ids, np.clip(total / len(runs), 0.0, 1.0).tolist(), strict=True))


def _filled(scores: NDArray[float64]) -> NDArray[float64]:
    """Replace missing scores by the run's mean and the document's mean deviation from the means of the other runs."""
    import numpy as np

    has = np.isfinite(scores)
    zeros = np.where(has, scores, 0.0)
    means = zeros.sum(axis=0) / np.maximum(1, has.sum(axis=0))
    deviation = np.where(has, scores - means, 0.0).sum(axis=1) / np.maximum(1, has.sum(axis=1))
    filled: NDArray[float64] = np.where(has, scores, means + deviation[:, None])
    return filled


def _standardised(features: NDArray[float64]) -> NDArray[float64]:
    import numpy as np

    spread = features.std(axis=0)
    standard: NDArray[float64] = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return standard


def _ridge(
    features: NDArray[float64], target: NDArray[float64], has: NDArray[float64], penalty: float
) -> NDArray[float64]:
    """Fit the known part of the target, and return the predictions for all documents."""
    import numpy as np

    inside, known = features[has], target[has]
    if not len(known):
        return np.full(len(features), 0.5)
    middle, centre = known.mean(), inside.mean(axis=0)
    square = (inside - centre).T @ (inside - centre) + penalty * np.eye(features.shape[1])
    weights = np.linalg.solve(square, (inside - centre).T @ (known - middle))
    found: NDArray[float64] = middle + (features - centre) @ weights
    return found


def _logit(
    features: NDArray[float64], target: NDArray[float64], has: NDArray[float64], penalty: float
) -> NDArray[float64]:
    """The same for right-or-wrong targets, by Newton's method."""
    import numpy as np

    with_one = np.column_stack([np.ones(len(features)), features])
    inside, known = with_one[has], target[has]
    weights = np.zeros(with_one.shape[1])
    penalties = np.diag([1e-6, *[penalty] * features.shape[1]])
    for _ in range(_STEPS):
        share = 1 / (1 + np.exp(-np.clip(inside @ weights, -_MOST_LOGIT, _MOST_LOGIT)))
        curve = (inside * (share * (1 - share))[:, None]).T @ inside + penalties
        step = np.linalg.solve(curve, inside.T @ (known - share) - penalties @ weights)
        weights += step
        if np.abs(step).max() < 1e-4:
            break
    found: NDArray[float64] = 1 / (1 + np.exp(-np.clip(with_one @ weights, -_MOST_LOGIT, _MOST_LOGIT)))
    return found
