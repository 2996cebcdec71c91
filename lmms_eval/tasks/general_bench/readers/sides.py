"""Sides of an item. Faults of the prediction make an answer unreadable, faults of the reference fail the item."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.readers.limits import regular_file
from lmms_eval.tasks.general_bench.readers.paths import predicted_path, reference_path


class Side(Struct, frozen=True):
    """The prediction or the reference of an item, for readers. It resolves paths and makes errors."""

    item: Item
    predicted: bool

    def refuse(self, what: str) -> DataError:
        """Return the error for a value of another form: ``UnreadableAnswer`` for a prediction."""
        if self.predicted:
            return UnreadableAnswer(f"{self.item.where}: the prediction {what}")
        return DataError(f"{self.item.where}: the reference {what}")

    def path(self, value: object) -> Path:
        """Return the existing file or folder that a value names (see ``readers.paths``)."""
        return predicted_path(value, self.item) if self.predicted else reference_path(value, self.item)

    def file(self, value: object) -> Path:
        """Return the existing regular file, of at most 1 GiB, that a value names."""
        path = self.path(value)
        with self.reading():
            return regular_file(path)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Attribute errors of reading to this side, and add the item to their messages."""
        try:
            yield
        except UnreadableAnswer:
            raise
        except (DataError, MediaError) as error:
            raise self.refuse(f"cannot be used: {error}") from error


def prediction_of(item: Item) -> Side:
    """Return the side of an item's prediction."""
    return Side(item, predicted=True)


def reference_of(item: Item) -> Side:
    """Return the side of an item's reference."""
    return Side(item, predicted=False)


def finite(value: object) -> float | None:
    """Return a JSON number as a finite float, or ``None`` for anything else (text, booleans, NaN, integers beyond a
    float).
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def brief(value: object) -> str:
    """Return a value for a message: its text, or a short description if it may be long."""
    if isinstance(value, list | dict):
        return f"a {'list' if isinstance(value, list) else 'dictionary'} of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return "an integer of more than 77 digits"
    return f"{value!r:.80}"
