"""Chamfer distance of clouds of points."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

_CHUNK = 512
"""Points whose distances to all others are held at once."""


def chamfer_distance(first: Floats, second: Floats) -> float:
    """Mean Euclidean distance of each point to the nearest one of the other cloud, both directions added.

    Not squared, in the unit of the coordinates, nothing scaled or aligned: the benchmark names no variant, and its
    tasks use different units (General-Bench specification §5.1).

    Args:
        first: ``(points, 3)``, finite, at least one.
        second: the same.
    """
    return float(nearest_distances(first, second).mean() + nearest_distances(second, first).mean())


def nearest_distances(points: Floats, others: Floats) -> Floats:
    """Distance of each point to the nearest of ``others``, ``(points,)``: a tree of SciPy where it is installed, else
    all distances, a part at a time."""
    try:
        from scipy.spatial import cKDTree
    except ImportError:
        return all_distances(points, others)
    import numpy as np

    tree = cKDTree(np.unique(others, axis=0))  # a tree of many equal points degenerates
    distances: Floats = tree.query(points, k=1)[0]
    return distances


def all_distances(points: Floats, others: Floats) -> Floats:
    """Distances as those of ``nearest_distances``, without SciPy."""
    import numpy as np

    middle = others.mean(axis=0)
    points, others = points - middle, others - middle
    squares = (others * others).sum(axis=1)
    found = np.empty(len(points))
    for start in range(0, len(points), _CHUNK):
        part = points[start : start + _CHUNK]
        nearest = np.argmin(squares - 2 * (part @ others.T), axis=1)
        found[start : start + _CHUNK] = np.linalg.norm(part - others[nearest], axis=1)
    return found
