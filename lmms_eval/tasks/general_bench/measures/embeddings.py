"""Vectors of pictures, videos and texts: reading them from files and comparing them.

A prediction ``{"features": "FILE.npy"}`` replaces running a network over the predicted file. Features of a reference
(or of its text) are looked up at ``REFERENCE_FEATURES/<task folder>/<item id>.npy`` (the setting
``reference_features``). Both are arrays ``(rows, dimensions)``, or ``(dimensions,)`` for one row, of the network that
the measure names. They need not have length 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context, State
from lmms_eval.tasks.general_bench.readers.arrays import read_array
from lmms_eval.tasks.general_bench.readers.sides import predicted_path, prediction_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

MAX_ROWS = 20_000
MAX_DIMENSIONS = 8192
_MAX_NUMBERS = 2**26
_DIGITS = 9
"""Significant digits that distinguish any two float32 values."""


def predicted_features(prediction: Any, item: Item, key: str = "features") -> Floats | None:
    """Return the features that a prediction names under ``key``, ``(rows, dimensions)``, or ``None``.

    Raises:
        UnreadableAnswer: the file is not there, or holds no such array.
    """
    if not isinstance(prediction, Mapping) or key not in prediction:
        return None
    with prediction_of(item).reading():
        return read_features(predicted_path(prediction[key], item))


def reference_features(item: Item, context: Context) -> Floats | None:
    """Return the features of an item's reference, ``(rows, dimensions)``, or ``None``.

    Raises:
        DataError, MediaError: the file holds no such array.
        DataError: the item's id can name no file.
    """
    folder = context.options.get("reference_features")
    if folder is None:
        return None
    name = str(item.id)
    if not name or name in (".", "..") or set(name) & {"/", "\\", "\0"} or len(name) > 200:
        raise DataError(f"{item.where}: its id can name no file of features")
    path = Path(folder) / item.folder.name / f"{name}.npy"
    return read_features(path) if path.exists() else None


def read_features(path: Path) -> Floats:
    """Read the rows of a ``.npy`` file as float32.

    Raises:
        DataError: no such file, another shape, too large, or numbers that are not finite.
        MediaError: it is no array of numbers, or holds more than 2^26 of them.
    """
    import numpy as np

    array = read_array(path, most=_MAX_NUMBERS)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or not 1 <= array.shape[0] <= MAX_ROWS or not 1 <= array.shape[1] <= MAX_DIMENSIONS:
        raise DataError(f"{path} has the shape {array.shape}: (rows, dimensions) is needed")
    with np.errstate(over="ignore"):
        rows = np.asarray(array, dtype=np.float32)
    if not np.isfinite(rows).all():
        raise DataError(f"{path} holds numbers that are not finite")
    return rows


def one_row(rows: Floats, item: Item) -> Floats:
    """Return the only row.

    Raises:
        UnreadableAnswer: there are several.
    """
    if len(rows) != 1:
        raise UnreadableAnswer(f"{item.where}: one vector is needed, not {len(rows)}")
    row: Floats = rows[0]
    return row


def pair_state(rows: Floats, given: Floats, item: Item) -> State:
    """Return the vectors of a prediction and of its reference, one each, for ``frechet``.

    Raises:
        UnreadableAnswer: the prediction has several, or one of another length than the reference's.
        DataError: the reference has several.
    """
    made = one_row(rows, item)
    if len(given) != 1:
        raise DataError(f"{item.where}: one vector of the reference is needed, not {len(given)}")
    check_lengths(rows, given, item)
    return [as_state(made), as_state(given[0])]


def check_lengths(rows: Floats, given: Floats, item: Item) -> None:
    """Check that vectors can be compared.

    Raises:
        UnreadableAnswer: the vectors are of different lengths, which is the prediction's fault: it holds the features.
    """
    if rows.shape[1] != given.shape[1]:
        raise UnreadableAnswer(
            f"{item.where}: features of {rows.shape[1]} and {given.shape[1]} dimensions cannot be compared"
        )


def as_state(row: Floats) -> list[float]:
    """Return a vector as numbers for the journal."""
    return [float(f"{value:.{_DIGITS}g}") for value in row.tolist()]


def cosines(first: Floats, second: Floats, item: Item) -> npt.NDArray[np.float64]:
    """Return the cosines ``(rows of first, rows of second)``. A row without length has cosine 0.

    Raises:
        UnreadableAnswer: rows of different lengths, which is the prediction's fault: it holds the features.
    """
    import numpy as np

    check_lengths(first, second, item)
    found: npt.NDArray[np.float64] = np.clip(_unit(first) @ _unit(second).T, -1.0, 1.0)
    return found


def similarity(first: Floats, second: Floats, item: Item) -> float:
    """Return 100 times the mean cosine over all pairs of a row of each side."""
    values = cosines(first, second, item)
    return 100 * math.fsum(values.ravel().tolist()) / values.size


def consistency(frames: Floats, item: Item) -> State:
    """Return ``[sum, count]`` over the frames after the first. The sum is of ``(max(0, cos to the previous) + max(0,
    cos to the first)) / 2``.

    Raises:
        UnreadableAnswer: fewer than two frames.
    """
    import numpy as np

    if len(frames) < 2:
        raise UnreadableAnswer(f"{item.where}: a video of at least 2 frames is needed")
    unit = _unit(frames)
    previous = np.clip(np.sum(unit[1:] * unit[:-1], axis=1), 0.0, 1.0)
    first = np.clip(unit[1:] @ unit[0], 0.0, 1.0)
    return [math.fsum(((previous + first) / 2).tolist()), len(frames) - 1]


def pooled_percent(states: Sequence[State]) -> float:
    """Return 100 times the total of the sums of all states ``[sum, count]``, divided by the total of their counts.
    Without counts it is 0.
    """
    count = math.fsum(state[1] for state in states)
    return 100 * math.fsum(state[0] for state in states) / count if count else 0.0


def frechet(states: Sequence[State]) -> float:
    """Return the Frechet distance of predicted and reference vectors. A state is ``[[...], [...]]``.

    Raises:
        DataError: fewer than two items, or vectors of different lengths.
    """
    from lmms_eval.tasks.general_bench.measures.frechet import frechet_from_embeddings

    if len({len(vector) for state in states for vector in state}) != 1:
        raise DataError("the features of this task's predictions and references are of different lengths")
    return frechet_from_embeddings([state[0] for state in states], [state[1] for state in states])


def _unit(rows: Floats) -> npt.NDArray[np.float64]:
    import numpy as np

    wide = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: npt.NDArray[np.float64] = wide / np.where(lengths > 0, lengths, 1.0)
    return unit
