"""Sides of an item, their paths, the limits of their files, and arrays of numbers from ``.npy`` files.

Faults of the prediction make an answer unreadable, faults of the reference fail the item. Nothing is unpickled, and
headers are checked before memory is allocated.
"""

from __future__ import annotations

import contextlib
import math
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from msgspec import Struct

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.general_bench.items import Item, MissingAnswer, UnreadableAnswer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


MAX_BYTES = 1 << 30
"""Largest size of most files. A larger one is not read."""


def regular_file(path: Path, most: int = MAX_BYTES) -> Path:
    """Check that ``path`` is a non-empty file of at most ``most`` bytes, and return it.

    Raises ``DataError`` if it is a folder, a device or a pipe, is empty, too large, or cannot be read.
    """
    try:
        found, size = path.is_file(), path.stat().st_size
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if not found:
        raise DataError(f"{path} is no file")
    if not size:
        raise DataError(f"{path} is empty")
    if size > most:
        raise DataError(f"{path} has {size} bytes; more than {most} are not read")
    return path


MEDIA_FOLDERS = ("", "images", "videos", "audios", "pointclouds", "video", "depth")
"""Folders below a task's folder, in order of search."""


def reference_path(value: object, item: Item, folders: Iterable[str] = MEDIA_FOLDERS) -> Path:
    """Return the file or folder of an annotation's path, searched in the task's folder and its media folders.

    Raises:
        DataError: it is no relative path, or leads out of the task's folder.
        MediaError: nothing is there.
    """
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise DataError(f"{item.where}: {value!r:.80} is no path")
    relative = Path(value.strip())
    if relative.is_absolute() or ".." in relative.parts:
        raise DataError(f"{item.where}: the path {value!r} leads out of the task's folder")
    tried = [item.folder / folder / relative for folder in folders]
    for path in tried:
        if path.exists():
            return path
    raise MediaError(f"{item.where}: {value!r} is not there; looked for {', '.join(map(str, tried[:3]))}")


def predicted_path(value: object, item: Item) -> Path:
    """Return the file or folder that a prediction names. The path is absolute, or relative to the prediction file's
    folder.

    Raises:
        UnreadableAnswer: it is no path. MissingAnswer: nothing is there.
    """
    if not isinstance(value, str) or not value.strip() or "\0" in value or len(value) > 4096:
        raise UnreadableAnswer(f"{item.where}: the prediction {value!r:.80} is no path of a file")
    path = item.prediction_folder / value.strip()
    try:
        found = path.exists()
    except OSError:
        found = False
    if not found:
        raise MissingAnswer(f"{item.where}: the predicted file {value!r:.200} is not there ({path.parent})")
    return path


class Side(Struct, frozen=True):
    """The prediction or the reference of an item, for readers. It resolves paths and makes errors."""

    item: Item
    predicted: bool

    @property
    def of(self) -> Literal["reference", "answer"]:
        """The side's name for display."""
        return "answer" if self.predicted else "reference"

    def refuse(self, what: str) -> DataError:
        """Return the error for a value of another form: ``UnreadableAnswer`` for a prediction."""
        if self.predicted:
            return UnreadableAnswer(f"{self.item.where}: the prediction {what}")
        return DataError(f"{self.item.where}: the reference {what}")

    def path(self, value: object) -> Path:
        """Return the existing file or folder that a value names."""
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
    """Return a JSON number as a finite float, or ``None`` for anything else (true, NaN, integers beyond a float)."""
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


MAX_VALUES = 128_000_000
NUMBERS = "fiu"
"""Kinds of NumPy's types: fractions, integers, integers without sign."""
_HEADER_ERRORS = (ValueError, TypeError, SyntaxError, EOFError, MemoryError, RecursionError, tokenize.TokenError)
"""Errors that NumPy raises on headers that it cannot read."""


def read_array(path: Path, kinds: str = NUMBERS, most: int = MAX_VALUES) -> npt.NDArray[Any]:
    """Read the numbers of a ``.npy`` file, at most ``most`` of the ``kinds`` of types (NumPy's ``dtype.kind``).

    Raises:
        DataError: no file, or larger than 1 GiB.
        MediaError: no array, of other types, of more numbers than ``most``, or cut short.
    """
    size = regular_file(path).stat().st_size
    try:
        with open(path, "rb") as file:
            return parse_array(file, size, path, kinds, most)
    except OSError as error:
        raise MediaError(f"{path} cannot be read: {error.strerror or error}") from error


def parse_array(
    file: IO[bytes], size: int, path: Path, kinds: str = NUMBERS, most: int = MAX_VALUES
) -> npt.NDArray[Any]:
    """Read the numbers of an open ``.npy`` file of ``size`` bytes. Raises ``MediaError`` as ``read_array``."""
    import numpy as np

    try:
        shape, fortran, kind = _header(file, path)
        count = math.prod(shape)
        if kind.kind not in kinds or kind.itemsize > 8:
            raise MediaError(f"{path} holds values of the type {kind}, not numbers of those kinds that are read")
        if count > most or count * kind.itemsize > size:
            raise MediaError(f"{path}: {count} numbers are stated, {size} bytes are there; {most} are read at most")
        data = file.read(count * kind.itemsize)
        if len(data) != count * kind.itemsize:
            raise MediaError(f"{path} is cut short")
        return np.frombuffer(data, kind).reshape(shape, order="F" if fortran else "C")
    except _HEADER_ERRORS as error:
        raise MediaError(f"{path} is no readable array: {str(error)[:200]}") from error


def _header(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    from numpy.lib import format as npy

    version = npy.read_magic(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers that Python 2 wrote
        match version:
            case (1, 0):
                shape, fortran, kind = npy.read_array_header_1_0(file)
            case (2, 0):
                shape, fortran, kind = npy.read_array_header_2_0(file)
            case _:
                raise MediaError(f"{path} is written in version {version} of the .npy format; 1.0 and 2.0 are read")
    if any(size < 0 for size in shape):
        raise MediaError(f"{path} has the shape {shape}")
    return shape, fortran, kind
