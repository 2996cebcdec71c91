"""Names of the files that a run of the family writes: ``results_DATE.json`` and ``samples_TASK_DATE.jsonl``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar


def is_json(string: str) -> bool:
    """Tell whether a text is JSON; ``NaN`` counts.

    Raises:
        TypeError: it is no text.
    """
    try:
        json.loads(string)
    except (ValueError, RecursionError):
        return False
    return True


def hash_string(string: str) -> str:
    """Return the SHA-256 hash of a text in UTF-8, as hexadecimal digits."""
    return hashlib.sha256(string.encode("utf-8")).hexdigest()


def handle_non_serializable(value: Any) -> int | str | list[Any]:
    """Make JSON of what ``json.dumps`` refuses (``default=``): whole numbers of NumPy, lists of sets, else the text."""
    if isinstance(value, set):
        return list(value)
    kind = type(value)
    if kind.__module__ == "numpy" and kind.__name__ in ("int32", "int64"):
        return int(value)
    return str(value)


Item = TypeVar("Item")


def create_iterator(
    raw_iterator: Iterable[Item], rank: int, world_size: int, limit: int | None = None, offset: int = 0
) -> Iterator[Item]:
    """Iterate over every ``world_size``-th item from ``offset + rank`` on, up to ``offset + limit``.

    Raises:
        ValueError: a negative number, or a ``world_size`` below 1.
    """
    end = None if limit is None else offset + limit
    return islice(raw_iterator, offset + rank, end, world_size)


def get_file_datetime(filename: str) -> str:
    """Return the text after the last underscore of a file name, without ``.jsonl``."""
    return filename.rpartition("_")[2].replace(".jsonl", "")


def get_file_task_name(filename: str) -> str:
    """Return the text between the first and the last underscore of a file name.

    Without an underscore it is the name without its last character, as the family's own function gives it.
    """
    return filename[filename.find("_") + 1 : filename.rfind("_")]


def get_latest_filename(filenames: Iterable[str]) -> str:
    """Return the file name whose date comes last as a text.

    Raises:
        ValueError: there are no names.
    """
    return max(filenames, key=get_file_datetime)


def get_results_filenames(filenames: Iterable[str]) -> list[str]:
    """Return the names of files of results."""
    return [name for name in filenames if "results" in name and ".json" in name]


def get_sample_results_filenames(filenames: Iterable[str]) -> list[str]:
    """Return the paths of files of samples."""
    return [name for name in filenames if "/samples_" in name and ".json" in name]
