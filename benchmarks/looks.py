"""Shared parts of simulations: a task of right and wrong answers, its random orders, and intervals for one look."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lmms_eval.utils.numbers import ScoreRange

Floats = NDArray[np.float64]
SHARE = ScoreRange(0, 1)
Z = 1.96
ROUNDING = 1e-9


def population(total: int, chance: float) -> Floats:
    return (np.arange(total) < round(total * chance)).astype(float)


def orders(values: Floats, draws: int, seed: int) -> Iterator[Floats]:
    """Return the values in random orders."""
    source = np.random.default_rng(seed)
    for _ in range(draws):
        yield source.permutation(values)


def held(ends: Floats, truth: float) -> NDArray[np.bool_]:
    return (ends[..., 0] <= truth + ROUNDING) & (truth - ROUNDING <= ends[..., 1])


def wald(share: Floats, n: Floats, _total: int) -> Floats:
    return ends_of(share, Z * np.sqrt(share * (1 - share) / n))


def wald_finite(share: Floats, n: Floats, total: int) -> Floats:
    return ends_of(share, Z * np.sqrt(share * (1 - share) / n * (total - n) / (total - 1)))


def wilson(share: Floats, n: Floats, _total: int) -> Floats:
    below = 1 + Z * Z / n
    half = Z / below * np.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return ends_of((share + Z * Z / (2 * n)) / below, half)


def ends_of(middle: Floats, half: Floats) -> Floats:
    return np.stack((middle - half, middle + half), axis=-1)
