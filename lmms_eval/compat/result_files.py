"""Names of the files that a run of the family writes: ``results_DATE.json`` and ``samples_TASK_DATE.jsonl``."""

from __future__ import annotations

from collections.abc import Iterable


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
