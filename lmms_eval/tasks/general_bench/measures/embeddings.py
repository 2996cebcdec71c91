"""Vectors of pictures, videos and texts: reading them from files, comparing them, and their Frechet distance.

A prediction ``{"features": "FILE.npy"}`` replaces running a network over the predicted file. Features of a reference
(or of its text) are looked up at ``REFERENCE_FEATURES/<task folder>/<item id>.npy`` (the setting
``reference_features``). Both are arrays ``(rows, dimensions)``, or ``(dimensions,)`` for one row, of the network that
the measure names. They need not have length 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context, State
from lmms_eval.tasks.general_bench.readers.sides import predicted_path, prediction_of, read_array

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
_IMAGINARY = 1e-3
"""Imaginary parts of the root above this are an error. Smaller ones are dropped."""
_ROUNDING = 1e-7
"""Eigenvalues below zero by at most this share of the largest come from rounding."""
_MAX_DIMENSIONS = 8192


def frechet_from_embeddings(first: Any, second: Any) -> float:
    """Return the Frechet distance of two sets of embeddings ``(embeddings, dimensions)``. Covariances divide by n - 1.

    Raises:
        DataError: not two-dimensional finite arrays, different dimensions, fewer than two dimensions (those of a
            covariance matrix) or fewer than two embeddings in a set.
    """
    sets = _embeddings(first), _embeddings(second)
    if sets[0].shape[1] != sets[1].shape[1]:
        raise DataError(f"embeddings of {sets[0].shape[1]} and {sets[1].shape[1]} dimensions have no Frechet distance")
    means = [np.mean(one, axis=0) for one in sets]
    covariances = [np.cov(one, rowvar=False) for one in sets]
    return frechet_distance(means[0], covariances[0], means[1], covariances[1])


def frechet_distance(mu1: Any, sigma1: Any, mu2: Any, sigma2: Any) -> float:
    """Return the Frechet distance of two normal distributions, not below 0.

    It is ``|m1 - m2|^2 + tr(S1) + tr(S2) - 2 tr((S1 S2)^(1/2))`` (Dowson and Landau, 1982). The trace of the root is
    the sum of the roots of the eigenvalues of ``S1^(1/2) S2 S1^(1/2)``, which is symmetric. Unlike a root of the
    product itself, it is exact and finite if a set has fewer embeddings than dimensions.

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


def _embeddings(values: Any) -> Doubles:
    array = _floats(values, 2, "embeddings")
    if array.shape[0] < 2:
        raise DataError(f"a Frechet distance needs at least 2 embeddings in each set, not {array.shape[0]}")
    if not 2 <= array.shape[1] <= _MAX_DIMENSIONS:
        raise DataError(f"embeddings must have 2 to {_MAX_DIMENSIONS} dimensions, not {array.shape[1]}")
    return array


def _distribution(mean: Any, covariance: Any) -> tuple[Doubles, Doubles]:
    found = _floats(mean, 1, "a mean"), _floats(covariance, 2, "a covariance matrix")
    if found[1].shape != (found[0].size, found[0].size) or not 1 <= found[0].size <= _MAX_DIMENSIONS:
        raise DataError(f"a mean of {found[0].size} dimensions and a covariance matrix {found[1].shape} do not fit")
    return found


def _floats(values: Any, dimensions: int, name: str) -> Doubles:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be an array of numbers: {error}") from error
    if array.ndim != dimensions:
        raise DataError(f"{name} must have {dimensions} axes, not {array.ndim}")
    if not np.isfinite(array).all():
        raise DataError(f"{name} holds numbers that are not finite")
    return array


def _root_trace(first: Doubles, second: Doubles) -> float:
    """Return the trace of the root of the product of two covariance matrices."""
    values, vectors = np.linalg.eigh((first + first.T) / 2)
    half = (vectors * _roots(values)) @ vectors.T
    product = half @ ((second + second.T) / 2) @ half
    return math.fsum(_roots(np.linalg.eigvalsh((product + product.T) / 2)).tolist())


def _roots(eigenvalues: Doubles) -> Doubles:
    """Return the roots of eigenvalues that are at least zero up to rounding."""
    least, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    if least < -_ROUNDING * max(largest, 0.0) and math.sqrt(-least) > _IMAGINARY:
        raise DataError(
            f"the root of the covariances' product has the imaginary part {math.sqrt(-least):.3g}: "
            "they are no covariance matrices"
        )
    roots: Doubles = np.sqrt(np.clip(eigenvalues, 0.0, None))
    return roots


MAX_ROWS = 20_000
MAX_DIMENSIONS = 8192
_MAX_NUMBERS = 2**26
_DIGITS = 9
"""Significant digits that distinguish any two float32 values."""


def predicted_rows(prediction: Any, item: Item, compute: Callable[[], Floats]) -> Floats:
    """Return the features of a prediction's file, else computed ones. Raises ``UnreadableAnswer`` for another file."""
    rows = predicted_features(prediction, item)
    return compute() if rows is None else rows


def reference_rows(item: Item, context: Context, compute: Callable[[], Floats]) -> Floats:
    """Return the features of an item's reference from their file, else computed ones.

    Raises ``DataError`` or ``MediaError`` as ``reference_features``.
    """
    rows = reference_features(item, context)
    return compute() if rows is None else rows


def predicted_features(prediction: Any, item: Item, key: str = "features") -> Floats | None:
    """Return the features that a prediction names under ``key``, ``(rows, dimensions)``, or ``None``.

    Raises ``UnreadableAnswer`` if the file is missing, or holds no such array.
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
    """Return the only row. Raises ``UnreadableAnswer`` if there are several."""
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


def cosines(first: Floats, second: Floats, item: Item) -> Doubles:
    """Return the cosines ``(rows of first, rows of second)``. A row without length has cosine 0.

    Raises ``UnreadableAnswer`` for rows of different lengths, which is the prediction's fault: it holds the features.
    """
    check_lengths(first, second, item)
    found: Doubles = np.clip(_unit(first) @ _unit(second).T, -1.0, 1.0)
    return found


def similarity(first: Floats, second: Floats, item: Item) -> float:
    """Return 100 times the mean cosine over all pairs of a row of each side."""
    values = cosines(first, second, item)
    return 100 * math.fsum(values.ravel().tolist()) / values.size


def consistency(frames: Floats, item: Item) -> State:
    """Return ``[sum, count]`` over the frames after the first. The sum is of ``(max(0, cos to the previous) + max(0,
    cos to the first)) / 2``.

    Raises ``UnreadableAnswer`` for fewer than two frames.
    """
    if len(frames) < 2:
        raise UnreadableAnswer(f"{item.where}: a video of at least 2 frames is needed")
    unit = _unit(frames)
    previous = np.clip(np.sum(unit[1:] * unit[:-1], axis=1), 0.0, 1.0)
    first = np.clip(unit[1:] @ unit[0], 0.0, 1.0)
    return [math.fsum(((previous + first) / 2).tolist()), len(frames) - 1]


def pooled_percent(states: Sequence[State]) -> float:
    """Return 100 times the sums of all states ``[sum, count]`` divided by their counts. It is 0 without counts."""
    count = math.fsum(state[1] for state in states)
    return 100 * math.fsum(state[0] for state in states) / count if count else 0.0


def frechet(states: Sequence[State]) -> float:
    """Return the Frechet distance of states ``[[...], [...]]``. Raises ``DataError`` for one item or other lengths."""

    if len({len(vector) for state in states for vector in state}) != 1:
        raise DataError("the features of this task's predictions and references are of different lengths")
    return frechet_from_embeddings([state[0] for state in states], [state[1] for state in states])


def _unit(rows: Floats) -> Doubles:
    wide = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: Doubles = wide / np.where(lengths > 0, lengths, 1.0)
    return unit
