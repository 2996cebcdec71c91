"""Reading of runs of any format, which is recognised by content."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from msgspec.structs import replace

from lmms_eval.compare.readers import every_eval_ever, harness_runs, other_harnesses, tables
from lmms_eval.compare.readers.contract import FileHead, Format
from lmms_eval.compare.runs import RunRows
from lmms_eval.errors import DataError, UsageError
from lmms_eval.results.files import SHOWN, find_run, run_path

FORMATS: tuple[Format, ...] = (
    harness_runs.RESULTS,
    harness_runs.SAMPLES,
    every_eval_ever.RECORDS,
    every_eval_ever.LINES,
    other_harnesses.LOGS,
    other_harnesses.REVIEWS,
    other_harnesses.TABLES,
    tables.TABLES,
)
"""The formats, in the order of trying them."""

ENDINGS = frozenset({".jsonl", ".json", ".eval", ".xlsx", ".tsv", ".csv"})
"""Suffixes of the files that are read in a folder."""


def read_runs(paths: Sequence[str]) -> tuple[RunRows, ...]:
    """Read runs of any format. Names of runs of one model end with their folder or date stamp, so that they are unique.

    Args:
        paths: files or folders.

    Raises:
        DataError: a path is missing or damaged, or a folder holds several runs.
        UsageError: a run is named twice, a format is unknown, or an optional package is not installed.
    """
    places = [run_path(path) for path in paths]
    for number, place in enumerate(places):
        if place.resolve() in [one.resolve() for one in places[:number]]:
            raise UsageError(f"{place} is named twice: that is one run; name different ones")
    runs = [_read(place) for place in places]
    for one, other in combinations(runs, 2):
        # A run may be named by its folder and by a file or folder in it.
        inner, outer = (Path(run.source).resolve() for run in (one, other))
        is_inside = inner.is_relative_to(outer) or outer.is_relative_to(inner)
        if is_inside and one.results is not None and one.results == other.results:
            raise UsageError(f"{one.source} and {other.source}: that is one run; name different ones")
    return tuple(replace(run, name=name) for run, name in zip(runs, unique_names(runs), strict=True))


def unique_names(runs: Sequence[RunRows]) -> list[str]:
    """Return the runs' names, with the differing parts of their paths appended to equal names."""
    names = [run.name for run in runs]
    alike = [number for number, name in enumerate(names) if names.count(name) > 1]
    for name in dict.fromkeys(names[number] for number in alike):
        of_name = [number for number in alike if runs[number].name == name]
        # The differing parts of their paths: the first differing folder if it suffices; date stamps instead of files.
        parts = [Path(runs[number].source).resolve().parts for number in of_name]
        shortest = min(map(len, parts))
        same = next((n for n in range(shortest) if len({one[n] for one in parts}) > 1), shortest)
        own = [one[same:] or (one[-1],) for one in parts]
        firsts = [one[:1] for one in own]
        if len(set(firsts)) == len(firsts):
            own = firsts
        else:
            while all(len(one) > 1 for one in own) and len({one[-1] for one in own}) == 1:
                own = [one[:-1] for one in own]
        labels = ["/".join((*one[:-1], harness_runs.date_stamp(one[-1]) or one[-1])) for one in own]
        for number, label in zip(of_name, labels, strict=True):
            names[number] = f"{name}@{label}"
    for number, name in enumerate(names):
        count = 2
        while names[number] in names[:number]:
            names[number] = f"{name}#{count}"
            count += 1
    return names


def run_with_file(file: Path, runs: Sequence[str]) -> str | None:
    """Return the run that an existing file belongs to; ``None`` if it belongs to no run.

    All files in a run's folder belong to it. For a run named by a file, results and samples of its date belong to it.
    """
    for run in runs:
        place = Path(run).expanduser().resolve()
        is_inside = file.is_relative_to(place) if place.is_dir() else file == place
        if file.exists() and (is_inside or harness_runs.is_of_run(file, place)):
            return run
    return None


def _read(path: Path) -> RunRows:
    if not path.is_dir() and not path.is_file():
        raise DataError(f"{path}: not a regular file; runs are read more than once")
    try:
        found = _read_folder(path) if path.is_dir() else _read_file(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if found is None:
        needs = "; ".join(known.needs for known in FORMATS)
        raise UsageError(f"{path}: unknown format; looked for: {needs}")
    if not any(rows.ids for rows in found.tasks.values()):
        raise DataError(f"{path} holds no document")
    return found


def _read_file(path: Path) -> RunRows | None:
    head = FileHead(path)
    reader = next((known for known in FORMATS if known.is_this(head)), None)
    return None if reader is None else reader.read(path)


def _read_folder(folder: Path) -> RunRows:
    found = find_run(folder)
    if found is not None:
        run = harness_runs.read_results(found.path)
        return replace(run, source=str(folder), notes=(*run.notes, found.note) if found.note else run.notes)
    records = sorted(folder.glob("*/*/*/" if folder.name == "data" else "data/*/*/*/"))
    for places in ([folder], *([place] for place in sorted(folder.glob("reviews/*/"))), records):
        files = sorted(
            path for place in places for path in place.iterdir() if path.suffix in ENDINGS and path.is_file()
        )
        whole = [path for path in files if not every_eval_ever.is_part(path, files)]
        if runs := [read for path in whole if (read := _read_file(path)) is not None]:
            return _joined(folder, runs)
    raise DataError(
        f"{folder}: no run in this folder; looked for *_results.json, results_*.json and .runs/*/run.json, here and "
        "one folder below, for reviews/MODEL/*.jsonl, for data/BENCHMARK/DEVELOPER/MODEL/*.json, and for files of any "
        "known format here"
    )


def _joined(folder: Path, runs: Sequence[RunRows]) -> RunRows:
    """Join files with one task each of a model's run. Raises ``DataError`` if they belong to several runs."""
    tasks = [name for run in runs for name in run.tasks]
    if len({(run.name, run.kind) for run in runs}) > 1 or len(set(tasks)) < len(tasks):
        listed = "; ".join(f"{Path(run.source).name} ({run.name}: {', '.join(run.tasks):.80})" for run in runs[:SHOWN])
        raise DataError(f"{folder} holds several runs: name the files of one of them: {listed}")
    return replace(
        runs[0],
        source=str(folder),
        tasks={name: rows for run in runs for name, rows in run.tasks.items()},
        notes=tuple(note for run in runs for note in run.notes),
    )
