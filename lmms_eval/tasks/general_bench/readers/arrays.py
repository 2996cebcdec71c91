"""Arrays of numbers from ``.npy`` files. Nothing is unpickled, and headers are checked before memory is allocated."""

from __future__ import annotations

import math
import tokenize
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lmms_eval.errors import MediaError
from lmms_eval.tasks.general_bench.readers.sides import regular_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_VALUES = 128_000_000
NUMBERS = "fiu"
"""Kinds of NumPy's types: fractions, integers, integers without sign."""
_HEADER_ERRORS = (ValueError, TypeError, SyntaxError, EOFError, MemoryError, RecursionError, tokenize.TokenError)
"""Errors that NumPy raises on headers that it cannot read."""


def read_array(path: Path, kinds: str = NUMBERS, most: int = MAX_VALUES) -> npt.NDArray[Any]:
    """Read the numbers of a ``.npy`` file.

    Args:
        path: the file.
        kinds: of types that are read, as NumPy's ``dtype.kind``.
        most: numbers.

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
    """Read the numbers of an open ``.npy`` file of ``size`` bytes, which may be a member of an archive.

    Raises:
        MediaError: as ``read_array``.
    """
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
