"""Small helpers that task files import from ``lmms_eval.utils``: texts, shares of documents, names of result files.

Runs of the family write ``results_DATE.json`` and ``samples_TASK_DATE.jsonl``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar


def is_json(string: str) -> bool:
    """Return whether a text is JSON; ``NaN`` counts as JSON.

    Raises:
        TypeError: ``string`` is not a text.
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
    """Convert a value for ``json.dumps(default=…)``: integers of NumPy, sets to lists, any other to its text."""
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

    Without an underscore the result is the name without its last character, as in the family's own function.
    """
    return filename[filename.find("_") + 1 : filename.rfind("_")]


def get_latest_filename(filenames: Iterable[str]) -> str:
    """Return the file name whose date comes last as a text.

    Raises:
        ValueError: there are no names.
    """
    return max(filenames, key=get_file_datetime)


def get_results_filenames(filenames: Iterable[str]) -> list[str]:
    """Return the names of results files."""
    return [name for name in filenames if "results" in name and ".json" in name]


def get_sample_results_filenames(filenames: Iterable[str]) -> list[str]:
    """Return the paths of samples files."""
    return [name for name in filenames if "/samples_" in name and ".json" in name]
