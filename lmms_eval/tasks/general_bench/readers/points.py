"""Points in space: arrays, tables, lists, and points sampled on the surface of a mesh."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.readers.arrays import read_array
from lmms_eval.tasks.general_bench.readers.meshes import (
    MAX_VERTICES,
    number_lines,
    read_mesh,
    text_lines,
)
from lmms_eval.tasks.general_bench.readers.sides import Side

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from lmms_eval.tasks.general_bench.readers.meshes import Mesh

    Floats = npt.NDArray[np.float64]

MAX_POINTS = 32_768
"""Most points. A larger cloud is represented by so many of its points, and a surface by so many points on it."""
MAX_LISTED = 1_000_000
FARTHEST = 1e12
"""Largest coordinate of a point."""
_SEED = 20250507


def points_of(value: Any, side: Side) -> Floats:
    """Read the points of a prediction or reference, ``(points, 3)``: a path, or a list of ``[x, y, z]``.

    Raises:
        UnreadableAnswer: a prediction without such a file, or that holds no usable points.
        DataError: the same of a reference.
        MediaError: the reference's file is not there.
    """
    source = side.path(value) if isinstance(value, str) else value
    with side.reading():
        return read_points(source)


def read_points(source: Path | Any, most: int = MAX_POINTS) -> Floats:
    """Read the points of a ``.npy``, ``.xyz``, ``.txt``, ``.ply``, ``.obj`` or ``.off`` file or of a list, ``(points,
    3)``.

    The first three columns of a table count. A mesh with faces gives points sampled evenly on its surface; of a cloud
    with more than ``most`` points, ``most`` are sampled. Both use a fixed seed.

    Raises:
        DataError: not readable, no points, more than ten million, or coordinates that are not finite.
    """
    if not isinstance(source, Path):
        where = "the list of points"
        return _finite(subset(number_rows(source, where, MAX_LISTED)[:, :3], most), where)
    match source.suffix.lower():
        case ".npy":
            table = read_array(source)
            if table.ndim != 2 or table.shape[1] < 3 or not 0 < len(table) <= MAX_VERTICES:
                raise DataError(f"{source} has the shape {table.shape}: (points, 3) is needed")
            return _finite(subset(table[:, :3], most), str(source))
        case ".xyz" | ".txt":
            return _finite(subset(number_lines(text_lines(source), (0, 1, 2), source), most), str(source))
        case ".ply" | ".obj" | ".off":
            mesh = read_mesh(source)
            _finite(mesh.vertices, str(source))
            return surface_points(mesh, most) if len(mesh.triangles) else subset(mesh.vertices, most)
    raise DataError(f"{source}: points are read from .npy, .xyz, .txt, .ply, .obj and .off files")


def number_rows(value: Any, what: str, most: int) -> Floats:
    """Return a list of lists of equally many numbers, at least three each, as an array.

    Raises:
        DataError: it is not valid, it is empty, or it has more than ``most`` rows.
    """
    import numpy as np

    if not isinstance(value, list | tuple) or not value or len(value) > most:
        raise DataError(f"{what} must be a list of 1 to {most} rows")
    width = len(value[0]) if isinstance(value[0], list | tuple) else 0
    if not 3 <= width <= 64 or any(not isinstance(row, list | tuple) or len(row) != width for row in value):
        raise DataError(f"{what} must have rows of equally many numbers, at least 3")
    try:
        return np.asarray(value, dtype=np.float64).reshape(len(value), width)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{what} holds something else than numbers: {str(error)[:100]}") from error


def subset(points: npt.NDArray[Any], most: int) -> npt.NDArray[Any]:
    """Sample ``most`` of the points with a fixed seed, keeping their order. If there are no more points, return all."""
    import numpy as np

    if len(points) <= most:
        return points
    chosen = np.random.default_rng(_SEED).choice(len(points), most, replace=False, shuffle=False)
    return points[np.sort(chosen)]


def surface_points(mesh: Mesh, count: int) -> Floats:
    """Sample points evenly on the surface with a fixed seed, ``(count, 3)``. Without area, return vertices."""
    import numpy as np

    corners = mesh.vertices[mesh.triangles]
    sides = corners[:, 1:] - corners[:, :1]
    areas = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    upto = np.cumsum(areas)
    if not upto[-1] > 0:
        return subset(mesh.vertices, count)
    source = np.random.default_rng(_SEED)
    chosen = np.minimum(np.searchsorted(upto, source.random(count) * upto[-1], side="right"), len(areas) - 1)
    across, along = np.sqrt(source.random((count, 1))), source.random((count, 1))
    first, second = sides[chosen, 0], sides[chosen, 1]
    drawn: Floats = corners[chosen, 0] + across * (1 - along) * first + across * along * second
    return drawn


def _finite(points: npt.NDArray[Any], where: str) -> Floats:
    import numpy as np

    numbers: Floats = np.asarray(points, dtype=np.float64)
    if not (np.abs(numbers) <= FARTHEST).all():  # false for NaN too
        raise DataError(f"{where} holds coordinates that are no finite places")
    return numbers
