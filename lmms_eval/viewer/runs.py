"""The runs of a report, read with what is left of them: what cannot be read is said, and the rest is shown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.compare.readers import harness_runs, read_runs
from lmms_eval.compare.readers.contract import FileHead
from lmms_eval.compare.readers.samples import Results, SampleFacts
from lmms_eval.compare.runs import RunRows
from lmms_eval.errors import DataError
from lmms_eval.results.facts import record_facts, sample_keys
from lmms_eval.results.files import RUNS, find_runs, read_state, run_path
from lmms_eval.results.run import results_of_record
from lmms_eval.results.sample import JudgePrompts, SampleKeys
from lmms_eval.viewer.media import Places


@dataclass(frozen=True, slots=True)
class ReportRun:
    """One run of a report."""

    rows: RunRows
    document: Mapping[str, Any]
    """The results document; empty where there is none."""
    state: Mapping[str, Any]
    """What the run's record says of itself; empty where there is none."""
    places: Places
    problems: tuple[str, ...] = ()
    """Sentences about what could not be read."""
    prompts: JudgePrompts = field(default_factory=lambda: JudgePrompts(None))
    """Those of its judge, which stand in its record."""

    @property
    def told(self) -> Mapping[str, Any]:
        """The results document; of a run that has none yet what its record tells in its place."""
        return self.document or record_facts(self.state)

    def facts(self, task: str) -> SampleFacts:
        """Tell how the samples of a task are to be read."""
        return Results(self.told).facts(task)

    def keys(self, task: str) -> SampleKeys:
        """Tell by which keys samples of a task are typed; a record names not all metrics of its journals."""
        keys = sample_keys(self.told, task)
        return keys if self.document else replace(keys, metrics=())


def read_report_runs(paths: Sequence[str], allowed: Sequence[Path] = ()) -> tuple[ReportRun, ...]:
    """Read all runs in files and folders, damaged ones too: of several that can be read the page tells.

    A run that several paths lead to is there once, and a line of the log says so. Media of a run whose record is not
    there are shown from its own folder and from the ``allowed`` ones alone.

    Raises:
        DataError: a path is missing, or none holds a run that can be read.
        UsageError: a file is of no known format, or needs a package that is not installed.
    """
    found: list[ReportRun] = []
    damaged: list[ReportRun] = []
    for place in map(run_path, paths):
        try:
            found += _runs_of(place, allowed)
        except DataError as error:
            if len(paths) == 1:
                raise
            damaged.append(_damaged(place, str(error)))
    found, damaged = list(_once(found)), list(_once(damaged))
    if not found:
        raise DataError("; ".join(problem for run in damaged for problem in run.problems))
    return (*found, *damaged)


def _once(runs: Sequence[ReportRun]) -> Iterator[ReportRun]:
    seen: set[Path] = set()
    for run in runs:
        place = Path(run.rows.source).resolve()
        if place in seen:
            logger.warning("{} is given more than once: the report holds it once", run.rows.source)
            continue
        seen.add(place)
        yield run


def _damaged(path: Path, problem: str) -> ReportRun:
    empty = RunRows(name=path.name or str(path), source=str(path), kind="unreadable", tasks={})
    return ReportRun(empty, {}, {}, Places((path,), ()), (problem,))


def _runs_of(path: Path, allowed: Sequence[Path]) -> Iterator[ReportRun]:
    if path.is_dir() and (found := find_runs(path)):
        for run in found:
            results = results_of_record(run.path) if run.path.is_dir() else run.path
            yield _record(run.path, allowed) if results is None else finished_run(results, allowed)
    elif path.is_file() and harness_runs.is_results(FileHead(path)):
        yield finished_run(path, allowed)
    elif path.is_file() and harness_runs.is_samples(FileHead(path)):
        yield _of_rows(harness_runs.read_samples_file(path, keeps_rest=True), path.parent, allowed)
    else:
        yield _other(path, allowed)


def finished_run(path: Path, allowed: Sequence[Path] = ()) -> ReportRun:
    """Read the run of a results file of ours or of the family. Raises ``DataError``."""
    document = Results.read(path)
    record = path.parent / RUNS / document.run_key
    state = read_state(record) if document.is_own else {}
    rows = harness_runs.read_results(path, keeps_rest=True)
    prompts = JudgePrompts(record if document.is_own else None)
    places = record_places(record, allowed) if state else Places((path.parent,), (path.parent, *allowed))
    return ReportRun(rows, document.content, state, places, rows.notes, prompts)


def record_places(folder: Path, allowed: Sequence[Path]) -> Places:
    """Say where the media of a run with a record lie: anywhere, if the record belongs to whoever asks."""
    output = folder.parent.parent
    return Places((output, folder), None if _is_ours(folder) else (output, *allowed))


def _is_ours(record: Path) -> bool:
    """Return whether a run's record belongs to whoever asks: such a run names the files that it sent."""
    try:
        return record.stat().st_uid == os.getuid()
    except OSError:
        return False


def _record(folder: Path, allowed: Sequence[Path]) -> ReportRun:
    state = read_state(folder)
    places = record_places(folder, allowed)
    try:
        rows = harness_runs.read_record(folder)
    except DataError as error:
        empty = RunRows(name=folder.name, source=str(folder), kind=harness_runs.OWN, tasks={})
        return ReportRun(empty, {}, state, places, (str(error),))
    return ReportRun(rows, {}, state, places, rows.notes, JudgePrompts(folder))


def _other(path: Path, allowed: Sequence[Path]) -> ReportRun:
    (rows,) = read_runs([str(path)])
    return _of_rows(rows, path if path.is_dir() else path.parent, allowed)


def _of_rows(rows: RunRows, folder: Path, allowed: Sequence[Path]) -> ReportRun:
    return ReportRun(rows, rows.results or {}, {}, Places((folder,), (folder, *allowed)), rows.notes)
