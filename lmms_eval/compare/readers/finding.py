"""Finds the format of what was named, by content, and reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lmms_eval.compare.readers import own_runs
from lmms_eval.compare.readers.contract import Format, Looked
from lmms_eval.compare.runs import RunRows
from lmms_eval.errors import DataError, UsageError

FORMATS: tuple[Format, ...] = (own_runs.RESULTS, own_runs.SAMPLES)
"""In the order in which they are tried: the first that a file belongs to reads it."""


def read_runs(paths: Sequence[str]) -> tuple[RunRows, ...]:
    """Read runs of any format; their names are unique, ``#2`` being added to the second of two that are alike.

    Args:
        paths: files or folders.

    Raises:
        DataError: a path is missing, of no known format, damaged, or a folder of several runs.
        UsageError: an optional package is needed and not installed.
    """
    runs = [_read(Path(path).expanduser()) for path in paths]
    counts: dict[str, int] = {}
    named = []
    taken = {run.name for run in runs}
    for run in runs:
        counts[run.name] = number = counts.get(run.name, 0) + 1
        name = run.name
        while number > 1 and (name := f"{run.name}#{number}") in taken:
            number += 1
        taken.add(name)
        named.append(replace(run, name=name))
    return tuple(named)


def _read(path: Path) -> RunRows:
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    try:
        if path.is_dir():
            return _read_folder(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    looked = Looked(path)
    for known in FORMATS:
        if known.is_this(looked):
            return known.read(path)
    needs = "; ".join(known.needs for known in FORMATS)
    raise UsageError(f"{path}: of no known format; looked for: {needs}")


def _read_folder(folder: Path) -> RunRows:
    found = own_runs.find_run(folder)
    if found is None:
        raise DataError(
            f"{folder}: no run in this folder; looked for *_results.json and .runs/*/run.json, here and one folder "
            "below"
        )
    run = own_runs.read_record(found) if found.is_dir() else own_runs.read_results(found)
    return replace(run, source=str(folder))
