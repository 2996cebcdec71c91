"""Poses of a moving camera: KITTI's text files (a 3x4 matrix in each line), arrays and lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.readers.arrays import read_array
from lmms_eval.tasks.general_bench.readers.meshes import number_lines, text_lines
from lmms_eval.tasks.general_bench.readers.points import FARTHEST, number_rows
from lmms_eval.tasks.general_bench.readers.sides import Side

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

MAX_POSES = 100_000
_LEAST_DETERMINANT = 1e-6


def poses_of(value: Any, side: Side) -> Floats:
    """Read the poses of a prediction or reference, ``(poses, 4, 4)``: a path, or a list of matrices.

    Raises:
        UnreadableAnswer: a prediction without such a file, or that holds no usable poses.
        DataError: the same of a reference.
        MediaError: the reference's file is not there.
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
