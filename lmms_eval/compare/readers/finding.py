"""Finds the format of what was named, by content, and reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lmms_eval.compare.readers import evalscope, harness_runs, inspect_logs, plain_tables, vlmevalkit
from lmms_eval.compare.readers.contract import Format, Looked
from lmms_eval.compare.runs import RunRows
from lmms_eval.errors import DataError, UsageError

FORMATS: tuple[Format, ...] = (
    harness_runs.RESULTS,
    harness_runs.SAMPLES,
    inspect_logs.LOGS,
    evalscope.REVIEWS,
    vlmevalkit.TABLES,
    plain_tables.TABLES,
)
"""In the order in which they are tried: the first that a file belongs to reads it."""

ENDINGS = frozenset({".jsonl", ".json", ".eval", ".xlsx", ".tsv", ".csv"})
"""Of the files of a folder that are looked at."""


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
    found = _read_file(path)
    if found is None:
        needs = "; ".join(known.needs for known in FORMATS)
        raise UsageError(f"{path}: of no known format; looked for: {needs}")
    return found


def _read_file(path: Path) -> RunRows | None:
    looked = Looked(path)
    reader = next((known for known in FORMATS if known.is_this(looked)), None)
    return None if reader is None else reader.read(path)


def _read_folder(folder: Path) -> RunRows:
    found = harness_runs.find_run(folder)
    if found is not None:
        run = harness_runs.read_record(found) if found.is_dir() else harness_runs.read_results(found)
        return replace(run, source=str(folder))
    for place in (folder, *sorted(folder.glob("reviews/*/"))):
        files = sorted(path for path in place.iterdir() if path.suffix in ENDINGS and path.is_file())
        if runs := [read for path in files if (read := _read_file(path)) is not None]:
            return _joined(folder, runs)
    raise DataError(
        f"{folder}: no run in this folder; looked for *_results.json, results_*.json and .runs/*/run.json, here and "
        "one folder below, for reviews/MODEL/*.jsonl, and for files of any known format here"
    )


def _joined(folder: Path, runs: Sequence[RunRows]) -> RunRows:
    """Join files that hold a task each of one model's run. Raises ``DataError`` if they are of several runs."""
    tasks = [name for run in runs for name in run.tasks]
    if len({(run.name, run.kind) for run in runs}) > 1 or len(set(tasks)) < len(tasks):
        listed = "; ".join(
            f"{Path(run.source).name} ({run.name}: {', '.join(run.tasks):.80})" for run in runs[: harness_runs.SHOWN]
        )
        raise DataError(f"{folder} holds several runs: name the files of one of them: {listed}")
    return replace(
        runs[0],
        source=str(folder),
        tasks={name: rows for run in runs for name, rows in run.tasks.items()},
        notes=tuple(note for run in runs for note in run.notes),
    )
