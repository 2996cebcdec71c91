"""Points, poses of a moving camera, boxes and tracked objects in space.

Points come from arrays, tables, lists, or the surface of a mesh; poses from KITTI's text files (a 3x4 matrix in each
line), arrays and lists; boxes and tracked objects from JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.measures.detection3d import Box3D
from lmms_eval.tasks.general_bench.measures.tracking3d import Tracked
from lmms_eval.tasks.general_bench.readers.arrays import read_array
from lmms_eval.tasks.general_bench.readers.meshes import MAX_VERTICES, number_lines, read_mesh, text_lines
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
        MediaError: the reference's file is missing.
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


MAX_POSES = 100_000
_LEAST_DETERMINANT = 1e-6


def poses_of(value: Any, side: Side) -> Floats:
    """Read the poses of a prediction or reference, ``(poses, 4, 4)``: a path, or a list of matrices.

    Raises:
        UnreadableAnswer: a prediction without such a file, or that holds no usable poses.
        DataError: the same of a reference.
        MediaError: the reference's file is missing.
    """
    source = side.path(value) if isinstance(value, str) else value
    with side.reading():
        return read_poses(source)


def read_poses(source: Path | Any) -> Floats:
    """Read the poses (camera to world) of a ``.txt`` or ``.npy`` file or of a list, ``(poses, 4, 4)``.

    Each pose is 12 numbers (the upper three rows of its matrix, row by row, as in KITTI), 16 numbers, or the matrix.

    Raises:
        DataError: not readable, no or too many poses, numbers that are not finite, or matrices without an inverse.
    """
    import numpy as np

    where = str(source) if isinstance(source, Path) else "the list of poses"
    if isinstance(source, Path):
        table = _file_rows(source)
    elif not isinstance(source, list) or len(source) > MAX_POSES:
        raise DataError(f"{where} must have 1 to {MAX_POSES} poses")
    else:
        table = number_rows([_flat(pose) for pose in source], where, MAX_POSES)
    if table.ndim == 3 and table.shape[1:] in ((3, 4), (4, 4)):
        table = table.reshape(len(table), -1)
    if table.ndim != 2 or table.shape[1] not in (12, 16) or not 0 < len(table) <= MAX_POSES:
        raise DataError(f"{where}: 1 to {MAX_POSES} poses of 12 or 16 numbers are needed, not the shape {table.shape}")
    poses = np.tile(np.eye(4), (len(table), 1, 1))
    poses[:, :3] = np.asarray(table[:, :12], np.float64).reshape(-1, 3, 4)
    if not (np.abs(poses) <= FARTHEST).all():
        raise DataError(f"{where} holds numbers that are not finite")
    if not (np.abs(np.linalg.det(poses[:, :3, :3])) > _LEAST_DETERMINANT).all():
        raise DataError(f"{where} holds a matrix that is no rotation: it has no inverse")
    return poses


def _file_rows(path: Path) -> npt.NDArray[Any]:
    match path.suffix.lower():
        case ".npy":
            return read_array(path)
        case ".txt":
            lines = list(text_lines(path))
            width = len(lines[0].split()) if lines else 0
            if width not in (12, 16):
                raise DataError(f"{path}: a line must have the 12 numbers of a pose, not {width}")
            return number_lines(lines, tuple(range(width)), path)
    raise DataError(f"{path}: poses are read from .txt and .npy files")


def _flat(pose: Any) -> Any:
    if isinstance(pose, list) and 3 <= len(pose) <= 4 and all(isinstance(row, list) and len(row) == 4 for row in pose):
        return [number for row in pose for number in row]
    return pose


MAX_BOXES = 10_000
MAX_FRAMES = 10_000
MAX_IN_FRAME = 500
MAX_TRACKED = 100_000
_MAX_NAME = 200
_BOX_NUMBERS = (6, 7)


def read_boxes3d(value: Any) -> tuple[Box3D, ...]:
    """Read a list of boxes ``{"box": [x, y, z, dx, dy, dz, yaw], "label": text, "score": number}`` or ``[x, y, z, dx,
    dy, dz, yaw, label, score]``. Yaw (radians, 0), label (empty) and score (1) are optional.

    Raises:
        DataError: another form, more than 10,000 boxes, numbers that are not finite, or sizes that are not positive.
    """
    if not isinstance(value, list) or len(value) > MAX_BOXES:
        raise DataError(f"3D boxes must be a list of at most {MAX_BOXES}")
    return tuple(_box(entry) for entry in value)


def read_tracks(value: Any) -> tuple[tuple[Tracked, ...], ...]:
    """Read a list of frames, each a list of ``{"id": ..., "label": text, "center": [x, y, z], "score": number}``. Label
    (empty) and score (1) are optional.

    Raises:
        DataError: another form, too many frames or objects, numbers that are not finite, or an id twice in a frame.
    """
    if not isinstance(value, list) or len(value) > MAX_FRAMES or not all(isinstance(frame, list) for frame in value):
        raise DataError(f"tracks must be a list of at most {MAX_FRAMES} frames, each a list of objects")
    if any(len(frame) > MAX_IN_FRAME for frame in value) or sum(map(len, value)) > MAX_TRACKED:
        raise DataError(f"more than {MAX_IN_FRAME} objects in a frame, or {MAX_TRACKED} in all")
    frames = tuple(tuple(_tracked(entry) for entry in frame) for frame in value)
    for number, frame in enumerate(frames):
        if len({one.id for one in frame}) < len(frame):
            raise DataError(f"frame {number} has an id twice")
    return frames


def _box(entry: Any) -> Box3D:
    if isinstance(entry, dict):
        numbers, label, score = entry.get("box"), entry.get("label", ""), entry.get("score", 1.0)
    elif not isinstance(entry, list) or len(entry) > 9:
        raise DataError(f"{entry!r:.100} is no 3D box")
    elif texts := [number for number, one in enumerate(entry) if isinstance(one, str)]:
        numbers, label, score = entry[: texts[0]], entry[texts[0]], (entry[texts[0] + 1 :] or [1.0])[0]
    else:
        numbers, label, score = entry[:7], "", entry[7] if len(entry) > 7 else 1.0
    if not isinstance(numbers, list) or len(numbers) not in _BOX_NUMBERS:
        raise DataError(f"the 3D box {entry!r:.100} is not [x, y, z, dx, dy, dz, yaw]")
    if min(map(_number, numbers[3:6])) <= 0:
        raise DataError(f"the 3D box {entry!r:.100} has a size that is not positive")
    x, y, z, dx, dy, dz, yaw = map(_number, numbers if len(numbers) == 7 else [*numbers, 0.0])
    return Box3D(x, y, z, dx, dy, dz, yaw, _name(label), _number(score))


def _tracked(entry: Any) -> Tracked:
    if not isinstance(entry, dict):
        raise DataError(f"the tracked object {entry!r:.100} is no object with id and center")
    name, center = entry.get("id"), entry.get("center")
    if isinstance(name, bool) or not isinstance(name, int | str) or not isinstance(center, list) or len(center) < 2:
        raise DataError(f"the tracked object {entry!r:.100} lacks its id or center")
    x, y, *_ = map(_number, center[:3])
    label, score = _name(entry.get("label", "")), _number(entry.get("score", 1.0))
    return Tracked(f"{type(name).__name__[0]}{name!s:.200}", label, x, y, score)


def _name(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MAX_NAME:
        raise DataError(f"the label {value!r:.80} is no text of at most {_MAX_NAME} letters")
    return value.strip()


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{value!r:.80} is no number")
    if not abs(value) <= FARTHEST:  # NaN neither
        raise DataError(f"{value!r:.80} is not finite, or too large")
    return float(value)
