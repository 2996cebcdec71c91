"""Redrawn documents: the same draws for every run that answered them, whole clusters at a time (Efron 1979)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmms_eval.errors import UsageError

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

_BLOCK_ELEMENTS = 500_000
"""Weights at hand at once: 4 MB."""
NORMAL_FROM = 20_000
"""Number of units from which ``Redraws.sums`` draws from the normal limit."""


@dataclass(frozen=True, slots=True)
class Redraws:
    """Draws with replacement of as many documents, or clusters of documents, as there are.

    Every iteration gives the same draws, so a statistic of several runs is redrawn with the same documents for each.
    """

    n: int
    """Documents."""
    clusters: Sequence[str | None] | None = None
    """One name for each document; those of one name are drawn together. ``None`` is a name as well."""
    draws: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n < 1 or self.draws < 1:
            raise UsageError(f"redraws: {self.draws} draws of {self.n} documents; give at least one of each")
        if self.clusters is not None and len(self.clusters) != self.n:
            raise UsageError(f"redraws: {len(self.clusters)} clusters for {self.n} documents; give one for each")

    def __iter__(self) -> Iterator[NDArray[float64]]:
        """Blocks of weights (draws × documents): how often each document is drawn.

        A block holds some 4 MB, whatever the number of documents. Rows sum to ``n``, or with clusters of different
        sizes to about that.
        """
        codes = None if self.clusters is None else unit_codes(self.clusters)
        for counts in count_blocks(self.n if codes is None else int(codes.max()) + 1, self.draws, self.seed, self.n):
            yield counts if codes is None else counts[:, codes]

    def sums(self, columns: NDArray[float64]) -> NDArray[float64]:
        """Sums of columns over the documents drawn: documents × k becomes draws × k.

        A mean redrawn is the ratio of two such sums, its numbers' and that of a column of ones. From 20,000 documents
        (clusters) on the sums come from their normal limit, a normal vector with the covariance Σ (x − x̄)(x − x̄)ᵀ of
        the units: skewness and kurtosis of the redrawn sums are those of a unit over √units and units, which moves no
        quantile by as much as the noise of 10,000 draws.
        """
        import numpy as np

        units = columns if self.clusters is None else unit_sums(columns, unit_codes(self.clusters))
        count = len(units)
        if count < NORMAL_FROM:
            return np.concatenate([counts @ units for counts in count_blocks(count, self.draws, self.seed)])
        centred = units - units.mean(axis=0)
        values, vectors = np.linalg.eigh(centred.T @ centred)
        noise = np.random.default_rng(self.seed).standard_normal((self.draws, units.shape[1]))
        return np.asarray(units.sum(axis=0) + (noise * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def unit_codes(clusters: Sequence[str | None]) -> NDArray[intp]:
    """Numbers of the clusters from 0, in the order in which they first occur."""
    import numpy as np

    numbers: dict[str | None, int] = {}
    return np.fromiter(
        (numbers.setdefault(name, len(numbers)) for name in clusters), dtype=np.intp, count=len(clusters)
    )


def unit_sums(columns: NDArray[float64], codes: NDArray[intp]) -> NDArray[float64]:
    """Sums of columns (rows × k) by unit (units × k)."""
    import numpy as np

    return np.stack([np.bincount(codes, weights=column) for column in columns.T], axis=1)


def count_blocks(units: int, draws: int, seed: int, width: int | None = None) -> Iterator[NDArray[float64]]:
    """Blocks (some draws × units) of how often each unit is drawn; every row sums to ``units``.

    Args:
        width: numbers that a caller keeps for each draw, where that is more than ``units``.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    rows = max(1, _BLOCK_ELEMENTS // max(units, width or 0))
    for start in range(0, draws, rows):
        here = min(rows, draws - start)
        drawn = generator.integers(0, units, size=(here, units))
        drawn += np.arange(here)[:, None] * units
        yield np.bincount(drawn.ravel(), minlength=here * units).reshape(here, units).astype(np.float64)
