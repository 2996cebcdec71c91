"""Frechet distance of two sets of embeddings, the last step of FID, FAD and FVD.

The distance of two normal distributions is ``|m1 - m2|^2 + tr(S1) + tr(S2) - 2 tr((S1 S2)^(1/2))`` (Dowson and Landau,
1982). The trace of the root is the sum of the roots of the eigenvalues of ``S1^(1/2) S2 S1^(1/2)``, which is symmetric.
Unlike a root of the product itself, it is exact and finite if a set has fewer embeddings than dimensions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

_IMAGINARY = 1e-3
"""Imaginary parts of the root above this are an error. Smaller ones are dropped."""
_ROUNDING = 1e-7
"""Eigenvalues below zero by at most this share of the largest come from rounding."""
_MAX_DIMENSIONS = 8192


def frechet_from_embeddings(first: Any, second: Any) -> float:
    """Return the Frechet distance of two sets of embeddings ``(embeddings, dimensions)``. Covariances divide by n - 1.

    Raises:
        DataError: no two-dimensional finite arrays, different dimensions, fewer than two dimensions (those of a
            covariance matrix) or fewer than two embeddings in a set.
    """
    import numpy as np

    sets = _embeddings(first), _embeddings(second)
    if sets[0].shape[1] != sets[1].shape[1]:
        raise DataError(f"embeddings of {sets[0].shape[1]} and {sets[1].shape[1]} dimensions have no Frechet distance")
    means = [np.mean(one, axis=0) for one in sets]
    covariances = [np.cov(one, rowvar=False) for one in sets]
    return frechet_distance(means[0], covariances[0], means[1], covariances[1])


def frechet_distance(mu1: Any, sigma1: Any, mu2: Any, sigma2: Any) -> float:
    """Return the Frechet distance of two normal distributions, not below 0.

    Args:
        mu1: mean of the first, ``(dimensions,)``.
        sigma1: its covariance matrix, ``(dimensions, dimensions)``.
        mu2: mean of the second.
        sigma2: its covariance matrix.

    Raises:
        DataError: shapes that do not fit, numbers that are not finite, or matrices whose product has no real root (an
            imaginary part above 0.001): they are no covariances.
    """
    mean1, covariance1 = _distribution(mu1, sigma1)
    mean2, covariance2 = _distribution(mu2, sigma2)
    if mean1.shape != mean2.shape:
        raise DataError(f"means of {mean1.size} and {mean2.size} dimensions have no Frechet distance")
    offset = mean1 - mean2
    traces = float(covariance1.trace()) + float(covariance2.trace())
    return max(0.0, float(offset @ offset) + traces - 2 * _root_trace(covariance1, covariance2))


def _embeddings(values: Any) -> Floats:
    array = _floats(values, 2, "embeddings")
    if array.shape[0] < 2:
        raise DataError(f"a Frechet distance needs at least 2 embeddings in each set, not {array.shape[0]}")
    if not 2 <= array.shape[1] <= _MAX_DIMENSIONS:
        raise DataError(f"embeddings must have 2 to {_MAX_DIMENSIONS} dimensions, not {array.shape[1]}")
    return array


def _distribution(mean: Any, covariance: Any) -> tuple[Floats, Floats]:
    found = _floats(mean, 1, "a mean"), _floats(covariance, 2, "a covariance matrix")
    if found[1].shape != (found[0].size, found[0].size) or not 1 <= found[0].size <= _MAX_DIMENSIONS:
        raise DataError(f"a mean of {found[0].size} dimensions and a covariance matrix {found[1].shape} do not fit")
    return found


def _floats(values: Any, dimensions: int, name: str) -> Floats:
    import numpy as np

    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be an array of numbers: {error}") from error
    if array.ndim != dimensions:
        raise DataError(f"{name} must have {dimensions} axes, not {array.ndim}")
    if not np.isfinite(array).all():
        raise DataError(f"{name} holds numbers that are not finite")
    return array


def _root_trace(first: Floats, second: Floats) -> float:
    """Return the trace of the root of the product of two covariance matrices."""
    import numpy as np

    values, vectors = np.linalg.eigh((first + first.T) / 2)
    half = (vectors * _roots(values)) @ vectors.T
    product = half @ ((second + second.T) / 2) @ half
    return math.fsum(_roots(np.linalg.eigvalsh((product + product.T) / 2)).tolist())


def _roots(eigenvalues: Floats) -> Floats:
    """Return the roots of eigenvalues that are at least zero up to rounding."""
    import numpy as np

    least, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    if least < -_ROUNDING * max(largest, 0.0) and math.sqrt(-least) > _IMAGINARY:
        raise DataError(
            f"the root of the covariances' product has the imaginary part {math.sqrt(-least):.3g}: "
            "they are no covariance matrices"
        )
    roots: Floats = np.sqrt(np.clip(eigenvalues, 0.0, None))
    return roots
