"""Class numbers of pixels or points, from pictures and ``.npy`` arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.readers.arrays import read_array
from lmms_eval.tasks.general_bench.readers.images import MAX_PIXELS
from lmms_eval.tasks.general_bench.readers.pictures import class_numbers
from lmms_eval.tasks.general_bench.readers.sides import Side, prediction_of, reference_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_CLASS = 65_535
MAX_CLASSES = 4_096
"""Most different classes in one answer."""


def label_map(value: object, side: Side) -> NDArray[Any]:
    """Read class numbers, shape (height, width) or (points,), int32. Any negative one becomes -1.

    Args:
        value: Path of a picture (grey levels of 8 or 16 bits, or palette indices) or of an ``.npy`` array of integers.
        side: Prediction or reference.

    Raises:
        DataError: no such file, or not of that kind; ``UnreadableAnswer`` for a prediction.
    """
    import numpy as np

    path = side.file(value)
    found = integers(path, side) if path.suffix.casefold() == ".npy" else class_numbers(path, side)
    if found.size and int(found.max()) > MAX_CLASS:
        raise side.refuse(f"names {path.name!r}, which holds class numbers above {MAX_CLASS}")
    return found.astype(np.int32) if found.dtype.kind == "u" else np.maximum(found, -1).astype(np.int32)


def integers(path: Path, side: Side) -> NDArray[Any]:
    """Read an ``.npy`` array of integers in its own type, without axes of length 1. Nothing is unpickled.

    Raises:
        DataError: no such array, of another type, or of more than 64 million elements.
    """
    import numpy as np

    with side.reading():
        stored = read_array(path, "iub", MAX_PIXELS)
    kept = np.array(stored, dtype=np.uint8 if stored.dtype.kind == "b" else stored.dtype.newbyteorder("="))
    return np.atleast_1d(kept.squeeze())


def label_pair(prediction: object, item: Item) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the predicted and the true class numbers of the pixels or points that the reference labels.

    Both have the shape (labelled pixels,). Pixels are unlabelled if the reference is negative, or is a number in
    ``ignore`` of the annotation's head (or of the item). Negative predictions become ``MAX_CLASS + 1``.

    Raises:
        DataError: a faulty reference.
        UnreadableAnswer: a faulty prediction, or one of another size.
    """
    import numpy as np

    side = prediction_of(item)
    truth = label_map(item.reference, reference_of(item))
    predicted = label_map(prediction, side)
    if predicted.shape != truth.shape:
        raise side.refuse(f"has the size {shape_text(predicted)} where the reference has {shape_text(truth)}")
    labelled = (truth >= 0) & ~np.isin(truth, ignored_classes(item))
    given = np.where(predicted < 0, MAX_CLASS + 1, predicted)[labelled]
    if np.count_nonzero(np.bincount(given.ravel())) > MAX_CLASSES:
        raise side.refuse(f"has more than {MAX_CLASSES} different classes")
    return given, truth[labelled]


def ignored_classes(item: Item) -> list[int]:
    """Return the class numbers that do not count, from ``ignore`` of the item or else of the annotation's head.

    Raises:
        DataError: it is neither a number nor a list of numbers.
    """
    stated = option(item, "ignore")
    listed = stated if isinstance(stated, list) else [] if stated is None else [stated]
    if not all(type(number) is int for number in listed):
        raise DataError(f"{item.where}: ignore must be a class number or a list of them, not {stated!r:.80}")
    return [number for number in listed if isinstance(number, int)]


def option(item: Item, name: str) -> Any:
    """Return a further key of an item, or else of its annotation's head, or ``None``."""
    raw = item.raw if isinstance(item.raw, Mapping) else {}
    return raw.get(name, item.head.get(name))


def shape_text(array: NDArray[Any]) -> str:
    """Return a size for messages: width x height, or the number of points."""
    return " x ".join(str(length) for length in reversed(array.shape))
